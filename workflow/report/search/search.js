
// The page of a search. Its whole state is in its address, so that a link reproduces it. Answers of the server
// are only ever shown as text.
const one = (selector, within = document) => within.querySelector(selector);
const SIDES = ["left", "right"];
const SIZES = [5, 10, 20, 50, 100];
const KNOWN = ["more", "balanced", "less"];
const FORMS = { bibtex: "BibTeX", ris: "RIS", csv: "CSV" };
const AUTHORS = 3; // named before "et al."
const NOTHING = "";
const WAIT = 150; // milliseconds without a key before titles are looked for
const LONG = 1500; // milliseconds of a search after which the page says why it can take so long
const UNTITLED = "(no title)";
let run = null;
let turn = 0; // of several searches only the last one is shown
let redraw = () => {};
let map = null;
let marked = []; // the papers of a search, for the map

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

// The state: what is asked for, the models, the number of papers, the filters, and the model of the map if it is open.
function fromAddress() {
  const given = new URLSearchParams(location.search);
  const names = run.models.map(({ name }) => name);
  const own = ["paper", "unlike", "text", "known", "years", "field", "venue"].map((name) => [name, given.get(name) ?? undefined]);
  return {
    ...Object.fromEntries(own),
    left: given.get("left") ?? names[0],
    right: given.get("right") ?? names[1] ?? NOTHING,
    k: given.get("k") ?? "10",
    map: given.get("map") ?? undefined,
  };
}

function fromControls(asked) {
  const [first, last, known] = [one("#from").value, one("#to").value, KNOWN[one("#known").value]];
  return {
    ...asked,
    left: one("#left").value,
    right: one("#right").value,
    k: one("#k").value,
    known: known === configured() ? undefined : known,
    years: first || last ? (first === last ? first : `${first}-${last}`) : undefined,
    field: one("#field").value || undefined,
    venue: one("#venue").value.trim() || undefined,
    map: one("#map").open ? one("#map-model").value : undefined,
  };
}

const configured = () => run.models.find(({ known }) => known)?.known;

function addressOf(state) {
  const given = Object.entries(state).filter(([, value]) => value !== undefined);
  return `${location.pathname}?${new URLSearchParams(given)}`;
}

function go(state) {
  history.pushState(null, "", addressOf(state));
  show(state);
}

function askedNow() {
  const { paper, unlike, text } = fromAddress();
  return { paper, unlike, text };
}

const idsOf = (list) => (list ? list.split(",") : []);

// The papers of a search with one more that is wanted, or is not; or without it.
function withPaper(paper, part) {
  const asked = askedNow();
  for (const name of ["paper", "unlike"]) {
    const kept = idsOf(asked[name]).filter((each) => each !== paper);
    asked[name] = (name === part ? [...kept, paper] : kept).join(",") || undefined;
  }
  return fromControls(asked);
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
  one("#known").value = KNOWN.indexOf(state.known ?? configured());
  const [, first, dash, last] = /^(\d*)(-?)(\d*)$/.exec(state.years ?? "") ?? [];
  [one("#from").value, one("#to").value] = [first ?? "", (dash ? last : first) ?? ""];
  choose(one("#field"), state.field ?? NOTHING);
  one("#venue").value = state.venue ?? "";
  const { map: usual } = run.models.find(({ name }) => name === state.left) ?? run.models[0];
  choose(one("#map-model"), state.map ?? usual);
  if (!one("#map").open) one("#map").open = state.map !== undefined;
  one("#shared").textContent = "";
  const isAsked = state.paper !== undefined || state.text !== undefined;
  one("#found").hidden = true;
  one("#examples").hidden = isAsked || !run.examples.length;
  marked = [];
  if (!isAsked) {
    showMap();
    return say("");
  }
  say("Searching …");
  const isLong = setTimeout(() => mine === turn && say("Searching … The first text for a model waits until its encoder is open."), LONG);
  try {
    const [liked, unlike] = await Promise.all([state.paper, state.unlike].map((list) => Promise.all(idsOf(list).map(recordOf))));
    one("#query").value = state.text ?? "";
    const names = SIDES.map((side) => state[side]).filter((name) => name !== NOTHING);
    const found = await Promise.all(names.map((model) => nearest(model, state)));
    if (mine !== turn) return;
    showQuery(liked, unlike, state);
    showColumns(names, found, state);
    showWhole(names, found);
    clearTimeout(isLong);
    say("");
    one("#found").hidden = false;
    const nodes = nodesOf(liked, found);
    marked = nodes.sort((node, other) => node.rank - other.rank || 0);
    showMap();
    const [draw] = await Promise.all([showLinks(nodes), showRelations(state, found, mine)]);
    if (mine !== turn) return;
    redraw = draw;
    redraw();
    document.documentElement.dataset.shown = mine;
  } catch (error) {
    if (mine === turn) say(error.message, true);
  } finally {
    clearTimeout(isLong);
  }
}

