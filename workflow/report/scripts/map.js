// The interactive map: papers as points that name themselves, as one model places them, in the colours of one label.
"use strict";
document.querySelectorAll("figure.map").forEach((figure) => {
  const CLUSTERS = "cluster";
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

  async function placesOf(model) {
    const numbers = await MapView.numbers(model.points);
    return { x: MapView.along(numbers.subarray(0, data.papers)), y: MapView.along(numbers.subarray(data.papers)) };
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
      if (label === CLUSTERS) return at === MapView.ABSENT ? "in no cluster" : names[at];
      return at === MapView.ABSENT ? "" : `${label}: ${names[at]}`;
    };
    return [texts.years[paper], ...[...labels].map(of)].filter(Boolean).join(" · ");
  }

  function point(paper) {
    view.pointed = paper;
    tip.hidden = paper < 0;
    if (paper >= 0) {
      tip.replaceChildren(element("strong", texts.titles[paper]), element("span", described(paper)));
      view.putBeside(paper, tip);
    }
    view.ask();
  }

  function colour() {
    const { names, numbers } = labels.get(colours.value);
    const classes = names.map((name, at) => ({ name, colour: MapView.COLOURS[at] ?? MapView.GREY }));
    const [named, others] = [classes.slice(0, MapView.COLOURS.length), { name: "others", colour: MapView.GREY }];
    view.colourBy(numbers, named, others, colours.value === CLUSTERS ? "in no cluster" : "unknown", legend);
    legend.setAttribute("aria-label", `Legend: ${colours.value}`);
    point(-1);
  }

  async function showModel() {
    const model = data.models[models.selectedIndex];
    canvas.dataset.moving = "true";
    const [places, numbers] = await Promise.all([placesOf(model), MapView.numbers(model.clusters)]);
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

  async function start() {
    models.append(...data.models.map(({ name }) => new Option(name)));
    if (figure.dataset.best) models.value = figure.dataset.best;
    colours.append(...data.labels.map(({ name }) => new Option(name)), new Option(CLUSTERS));
    texts = JSON.parse(new TextDecoder().decode(await MapView.numbers(data.texts, Uint8Array)));
    for (const { name, classes, values } of data.labels) labels.set(name, { names: classes, numbers: await MapView.numbers(values) });
    view.follow(figure, point);
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
