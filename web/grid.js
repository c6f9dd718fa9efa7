// The cells of a dataset: one rectangle per cell, rows from left to right in strips, a strip has a line per column.
//
// States are one byte each in one array. Only what can be seen is drawn, into the pixels of one canvas, in slices of a few
// milliseconds, so that a million cells neither hold up a click nor a frame.

import { count, h } from "./dom.js";

export const STATES = ["waiting", "running", "finished", "failed", "skipped", "dropped"];
const COLOURS = ["rule", "blue", "green", "red", "rest", "gold"];
/** Which state a pixel has that stands for several rows: the one that needs a look first. */
const RANKS = Uint8Array.of(2, 3, 0, 5, 1, 4);
/** Pixels per row; below one a pixel stands for several rows. */
const SIZES = [1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2, 3, 4, 6, 8, 12, 16, 24];
const STRIP_GAP = 4, SLICE_MS = 6, HEIGHT_MOST = 460;
/** Cells that change state before clicks and frames have their turn. */
const CELLS_AT_ONCE = 1 << 15;
/** The numbers of rows before the strips: the width of a digit, and the least distance between two. */
const DIGIT = 7.7, LABEL_GAP = 16;
/** The columns that the text under the cells names. */
const NAMED_MOST = 12;

/** `0xAABBGGRR` of `#rrggbb`, as the pixels of a canvas are on every machine that browsers run on. */
const pixel = (colour) => {
  const number = parseInt(colour.slice(1), 16);
  return (0xff000000 | ((number & 0xff) << 16) | (number & 0xff00) | (number >> 16)) >>> 0;
};

const breath = () => new Promise((resolve) => { setTimeout(resolve, 0); });

export class Grid {
  /** `bucket` rows are one cell if there are too many for one each. */
  constructor({ rows, columns, bucket = 1 }) {
    Object.assign(this, { columns, bucket, rows: Math.ceil(rows / bucket), allRows: rows, cursor: null, next: 0, due: 0, filled: 0, isNew: true, planned: false });
    this.states = new Uint8Array(this.rows * columns.length);
    this.counts = new Float64Array(STATES.length);
    this.counts[0] = this.states.length;
    this.canvas = h("canvas", { class: "grid-canvas" });
    this.spacer = h("div", { class: "grid-spacer" });
    this.scroller = h("div", { class: "grid-scroll", tabindex: 0, role: "group", "data-arrows": "", "aria-label": "Cells; arrows move between cells, plus and minus zoom" }, this.canvas, this.spacer);
    this.readout = h("p", { class: "readout muted", role: "status", "aria-live": "polite" }, "point at a cell, or move with the arrow keys");
    this.legend = h("p", { class: "legend" }, STATES.map((state, at) => h("span", { class: `key cell-${state}` }, state, " ", h("b", { "data-state": at }, "0"))));
    const button = (text, label, by) => h("button", { type: "button", class: "icon", "aria-label": label, title: label, onclick: () => this.zoom(by) }, text);
    this.tools = h("span", { class: "tools" }, button("−", "zoom out", -1), button("+", "zoom in", 1), button("all", "fit", 0));
    const named = columns.slice(0, NAMED_MOST).join(", "), unnamed = columns.length - NAMED_MOST;
    this.lines = h("p", { class: "lines muted" }, `Rows from left to right. Lines of a strip, from the top: ${named}${unnamed > 0 ? ` and ${count(unnamed)} more` : ""}`);
    this.element = h("div", { class: "panel grid-panel" }, this.scroller, h("div", { class: "grid-foot" }, this.legend, this.readout, this.lines));
    this.#colours();
    this.#listen();
  }