// A paper may have a vector, and the corpus no record of it.
async function recordOf(paper) {
  try {
    return await ask("/api/paper", { paper });
  } catch {
    return { paper, title: null, year: null, authors: [], fields: [] };
  }
}

const nearest = (model, { left, right, map, ...asked }) => ask("/api/nearest", { model, ...asked });

function showQuery(liked, unlike, { text }) {
  const [only] = liked;
  const isOne = liked.length === 1 && !unlike.length && text === undefined;
  const titleOf = () => (text ? `“${text.length > 200 ? `${text.slice(0, 199)}…` : text}”` : `Like ${liked.length} paper${liked.length > 1 ? "s" : ""}`);
  const title = isOne ? only.title ?? UNTITLED : titleOf();
  one("#asked-title").textContent = title;
  one("#asked-facts").replaceChildren(...(isOne ? [...factsOf(only), ` · paper ${only.paper}`] : liked.length ? [] : ["Free text: no citation links."]));
  one("#asked-abstract").textContent = isOne ? only.abstract ?? "" : "";
  const chip = (paper, words) => {
    const made = element("li", `${words} `, { class: words === "not" ? "negative" : "positive" });
    const drop = element("button", "×", { type: "button", "aria-label": `Leave ${paper.title ?? paper.paper} out of the search` });
    drop.addEventListener("click", () => go(withPaper(paper.paper)));
    made.append(linkTo(paper), drop);
    return made;
  };
  one("#seeds").replaceChildren(...(isOne ? [] : [...liked.map((each) => chip(each, "like")), ...unlike.map((each) => chip(each, "not"))]));
  document.title = `${title.slice(0, 80)} · CoCite search`;
}

const linkTo = ({ paper, title }, state = fromControls({})) => element("a", title ?? UNTITLED, { href: addressOf({ ...state, paper, unlike: undefined, text: undefined }) });

// What the corpus knows of a paper, as nodes of a line.
function factsOf({ authors, venue, year, cited, fields, topic, doi, url }) {
  const named = authors.length > AUTHORS ? `${authors.slice(0, AUTHORS).join(", ")} et al.` : authors.join(", ");
  const link = url && element("a", doi ?? new URL(url).hostname, { href: url, rel: "noopener noreferrer", target: "_blank" });
  const facts = [named, venue, year, cited !== null && cited !== undefined && `cited ${cited.toLocaleString("en")} ×`, fields.join(", "), topic && `topic: ${topic}`, link];
  return facts.filter(Boolean).flatMap((fact, at) => (at ? [" · ", fact] : [fact]));
}

// What both columns have in common, and all their papers as files.
function showWhole(names, found) {
  const [left, right] = found.map((hits) => hits.map(({ paper }) => paper));
  const papers = [...new Set([...left, ...(right ?? [])])];
  one("#overlap").textContent = right && names[0] !== names[1] ? `${left.filter((each) => right.includes(each)).length} of these papers are in both columns.` : "";
  one("#exports").hidden = !papers.length;
  one("#exports").replaceChildren(
    `Export these ${papers.length} papers: `,
    ...Object.entries(FORMS).flatMap(([form, name], at) => [at ? " · " : "", element("a", name, { href: `/api/export?${new URLSearchParams({ form, papers })}`, download: "" })]),
  );
}

