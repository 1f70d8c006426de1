// What a map shows of its points: a view that moves and zooms. map.js decides which points these are.
//
// Dots are written into the canvas's memory pixel by pixel: without a graphics card that takes a fiftieth of the time
// that the canvas itself takes to draw as many.
"use strict";
class MapView {
  static MARGIN = 16; // pixels around the points
  static REACH = 10; // pixels from a point within which it is meant
  static FARTHEST = 200; // zoom
  static MOVE = 450; // milliseconds in which points move to other places
  static FAINT = 0.1; // opacity of what is not highlighted
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
    new ResizeObserver(() => this.changed()).observe(canvas);
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
    return Math.min(5, Math.max(1.8, 130 / Math.sqrt(this.papers)) * this.zoom ** 0.25);
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

  changed() {
    this.onChange();
    this.ask();
  }

  moveTo(places) {
    const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const from = { x: this.places.x.slice(), y: this.places.y.slice() };
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
    chosen.forEach((group) => this.drawGroup(group, ratio, 1, this.found));
    this.context.putImageData(this.image, 0, 0);
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

  drawGroup(group, ratio, opacity, among = null) {
    const colour = [1, 3, 5].map((at) => parseInt(group.colour.slice(at, at + 2), 16));
    const [scale, left, top] = [this.scale * ratio, this.left(0) * ratio, this.top(0) * ratio];
    for (const paper of group.members) {
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
