// Each table can be saved as CSV, as it is shown, and each figure as SVG, with its legend.
"use strict";
(() => {
  const OF_SVG = "http://www.w3.org/2000/svg";
  const LINE = 18; // of a legend
  const SIGN = 34; // before a name

  function button(figure, kind, make) {
    const made = document.createElement("button");
    made.type = "button";
    made.className = "save";
    made.textContent = kind.toUpperCase();
    const title = figure.querySelector("figcaption strong").textContent.trim();
    made.setAttribute("aria-label", `Save as ${kind.toUpperCase()}: ${title}`);
    made.addEventListener("click", () => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([make()], { type: kind === "csv" ? "text/csv" : "image/svg+xml" }));
      link.download = `${title.replace(/\W+/g, "-").replace(/^-|-$/g, "").toLowerCase()}.${kind}`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    });
    figure.querySelector("figcaption strong").after(" ", made);
  }

  function csv(table) {
    const text = (cell) => [...cell.childNodes].map((node) => (node.nodeName === "SMALL" ? " " : "") + node.textContent).join("").trim();
    const quoted = (words) => {
      const line = words.replace(/\s+/g, " ").replaceAll("−", "-").replace(/^–$/, "");
      // A spreadsheet computes what begins like this, and titles come from strangers; differences are numbers.
      const isComputed = /^[=+@＝＋－＠-]/.test(line) && !/^[+-][\d.][-+\d.,*()±%to ]*$/.test(line);
      if (isComputed) return quoted(`'${line}`);
      return /[",]/.test(line) ? `"${line.replaceAll('"', '""')}"` : line;
    };
    const line = (row) => [...row.cells].filter((cell) => !cell.classList.contains("bar")).map((cell) => quoted(text(cell)));
    return [...table.rows].map((row) => line(row).join(",")).join("\n") + "\n";
  }

  function svg(figure) {
    const root = document.createElementNS(OF_SVG, "svg");
    const add = (part, x, y, width, height) => {
      Object.entries({ x, y, width, height }).forEach(([key, value]) => part.setAttribute(key, value));
      root.append(part);
    };
    let [wide, high, row] = [0, 0, 0];
    const panels = [...figure.querySelectorAll(".panels > svg")];
    panels.forEach((panel, at) => {
      const { width, height } = panel.viewBox.baseVal;
      if (at % 4 === 0) [row, high] = [high, high + height];
      add(panel.cloneNode(true), (at % 4) * width, row, width, height);
      wide = Math.max(wide, ((at % 4) + 1) * width);
    });
    figure.querySelectorAll(".legend li").forEach((entry) => {
      const sign = entry.querySelector("svg");
      if (sign) add(sign.cloneNode(true), 4, high + 4, 28, 10);
      const name = document.createElementNS(OF_SVG, "text");
      name.textContent = entry.textContent.trim();
      add(name, SIGN + 4, high + 13, 0, 0);
      name.setAttribute("fill", "currentColor");
      high += LINE;
    });
    root.setAttribute("viewBox", `0 0 ${wide} ${high}`);
    root.setAttribute("style", "color: #1b1f24; background: #fff; font: 12px sans-serif");
    return new XMLSerializer().serializeToString(root);
  }

  document.querySelectorAll("figure.table").forEach((figure) => button(figure, "csv", () => csv(figure.querySelector("table"))));
  document.querySelectorAll("figure.drawn").forEach((figure) => button(figure, "svg", () => svg(figure)));
})();
