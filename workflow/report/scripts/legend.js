// A name in a legend is a button: pressed, its lines are highlighted in all panels of the figure.
"use strict";
document.querySelectorAll("figure.drawn").forEach((figure) => {
  const entries = [...figure.querySelectorAll(".legend li")];
  if (entries.length < 2) return;
  entries.forEach((entry) => {
    const button = document.createElement("button");
    button.type = "button";
    button.setAttribute("aria-pressed", "false");
    button.append(...entry.childNodes);
    entry.append(button);
    button.addEventListener("click", () => {
      const isPicked = button.getAttribute("aria-pressed") === "true";
      figure.querySelectorAll("[aria-pressed]").forEach((each) => each.setAttribute("aria-pressed", "false"));
      figure.querySelectorAll(".picked").forEach((each) => each.classList.remove("picked"));
      figure.classList.toggle("picking", !isPicked);
      if (isPicked) return;
      button.setAttribute("aria-pressed", "true");
      const lines = `.panels [data-series="${entry.dataset.series}"]`;
      figure.querySelectorAll(lines).forEach((line) => line.classList.add("picked"));
    });
  });
});
