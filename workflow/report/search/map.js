
// A small map: all papers faint, those that were found with their ranks, the query as a ring.
"use strict";
function drawMap(canvas, points, query, ranks) {
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
  const context = canvas.getContext("2d");
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const place = placing(points, width, height);
  context.scale(ratio, ratio);
  // The fewer papers there are, the larger are their dots.
  const size = Math.min(5, Math.max(1.5, 90 / Math.sqrt(points.x.length)));
  context.globalAlpha = 0.35;
  context.fillStyle = colour("--soft");
  for (let at = 0; at < points.x.length; at += 1) {
    context.beginPath();
    context.arc(...place(at), size / 2, 0, 2 * Math.PI);
    context.fill();
  }
  context.globalAlpha = 1;
  context.font = "600 11px system-ui, sans-serif";
  context.textAlign = "center";
  context.textBaseline = "middle";
  // The nearest is drawn last, and nothing covers it.
  for (const [at, rank] of [...ranks].reverse()) {
    const [x, y] = place(at);
    disc(context, x, y, 8.5, colour("--link"), colour("--page"));
    context.fillStyle = colour("--page");
    context.fillText(rank, x, y + 0.5);
  }
  if (query !== undefined) {
    context.strokeStyle = colour("--strong");
    context.lineWidth = 2.5;
    context.beginPath();
    context.arc(...place(query), 12, 0, 2 * Math.PI);
    context.stroke();
  }
}

function disc(context, x, y, radius, fill, line) {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.fillStyle = fill;
  context.fill();
  context.strokeStyle = line;
  context.lineWidth = 1.5;
  context.stroke();
}

// A function from the number of a point to its pixels; all points fit, and both axes have the same scale.
function placing({ x, y }, width, height) {
  const ends = (values) => values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);
  const [[left, right], [bottom, top]] = [ends(x), ends(y)];
  const scale = Math.min((width - 40) / (right - left || 1), (height - 40) / (top - bottom || 1));
  const [middleX, middleY] = [(left + right) / 2, (bottom + top) / 2];
  return (at) => [width / 2 + (x[at] - middleX) * scale, height / 2 - (y[at] - middleY) * scale];
}
