// The map of all papers: the papers found by their ranks, those that were asked for as rings, and the words of topics.
"use strict";
class SearchMap {
  static WORDS = 2; // that name a topic on the map
  static AGES = ["#5a2ca0", "#8f2fa8", "#bf3984", "#e0566b", "#f07f4f", "#f5a83c", "#e3cf3a"]; // from old to new
  static DISC = 9; // pixels
  static LAYERS = 20;

  // `pick` is called with the id of a paper that is clicked, and its topic.
  constructor(figure, pick) {
    Object.assign(this, { figure, pick, maps: new Map(), data: null, marks: [], wait: 0 });
    [this.canvas, this.tip, this.legend, this.colours] = ["canvas", "tip", "legend", "colour"].map((name) => one(`.map-${name}`, figure));
    this.view = new MapView(this.canvas, 0, () => this.point(-1));
    this.view.layers = SearchMap.LAYERS;
    this.view.drawOver = (context, ratio) => this.drawOver(context, ratio);
    this.view.follow(figure, (paper, isClicked) => this.point(paper, isClicked));
    this.colours.addEventListener("change", () => this.colour());
    one(".map-found", figure).addEventListener("click", () => this.view.show(this.marks.map(({ at }) => at)));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.view.ask());
  }

  // The map by a model, which is asked for once.
  dataOf(model) {
    if (!this.maps.has(model)) this.maps.set(model, ask("/api/map", { model }).then(unpacked));
    this.maps.get(model).catch(() => this.maps.delete(model));
    return this.maps.get(model);
  }

  // Shows a map, marks papers on it that are { paper, kind, rank }, the best first, and returns how many it has.
  show(data, marked) {
    if (data !== this.data) this.showAll(data);
    this.marks = marked.map((mark) => ({ ...mark, at: data.ids.indexOf(BigInt(mark.paper)) })).filter(({ at }) => at >= 0);
    one(".map-found", this.figure).hidden = !this.marks.length;
    this.view.ask();
    return this.marks.length;
  }

  showAll(data) {
    this.data = data;
    const named = ["topic", "field", "year"].filter((name) => data[name].some((at) => at !== MapView.ABSENT));
    const chosen = this.colours.value;
    this.colours.replaceChildren(...named.map((name) => new Option(name)));
    if (named.includes(chosen)) this.colours.value = chosen;
    this.canvas.setAttribute("aria-label", `Map of ${data.papers.toLocaleString("en")} papers as ${data.model} places them`);
    this.colour();
    this.view.moveTo(data);
  }

  colour() {
    const { COLOURS, GREY } = MapView;
    const { topic, field, topics, fields, year } = this.data;
    const others = { name: "others", colour: GREY };
    if (this.colours.value === "topic") {
      const classes = topics.map((name, at) => ({ name: name || `topic ${at + 1}`, colour: COLOURS[at % COLOURS.length] }));
      this.view.colourBy(topic, classes, others, "none", this.legend);
    } else if (this.colours.value === "field") {
      this.view.colourBy(field, COLOURS.slice(0, fields.length).map((colour, at) => ({ name: fields[at], colour })), others, "unknown", this.legend);
    } else {
      const { starts, numbers } = this.ages(year);
      const name = (start, end) => (end === undefined ? `from ${start}` : end - start > 1 ? `${start}–${end - 1}` : start);
      const step = (SearchMap.AGES.length - 1) / Math.max(1, starts.length - 1);
      const spans = starts.map((start, at) => ({ name: name(start, starts[at + 1]), colour: SearchMap.AGES[Math.round(at * step)] }));
      this.view.colourBy(numbers, spans, others, "unknown", this.legend);
    }
    this.legend.setAttribute("aria-label", `Legend: ${this.colours.value}`);
    this.point(-1);
  }

  // Spans of years with about as many papers each: their first years, and the span of each paper.
  ages(year) {
    const sorted = year.filter((each) => each !== MapView.ABSENT).sort();
    const starts = [...new Set(SearchMap.AGES.map((_, at) => sorted[Math.floor((at * sorted.length) / SearchMap.AGES.length)]))];
    const numbers = year.map((each) => (each === MapView.ABSENT ? each : starts.findLastIndex((start) => start <= each)));
    return { starts, numbers };
  }

  described(paper) {
    const { year, field, topic, fields, topics } = this.data;
    const known = (numbers, name) => (numbers[paper] === MapView.ABSENT ? "" : name(numbers[paper]));
    return [known(year, String), known(field, (at) => fields[at]), known(topic, (at) => topics[at] && `topic: ${topics[at]}`)].filter(Boolean).join(" · ");
  }

  point(paper, isClicked = false) {
    this.view.pointed = paper;
    this.tip.hidden = paper < 0;
    if (paper >= 0) {
      const id = String(this.data.ids[paper]);
      this.tip.replaceChildren(element("strong", `paper ${id}`), element("span", this.described(paper)));
      this.view.putBeside(paper, this.tip);
      clearTimeout(this.wait);
      this.wait = setTimeout(async () => {
        const { title } = await recordOf(id);
        if (this.view.pointed === paper) one("strong", this.tip).textContent = title ?? UNTITLED;
      }, 60);
      if (isClicked) this.pick(id, this.data.topics[this.data.topic[paper]]);
    }
    this.view.ask();
  }

  drawOver(context, ratio) {
    const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    const [ink, page] = [colour("--ink"), colour("--page")];
    context.save();
    context.scale(ratio, ratio);
    Object.assign(context, { textAlign: "center", textBaseline: "middle", lineJoin: "round" });
    if (this.colours.value === "topic") this.drawTopics(context, ink, page);
    context.font = "600 11px system-ui, sans-serif";
    const fills = { left: colour("--link"), right: colour("--good"), both: ink };
    const circle = (at, radius, line) => {
      context.beginPath();
      context.arc(...this.view.at(at), radius, 0, 2 * Math.PI);
      Object.assign(context, line);
    };
    const [seeds, hits] = [true, false].map((isSeed) => this.marks.filter(({ kind }) => (kind === "seed") === isSeed));
    for (const { at, kind, rank } of hits.reverse()) { // the best is drawn last, and nothing covers it
      circle(at, SearchMap.DISC, { fillStyle: fills[kind], strokeStyle: page, lineWidth: 1.5 });
      context.fill();
      context.stroke();
      const [x, y] = this.view.at(at);
      context.fillStyle = page;
      context.fillText(rank, x, y + 0.5);
    }
    for (const { at } of seeds) {
      circle(at, SearchMap.DISC + 3, { strokeStyle: ink, lineWidth: 3 });
      context.stroke();
    }
    context.restore();
  }

  // The words of topics in the middle of their papers, those of large topics first; none is put over another.
  drawTopics(context, ink, page) {
    const { width, height, picked } = this.view;
    context.font = "600 12px system-ui, sans-serif";
    Object.assign(context, { fillStyle: ink, strokeStyle: page, lineWidth: 4 });
    const taken = [];
    for (const { name, paper } of this.data.middles) {
      if (picked !== null && picked !== name) continue;
      const words = name.split(", ").slice(0, SearchMap.WORDS).join(", ");
      const [[x, y], half] = [this.view.at(paper), context.measureText(words).width / 2 + 6];
      const isInside = x - half >= 0 && x + half <= width && y >= 10 && y <= height - 10;
      if (!isInside || taken.some((other) => Math.abs(other.x - x) < other.half + half && Math.abs(other.y - y) < 18)) continue;
      taken.push({ x, y, half });
      context.strokeText(words, x, y);
      context.fillText(words, x, y);
    }
  }
}

// A map as columns of numbers, with the middle of each topic: its paper that is nearest to the median of all.
async function unpacked(map) {
  const columns = await Promise.all(["x", "y", "year", "field", "topic"].map((name) => MapView.numbers(map[name])));
  const [x, y, year, field, topic] = columns;
  const members = map.topics.map(() => []);
  topic.forEach((at, paper) => members[at]?.push(paper));
  const data = { ...map, ids: await MapView.numbers(map.ids, BigInt64Array), x: MapView.along(x), y: MapView.along(y), year, field, topic };
  const middle = (papers) => {
    const [left, top] = [data.x, data.y].map((along) => Float32Array.from(papers, (paper) => along[paper]).sort()[papers.length >> 1]);
    const far = (paper) => Math.hypot(data.x[paper] - left, data.y[paper] - top);
    return papers.reduce((best, paper) => (far(paper) < far(best) ? paper : best));
  };
  const named = members.map((papers, at) => ({ name: map.topics[at], papers })).filter(({ name, papers }) => name && papers.length);
  return { ...data, middles: named.map(({ name, papers }) => ({ name, paper: middle(papers) })) };
}
