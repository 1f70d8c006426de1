// Marks a table with more columns or rows than fit: a fade at the edge, a line of text, and keyboard focus.
"use strict";
(() => {
  function mark(wide) {
    const hidden = wide.scrollWidth - wide.clientWidth;
    const below = wide.scrollHeight - wide.clientHeight;
    const goesOn = hidden > 1 || below > 1;
    wide.classList.toggle("more-left", hidden > 1 && wide.scrollLeft > 1);
    wide.classList.toggle("more-right", hidden > 1 && wide.scrollLeft < hidden - 1);
    wide.classList.toggle("more-below", below > 1 && wide.scrollTop < below - 1);
    if (goesOn) wide.tabIndex = 0;
    else wide.removeAttribute("tabindex");
    let hint = wide.nextElementSibling;
    if (!hint || !hint.classList.contains("hint")) {
      hint = document.createElement("span");
      hint.className = "hint";
      wide.after(hint);
    }
    const rows = wide.querySelectorAll("tbody tr").length;
    const ways = [hidden > 1 ? "to the right" : "", below > 1 ? `below (${rows} rows)` : ""].filter(Boolean);
    hint.textContent = `This table continues ${ways.join(" and ")}: scroll it.`;
    hint.hidden = !goesOn;
  }

  const all = [...document.querySelectorAll(".wide")];
  const markAll = () => all.forEach(mark);
  all.forEach((wide) => {
    wide.addEventListener("scroll", () => mark(wide), { passive: true });
    wide.addEventListener("shown", () => mark(wide));
  });
  addEventListener("resize", markAll);
  document.addEventListener("toggle", markAll, true);
  markAll();
})();