function showColumns(names, found, state) {
  const columns = names.map((name, at) => {
    const column = one("#column").content.cloneNode(true).firstElementChild;
    const model = run.models.find((each) => each.name === name);
    one("h3", column).textContent = name;
    one("h3", column).id = `column-${at}`;
    column.setAttribute("aria-labelledby", `column-${at}`);
    const note = !found[at].length ? "Nothing is found." : model.lists ? "Found by an index, which can miss a paper now and then." : "";
    one(".note", column).textContent = note;
    one(".hits", column).append(...found[at].map((hit, place) => shownHit(hit, place, ranksElsewhere(hit, names, found, at))));
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

function shownHit(hit, place, elsewhere) {
  const item = element("li", "", { "data-paper": hit.paper });
  const isScored = hit.score !== undefined;
  const number = isScored ? hit.score.toFixed(2) : hit.distance.toPrecision(4);
  const distance = element("span", number, { class: "distance", title: isScored ? "Score" : "Euclidean distance, for this model only" });
  const facts = element("p", "", { class: "facts-of" });
  facts.append(...factsOf(hit));
  const why = element("p", whyFound(hit, elsewhere), { class: "why" });
  item.explain = (among) => (why.textContent = whyFound({ ...hit, ...among }, elsewhere));
  const badges = element("ul", "", { class: "badges", "aria-label": "What the graph and the triplets say" });
  badges.hidden = true;
  const more = element("p", "", { class: "actions" });
  for (const [part, words] of [["paper", "More like this"], ["unlike", "Not like this"]]) {
    const button = element("button", words, { type: "button", class: part });
    button.addEventListener("click", () => go(withPaper(hit.paper, part)));
    more.append(button);
  }
  item.append(element("span", place + 1, { class: "rank" }), linkTo(hit), distance, facts, why, badges, detailsOf(hit), more);
  const mark = (isSame) => document.querySelectorAll("[data-paper]").forEach((each) => each.classList.toggle("same", isSame && each.dataset.paper === hit.paper));
  item.addEventListener("mouseenter", () => mark(true));
  item.addEventListener("mouseleave", () => mark(false));
  return item;
}

// Why a paper is found: the words that it shares, its similarity, and its citations among the papers found.
function whyFound({ words, similarity, citing = 0, cited = 0 }, elsewhere) {
  const parts = [words.length && `shares ${words.join(", ")}`, similarity && `similarity ${similarity.toFixed(2)}`];
  parts.push(cited && `cited by ${cited} of these papers`, citing && `cites ${citing} of these papers`, elsewhere);
  return parts.filter(Boolean).join(" · ");
}

// The abstract, and the parts that a score is the sum of.
function detailsOf({ paper, abstract, parts }) {
  const signed = ([name, part]) => `${name} ${part < 0 ? "−" : "+"}${Math.abs(part).toFixed(2)}`;
  const sum = Object.entries(parts ?? {}).map(signed).join(" · ");
  const made = element("details");
  made.append(element("summary", sum ? "Abstract and score" : "Abstract"), element("p", abstract ?? "The corpus has no abstract of it."));
  made.append(element("p", [sum && `Score: ${sum}`, `paper ${paper}`].filter(Boolean).join(" · "), { class: "parts" }));
  return made;
}

// The papers of a search: in which columns each is, and its best rank; one that is asked for has none.
function nodesOf(liked, found) {
  const hits = new Map(found.flat().map((hit) => [hit.paper, hit]));
  const sides = found.map((side) => side.map(({ paper }) => paper));
  const kind = (paper) => (!hits.has(paper) ? "seed" : sides.length > 1 && sides.every((side) => side.includes(paper)) ? "both" : SIDES[sides.findIndex((side) => side.includes(paper))]);
  const nodes = [...hits.values(), ...liked.filter(({ paper }) => !hits.has(paper))];
  return nodes.map((node) => ({ ...node, kind: kind(node.paper), rank: Math.min(...sides.map((side) => side.indexOf(node.paper) + 1 || Infinity)) }));
}

// The citations among the papers: counted for each, and drawn.
async function showLinks(nodes) {
  const papers = nodes.map(({ paper }) => paper).slice(0, 200);
  const links = papers.length ? await ask("/api/links", { papers: papers.join(",") }) : [];
  const isHit = new Set(nodes.filter(({ kind }) => kind !== "seed").map(({ paper }) => paper));
  for (const item of document.querySelectorAll(".hits > li")) {
    const among = (end) => links.filter((link) => link[end] === item.dataset.paper && isHit.has(link[1 - end])).length;
    item.explain({ citing: among(0), cited: among(1) });
  }
  const places = nodes.filter(({ year }) => year);
  one("#graph").hidden = places.length < 2;
  const count = links.length === 1 ? "1 citation" : `${links.length} citations`;
  one("#graph figcaption").textContent = `${count} among these papers, by year and by how often they are cited. Numbers are ranks, ? a paper of the search; a line leads from a paper to one that it cites.${nodes.some(({ kind }) => kind === "right") ? " Only on the left: blue; only on the right: green." : ""}`;
  one("#graph svg").setAttribute("aria-label", one("#graph figcaption").textContent);
  return () => drawGraph(one("#graph svg"), places, links, linkTo);
}

// They are shown for one paper.
async function showRelations({ paper, text }, found, mine) {
  const others = [...new Set(found.flat().map((hit) => hit.paper))];
  if (idsOf(paper).length !== 1 || text !== undefined || !others.length) return;
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

// The map, if it is open. The first time it can take long, and searches go on meanwhile.
async function showMap() {
  if (!one("#map").open) return;
  const model = one("#map-model").value;
  const waits = one("#map-waits");
  const isLong = setTimeout(() => (waits.textContent = `The map of ${run.papers.toLocaleString("en")} papers is laid out once for each model, which can take some minutes. You can search meanwhile.`), LONG);
  waits.textContent = "Waiting for the map …";
  try {
    const data = await map.dataOf(model);
    if (model !== one("#map-model").value) return;
    one("#map figure").hidden = false;
    const shown = map.show(data, marked);
    waits.textContent = marked.length ? `${shown} of the ${marked.length} papers of this search are on the map.` : "";
  } catch (error) {
    waits.textContent = error.message;
  } finally {
    clearTimeout(isLong);
  }
}

async function showPaper(paper, topic) {
  const record = { ...(await recordOf(paper)), topic };
  const like = element("button", "More like this", { type: "button" });
  like.addEventListener("click", () => go(withPaper(paper, "paper")));
  one("#map-paper").replaceChildren(linkTo(record), element("br"), ...factsOf(record), element("br"), like);
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
    go(fromControls({ paper }));
  }

  // A title or a DOI that was typed in full is the paper's.
  async function search(text) {
    if (/^\s*\d+\s*$/.test(text)) return take(text.trim());
    const plain = (words) => words.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, " ").trim();
    const named = await ask("/api/papers", { words: text.trim().slice(0, 200) }).catch(() => []);
    const same = named.find(({ title, doi }) => plain(title ?? "") === plain(text) || (doi && text.toLowerCase().includes(doi.toLowerCase())));
    if (same) return take(same.paper);
    if (/^\s*(https?:\/\/(dx\.)?doi\.org\/|doi:\s*)?10\.\d{4,9}\/\S+\s*$/i.test(text)) return say("No paper of the corpus has this DOI.", true);
    return go(fromControls({ text }));
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
    if (!text.trim()) return say("There is nothing to search for: the field is empty.", true);
    search(text);
  });
}

function changed() {
  const asked = askedNow();
  if (asked.paper !== undefined || asked.text !== undefined) go(fromControls(asked));
}

// Opened, closed, or by another model: the address says so, and the search stays as it is.
function mapChanged() {
  history.replaceState(null, "", addressOf({ ...fromAddress(), map: fromControls({}).map }));
  showMap();
}

// A link to another search keeps the page, and its map.
function followLink(event) {
  const link = event.target.closest("a[href]");
  const to = link && new URL(link.getAttribute("href"), location);
  if (to?.origin !== location.origin || to.pathname !== location.pathname || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  go({ ...Object.fromEntries(to.searchParams), map: fromControls({}).map });
  scrollTo(0, 0);
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
  const { release, papers, models } = run;
  const indexes = models.filter(({ known }) => known);
  const number = (count) => count.toLocaleString("en");
  const parts = [`Run ${run.run}`, release && `release ${release}`, `${number(papers)} papers`, `${models.length} ${indexes.length ? "indexes and models" : `model${models.length > 1 ? "s" : ""}`}`];
  const ofIndexes = "The score of an index is the sum of the parts that each paper lists. ";
  const measure = `${indexes.length ? ofIndexes : ""}Distances of models are Euclidean, as in the benchmarks that rank them; those of two models cannot be compared.`;
  one("#run").textContent = `${parts.filter(Boolean).join(" · ")}. ${measure}`;
  const names = models.map(({ name }) => name);
  one("#left").append(...names.map((name) => new Option(name)));
  one("#right").append(...names.map((name) => new Option(name)), new Option("none", NOTHING));
  one("#field").append(new Option("any", NOTHING), ...run.fields.map((name) => new Option(name)));
  one("#field-choice").hidden = !run.fields.length;
  one("#known-choice").hidden = !indexes.length;
  one("#k").append(...SIZES.map((size) => new Option(size)));
  one("#map-model").append(...[...new Set(models.map((each) => each.map))].map((name) => new Option(name)));
}

async function start() {
  try {
    run = await ask("/api/run");
  } catch (error) {
    return say(error.message, true);
  }
  describeRun();
  suggesting();
  one("#examples ul").append(...run.examples.map((paper) => {
    const item = element("li");
    item.append(linkTo(paper, fromAddress()), " ", element("small", paper.year ?? ""));
    return item;
  }));
  map = new SearchMap(one("#map"), showPaper);
  one("#map").addEventListener("toggle", mapChanged);
  one("#map-model").addEventListener("change", mapChanged);
  for (const name of [...SIDES, "k", "known", "from", "to", "field", "venue"]) one(`#${name}`).addEventListener("change", changed);
  one("#share").addEventListener("click", copyLink);
  document.addEventListener("click", followLink);
  addEventListener("popstate", () => show(fromAddress()));
  addEventListener("resize", () => redraw());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraw());
  await show(fromAddress());
}

start();
