
// The page of a search. Its whole state is in its address, so that a link reproduces it. Answers of the server
// are only ever shown as text.
const one = (selector, within = document) => within.querySelector(selector);
const SIDES = ["left", "right"];
const SIZES = [5, 10, 20, 50, 100];
const KNOWN = ["more", "balanced", "less"];
const NOTHING = "";
const WAIT = 150; // milliseconds without a key before titles are looked for
const UNTITLED = "(no title)";
let run = null;
let turn = 0; // of several searches only the last one is shown
let redraw = () => {};

function element(name, text = "", attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

async function ask(path, parameters = {}) {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined);
  let response;
  try {
    response = await fetch(`${path}?${new URLSearchParams(given)}`);
  } catch {
    throw new Error("The server does not answer; is `cocite serve` still running?");
  }
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

function say(sentence, isWrong = false) {
  one("#status").textContent = sentence;
  one("#status").classList.toggle("wrong", isWrong);
}

// The state: the query, the models, the number of papers, and the map.
function fromAddress() {
  const given = new URLSearchParams(location.search);
  const names = run.models.map(({ name }) => name);
  return {
    paper: given.get("paper") ?? undefined,
    text: given.has("paper") ? undefined : given.get("text") ?? undefined,
    left: given.get("left") ?? names[0],
    right: given.get("right") ?? names[1] ?? NOTHING,
    k: given.get("k") ?? "10",
    known: given.get("known") ?? undefined,
    map: given.get("map") ?? run.maps[0]?.name,
  };
}

function fromControls(asked) {
  return {
    ...asked,
    left: one("#left").value,
    right: one("#right").value,
    k: one("#k").value,
    known: one("#known").value || undefined,
    map: one("#map").value || undefined,
  };
}

function addressOf(state) {
  const given = Object.entries(state).filter(([, value]) => value !== undefined);
  return `${location.pathname}?${new URLSearchParams(given)}`;
}

function go(state) {
  history.pushState(null, "", addressOf(state));
  show(state);
}

function askedNow() {
  const { paper, text } = fromAddress();
  return { paper, text };
}

// A link's value that is not an option is shown as one, and the server reports what is wrong with it.
function choose(select, value) {
  if (![...select.options].some((option) => option.value === value)) select.append(new Option(value, value));
  select.value = value;
}

async function show(state) {
  turn += 1;
  const mine = turn;
  for (const side of SIDES) choose(one(`#${side}`), state[side]);
  choose(one("#k"), state.k);
  choose(one("#known"), state.known ?? NOTHING);
  if (state.map) choose(one("#map"), state.map);
  one("#shared").textContent = "";
  const isAsked = state.paper !== undefined || state.text !== undefined;
  one("#found").hidden = true;
  if (!isAsked) return say("");
  say("Searching …");
  try {
    const paper = state.paper === undefined ? undefined : await recordOf(state.paper);
    if (!paper) one("#query").value = state.text;
    const names = SIDES.map((side) => state[side]).filter((name) => name !== NOTHING);
    const found = await Promise.all(names.map((model) => nearest(model, state)));
    if (mine !== turn) return;
    showQuery(paper, state);
    showColumns(names, found, state);
    say("");
    one("#found").hidden = false;
    await Promise.all([showRelations(state, found, mine), showMaps(names, found, state, mine)]);
    document.documentElement.dataset.shown = mine;
  } catch (error) {
    if (mine === turn) say(error.message, true);
  }
}

// A paper may have a vector, and the corpus no record of it.
async function recordOf(paper) {
  try {
    return await ask("/api/paper", { paper });
  } catch {
    return { paper, title: null, year: null };
  }
}

const nearest = (model, { paper, text, k, known }) => ask("/api/nearest", { model, paper, text, k, known });

function showQuery(paper, state) {
  const title = paper ? paper.title ?? UNTITLED : state.text;
  one("#asked-title").textContent = paper ? title : `“${title.length > 200 ? `${title.slice(0, 199)}…` : title}”`;
  one("#asked-facts").textContent = paper ? factsOf(paper) : "Free text: no citation links.";
  document.title = `${title.slice(0, 80)} · CoCite search`;
}

const factsOf = ({ paper, year }) => [year, `paper ${paper}`].filter(Boolean).join(" · ");

function showColumns(names, found, state) {
  const columns = names.map((name, at) => {
    const column = one("#column").content.cloneNode(true).firstElementChild;
    const model = run.models.find((each) => each.name === name);
    one("h3", column).textContent = name;
    one("h3", column).id = `column-${at}`;
    column.setAttribute("aria-labelledby", `column-${at}`);
    one(".note", column).textContent = model.lists ? "Found by an index, which can miss a paper now and then." : "";
    one(".hits", column).append(...found[at].map((hit, place) => shownHit(hit, place, ranksElsewhere(hit, names, found, at), state)));
    return column;
  });
  one(".columns").replaceChildren(...columns);
}

function ranksElsewhere(hit, names, found, at) {
  const other = 1 - at;
  if (!found[other] || names[0] === names[1]) return "";
  const place = found[other].findIndex(({ paper }) => paper === hit.paper);
  return place < 0 ? "" : `rank ${place + 1} on the ${SIDES[other]}`;
}

function shownHit(hit, place, elsewhere, state) {
  const item = element("li", "", { "data-paper": hit.paper });
  const link = element("a", hit.title ?? UNTITLED, { href: addressOf({ ...state, paper: hit.paper, text: undefined }) });
  const isScored = hit.score !== undefined;
  const number = isScored ? hit.score.toFixed(2) : hit.distance.toPrecision(4);
  const distance = element("span", number, { class: "distance", title: isScored ? "Score" : "Euclidean distance" });
  const facts = [factsOf(hit), elsewhere, isScored && whyFound(hit)].filter(Boolean).join(" · ");
  const badges = element("ul", "", { class: "badges", "aria-label": "What the graph and the triplets say" });
  badges.hidden = true;
  item.append(element("span", place + 1, { class: "rank" }), link, distance, element("span", facts, { class: "facts-of" }), badges);
  const mark = (isSame) => document.querySelectorAll(".hits > li").forEach((each) => each.classList.toggle("same", isSame && each.dataset.paper === hit.paper));
  item.addEventListener("mouseenter", () => mark(true));
  item.addEventListener("mouseleave", () => mark(false));
  return item;
}

// The parts that a score is the sum of.
function whyFound({ parts, cited }) {
  const signed = ([name, part]) => `${name} ${part < 0 ? "−" : "+"}${Math.abs(part).toFixed(2)}`;
  return [`cited ${cited} ×`, ...Object.entries(parts).map(signed)].join(" · ");
}

async function showRelations({ paper }, found, mine) {
  const others = [...new Set(found.flat().map((hit) => hit.paper))];
  if (paper === undefined || !others.length) return;
  const parts = [];
  for (let at = 0; at < others.length; at += 100) parts.push(others.slice(at, at + 100).join(","));
  const answers = await Promise.all(parts.map((part) => ask("/api/relations", { paper, others: part })));
  if (mine !== turn) return;
  const related = Object.assign({}, ...answers);
  for (const item of document.querySelectorAll(".hits > li")) {
    const badges = one(".badges", item);
    badges.append(...(related[item.dataset.paper] ?? []).map(badge));
    badges.hidden = !badges.children.length;
  }
}

function badge({ relation, name, count }) {
  const words = {
    cites: "the query cites it",
    "is cited by": "cites the query",
    "co-cited": `co-cited ${count} × in ${name}`,
    positive: `positive in ${name}`,
    negative: `negative in ${name}`,
  };
  return element("li", words[relation], { class: relation === "is cited by" ? "cites" : relation });
}

async function showMaps(names, found, { map, paper }, mine) {
  const shown = await Promise.all(names.map((model) => pointsOf(map, model)));
  if (mine !== turn) return;
  const figures = [...document.querySelectorAll(".column .place")];
  const drawings = shown.map((points, at) => mapIn(figures[at], points, { map, model: names[at], paper, hits: found[at] }));
  redraw = () => drawings.forEach((draw) => draw());
  redraw();
}

async function pointsOf(name, model) {
  if (!run.maps.some((each) => each.name === name && each.model === model)) return null;
  return ask("/api/points", { name, model });
}

// Describes a map, and returns what draws it.
function mapIn(figure, points, { map, model, paper, hits }) {
  const [canvas, caption] = [one("canvas", figure), one("figcaption", figure)];
  const places = new Map(points?.papers.map((each, at) => [each, at]));
  const ranks = hits.map((hit, place) => [places.get(hit.paper), place + 1]).filter(([at]) => at !== undefined);
  const query = places.get(paper);
  if (!ranks.length && query === undefined) {
    canvas.remove();
    if (run.maps.length) caption.textContent = points ? `None of these papers is on the map ${map}.` : `The map ${map} does not show this model.`;
    return () => {};
  }
  const ofQuery = paper === undefined ? "" : query === undefined ? " The query is not on it." : " The ring is around the query.";
  caption.textContent = `The map ${map} shows ${ranks.length} of these ${hits.length} papers by rank.${ofQuery}`;
  canvas.setAttribute("aria-label", `Map ${map} as ${model} places its papers. ${caption.textContent}`);
  return () => drawMap(canvas, points, query, ranks);
}

// Suggestions: papers whose titles have the words that were typed.
function suggesting() {
  const [input, list] = [one("#query"), one("#suggestions")];
  let [wait, chosen, papers, typed] = [0, -1, [], 0];

  function close() {
    typed += 1;
    clearTimeout(wait);
    [list.hidden, chosen] = [true, -1];
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }

  function point(to) {
    chosen = to;
    [...list.children].forEach((item, at) => item.setAttribute("aria-selected", String(at === chosen)));
    if (chosen < 0) input.removeAttribute("aria-activedescendant");
    else input.setAttribute("aria-activedescendant", list.children[chosen].id);
  }

  function take(paper) {
    close();
    input.value = "";
    go(fromControls({ paper, text: undefined }));
  }

  async function suggest() {
    const words = input.value.trim().slice(0, 200);
    const mine = (typed += 1);
    papers = words ? await ask("/api/papers", { words }).catch(() => []) : [];
    if (mine !== typed) return;
    const items = papers.map(({ paper, title, year }, at) => {
      const item = element("li", title, { id: `suggestion-${at}`, role: "option", "aria-selected": "false" });
      if (year) item.append(" ", element("small", year));
      item.addEventListener("mousedown", (event) => {
        event.preventDefault(); // the field keeps the focus
        take(paper);
      });
      return item;
    });
    list.replaceChildren(...items);
    list.hidden = !items.length;
    input.setAttribute("aria-expanded", String(!list.hidden));
    point(-1);
  }

  input.addEventListener("input", () => {
    clearTimeout(wait);
    wait = setTimeout(suggest, WAIT);
  });
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !list.hidden) {
      event.preventDefault();
      close();
    }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || list.hidden) return;
    event.preventDefault();
    const length = papers.length + 1; // with the text itself, before the first
    point(((chosen + 1 + step + length) % length) - 1);
  });
  one("#search").addEventListener("submit", (event) => {
    event.preventDefault();
    if (chosen >= 0 && !list.hidden) return take(papers[chosen].paper);
    close();
    const text = input.value;
    const isId = /^\s*\d+\s*$/.test(text);
    if (!text.trim()) return say("There is nothing to search for: the field is empty.", true);
    go(fromControls(isId ? { paper: text.trim(), text: undefined } : { text, paper: undefined }));
  });
}

