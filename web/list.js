// A list of any length: only the lines that can be seen are elements.

import { h } from "./dom.js";

const LINE = 30, BEYOND = 8, NARROW = "(max-width: 820px)";

const leastOf = (column) => Number(/(\d+)px/.exec(column.width)?.[1] ?? 0);

/** The columns that a width has room for: optional ones give way, the last first. On a phone none of them is shown. */
function fitting(columns, width) {
  if (matchMedia(NARROW).matches) return columns.filter((column) => !column.opt);
  const shown = [...columns], isWide = () => shown.reduce((sum, column) => sum + leastOf(column), 0) > width;
  while (width && isWide() && shown.some((column) => column.opt)) shown.splice(shown.findLastIndex((column) => column.opt), 1);
  return shown;
}

/**
 * `columns` are `{ head, cell, width, num, opt }`, `open` gives the page of a row. `rows` is replaced with `set`, which keeps
 * the selected line by `key`.
 */
export class List {
  constructor({ label, columns, key, open, empty }) {
    Object.assign(this, { columns, key, open, empty, rows: [], selected: null, drawn: new Map(), waiting: false });
    this.id = `list-${Math.random().toString(36).slice(2)}`;
    this.body = h("div", { class: "list-body", role: "rowgroup" });
    this.head = h("div", { class: "list-head", role: "row" });
    this.nothing = h("p", { class: "empty", hidden: true }, empty);
    this.element = h("div", { class: "list panel", role: "grid", "aria-label": label, tabindex: 0, "data-list": "", "data-arrows": "" }, this.head, this.body, this.nothing);
    this.#layOut();
    this.element.addEventListener("scroll", () => this.draw(), { passive: true });
    this.element.addEventListener("step", (event) => this.#step(event.detail));
    this.element.addEventListener("keydown", (event) => this.#keyed(event));
    this.element.addEventListener("click", (event) => this.#clicked(event));
    new ResizeObserver(() => { this.#layOut(); this.draw(); }).observe(this.element);
  }

  #classes(column) {
    return [column.num && "num", column.opt && "opt"].filter(Boolean).join(" ") || null;
  }

  #layOut() {
    const narrow = matchMedia(NARROW).matches, shown = fitting(this.columns, this.element.clientWidth);
    const tracks = shown.map((column) => (narrow && column.narrow) || column.width).join(" ");
    if (tracks === this.tracks) return;
    Object.assign(this, { tracks, shown });
    this.element.style.setProperty("--columns", tracks);
    this.head.replaceChildren(...shown.map((column) => h("span", { role: "columnheader", class: this.#classes(column) }, column.head)));
    if (this.rows.length) this.set(this.rows);
  }

  set(rows) {
    this.rows = rows;
    this.nothing.hidden = rows.length > 0;
    this.body.style.height = `${rows.length * LINE}px`;
    this.element.setAttribute("aria-rowcount", rows.length);
    for (const line of this.drawn.values()) line.element.remove();
    this.drawn.clear();
    this.draw();
  }

  /** Makes the visible lines of some rows anew. */
  refresh(isMeant) {
    for (const [at, line] of this.drawn) {
      if (!isMeant(this.rows[at])) continue;
      const fresh = this.#line(this.rows[at], at);
      fresh.setAttribute("aria-selected", this.key(this.rows[at]) === this.selected);
      line.element.replaceWith(fresh);
      line.element = fresh;
    }
  }

  draw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.#drawNow(); });
  }

  #drawNow() {
    const top = this.element.scrollTop, height = this.element.clientHeight;
    const first = Math.max(0, Math.floor(top / LINE) - BEYOND);
    const end = Math.min(this.rows.length, Math.ceil((top + height) / LINE) + BEYOND);
    for (const [at, line] of this.drawn) {
      if (at < first || at >= end) { line.element.remove(); this.drawn.delete(at); }
    }
    const added = [];
    for (let at = first; at < end; at++) {
      const row = this.rows[at];
      let line = this.drawn.get(at);
      if (!line) {
        line = { element: this.#line(row, at) };
        this.drawn.set(at, line);
        added.push(line.element);
      }
      line.element.setAttribute("aria-selected", this.key(row) === this.selected);
    }
    this.body.append(...added);
    const chosen = this.rows.findIndex((row) => this.key(row) === this.selected);
    if (chosen >= first && chosen < end) this.element.setAttribute("aria-activedescendant", `${this.id}-${chosen}`);
    else this.element.removeAttribute("aria-activedescendant");
  }

  #line(row, at) {
    const cells = this.shown.map((column) => h("span", { role: "gridcell", class: this.#classes(column) }, column.cell(row)));
    // A long name is cut off.
    cells[0].title = cells[0].textContent;
    const line = h("div", { class: "list-line", role: "row", id: `${this.id}-${at}`, "aria-rowindex": at + 1, "data-at": at }, cells);
    line.style.transform = `translateY(${at * LINE}px)`;
    return line;
  }

  #step(by) {
    if (!this.rows.length) return;
    const now = this.rows.findIndex((row) => this.key(row) === this.selected);
    const next = Math.min(this.rows.length - 1, Math.max(0, now < 0 ? 0 : now + by));
    this.selected = this.key(this.rows[next]);
    const top = next * LINE, seen = this.element.clientHeight - this.head.offsetHeight;
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    else if (top + LINE > this.element.scrollTop + seen) this.element.scrollTop = top + LINE - seen;
    this.draw();
  }

  #keyed(event) {
    const page = Math.max(1, Math.floor(this.element.clientHeight / LINE) - 2);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (Object.hasOwn(steps, event.key)) { this.#step(steps[event.key]); event.preventDefault(); }
    const row = this.rows.find((row) => this.key(row) === this.selected);
    if (event.key === "Enter" && row) { location.hash = this.open(row); event.preventDefault(); }
  }

  #clicked(event) {
    const line = event.target.closest("[data-at]");
    if (!line || event.target.closest("a") || String(getSelection())) return;
    location.hash = this.open(this.rows[Number(line.dataset.at)]);
  }
}