  #colours() {
    const style = getComputedStyle(document.documentElement);
    const of = (name) => pixel(style.getPropertyValue(`--${name}`).trim() || "#888888");
    this.pixels = Uint32Array.from(COLOURS, of);
    this.ground = of("paper");
    this.ink = style.getPropertyValue("--ink").trim();
    this.muted = style.getPropertyValue("--muted").trim();
    this.font = `12px ${style.getPropertyValue("--sans")}`;
  }

  #listen() {
    new ResizeObserver(() => this.#resize()).observe(this.scroller);
    const redraw = () => { if (this.element.isConnected) { this.#colours(); this.redraw(); } else removeEventListener("theme", redraw); };
    addEventListener("theme", redraw);
    this.scroller.addEventListener("scroll", () => this.redraw(), { passive: true });
    this.scroller.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      this.zoom(event.deltaY < 0 ? 1 : -1);
    }, { passive: false });
    this.scroller.addEventListener("pointermove", (event) => this.#point(event));
    this.scroller.addEventListener("keydown", (event) => this.#keyed(event));
  }

  /** Replaces states from a row on; `states` is row by row. One call at a time, of this and of `change`. */
  async set(fromRow, states) {
    const from = fromRow * this.columns.length;
    await this.#fill(from, from + states.length, (at) => states[at - from]);
  }

  /** Takes changes: a list per group of rows, with its first row, then pairs of a state and a number of cells. */
  async change(groups) {
    for (const [row, ...runs] of groups) {
      let at = row * this.columns.length;
      for (let run = 0; run < runs.length; run += 2) {
        const state = runs[run], from = at;
        at += runs[run + 1];
        await this.#fill(from, at, () => state);
      }
    }
  }

  /** Gives cells their states, in pieces. */
  async #fill(from, to, stateOf) {
    const end = Math.min(this.states.length, to);
    for (let at = from; at < end;) {
      const stop = Math.min(end, at + CELLS_AT_ONCE - this.filled);
      this.filled += stop - at;
      for (; at < stop; at++) {
        const state = stateOf(at);
        this.#put(at, state < STATES.length ? state : 0);
      }
      this.redraw(false);
      if (this.filled >= CELLS_AT_ONCE) {
        this.filled = 0;
        await breath();
      }
    }
  }

  #put(at, state) {
    const before = this.states[at];
    if (before === state) return;
    this.counts[before]--;
    this.counts[state]++;
    this.states[at] = state;
  }

  #resize() {
    const width = this.scroller.clientWidth;
    if (!width || width === this.width) return;
    this.width = width;
    this.left = Math.ceil(count(this.allRows).length * DIGIT) + 8;
    this.canvas.dataset.left = this.left;
    if (!this.chosen) this.size = this.#fitting();
    this.#layOut();
  }

  /** The largest size at which all cells can be seen at once, or the smallest. */
  #fitting() {
    const fits = SIZES.filter((size) => this.#heightAt(size) <= HEIGHT_MOST);
    return fits.at(-1) ?? SIZES[0];
  }

  #across(size) { return Math.max(1, Math.floor((this.width - this.left) / size)); }
  /** The height of a cell, and of a strip. */
  #tall(size) { return Math.max(2, size); }
  #deep(size) { return this.columns.length * this.#tall(size) + STRIP_GAP; }
  #heightAt(size) { return Math.ceil(this.rows / this.#across(size)) * this.#deep(size); }

  #layOut() {
    const height = this.#heightAt(this.size), shown = Math.min(HEIGHT_MOST, Math.max(60, height));
    this.scroller.style.height = `${shown}px`;
    this.spacer.style.height = `${Math.max(0, height - shown)}px`;
    this.canvas.width = this.width;
    this.canvas.height = shown;
    this.image = this.canvas.getContext("2d", { alpha: false }).createImageData(this.width, shown);
    this.out = new Uint32Array(this.image.data.buffer);
    this.redraw();
  }

  zoom(by) {
    if (!this.width) return;
    const at = SIZES.indexOf(this.size), middle = (this.scroller.scrollTop + this.scroller.clientHeight / 2) / Math.max(1, this.#heightAt(this.size));
    this.chosen = by !== 0;
    this.size = by === 0 ? this.#fitting() : SIZES[Math.min(SIZES.length - 1, Math.max(0, at + by))];
    this.#layOut();
    this.scroller.scrollTop = middle * this.#heightAt(this.size) - this.scroller.clientHeight / 2;
  }

  /** Draws all strips; over the old picture, unless that is another part of the cells. */
  redraw(isNew = true) {
    if (isNew) { this.isNew = true; this.next = 0; }
    this.due = Infinity;
    if (this.planned) return;
    this.planned = true;
    requestAnimationFrame(() => this.#slice());
  }

  /** Draws strips until the slice is over; the rest in the next frames. */
  #slice() {
    this.planned = false;
    if (!this.out) return;
    const started = performance.now(), { size, width } = this, deep = this.#deep(size), across = this.#across(size);
    const height = this.canvas.height, top = this.scroller.scrollTop, first = Math.floor(top / deep), end = Math.ceil((top + height) / deep);
    if (this.isNew) { this.isNew = false; this.out.fill(this.ground); }
    const strips = Math.max(1, end - first);
    this.due = Math.min(this.due, strips);
    for (; this.due > 0 && performance.now() - started < SLICE_MS; this.due--) {
      const strip = first + (this.next++ % strips);
      this.#strip(strip, Math.round(strip * deep - top), across, width, height);
    }
    const context = this.canvas.getContext("2d", { alpha: false });
    context.putImageData(this.image, 0, 0);
    this.#drawRows(context, deep, across, top, first, end);
    this.#drawCursor(context, deep, across, top);
    for (const shown of this.legend.querySelectorAll("b")) shown.textContent = count(this.counts[Number(shown.dataset.state)]);
    if (this.due > 0) { this.planned = true; requestAnimationFrame(() => this.#slice()); }
  }

  #strip(strip, y, across, width, height) {
    const { size, columns, out } = this, from = strip * across, end = Math.min(this.rows, from + across);
    const tall = this.#tall(size), inner = size >= 4 ? size - 1 : Math.max(1, size), deep = tall >= 4 ? tall - 1 : tall;
    for (let column = 0; column < columns.length; column++) {
      const line = y + column * tall, last = Math.min(height, line + deep);
      if (last <= 0 || line >= height) continue;
      const seen = Math.max(0, line), start = seen * width + this.left;
      if (size < 1) this.#merged(column, from, end, start);
      else this.#single(column, from, end, start, inner);
      for (let copy = seen + 1; copy < last; copy++) out.copyWithin(copy * width, seen * width, (seen + 1) * width);
    }
  }

  #single(column, from, end, start, inner) {
    const { size, columns, states, pixels, out } = this;
    for (let row = from; row < end; row++) {
      const colour = pixels[states[row * columns.length + column]], x = start + (row - from) * size;
      for (let at = x; at < x + inner; at++) out[at] = colour;
    }
  }

  /** A pixel for several rows. */
  #merged(column, from, end, start) {
    const { size, columns, states, pixels, out } = this, per = Math.round(1 / size);
    for (let row = from, x = start; row < end; row += per, x++) {
      let worst = 2;
      for (let at = row, last = Math.min(end, row + per); at < last; at++) {
        const state = states[at * columns.length + column];
        if (RANKS[state] > RANKS[worst]) worst = state;
      }
      out[x] = pixels[worst];
    }
  }

  /** The first row of each strip, where there is room. */
  #drawRows(context, deep, across, top, first, end) {
    const step = Math.ceil(LABEL_GAP / deep);
    context.font = this.font;
    context.fillStyle = this.muted;
    context.textAlign = "right";
    for (let strip = Math.ceil(first / step) * step; strip < end && strip * across < this.rows; strip += step) {
      context.fillText(count(strip * across * this.bucket), this.left - 7, strip * deep - top + 10);
    }
  }

  #drawCursor(context, deep, across, top) {
    if (!this.cursor) return;
    const { row, column } = this.cursor, x = this.left + Math.floor((row % across) * this.size), y = Math.floor(row / across) * deep + column * this.#tall(this.size) - top;
    context.strokeStyle = this.ink;
    context.lineWidth = 2;
    context.strokeRect(x - 1, y - 1, Math.max(2, this.size) + 2, this.#tall(this.size) + 2);
  }

  #tell(row, column) {
    if (row < 0 || row >= this.rows || column < 0 || column >= this.columns.length) return;
    const state = STATES[this.states[row * this.columns.length + column]];
    const from = row * this.bucket, to = Math.min(this.allRows, from + this.bucket) - 1;
    const rows = this.bucket === 1 ? `row ${count(row)}` : `rows ${count(from)} to ${count(to)}, worst state`;
    this.readout.replaceChildren(`${rows} · `, h("b", null, this.columns[column]), " · ", h("b", null, state));
  }

  #point(event) {
    if (!this.size) return;
    const { left, top } = this.scroller.getBoundingClientRect(), deep = this.#deep(this.size), across = this.#across(this.size);
    const x = event.clientX - left - this.left, y = event.clientY - top + this.scroller.scrollTop, strip = Math.floor(y / deep), place = Math.floor(x / this.size);
    if (place >= 0 && place < across) this.#tell(strip * across + place, Math.floor((y - strip * deep) / this.#tall(this.size)));
  }

  #keyed(event) {
    if (event.ctrlKey || event.metaKey) return;
    const zooms = { "+": 1, "=": 1, "-": -1, 0: 0 };
    if (Object.hasOwn(zooms, event.key)) { event.preventDefault(); this.zoom(zooms[event.key]); return; }
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (!Object.hasOwn(steps, event.key)) return;
    event.preventDefault();
    const [rows, columns] = steps[event.key], across = this.#across(this.size), deep = this.#deep(this.size);
    let { row, column } = this.cursor ?? { row: -rows, column: -columns };
    column += columns;
    if (column < 0 && row >= across) { row -= across; column = this.columns.length - 1; }
    if (column >= this.columns.length && row + across < this.rows) { row += across; column = 0; }
    this.cursor = { row: Math.min(this.rows - 1, Math.max(0, row + rows)), column: Math.min(this.columns.length - 1, Math.max(0, column)) };
    const y = Math.floor(this.cursor.row / across) * deep;
    if (y < this.scroller.scrollTop || y + deep > this.scroller.scrollTop + this.scroller.clientHeight) this.scroller.scrollTop = y - 20;
    this.#tell(this.cursor.row, this.cursor.column);
    this.redraw();
  }
}
