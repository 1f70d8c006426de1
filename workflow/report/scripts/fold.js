// What a link leads to unfolds, and a list of contents closes when one of its links was followed or something else pressed.
"use strict";
(() => {
  const lists = [...document.querySelectorAll("nav details")];
  function unfold() {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    target.querySelectorAll(":scope > details").forEach((each) => (each.open = true));
    for (let each = target.closest("details"); each; each = each.parentElement.closest("details")) each.open = true;
    target.scrollIntoView();
  }
  addEventListener("hashchange", unfold);
  document.addEventListener("click", ({ target }) => {
    lists.forEach((list) => {
      if (!list.contains(target) || target.closest("a")) list.open = false;
    });
    if (target.closest("nav a")) setTimeout(unfold); // also if it leads to where the page is already
  });
  addEventListener("keydown", ({ key }) => key === "Escape" && lists.forEach((list) => (list.open = false)));
  unfold();
})();
