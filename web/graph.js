// A graph from left to right: layers by longest path, few crossings, long edges around the boxes between their ends.

import { h, s, textWidth } from "./dom.js";

const GAP_X = 28, GAP_Y = 14, HEIGHT = 24, LINE = 16, SWEEPS = 6;
/** More nodes than this are a texture, not a picture. */
const NODES_MOST = 1500;
/** Bends of long edges; beyond it they are drawn straight. */
const BENDS_MOST = 6000;
const CHARACTERS = 34;
/** A picture is made smaller to fit, but not by more than this, and not on a phone, so that its texts can be read. */
const SCALE_LEAST = 0.9, NARROW = "(max-width: 820px)";

const widthOf = ([kind, text]) => textWidth(text, kind === "n" ? 600 : 400);

const cut = (text) => (text.length > CHARACTERS ? `${text.slice(0, CHARACTERS - 1)}…` : text);

/** Nodes in an order in which every edge goes forward; edges that close a cycle are left out. */
function layers(nodes, edges) {
  const at = new Map(nodes.map((node, number) => [node.id, number]));
  const next = nodes.map(() => []), waits = nodes.map(() => 0);
  for (const [from, to] of edges) {
    if (!at.has(from) || !at.has(to) || from === to) continue;
    next[at.get(from)].push(at.get(to));
    waits[at.get(to)]++;
  }
  const level = nodes.map(() => 0), ready = [];
  waits.forEach((count, number) => { if (!count) ready.push(number); });
  const done = nodes.map(() => false);
  for (let head = 0; head < ready.length; head++) {
    const from = ready[head];
    done[from] = true;
    for (const to of next[from]) {
      level[to] = Math.max(level[to], level[from] + 1);
      if (--waits[to] === 0) ready.push(to);
    }
  }
  return { level, next: next.map((list, from) => list.filter((to) => done[from] && done[to])) };
}

/** Boxes and the bends of long edges, in columns. */
function columnsOf(nodes, { level, next }) {
  const columns = [];
  const items = nodes.map((node, number) => ({ node, number, level: level[number], before: [], after: [] }));
  const wires = [];
  let bends = 0;
  next.forEach((list, from) => list.forEach((to) => {
    const way = [items[from]];
    const span = level[to] - level[from] - 1;
    if (bends + span <= BENDS_MOST) {
      bends += span;
      for (let at = level[from] + 1; at < level[to]; at++) {
        const bend = { level: at, before: [], after: [] };
        items.push(bend);
        way.push(bend);
      }
    }
    way.push(items[to]);
    for (let at = 1; at < way.length; at++) {
      way[at - 1].after.push(way[at]);
      way[at].before.push(way[at - 1]);
    }
    wires.push(way);
  }));
  for (const item of items) (columns[item.level] ??= []).push(item);
  return { columns, wires };
}

function order(columns) {
  const number = (column) => column.forEach((item, at) => { item.at = at; });
  columns.forEach(number);
  const mean = (list, otherwise) => (list.length ? list.reduce((sum, item) => sum + item.at, 0) / list.length : otherwise);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const forward = sweep % 2 === 0;
    for (const column of forward ? columns : [...columns].reverse()) {
      for (const item of column) item.wish = mean(forward ? item.before : item.after, item.at);
      column.sort((one, other) => one.wish - other.wish || one.at - other.at);
      number(column);
    }
  }
}

/** Moves items towards the middle of their neighbours, without changing their order. */
function place(columns) {
  for (const column of columns) {
    let y = 0;
    for (const item of column) { item.y = y; y += item.height + GAP_Y; }
  }
  const middle = (item) => item.y + item.height / 2;
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const forward = sweep % 2 === 0;
    for (const column of forward ? columns : [...columns].reverse()) {
      const wishes = column.map((item) => {
        const near = forward ? item.before : item.after;
        return near.length ? near.reduce((sum, other) => sum + middle(other), 0) / near.length - item.height / 2 : item.y;
      });
      let least = -Infinity;
      column.forEach((item, at) => { item.y = Math.max(wishes[at], least); least = item.y + item.height + GAP_Y; });
      // What was pushed down too far is pulled up as a whole.
      const drift = column.reduce((sum, item, at) => sum + item.y - wishes[at], 0) / Math.max(1, column.length);
      for (const item of column) item.y -= drift;
    }
  }
  const top = Math.min(...columns.flat().map((item) => item.y));
  for (const item of columns.flat()) item.y -= top;
}

