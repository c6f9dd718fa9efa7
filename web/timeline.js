// The timeline of a run: a line per node, the deadline and the timeouts as lines, the critical path in front.

import { h, s, textWidth, time } from "./dom.js";

const ROW = 22, BAR = 14, AXIS = 24, ROWS_MOST = 400, ZOOM_MOST = 5000;
const STATES = { finished: "finished", failed: "failed", fell_back: "fell back", dropped: "dropped", not_started: "not started", open: "not ended" };

/** Between a bar and the text beside it. */
const REMARK_GAP = 6;
/** The most for the names before the bars, wide and narrow. */
const GUTTER_MOST = 230, GUTTER_NARROW = 116;
/** Names on the critical path are bold. */
const BOLD = 650;

const remarkOf = (node) => [STATES[node.state] ?? node.state, node.reason].filter(Boolean).join(": ");

/** Round steps of an axis, in milliseconds: 1, 2 and 5 times a power of ten, then minutes and hours. */
function stepFor(wanted) {
  for (let power = 1e-6; power <= 10_000; power *= 10) for (const times of [1, 2, 5]) if (power * times >= wanted) return power * times;
  return [60, 120, 300, 600, 1800, 3600, 7200, 21_600, 86_400].map((seconds) => seconds * 1000).find((step) => step >= wanted) ?? Math.ceil(wanted / 864e5) * 864e5;
}

/** One sentence about a node, for its tooltip and for readers of the screen. */
function sentence(node, name) {
  const parts = [`${name}: ${STATES[node.state] ?? node.state}`];
  if (node.reason) parts.push(`reason: ${node.reason}`);
  if (node.start_ms !== null && node.start_ms !== undefined) parts.push(`queued ${time(node.start_ms - (node.queued_ms ?? node.start_ms))}, from ${time(node.start_ms)} to ${node.end_ms === null ? "now" : time(node.end_ms)}, took ${time((node.end_ms ?? node.start_ms) - node.start_ms)}`);
  if (node.timeout_ms !== null && node.timeout_ms !== undefined) parts.push(`timeout ${time(node.timeout_ms)}`);
  if (node.critical) parts.push("on the critical path");
  return parts.join("\n");
}

/** As much of a text as there is room for. */
function shortened(text, room, weight = 400) {
  let shown = text;
  // No letter is narrower than two pixels.
  for (let end = Math.min(text.length - 1, Math.ceil(room / 2)); end > 0 && textWidth(shown, weight) > room; end--) shown = `${text.slice(0, end).trimEnd()}…`;
  return shown;
}

