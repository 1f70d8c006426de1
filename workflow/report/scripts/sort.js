// Tables sort by a click on the head of a column, or by Enter or Space on it. Rows without a value stay at the end.
"use strict";
(() => {
  const NUMBER = /^[+−-]?\d[\d,]*(\.\d+)?/;

  function keyOf(cell) {
    const text = cell.textContent.trim();
    if (text === "–" || text === "") return null;
    const time = text.match(/^(\d+):(\d\d):(\d\d)$/);
    if (time) return (+time[1] * 60 + +time[2]) * 60 + +time[3];
    const number = text.match(NUMBER);
    return number ? Number(number[0].replaceAll(",", "").replace("−", "-").replace("+", "")) : text;
  }

  function compare(one, other) {
    if (typeof one === "number" && typeof other === "number") return one - other;
    return String(one).localeCompare(String(other), "en", { numeric: true });
  }

  function sort(table, column, direction) {
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => ({ row, key: keyOf(row.cells[column]) }));
    const [filled, empty] = [rows.filter(({ key }) => key !== null), rows.filter(({ key }) => key === null)];
    const sign = direction === "ascending" ? 1 : -1;
    filled.sort((one, other) => sign * compare(one.key, other.key));
    body.append(...[...filled, ...empty].map(({ row }) => row));
  }

  function makeSortable(table) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      if (head.tagName === "TD") return; // the bars
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      // Numbers show their largest first, which is the best in most columns; names begin with the first.
      const first = head.classList.contains("t") ? "ascending" : "descending";
      button.addEventListener("click", () => {
        const now = head.getAttribute("aria-sort");
        const other = now === "ascending" ? "descending" : "ascending";
        const direction = now ? other : first;
        heads.forEach((each) => each.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", direction);
        sort(table, column, direction);
      });
    });
  }

  document.querySelectorAll("figure.table table:not(#matrix)").forEach(makeSortable);
})();
