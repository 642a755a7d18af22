// The steps around one: what it needs on its left, what needs it on its right, two deep; the rest is counted.
const WIDE = 186, HIGH = 44, GAP_X = 44, GAP_Y = 12, MOST = 8, DEEP = 2;

function pictureOf(entry) {
  const columns = [...side(entry, (id) => (byId.get(id) || {}).needs || [], -1).reverse(), [{ id: entry.id }],
    ...side(entry, (id) => neededBy.get(id) || [], 1)];
  if (columns.length === 1) return null;
  const high = Math.max(...columns.map((column) => column.length)) * (HIGH + GAP_Y) + GAP_Y;
  const wide = columns.length * (WIDE + GAP_X) - GAP_X + 20;
  const places = new Map();
  columns.forEach((column, x) => column.forEach((box, y) => {
    box.x = 10 + x * (WIDE + GAP_X);
    box.y = (high - column.length * (HIGH + GAP_Y) + GAP_Y) / 2 + y * (HIGH + GAP_Y);
    if (box.id) places.set(box.id, box);
  }));
  const picture = svgEl("svg", { class: "graph", width: wide, height: high, viewBox: "0 0 " + wide + " " + high,
    role: "group", "aria-label": "What " + entry.id + " needs, and what needs it" });
  const head = svgEl("marker", { id: "head", viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 7, markerHeight: 7,
    orient: "auto" });
  head.append(svgEl("path", { d: "M0 0 8 4 0 8z", class: "arrow" }));
  picture.append(head);
  for (const box of places.values()) {
    for (const need of (byId.get(box.id) || {}).needs || []) {
      if (places.has(need)) picture.append(arrow(places.get(need), box));
    }
  }
  for (const box of columns.flat()) picture.append(boxOf(box, box.id === entry.id));
  return picture;
}

// Columns outwards from the step. A step is shown once, in the nearest.
function side(entry, next, sign) {
  const seen = new Set([entry.id]), columns = [];
  let now = [entry.id];
  for (let depth = 0; depth < DEEP && now.length; depth++) {
    const found = [...new Set(now.flatMap(next))].filter((id) => byId.has(id) && !seen.has(id));
    found.forEach((id) => seen.add(id));
    if (!found.length) break;
    now = found.slice(0, MOST);
    const more = found.length - now.length;
    columns.push([...now.map((id) => ({ id })), ...(more ? [{ more: more.toLocaleString("en") + " more", sign }] : [])]);
  }
  return columns;
}

function arrow(from, to) {
  const x = from.x + WIDE, y = from.y + HIGH / 2, bend = Math.max(20, (to.x - x) / 2), end = to.y + HIGH / 2;
  return svgEl("path", { class: "edge", "marker-end": "url(#head)", d: 
    "M" + x + " " + y + "C" + (x + bend) + " " + y + " " + (to.x - bend) + " " + end + " " + to.x + " " + end });
}

function boxOf(box, here) {
  const entry = byId.get(box.id), lines = entry ? [entry.name, entry.id + " " + entry.action] : [box.more, "not shown"];
  const group = svgEl("g", { class: "node " + (entry ? entry.style : "more") + (here ? " here" : "") });
  const title = svgEl("title", {});
  title.textContent = entry ? titleOf(entry) + " " + lines[1] : lines.join(" ");
  group.append(title, svgEl("rect", { x: box.x, y: box.y, width: WIDE, height: HIGH, rx: 6 }));
  lines.forEach((line, i) => {
    const text = svgEl("text", { x: box.x + 8, y: box.y + 18 + 16 * i, class: i ? "" : "name" });
    const letters = [...line];
    text.textContent = letters.length > 23 ? letters.slice(0, 9).join("") + "\u2026" + letters.slice(-13).join("") : line;
    group.append(text);
  });
  if (!entry || here) return group;
  const link = svgEl("a", { href: linkTo(entry.id) });
  link.append(group);
  return link;
}

function svgEl(tag, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}
