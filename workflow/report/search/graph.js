// A graph of papers: by year from left to right, the more they are cited the higher, with the citations among them.
function drawGraph(svg, nodes, links, linkTo) {
  const [width, height, radius, margin] = [svg.clientWidth, svg.clientHeight, 10, 34];
  const scale = (values, from, to) => {
    const [low, high] = [Math.min(...values), Math.max(...values)];
    return (value) => (high > low ? from + ((value - low) / (high - low)) * (to - from) : (from + to) / 2);
  };
  const heightOf = ({ cited }) => Math.log1p(cited ?? 0);
  const across = scale(nodes.map(({ year }) => year), margin, width - margin);
  const up = scale(nodes.map(heightOf), height - 2 * margin, margin);
  const places = nodes.map((node) => ({ x: across(node.year), y: up(heightOf(node)) }));
  apart(places, 2 * radius + 2, [radius, width - radius], [radius, height - margin - radius]);
  const at = new Map(nodes.map(({ paper }, number) => [paper, places[number]]));
  const part = (name, attributes, text = "") => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.textContent = text;
    return made;
  };
  const lines = links.filter((ends) => ends.every((paper) => at.has(paper))).map(([citing, cited]) => {
    const [from, to] = [at.get(citing), at.get(cited)];
    return part("line", { x1: from.x, y1: from.y, x2: to.x, y2: to.y });
  });
  const circles = nodes.map((node, number) => {
    const { x, y } = places[number];
    const link = part("a", { href: linkTo(node).href, class: node.kind, "data-paper": node.paper });
    link.append(part("title", {}, `${node.title ?? "(no title)"} (${node.year}), cited ${node.cited ?? 0} ×`));
    link.append(part("circle", { cx: x, cy: y, r: radius }), part("text", { x, y: y + 4 }, Number.isFinite(node.rank) ? node.rank : "?"));
    return link;
  });
  const years = nodes.map(({ year }) => year);
  const [first, last, step] = [Math.min(...years), Math.max(...years), Math.ceil((Math.max(...years) - Math.min(...years)) / (width / 120)) || 1];
  const marked = Array.from({ length: Math.floor((last - first) / step) + 1 }, (_, number) => first + number * step);
  const ticks = marked.map((year) => part("text", { x: across(year), y: height - 8, class: "tick" }, year));
  svg.replaceChildren(...lines, ...circles, ...ticks);
}

// Moves points that are closer than a distance apart, a little at a time.
function apart(places, distance, [left, right], [top, bottom]) {
  for (let round = 0; round < 80; round += 1) {
    places.forEach((one, at) => {
      for (const [more, other] of places.slice(at + 1).entries()) {
        const [x, y] = [other.x - one.x || 0.1 * (more + 1), other.y - one.y || 0.1];
        const missing = (distance - Math.hypot(x, y)) / 2;
        if (missing <= 0) continue;
        const angle = Math.atan2(y, x);
        for (const [place, way] of [[one, -1], [other, 1]]) {
          place.x = Math.min(right, Math.max(left, place.x + way * missing * Math.cos(angle)));
          place.y = Math.min(bottom, Math.max(top, place.y + way * missing * Math.sin(angle)));
        }
      }
    });
  }
}

