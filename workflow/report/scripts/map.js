// The interactive map: papers as points that name themselves, as one model places them, in the colours of one label.
"use strict";
document.querySelectorAll("figure.map").forEach((figure) => {
  const ABSENT = 65535;
  const LARGEST = 65534;
  const COLOURS = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c564b", "#7b68c8", "#a3a300", "#e0567a",
    "#2a9fa8", "#b05fd0", "#5f9e3a", "#c98a5a", "#4a6fe3", "#b23a6f", "#7f8f3f", "#3f8f6f", "#b84a4a",
  ];
  const GREY = "#808080";
  const CLUSTERS = "cluster";
  const STEP = 1.5; // of a zoom
  const LISTED = 50; // papers in the list below the map
  const data = JSON.parse(document.getElementById(`${figure.id}-data`).textContent);
  const one = (name) => figure.querySelector(`.map-${name}`);
  const [canvas, tip, status, list, legend] = ["canvas", "tip", "status", "list", "legend"].map(one);
  const [models, colours, find] = ["model", "colour", "find"].map(one);
  const number = (value) => value.toLocaleString("en");
  const view = new MapView(canvas, data.papers, () => {
    point(-1);
    tell();
  });
  const labels = new Map(); // the name of a label, or "cluster" → { names, numbers }
  let texts = { titles: [], years: [] };

  async function bytesOf(text) {
    const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).arrayBuffer();
  }

  const numbersOf = async (text) => new Uint16Array(await bytesOf(text));

  async function placesOf(model) {
    const numbers = await numbersOf(model.points);
    const along = (part) => Float32Array.from(part, (at) => (at === ABSENT ? NaN : at / LARGEST));
    return { x: along(numbers.subarray(0, data.papers)), y: along(numbers.subarray(data.papers)) };
  }

  function element(name, text, attributes = {}) {
    const made = document.createElement(name);
    made.textContent = text;
    Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
    return made;
  }

  // What is in view, in words: as a number for everyone, and as a list for who opens it.
  let telling = 0;
  function tell() {
    clearTimeout(telling);
    telling = setTimeout(() => {
      const seen = view.papersInView();
      const matching = view.found ? seen.filter((paper) => view.found.has(paper)) : seen;
      status.textContent = view.found
        ? `${number(view.found.size)} found, ${number(matching.length)} of them in view`
        : `${number(seen.length)} of ${number(data.papers)} papers in view`;
      if (list.open) fill(matching);
    }, 150);
  }

  function fill(seen) {
    const far = (paper) => (view.places.x[paper] - view.x) ** 2 + (view.places.y[paper] - view.y) ** 2;
    const nearest = seen.sort((paper, other) => far(paper) - far(other)).slice(0, LISTED);
    const items = nearest.map((paper) => {
      const [item, button] = [element("li", ""), element("button", texts.titles[paper], { type: "button" })];
      button.addEventListener("click", () => point(paper));
      item.append(button, ` ${described(paper)}`);
      return item;
    });
    list.querySelector("ol").replaceChildren(...items);
  }

  function described(paper) {
    const of = ([label, { names, numbers }]) => {
      const at = numbers[paper];
      if (label === CLUSTERS) return at === ABSENT ? "in no cluster" : names[at];
      return at === ABSENT ? "" : `${label}: ${names[at]}`;
    };
    return [texts.years[paper], ...[...labels].map(of)].filter(Boolean).join(" · ");
  }

  function point(paper) {
    view.pointed = paper;
    tip.hidden = paper < 0;
    if (paper >= 0) {
      tip.replaceChildren(element("strong", texts.titles[paper]), element("span", described(paper)));
      const [x, y] = view.at(paper);
      const place = (before, after, at, size) => {
        tip.style[before] = at < size / 2 ? `${Math.max(0, at + 10)}px` : "";
        tip.style[after] = at < size / 2 ? "" : `${Math.max(0, size - at + 10)}px`;
      };
      place("left", "right", x, view.width);
      place("top", "bottom", y, view.height);
    }
    view.ask();
  }

  // The papers by the classes of the chosen label: the largest are drawn first, so that the others are on top.
  function colour() {
    const { names, numbers } = labels.get(colours.value);
    const named = names.slice(0, COLOURS.length).map((name, at) => ({ name, colour: COLOURS[at], members: [] }));
    const others = { name: "others", colour: GREY, members: [] };
    const none = { name: colours.value === CLUSTERS ? "in no cluster" : "unknown", colour: GREY, members: [] };
    numbers.forEach((at, paper) => (at === ABSENT ? none : named[at] ?? others).members.push(paper));
    view.groups = [none, others, ...named].filter((group) => group.members.length);
    view.picked = null;
    legend.setAttribute("aria-label", `Legend: ${colours.value}`);
    legend.replaceChildren(...[...named, others, none].filter((group) => group.members.length).map(entry));
    point(-1);
  }

  function entry({ name, colour: ofGroup, members }) {
    const [item, dot] = [element("li", ""), element("span", "", { class: "map-dot" })];
    const button = element("button", "", { type: "button", "aria-pressed": "false" });
    dot.style.background = ofGroup;
    button.append(dot, ` ${name} (${number(members.length)})`);
    button.addEventListener("click", () => {
      view.picked = view.picked === name ? null : name;
      legend.querySelectorAll("button").forEach((each) => each.setAttribute("aria-pressed", "false"));
      button.setAttribute("aria-pressed", String(view.picked === name));
      view.ask();
    });
    item.append(button);
    return item;
  }

  async function showModel() {
    const model = data.models[models.selectedIndex];
    canvas.dataset.moving = "true";
    const [places, numbers] = await Promise.all([placesOf(model), numbersOf(model.clusters)]);
    if (model !== data.models[models.selectedIndex]) return; // another one was chosen meanwhile
    labels.set(CLUSTERS, { numbers, names: model.names });
    canvas.setAttribute("aria-label", `Map of ${number(data.papers)} papers as ${model.name} places them`);
    if (colours.value === CLUSTERS || !view.groups.length) colour();
    point(-1);
    view.moveTo(places);
  }

  function look() {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    const matches = (title) => words.every((word) => title.toLowerCase().includes(word));
    view.found = words.length ? new Set(texts.titles.flatMap((title, at) => (matches(title) ? [at] : []))) : null;
    view.changed();
  }

  function followPointer() {
    let held = null;
    const at = (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    canvas.addEventListener("pointerdown", (event) => {
      held = at(event);
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      const [x, y] = at(event);
      if (held && event.buttons) {
        view.pan(x - held[0], y - held[1]);
        held = [x, y];
      } else {
        const paper = view.nearest(x, y);
        if (paper !== view.pointed) point(paper);
      }
    });
    canvas.addEventListener("pointerup", (event) => {
      held = null;
      point(view.nearest(...at(event)));
    });
    canvas.addEventListener("pointerleave", () => point(-1));
    canvas.addEventListener("dblclick", (event) => view.zoomBy(2, ...at(event)));
    const turned = (event) => {
      if (!event.ctrlKey && document.activeElement !== canvas) return; // the page scrolls
      event.preventDefault();
      view.zoomBy(Math.exp(-event.deltaY / 400), ...at(event));
    };
    canvas.addEventListener("wheel", turned, { passive: false });
  }

  function followKeys() {
    const keys = {
      ArrowLeft: () => view.pan(60, 0),
      ArrowRight: () => view.pan(-60, 0),
      ArrowUp: () => view.pan(0, 60),
      ArrowDown: () => view.pan(0, -60),
      "+": () => view.zoomBy(STEP),
      "=": () => view.zoomBy(STEP),
      "-": () => view.zoomBy(1 / STEP),
      0: () => view.reset(),
      Escape: () => point(-1),
    };
    canvas.addEventListener("keydown", (event) => {
      if (!keys[event.key] || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      keys[event.key]();
    });
    one("in").addEventListener("click", () => view.zoomBy(STEP));
    one("out").addEventListener("click", () => view.zoomBy(1 / STEP));
    one("whole").addEventListener("click", () => view.reset());
  }

  async function start() {
    models.append(...data.models.map(({ name }) => new Option(name)));
    if (figure.dataset.best) models.value = figure.dataset.best;
    colours.append(...data.labels.map(({ name }) => new Option(name)), new Option(CLUSTERS));
    texts = JSON.parse(new TextDecoder().decode(await bytesOf(data.texts)));
    for (const { name, classes, values } of data.labels) labels.set(name, { names: classes, numbers: await numbersOf(values) });
    followPointer();
    followKeys();
    models.addEventListener("change", showModel);
    colours.addEventListener("change", colour);
    find.addEventListener("input", look);
    list.addEventListener("toggle", tell);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => view.ask());
    await showModel();
  }

  // Nothing is unpacked before someone comes near.
  const watch = new IntersectionObserver((entries) => {
    if (!entries.some((each) => each.isIntersecting)) return;
    watch.disconnect();
    start();
  }, { rootMargin: "600px" });
  watch.observe(figure);
});