export class Timeline {
  /** `names` maps ids to `{ name, kind }`. */
  constructor(timeline, names, deadline) {
    const first = (node) => node.queued_ms ?? node.start_ms ?? Infinity;
    this.all = [...timeline.nodes].sort((one, other) => first(one) - first(other) || (one.end_ms ?? 0) - (other.end_ms ?? 0));
    this.names = names;
    // A node may be dropped because of another one.
    this.all = this.all.map((node) => ({ ...node, reason: names.get(node.reason)?.name ?? node.reason }));
    this.nodes = this.all.slice(0, ROWS_MOST);
    this.deadline = deadline ?? null;
    const ends = this.all.map((node) => node.end_ms ?? 0);
    const wall = Math.max(timeline.wall_ms ?? 0, ends.reduce((most, end) => Math.max(most, end), 0), 1e-3);
    // One beyond twice the duration of the run would leave most of the picture empty.
    this.showsDeadline = this.deadline !== null && this.deadline <= 2 * wall;
    this.wall = this.showsDeadline ? Math.max(wall, this.deadline) * 1.04 : wall * 1.02;
    /** A bar of less time than this is not seen before one zooms in. */
    this.leastSeen = this.wall / 500;
    this.zoom = 1;
    this.left = 0;
    this.picture = s("svg", { class: "run-timeline", role: "img", "aria-label": this.#summary() });
    const button = (text, label, act) => h("button", { type: "button", class: "icon", "aria-label": label, title: label, onclick: act }, text);
    this.tools = h("span", { class: "tools" }, h("span", { class: "muted opt" }, "Ctrl and wheel zoom, dragging moves"),
      button("−", "zoom out", () => this.#zoomAt(0.5, 0.5)), button("+", "zoom in", () => this.#zoomAt(0.5, 2)), button("all", "show all", () => this.#all()));
    this.box = h("div", { class: "timeline-box", tabindex: 0, role: "group", "aria-label": "Timeline; plus and minus zoom, arrows move" }, this.picture);
    const more = this.all.length > ROWS_MOST && h("p", { class: "empty" }, `the first ${ROWS_MOST} of ${this.all.length} nodes are drawn; the timeline file has all of them`);
    this.element = h("div", { class: "panel" }, this.box, more);
    this.#listen();
  }

  #summary() {
    const path = this.all.filter((node) => node.critical).map((node) => this.#name(node));
    return `Timeline of ${this.all.length} nodes over ${time(this.wall)}. Critical path: ${path.join(", ") || "unknown"}.`;
  }

  #name(node) { return this.names.get(node.id)?.name ?? node.id; }

  #listen() {
    new ResizeObserver(() => this.draw()).observe(this.box);
    this.box.addEventListener("wheel", (event) => {
      // A wheel alone scrolls the page, as everywhere else.
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      this.#zoomAt(this.#place(event), Math.exp(-event.deltaY / 300));
    }, { passive: false });
    let held = null;
    this.box.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      held = { place: this.#place(event), left: this.left };
      this.box.setPointerCapture(event.pointerId);
    });
    this.box.addEventListener("pointermove", (event) => {
      if (!held) return;
      this.left = held.left - (this.#place(event) - held.place) / this.zoom;
      this.draw();
    });
    for (const kind of ["pointerup", "pointercancel"]) this.box.addEventListener(kind, () => { held = null; });
    this.box.addEventListener("keydown", (event) => {
      const acts = { "+": () => this.#zoomAt(0.5, 2), "=": () => this.#zoomAt(0.5, 2), "-": () => this.#zoomAt(0.5, 0.5), 0: () => this.#all(), ArrowLeft: () => this.#move(-0.2), ArrowRight: () => this.#move(0.2) };
      if (!Object.hasOwn(acts, event.key) || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      acts[event.key]();
    });
  }

  #place(event) {
    const { left, width } = this.picture.getBoundingClientRect();
    return Math.min(1, Math.max(0, (event.clientX - left - this.gutter) / Math.max(1, width - this.gutter)));
  }
  #move(by) { this.left += by / this.zoom; this.draw(); }
  #all() { this.zoom = 1; this.left = 0; this.draw(); }
  #zoomAt(place, factor) {
    const at = this.left + place / this.zoom;
    this.zoom = Math.min(ZOOM_MOST, Math.max(1, this.zoom * factor));
    this.left = at - place / this.zoom;
    this.draw();
  }

  draw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.#drawNow(); });
  }

  #drawNow() {
    const width = Math.max(300, this.box.clientWidth);
    this.left = Math.min(1 - 1 / this.zoom, Math.max(0, this.left));
    const longest = this.nodes.reduce((most, node) => Math.max(most, textWidth(this.#name(node), BOLD)), 0);
    this.gutter = Math.min(width < 700 ? GUTTER_NARROW : GUTTER_MOST, 22 + Math.ceil(longest));
    const plot = width - this.gutter - 12, height = AXIS + this.nodes.length * ROW + (this.deadline === null ? 8 : 20);
    const x = (ms) => ((ms / this.wall - this.left) * this.zoom) * plot;
    this.picture.setAttribute("width", width);
    this.picture.setAttribute("height", height);
    const lanes = this.nodes.map((node, at) => this.#lane(node, AXIS + at * ROW, x, plot));
    const gutter = this.nodes.map((node, at) => this.#label(node, AXIS + at * ROW));
    const inner = s("svg", { x: this.gutter, width: plot, height, overflow: "hidden" }, s("rect", { class: "ground", y: AXIS - 2, width: plot, height: height - AXIS }), this.#axis(x, plot, height), lanes, this.#deadline(x, plot, height));
    this.picture.replaceChildren(...gutter, inner);
  }

  #axis(x, plot, height) {
    const step = stepFor(this.wall / this.zoom / Math.max(3, Math.floor(plot / 110)));
    const parts = [], end = (this.left + 1 / this.zoom) * this.wall;
    for (let number = Math.max(0, Math.floor((this.left * this.wall) / step)); number * step <= end; number++) {
      const place = x(number * step);
      const anchor = place < 12 ? "start" : place > plot - 24 ? "end" : "middle";
      parts.push(s("line", { class: "tick", x1: place, x2: place, y1: AXIS - 2, y2: height }), s("text", { class: "tick", x: place, y: 14, "text-anchor": anchor }, number ? time(+(number * step).toPrecision(12)) : "0"));
    }
    return parts;
  }

  #deadline(x, plot, height) {
    if (this.deadline === null) return null;
    // One that is far behind the end of the run is to the right of everything.
    if (!this.showsDeadline) return s("g", { class: "deadline" }, s("text", { x: plot - 5, y: height - 6, "text-anchor": "end" }, `deadline ${time(this.deadline)} →`));
    const place = x(this.deadline), left = place > plot - 110;
    return s("g", { class: "deadline" }, s("line", { x1: place, x2: place, y1: AXIS - 2, y2: height }),
      s("text", { x: place + (left ? -5 : 5), y: height - 6, "text-anchor": left ? "end" : "start" }, `deadline ${time(this.deadline)}`));
  }

  #label(node, y) {
    const name = this.#name(node);
    return s("text", { class: `name ${node.critical ? "critical" : ""} ${node.state}`, x: this.gutter - 10, y: y + 15, "text-anchor": "end" }, s("title", null, name), shortened(name, this.gutter - 16, BOLD));
  }

  #lane(node, y, x, plot) {
    const top = y + (ROW - BAR) / 2, parts = [s("title", null, sentence(node, this.#name(node)))];
    const start = node.start_ms, end = node.end_ms ?? start, queued = node.queued_ms ?? start;
    if (start === null || start === undefined) {
      const at = Math.max(0, x(queued ?? 0));
      parts.push(this.#remark(node, at, at, y, plot, remarkOf(node)));
      return s("g", { class: "lane", "data-node": node.id }, parts);
    }
    if (queued < start) parts.push(s("rect", { class: "queued", x: x(queued), y: top + 5, width: Math.max(0.5, x(start) - x(queued)), height: 4 }));
    const kind = this.names.get(node.id)?.kind === "cpu" ? "cpu" : "io";
    const bar = { x: x(start), y: top, width: Math.max(1.5, x(end) - x(start)), height: BAR, rx: 2 };
    parts.push(s("rect", { class: `bar ${kind} ${node.state}`, ...bar }));
    if (node.critical) parts.push(s("rect", { class: "edge", ...bar }));
    const text = node.state === "finished" ? time(end - start) : remarkOf(node);
    let to = bar.x + bar.width;
    if (node.timeout_ms !== null && node.timeout_ms !== undefined) {
      const at = x(start + node.timeout_ms);
      parts.push(s("line", { class: "timeout", x1: at, x2: at, y1: y + 1, y2: y + ROW - 1 }));
      // The text is behind a mark that would be in it.
      if (at > to - REMARK_GAP && at < to + textWidth(text) + 2 * REMARK_GAP) to = Math.max(to, at);
    }
    parts.push(this.#remark(node, bar.x, to, y, plot, text));
    return s("g", { class: "lane", "data-node": node.id }, parts);
  }

  /** A text behind a bar, or before it where there is more room, or on it where neither side has any. */
  #remark(node, from, to, y, plot, text) {
    const width = textWidth(text) + 2 * REMARK_GAP, left = Math.max(0, from), right = Math.min(plot, to);
    const isOn = width > plot - right && width > left && width < right - left;
    const before = !isOn && width > plot - right && left > plot - right;
    const room = (isOn ? right - left : before ? left : plot - right) - REMARK_GAP - 2;
    const x = isOn ? right - REMARK_GAP : before ? left - REMARK_GAP : right + REMARK_GAP;
    return s("text", { class: `remark ${node.state} ${isOn ? "on" : ""}`, x, y: y + 15, "text-anchor": isOn || before ? "end" : "start" }, s("title", null, text), shortened(text, room));
  }
}
