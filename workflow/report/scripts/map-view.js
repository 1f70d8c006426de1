// What a map shows of its points: a view that moves and zooms, and a legend. Others decide which points these are: map.js
// of the report and of the search.
//
// Dots are written into the canvas's memory pixel by pixel: without a graphics card that takes a fiftieth of the time
// that the canvas itself takes to draw as many.
"use strict";
class MapView {
  static MARGIN = 16; // pixels around the points
  static REACH = 10; // pixels from a point within which it is meant
  static FARTHEST = 200; // zoom
  static MANY = 50000; // points from which on they do not move, and dots may be smaller
  static MOVE = 450; // milliseconds in which points move to other places
  static FAINT = 0.1; // opacity of what is not highlighted
  static STEP = 1.5; // of a zoom
  static ABSENT = 65535;
  static LARGEST = 65534;
  static COLOURS = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c564b", "#7b68c8", "#a3a300", "#e0567a",
    "#2a9fa8", "#b05fd0", "#5f9e3a", "#c98a5a", "#4a6fe3", "#b23a6f", "#7f8f3f", "#3f8f6f", "#b84a4a",
  ];
  static GREY = "#808080";
  static PARTS = 4; // places within a pixel, on each axis, that a dot can have its middle at

  // Points are numbers of papers; positions are from 0 to 1, NaN if there is none. `onChange` is called when
  // another part of the map is in view, or points have come to rest.
  constructor(canvas, papers, onChange) {
    Object.assign(this, { canvas, papers, onChange, image: null, dots: null });
    this.context = canvas.getContext("2d", { willReadFrequently: true });
    Object.assign(this, { x: 0.5, y: 0.5, zoom: 1, frame: 0, move: null, pointed: -1 });
    this.places = { x: new Float32Array(papers).fill(NaN), y: new Float32Array(papers).fill(NaN) };
    this.groups = []; // { name, colour, members }
    this.picked = null; // the name of the highlighted group
    this.found = null; // the set of highlighted points
    this.layers = 1; // parts of each group that are drawn in turn, so that no group covers all others
    new ResizeObserver(() => this.changed()).observe(canvas);
  }

  // Numbers that `report.map_page` has compressed.
  static async numbers(text, Numbers = Uint16Array) {
    const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Numbers(await new Response(stream).arrayBuffer());
  }

  // Positions from 0 to 1 on an axis.
  static along(numbers) {
    return Float32Array.from(numbers, (at) => (at === MapView.ABSENT ? NaN : at / MapView.LARGEST));
  }

  get width() {
    return this.canvas.clientWidth;
  }

  get height() {
    return this.canvas.clientHeight;
  }

  get scale() {
    return Math.max(1, Math.min(this.width, this.height) - 2 * MapView.MARGIN) * this.zoom;
  }

  get radius() {
    const least = this.papers > MapView.MANY ? 0.9 : 1.8;
    return Math.min(5, Math.max(least, 130 / Math.sqrt(this.papers)) * this.zoom ** 0.25);
  }

  // Pixels from the upper left of the canvas.
  left(x) {
    return this.width / 2 + (x - this.x) * this.scale;
  }

  top(y) {
    return this.height / 2 - (y - this.y) * this.scale;
  }

  at(paper) {
    return [this.left(this.places.x[paper]), this.top(this.places.y[paper])];
  }

  isInView(paper) {
    const [x, y] = this.at(paper);
    return x >= 0 && y >= 0 && x <= this.width && y <= this.height;
  }

  papersInView() {
    const seen = [];
    for (let paper = 0; paper < this.papers; paper += 1) if (this.isInView(paper)) seen.push(paper);
    return seen;
  }

  // The paper at a pixel, among the highlighted ones; −1 if there is none.
  nearest(x, y) {
    let [best, reach] = [-1, MapView.REACH ** 2];
    const [scale, left, top] = [this.scale, this.left(0), this.top(0)];
    for (const group of this.groups) {
      if (this.picked !== null && group.name !== this.picked) continue;
      for (const paper of group.members) {
        if (this.found && !this.found.has(paper)) continue;
        const far = (left + this.places.x[paper] * scale - x) ** 2 + (top - this.places.y[paper] * scale - y) ** 2;
        if (far <= reach) [best, reach] = [paper, far];
      }
    }
    return best;
  }

  zoomBy(factor, x = this.width / 2, y = this.height / 2) {
    const [right, down] = [x - this.width / 2, y - this.height / 2];
    const [atX, atY] = [this.x + right / this.scale, this.y - down / this.scale];
    this.zoom = Math.min(MapView.FARTHEST, Math.max(1, this.zoom * factor));
    [this.x, this.y] = [atX - right / this.scale, atY + down / this.scale];
    this.changed();
  }

  pan(x, y) {
    this.x = Math.min(1, Math.max(0, this.x - x / this.scale));
    this.y = Math.min(1, Math.max(0, this.y + y / this.scale));
    this.changed();
  }

  reset() {
    Object.assign(this, { x: 0.5, y: 0.5, zoom: 1 });
    this.changed();
  }

  // Zooms to some papers, with room around them.
  show(papers) {
    const span = (along) => [Math.min(...papers.map((paper) => along[paper])), Math.max(...papers.map((paper) => along[paper]))];
    const [[left, right], [bottom, top]] = [span(this.places.x), span(this.places.y)];
    const side = Math.max(right - left, top - bottom, 1 / MapView.FARTHEST);
    Object.assign(this, { x: (left + right) / 2, y: (bottom + top) / 2, zoom: Math.max(1, Math.min(MapView.FARTHEST, 0.7 / side)) });
    this.changed();
  }

  changed() {
    this.onChange();
    this.ask();
  }

  // Puts a tip beside a paper, on the side with more room.
  putBeside(paper, tip) {
    const put = (before, after, at, size) => {
      tip.style[before] = at < size / 2 ? `${Math.max(0, at + 10)}px` : "";
      tip.style[after] = at < size / 2 ? "" : `${Math.max(0, size - at + 10)}px`;
    };
    const [x, y] = this.at(paper);
    put("left", "right", x, this.width);
    put("top", "bottom", y, this.height);
  }

  // Groups the papers by the number of each: a place in `classes`, which have a name and a colour, beyond them, or none.
  // Unknown ones are drawn first, and the largest class before smaller ones, which are then on top.
  colourBy(numbers, classes, others, unknown, legend) {
    const [named, more] = [classes.map((each) => ({ ...each, members: [] })), { ...others, members: [] }];
    const none = { name: unknown, colour: MapView.GREY, members: [] };
    numbers.forEach((at, paper) => (at === MapView.ABSENT ? none : named[at] ?? more).members.push(paper));
    const some = (group) => group.members.length;
    this.groups = [none, more, ...named].filter(some);
    this.picked = null;
    legend.replaceChildren(...[...named, more, none].filter(some).map((group) => this.entryOf(group, legend)));
  }

  // An entry of the legend: pressed, only its group is highlighted.
  entryOf({ name, colour, members }, legend) {
    const make = (tag, attributes) => Object.assign(document.createElement(tag), attributes);
    const [item, button, dot] = [make("li"), make("button", { type: "button", ariaPressed: "false" }), make("span", { className: "map-dot" })];
    dot.style.background = colour;
    button.append(dot, ` ${name} (${members.length.toLocaleString("en")})`);
    button.addEventListener("click", () => {
      this.picked = this.picked === name ? null : name;
      legend.querySelectorAll("button").forEach((each) => each.setAttribute("aria-pressed", "false"));
      button.setAttribute("aria-pressed", String(this.picked === name));
      this.ask();
    });
    item.append(button);
    return item;
  }

  // Moves and zooms with the pointer, the keys and the buttons of a figure; `point` gets the paper at the pointer, −1 if
  // there is none, and whether it was clicked.
  follow(figure, point) {
    const { canvas } = this;
    let [held, isMoved] = [null, false];
    const at = (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    canvas.addEventListener("pointerdown", (event) => {
      [held, isMoved] = [at(event), false];
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      const [x, y] = at(event);
      if (held && event.buttons) {
        isMoved ||= Math.hypot(x - held[0], y - held[1]) > 3;
        if (!isMoved) return;
        this.pan(x - held[0], y - held[1]);
        held = [x, y];
      } else {
        const paper = this.nearest(x, y);
        if (paper !== this.pointed) point(paper, false);
      }
    });
    canvas.addEventListener("pointerup", (event) => {
      held = null;
      point(this.nearest(...at(event)), !isMoved);
    });
    canvas.addEventListener("pointerleave", () => point(-1, false));
    canvas.addEventListener("dblclick", (event) => this.zoomBy(2, ...at(event)));
    const turned = (event) => {
      if (!event.ctrlKey && document.activeElement !== canvas) return; // the page scrolls
      event.preventDefault();
      this.zoomBy(Math.exp(-event.deltaY / 400), ...at(event));
    };
    canvas.addEventListener("wheel", turned, { passive: false });
    const [closer, farther] = [() => this.zoomBy(MapView.STEP), () => this.zoomBy(1 / MapView.STEP)];
    const keys = {
      ArrowLeft: () => this.pan(60, 0),
      ArrowRight: () => this.pan(-60, 0),
      ArrowUp: () => this.pan(0, 60),
      ArrowDown: () => this.pan(0, -60),
      "+": closer,
      "=": closer,
      "-": farther,
      0: () => this.reset(),
      Escape: () => point(-1, false),
    };
    canvas.addEventListener("keydown", (event) => {
      if (!keys[event.key] || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      keys[event.key]();
    });
    for (const [name, action] of [["in", closer], ["out", farther], ["whole", keys[0]]]) {
      figure.querySelector(`.map-${name}`).addEventListener("click", action);
    }
  }

  moveTo(places) {
    const isCalm = this.papers > MapView.MANY || matchMedia("(prefers-reduced-motion: reduce)").matches;
    const from = this.places;
    const missing = () => new Float32Array(places.x.length).fill(NaN);
    Object.assign(this, { papers: places.x.length, places: { x: missing(), y: missing() } });
    this.move = { from, to: places, start: null, lasts: isCalm ? 1 : MapView.MOVE };
    this.ask();
  }

  ask() {
    this.frame ||= requestAnimationFrame((now) => this.advance(now));
  }

  advance(now) {
    this.frame = 0;
    if (this.move) {
      this.move.start ??= now;
      this.moveBy(Math.min(1, (now - this.move.start) / this.move.lasts));
      if (this.move) this.ask();
      else this.onChange();
    }
    const isEmpty = !this.groups.length; // points are to come
    this.canvas.dataset.moving = String(isEmpty || Boolean(this.move));
    this.draw();
  }

  moveBy(share) {
    const eased = share * share * (3 - 2 * share);
    for (const axis of ["x", "y"]) {
      const [from, to, places] = [this.move.from[axis], this.move.to[axis], this.places[axis]];
      for (let paper = 0; paper < this.papers; paper += 1) {
        const start = Number.isNaN(from[paper]) ? to[paper] : from[paper];
        places[paper] = share === 1 ? to[paper] : start + (to[paper] - start) * eased;
      }
    }
    if (share === 1) this.move = null;
  }

  draw() {
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [Math.max(1, Math.round(this.width * ratio)), Math.max(1, Math.round(this.height * ratio))];
    if (!this.image || this.image.width !== width || this.image.height !== height) {
      Object.assign(this.canvas, { width, height });
      this.image = this.context.createImageData(width, height);
    }
    const ground = getComputedStyle(document.body).backgroundColor.match(/\d+/g).slice(0, 3).map(Number);
    const [pixel] = new Uint32Array(new Uint8Array([...ground, 255]).buffer);
    new Uint32Array(this.image.data.buffer).fill(pixel);
    this.dots = this.dotsOf(this.radius * ratio);
    if (this.picked !== null || this.found) this.groups.forEach((group) => this.drawGroup(group, ratio, MapView.FAINT));
    const chosen = this.groups.filter((group) => this.picked === null || group.name === this.picked);
    for (let part = 0; part < this.layers; part += 1) chosen.forEach((group) => this.drawGroup(group, ratio, 1, this.found, part));
    this.context.putImageData(this.image, 0, 0);
    this.drawOver?.(this.context, ratio);
    if (this.pointed >= 0) this.drawRing(ratio);
    this.canvas.dataset.view = [this.x, this.y, this.scale].join(" ");
  }

  // How much of each pixel a dot covers, for each place of its middle within a pixel.
  dotsOf(radius) {
    const side = 2 * Math.ceil(radius) + 2;
    const covers = Array.from({ length: MapView.PARTS ** 2 }, (_, part) => {
      const middle = (at) => side / 2 - 1 + (at + 0.5) / MapView.PARTS;
      const [x, y] = [middle(part % MapView.PARTS), middle(Math.floor(part / MapView.PARTS))];
      const far = (at) => Math.hypot((at % side) + 0.5 - x, Math.floor(at / side) + 0.5 - y);
      return Float32Array.from({ length: side * side }, (_each, at) => Math.min(1, Math.max(0, radius + 0.5 - far(at))));
    });
    return { side, covers };
  }

  drawGroup(group, ratio, opacity, among = null, part = null) {
    const colour = [1, 3, 5].map((at) => parseInt(group.colour.slice(at, at + 2), 16));
    const [scale, left, top] = [this.scale * ratio, this.left(0) * ratio, this.top(0) * ratio];
    const cut = (at) => Math.floor((at * group.members.length) / this.layers);
    for (const paper of part === null ? group.members : group.members.slice(cut(part), cut(part + 1))) {
      if (among && !among.has(paper)) continue;
      this.drawDot(left + this.places.x[paper] * scale, top - this.places.y[paper] * scale, colour, opacity);
    }
  }

  drawDot(x, y, [red, green, blue], opacity) {
    const { data, width, height } = this.image;
    const { side, covers } = this.dots;
    const [left, top] = [Math.floor(x) - side / 2 + 1, Math.floor(y) - side / 2 + 1];
    if (!(left > -side && top > -side && left < width && top < height)) return;
    const part = (at) => Math.floor((at - Math.floor(at)) * MapView.PARTS);
    const cover = covers[part(y) * MapView.PARTS + part(x)];
    const [from, to] = [Math.max(0, -left), Math.min(side, width - left)];
    for (let row = Math.max(0, -top); row < Math.min(side, height - top); row += 1) {
      for (let column = from; column < to; column += 1) {
        const share = cover[row * side + column] * opacity;
        if (share === 0) continue;
        const at = ((top + row) * width + left + column) * 4;
        data[at] += (red - data[at]) * share;
        data[at + 1] += (green - data[at + 1]) * share;
        data[at + 2] += (blue - data[at + 2]) * share;
      }
    }
  }

  drawRing(ratio) {
    const [x, y] = this.at(this.pointed);
    this.context.beginPath();
    this.context.arc(x * ratio, y * ratio, (this.radius + 3) * ratio, 0, 2 * Math.PI);
    this.context.strokeStyle = getComputedStyle(this.canvas).color;
    this.context.lineWidth = 2 * ratio;
    this.context.stroke();
  }
}