function changed() {
  const asked = askedNow();
  if (asked.paper !== undefined || asked.text !== undefined) go(fromControls(asked));
}

async function copyLink() {
  try {
    await navigator.clipboard.writeText(location.href);
    one("#shared").textContent = "Copied.";
  } catch {
    one("#shared").textContent = "The address of this page is the link.";
  }
}

function describeRun() {
  const { release, papers, models, maps } = run;
  const indexes = models.filter(({ known }) => known);
  const number = (count) => count.toLocaleString("en");
  const parts = [`Run ${run.run}`, release && `release ${release}`, `${number(papers)} papers`, `${models.length} ${indexes.length ? "indexes and models" : `model${models.length > 1 ? "s" : ""}`}`];
  const ofIndexes = "The score of an index is the sum of the parts that each paper lists. ";
  const measure = `${indexes.length ? ofIndexes : ""}Distances of models are Euclidean, as in the benchmarks that rank them.`;
  one("#run").textContent = `${parts.filter(Boolean).join(" · ")}. ${measure}`;
  const names = models.map(({ name }) => name);
  one("#left").append(...names.map((name) => new Option(name)));
  one("#right").append(...names.map((name) => new Option(name)), new Option("none", NOTHING));
  one("#known").append(new Option("as configured", NOTHING), ...KNOWN.map((each) => new Option(each)));
  one("#known-choice").hidden = !indexes.length;
  one("#k").append(...SIZES.map((size) => new Option(size)));
  const named = [...new Set(maps.map(({ name }) => name))];
  one("#map").append(...named.map((name) => new Option(name)));
  one("#map-choice").hidden = named.length < 2;
}

async function start() {
  try {
    run = await ask("/api/run");
  } catch (error) {
    return say(error.message, true);
  }
  describeRun();
  suggesting();
  for (const name of [...SIDES, "k", "known", "map"]) one(`#${name}`).addEventListener("change", changed);
  one("#share").addEventListener("click", copyLink);
  addEventListener("popstate", () => show(fromAddress()));
  addEventListener("resize", () => redraw());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraw());
  await show(fromAddress());
}

start();
