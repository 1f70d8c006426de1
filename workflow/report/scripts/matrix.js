// The matrix of differences, one measure at a time.
"use strict";
(() => {
  const { models, seeds, questions } = JSON.parse(document.getElementById("differences-data").textContent);
  const table = document.getElementById("matrix");
  const select = document.getElementById("matrix-measure");
  if (!table || !questions.length) return;
  const NONE = -32768;
  const HUNDREDTHS = 100;

  function unpack(packed) {
    const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
    const view = new DataView(bytes.buffer);
    return Array.from({ length: bytes.length / 2 }, (_, place) => view.getInt16(2 * place, true));
  }

  function unpacked(question) {
    question.values ??= unpack(question.packed);
    return question.values;
  }

  // Pairs come row by row above the diagonal; below it, signs change and the ends of the interval change places.
  function pair(question, row, column) {
    const [first, second] = row < column ? [row, column] : [column, row];
    const place = first * models.length - (first * (first + 1)) / 2 + second - first - 1;
    const numbers = unpacked(question);
    const each = (2 * numbers.length) / (models.length * (models.length - 1));
    const [value, ...ends] = numbers.slice(each * place, each * (place + 1));
    if (value === NONE) return null;
    question.bits ??= Uint8Array.from(atob(question.sure), (letter) => letter.charCodeAt(0));
    const star = (question.bits[place >> 3] >> (place & 7)) & 1 ? starOf(row, column) : "";
    const turned = ends.map((_, at) => -ends[at ^ 1]);
    const [low, high, wideLow, wideHigh] = row < column ? ends : turned;
    return { value: row < column ? value : -value, low, high, wideLow, wideHigh, star };
  }

  // What was trained once says nothing about other seeds: neither its stars nor an interval count them.
  const isOfOneSeed = (row, column) => seeds[row] === 1 || seeds[column] === 1;
  const starOf = (row, column) => (isOfOneSeed(row, column) ? "(*)" : "*");
  const countsSeeds = (row, column) => !isOfOneSeed(row, column) && seeds[row] + seeds[column] > 0;

  const points = (value, digits = 1) => {
    const text = (Math.abs(value) / HUNDREDTHS).toFixed(digits);
    return Number(text) === 0 ? text : (value < 0 ? "−" : "+") + text;
  };

  function element(name, text, attributes = {}) {
    const made = document.createElement(name);
    made.textContent = text;
    Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
    return made;
  }

  const surely = ({ low, high }) => (low > 0 ? "up" : high < 0 ? "down" : "");

  function differenceCell(question, row, column) {
    const found = pair(question, row, column);
    if (!found) return element("td", "–");
    const cell = element("td", points(found.value) + found.star, { class: surely(found) });
    cell.append(element("small", `${points(found.low)} to ${points(found.high)}`));
    if (found.wideLow !== undefined && countsSeeds(row, column)) {
      cell.append(element("small", `seeds: ${points(found.wideLow)} to ${points(found.wideHigh)}`));
    }
    return cell;
  }

  function show(question, remark) {
    const all = models.map((_, place) => place);
    const places = all.filter((one) => all.some((other) => one !== other && pair(question, one, other)));
    const head = element("tr", "");
    head.append(
      element("th", "row − column", { scope: "col" }),
      ...places.map((place) => element("th", models[place], { scope: "col" })),
    );
    const rows = places.map((row) => {
      const line = element("tr", "");
      const cells = places.map((column) => (row === column ? element("td", "·", { class: "self" }) : differenceCell(question, row, column)));
      line.append(element("th", models[row], { scope: "row" }), ...cells);
      return line;
    });
    const [thead, tbody] = [element("thead", ""), element("tbody", "")];
    thead.append(head);
    tbody.append(...rows);
    table.replaceChildren(thead, tbody);
    document.getElementById("matrix-items").textContent = remark;
    table.dispatchEvent(new Event("shown", { bubbles: true }));
  }

  function showChosen() {
    const question = questions[+select.value];
    show(
      question,
      question.remark ?? `over ${question.items.toLocaleString("en")} queries or documents; four of five experiments like this one would show a difference of ${question.detectable} with a star`,
    );
  }

  for (const benchmark of new Set(questions.map((question) => question.benchmark))) {
    const group = element("optgroup", "", { label: benchmark });
    questions.forEach((question, place) => {
      if (question.benchmark === benchmark) group.append(element("option", `${benchmark}: ${question.measure}`, { value: place }));
    });
    select.append(group);
  }
  select.addEventListener("change", showChosen);
  showChosen();
})();
