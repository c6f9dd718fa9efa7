// Elements, and numbers as people read them.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(9).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** An HTML element. Children are elements and texts; texts are never markup. */
export const h = (tag, properties, ...children) => fill(document.createElement(tag), properties, children);

/** An element of a picture. */
export const s = (tag, properties, ...children) => fill(document.createElementNS(SVG, tag), properties, children);

/** An object from the server under a key that its user chose: only its own, never `constructor` and the like. */
export const own = (object, key) => (Object.hasOwn(object ?? {}, key) ? object[key] : undefined);

const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 3 });
const padded = new Intl.NumberFormat("en-US", { minimumSignificantDigits: 3, maximumSignificantDigits: 3 });
const compacted = new Intl.NumberFormat("en-US", { notation: "compact", maximumSignificantDigits: 3 });
const DASH = "–";
const missing = (value) => value === null || value === undefined || Number.isNaN(value);

export const count = (value) => (missing(value) ? DASH : grouped.format(value));

/** `1 plan`, `5 plans`. */
export const many = (value, noun) => `${count(value)} ${noun}${value === 1 ? "" : "s"}`;

/** `10.1M` for remarks. */
export const compact = (value) => (missing(value) ? DASH : compacted.format(value));

/** Three digits, so that measured times line up; a time that somebody wrote stays as it is. */
const digits = (value) => (Number.isInteger(value) ? grouped : padded).format(value);

/** Milliseconds. */
export function time(ms) {
  if (missing(ms)) return DASH;
  if (ms === 0) return "0 ms";
  if (ms < 0.001) return `${digits(+(ms * 1e6).toPrecision(9))} ns`;
  if (ms < 1) return `${digits(+(ms * 1e3).toPrecision(9))} µs`;
  if (ms < 1000) return `${digits(ms)} ms`;
  if (ms < 120_000) return `${digits(ms / 1000)} s`;
  const seconds = Math.round(ms / 1000);
  const two = (number) => String(number).padStart(2, "0");
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m ${two(seconds % 60)}s`;
  return `${grouped.format(Math.floor(seconds / 3600))}h ${two(Math.floor(seconds / 60) % 60)}m`;
}

export function size(bytes) {
  if (missing(bytes)) return DASH;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const unit = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  return `${unit ? (bytes / 1024 ** unit).toFixed(1) : bytes} ${units[unit]}`;
}

/** A share between 0 and 1. */
export function share(value) {
  if (missing(value)) return DASH;
  if (value === 0) return "0%";
  if (value < 0.0001) return "<0.01%";
  if (Number.isInteger(+(value * 100).toFixed(6))) return `${Math.round(value * 100)}%`;
  return `${(value * 100).toFixed(value < 0.0995 ? 2 : 1)}%`;
}

export const rate = (value) => (missing(value) ? DASH : value >= 100 ? grouped.format(value) : short.format(value));

const dollars = new Intl.NumberFormat("en-US", { style: "currency", currency: "USD" });
const smallDollars = new Intl.NumberFormat("en-US", { style: "currency", currency: "USD", maximumSignificantDigits: 3 });
export const money = (value) => (missing(value) ? DASH : (value > 0 && value < 1 ? smallDollars : dollars).format(value));

/** The time of a run; of one under way the time so far, in whole seconds. */
export const tookOf = (run) => (run.state === "running" ? time(Math.max(0, Math.floor((Date.now() - run.started_ms) / 1000)) * 1000) : time(run.duration_ms));

/** When: the time of today, or the day and the time. */
export function moment(ms) {
  if (missing(ms)) return DASH;
  const date = new Date(ms);
  const two = (number) => String(number).padStart(2, "0");
  const clock = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  const isToday = date.toDateString() === new Date().toDateString();
  return isToday ? clock : `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${clock}`;
}

export const exactly = (ms) => (missing(ms) ? "" : new Date(ms).toISOString());

/** A state with its sign. */
export const chip = (state) => h("span", { class: `chip ${String(state).replace(/[^a-z_]/g, "")}` }, String(state).replace("_", " "));

const ruler = document.createElement("canvas").getContext("2d");
let family = null;
/** The width of a text of a picture, in pixels. */
export function textWidth(text, weight = 400) {
  family ??= getComputedStyle(document.documentElement).getPropertyValue("--sans");
  ruler.font = `${weight} 12px ${family}`;
  return ruler.measureText(text).width;
}

/** Shows the page anew, from what the server has now. */
export const showAgain = () => dispatchEvent(new Event("hashchange"));

/** A value as its text: a string as it is, everything else as JSON. */
export const shown = (value) => (typeof value === "string" ? value : JSON.stringify(value ?? null));

/** The link of a page; its parts are escaped. */
export const link = (...parts) => `#/${parts.map(encodeURIComponent).join("/")}`;

/**
 * A table. Columns are `{ head, cell, num, opt, wrap, width, is }`; one is left out unless `is` holds for a row. `open` makes
 * lines that can be followed.
 */
export function table(all, rows, { label, open, empty } = {}) {
  const columns = all.filter((column) => !column.is || rows.some(column.is));
  if (!rows.length) return h("div", { class: "panel" }, h("p", { class: "empty" }, empty ?? "none"));
  const classes = (column) => [column.num && "num", column.opt && "opt", column.wrap && "wrap"].filter(Boolean).join(" ") || null;
  const head = (column) => {
    const cell = h("th", { class: classes(column), scope: "col" }, column.head);
    if (column.width) cell.style.width = column.width;
    return cell;
  };
  const line = (row) => {
    const cells = columns.map((column, at) => {
      const shown = column.cell(row);
      return h(at === 0 ? "th" : "td", { class: classes(column), scope: at === 0 ? "row" : null }, shown);
    });
    const target = open?.(row);
    const go = () => { if (target && !String(getSelection())) location.hash = target; };
    return h("tr", target ? { tabindex: 0, onclick: go, "data-open": target } : null, cells);
  };
  return h("div", { class: "panel scroll" }, h("table", { "aria-label": label },
    h("thead", null, h("tr", null, columns.map(head))),
    h("tbody", null, rows.map(line))));
}

/** Replaces the content of an element. The line in focus stays in focus. */
export function refill(element, ...content) {
  const focus = element.contains(document.activeElement) ? document.activeElement.dataset.open : null;
  element.replaceChildren(...content);
  if (focus) [...element.querySelectorAll("[data-open]")].find((line) => line.dataset.open === focus)?.focus();
}

/** Facts in large figures: `[name, figure, remark]`. */
export const tiles = (facts) => h("dl", { class: "tiles" }, facts.map(([name, figure, remark, kind]) =>
  h("div", null, h("dt", null, name), h("dd", { class: kind }, figure, remark && h("small", null, remark)))));

/** A bar of shares: `[kind, share]`. */
export const meter = (label, shares) => h("span", { class: "meter", role: "img", "aria-label": label }, shares.map(([kind, part]) => {
  const piece = h("i", { class: kind });
  piece.style.width = `${Math.min(100, 100 * part)}%`;
  return piece;
}));

/** A heading with a part of a page under it. */
export const part = (title, content, ...tools) => h("section", { "aria-label": title },
  h("div", { class: "part-head" }, h("h2", null, title), h("span", { class: "grow" }), tools), content);

export const notice = (kind, ...content) => h("div", { class: `notice ${kind}`, role: kind === "bad" ? "alert" : "note" }, content);
