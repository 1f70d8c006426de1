// A table that is wider than the window says so: a shadow where it goes on, a line of text, and a place for the keyboard.
"use strict";
(() => {
  function mark(wide) {
    const hidden = wide.scrollWidth - wide.clientWidth;
    const isWide = hidden > 1 || wide.scrollHeight - wide.clientHeight > 1;
    wide.classList.toggle("more-left", hidden > 1 && wide.scrollLeft > 1);
    wide.classList.toggle("more-right", hidden > 1 && wide.scrollLeft < hidden - 1);
    if (isWide) wide.tabIndex = 0;
    else wide.removeAttribute("tabindex");
    let hint = wide.nextElementSibling;
    if (!hint || !hint.classList.contains("hint")) {
      hint = document.createElement("span");
      hint.className = "hint";
      hint.textContent = "This table goes on to the right: scroll it sideways.";
      wide.after(hint);
    }
    hint.hidden = hidden <= 1;
  }

  const all = [...document.querySelectorAll(".wide")];
  const markAll = () => all.forEach(mark);
  all.forEach((wide) => {
    wide.addEventListener("scroll", () => mark(wide), { passive: true });
    wide.addEventListener("shown", () => mark(wide));
  });
  addEventListener("resize", markAll);
  markAll();
})();