/** Where boxes and edges are. `lines(node)` are the texts of a box. */
export function layOut(nodes, edges, lines) {
  const { columns, wires } = columnsOf(nodes, layers(nodes, edges));
  for (const item of columns.flat()) {
    item.lines = item.node ? lines(item.node).map(([kind, text]) => [kind, cut(text)]) : [];
    item.height = item.node ? HEIGHT + (item.lines.length - 1) * LINE : 6;
    item.width = item.node ? Math.ceil(Math.max(44, ...item.lines.map(widthOf))) + 19 : 0;
  }
  order(columns);
  place(columns);
  let x = 0;
  for (const column of columns) {
    const width = Math.max(...column.map((item) => item.width));
    for (const item of column) { item.x = x; item.wide = width; }
    x += width + GAP_X;
  }
  const boxes = columns.flat().filter((item) => item.node);
  const height = Math.max(...columns.flat().map((item) => item.y + item.height));
  return { boxes, wires, width: x - GAP_X, height };
}

function path(way) {
  const parts = [];
  way.forEach((item, at) => {
    const y = item.y + item.height / 2;
    if (at === 0) { parts.push(`M${item.x + item.width} ${y}`); if (item.width < item.wide) parts.push(`H${item.x + item.wide}`); return; }
    const before = way[at - 1], from = before.x + before.wide, to = item.x, middle = (from + to) / 2;
    parts.push(`C${middle} ${before.y + before.height / 2} ${middle} ${y} ${to} ${y}`);
    if (!item.node) parts.push(`H${item.x + item.wide}`);
  });
  return parts.join("");
}

/**
 * The picture, in a panel that scrolls. `lines` are texts of a node with a class each, `kind` the class of its box,
 * `title` its tooltip, `isPath` is true of the edges to stress, `open` what a click does.
 */
export function graph(of, { label, lines, kind, title, isPath, open }) {
  const { nodes = [], edges = [] } = of ?? {};
  if (!nodes.length) return h("div", { class: "panel" }, h("p", { class: "empty" }, "there is no graph to show"));
  const shown = nodes.slice(0, NODES_MOST);
  const { boxes, wires, width, height } = layOut(shown, edges, lines);
  const picture = s("svg", { class: "graph", width: width + 32, height: height + 32, viewBox: `-16 -16 ${width + 32} ${height + 32}`, role: "img", "aria-label": label });
  picture.style.maxWidth = "100%";
  const least = matchMedia(NARROW).matches ? 1 : SCALE_LEAST;
  picture.style.minWidth = `${Math.round((width + 32) * least)}px`;
  picture.append(...wires.map((way) => s("path", { class: isPath?.(way[0].node, way.at(-1).node) ? "wire path" : "wire", d: path(way) })));
  for (const box of boxes) {
    const texts = box.lines.map(([name, text], at) => s("text", { class: name, x: 9, y: 16 + at * LINE }, text));
    const group = s("g", { class: `node ${kind?.(box.node) ?? ""}`, transform: `translate(${box.x} ${box.y})`, "data-node": box.node.id },
      s("title", null, title?.(box.node) ?? box.node.name ?? box.node.id), s("rect", { width: box.width, height: box.height, rx: 5 }), texts);
    if (open) {
      group.setAttribute("tabindex", 0);
      group.setAttribute("role", "link");
      group.addEventListener("click", () => open(box.node));
      // Browsers scroll to elements of HTML by themselves.
      group.addEventListener("focus", () => group.scrollIntoView({ block: "nearest", inline: "nearest" }));
      group.addEventListener("keydown", (event) => { if (event.key === "Enter") { event.stopPropagation(); open(box.node); } });
    }
    picture.append(group);
  }
  const more = nodes.length > shown.length && h("p", { class: "empty" }, `the first ${NODES_MOST} of ${nodes.length} nodes are drawn`);
  return h("div", { class: "panel" }, h("div", { class: "graph-scroll", tabindex: 0, role: "group", "aria-label": label }, picture), more);
}

/** A legend of the boxes that there are: `[kind, text]`. */
export function legendOf(nodes, kind, entries) {
  const kinds = new Set((nodes ?? []).flatMap((node) => kind(node).split(" ")));
  return legend(entries.filter(([name]) => kinds.has(name)));
}

/** A legend: `[kind, text]`. */
export const legend = (entries) => h("span", { class: "legend" }, entries.map(([kind, text]) => h("span", { class: `key ${kind}` }, text)));
