// One dataset: its cells as they fill, throughput, limits, spend, errors, and some of its rows.

import { every, fileLink, get, getIfThere, hear, request } from "../api.js";
import { cancelButton } from "../cancel.js";
import { Chart } from "../chart.js";
import { chip, compact, count, h, link, money, notice, part, rate, table, tiles, time } from "../dom.js";
import { Grid } from "../grid.js";

/** The server answers at most so many cells one by one. */
const CELLS_MOST = 4_000_000;
const SAMPLES = 20, ERRORS = 50, QUEUED_MS = 1000;

const bytesOf = (base64) => Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
const sum = (list, field) => list.reduce((total, entry) => total + (entry[field] ?? 0), 0);

/** Cells, kept up to date. One request for cells is under way at most; what changes meanwhile is fetched after it. */
class Cells {
  constructor(path, signal) {
    Object.assign(this, { path, signal, busy: false, again: false, next: 0, element: h("div") });
  }

  /** A grid for the columns and rows of now; a stage of a build has its own. */
  #fit(dataset) {
    const names = dataset.columns.map((column) => column.name), shape = JSON.stringify([dataset.rows, names]);
    if (shape === this.shape || !names.length || !dataset.rows) return;
    this.shape = shape;
    this.bucket = Math.ceil((dataset.rows * names.length) / CELLS_MOST) || 1;
    this.grid = new Grid({ rows: dataset.rows, columns: names, bucket: this.bucket });
  }

  async fetch(dataset) {
    this.#fit(dataset);
    if (!this.grid) return;
    if (this.busy) { this.again = true; return; }
    this.busy = true;
    const started = performance.now();
    try {
      do {
        this.again = false;
        const { grid, bucket } = this;
        const response = await request(`${this.path}/cells${bucket > 1 ? `?bucket=${bucket}` : ""}`, { signal: this.signal });
        const bytes = new Uint8Array(await response.arrayBuffer());
        // Of a bucket the share that finished follows each state.
        grid.set(0, bucket > 1 ? bytes.filter((_, at) => at % 2 === 0) : bytes);
        if (!grid.element.isConnected) this.element.replaceChildren(part("Cells", grid.element, grid.tools));
      } while (this.again);
    } catch (error) {
      // A build that is over has no states of cells, and neither has one that is too large.
      if (!this.signal.aborted && ![404, 409, 413].includes(error.status)) throw error;
    } finally { this.busy = false; }
    // However slow the way to the server is, most of the time no cells are on it.
    this.next = performance.now() + 5 * (performance.now() - started);
  }

  take(dataset, event) {
    this.#fit(dataset);
    const isConnected = this.grid?.element.isConnected;
    if (isConnected && event.cells?.states !== undefined && this.bucket === 1) this.grid.set(event.cells.from ?? 0, bytesOf(event.cells.states));
    else if (performance.now() >= this.next) this.fetch(dataset);
  }
}

function columnTable(dataset) {
  const meter = (column) => {
    const whole = Math.max(1, dataset.rows);
    return h("span", { class: "meter", role: "img", "aria-label": `${count(column.finished)} of ${count(dataset.rows)} finished` }, ["finished", "failed", "skipped"].map((state) => {
      const piece = h("i", { class: state });
      piece.style.width = `${Math.min(100, (100 * (column[state] ?? 0)) / whole)}%`;
      return piece;
    }));
  };
  return table([
    { head: "Column", cell: (column) => column.name },
    { head: "Kind", opt: true, cell: (column) => h("span", { class: "muted" }, column.kind ?? "") },
    { head: "Progress", cell: meter },
    { head: "Finished", num: true, cell: (column) => count(column.finished) },
    { head: "Failed", num: true, cell: (column) => h("span", { class: column.failed ? "bad" : "muted" }, count(column.failed)) },
    { head: "Skipped", num: true, opt: true, cell: (column) => count(column.skipped) },
    { head: "Retried", num: true, opt: true, cell: (column) => count(column.retried) },
    { head: "Cells per second", num: true, opt: true, cell: (column) => rate(column.cells_per_second) },
  ], dataset.columns, { label: "Columns" });
}

const modelTable = (models) => table([
  { head: "Model", cell: (model) => model.name },
  { head: "In flight", num: true, cell: (model) => count(model.in_flight) },
  { head: "Limit", num: true, cell: (model) => count(model.limit) },
  { head: "Calls", num: true, opt: true, cell: (model) => count(model.calls) },
  { head: "Refused", num: true, opt: true, cell: (model) => count(model.refused) },
  { head: "Cooling", num: true, cell: (model) => (model.cooling_ms ? h("span", { class: "warn" }, time(model.cooling_ms)) : "") },
], models, { label: "Models" });

/** What was used: the sums of the numbers of each model or column, whatever they are called. */
function tokensOf(usage) {
  const of = (entry) => (entry && typeof entry === "object" ? Object.values(entry).reduce((total, value) => total + tokensOf(value), 0) : 0);
  if (!usage || typeof usage !== "object") return 0;
  const own = ["input_tokens", "output_tokens"].reduce((total, name) => total + (typeof usage[name] === "number" ? usage[name] : 0), 0);
  return own || of(usage);
}

function facts(dataset) {
  const cells = dataset.columns.reduce((total, column) => total + column.finished, 0);
  return tiles([
    ["Rows", count(dataset.rows_done), `of ${count(dataset.rows)}`],
    ["Dropped", count(dataset.rows_dropped), null, dataset.rows_dropped ? "warn" : null],
    ["Cells per second", rate(sum(dataset.columns, "cells_per_second")), `${compact(cells)} cells`],
    ["Cost", money(dataset.cost), `${compact(tokensOf(dataset.usage))} tokens`],
    ["Elapsed", time(dataset.elapsed_seconds === null ? null : dataset.elapsed_seconds * 1000)],
    ["Left", dataset.state === "running" && dataset.left_seconds !== null ? time(dataset.left_seconds * 1000) : "–"],
  ]);
}

async function recordsPart(path, signal) {
  const found = await getIfThere(`${path}/rows?limit=${SAMPLES}`, signal);
  const rows = found?.rows ?? [];
  if (!rows.length) return part("Sample rows", h("div", { class: "panel" }, h("p", { class: "empty" }, "no rows are written yet")));
  const shown = (row) => JSON.stringify(row.values ?? row.record ?? row, null, 2);
  return part("Sample rows", h("div", { class: "panel" }, rows.map((row) => h("pre", { class: "record" }, shown(row).slice(0, 4000)))));
}

async function errorsPart(path, classes, signal) {
  const found = await getIfThere(`${path}/errors?limit=${ERRORS}`, signal);
  const errors = found?.errors ?? [];
  const counts = Object.entries(classes ?? {});
  if (!errors.length && !counts.length) return null;
  return part("Errors", errors.length ? table([
    { head: "Row", num: true, cell: (error) => count(error.row) },
    { head: "Column", cell: (error) => error.column ?? "" },
    { head: "Class", cell: (error) => h("span", { class: "bad" }, error.class ?? "") },
    { head: "Message", wrap: true, cell: (error) => error.message ?? "" },
  ], errors, { label: "Errors" }) : null, h("span", { class: "legend" }, counts.map(([name, number]) => h("span", null, `${name} `, h("b", { class: "bad" }, count(number))))));
}

/** The parts of a dataset, under what the page has already. */
export async function showIn(main, id, signal) {
  const path = `/v1/datasets/${encodeURIComponent(id)}`;
  let dataset = await get(path, signal);
  const top = h("section"), columns = h("div"), models = h("div"), records = h("div"), errors = h("div");
  const cells = new Cells(path, signal);
  const charts = {
    speed: new Chart({ title: "Throughput", format: rate, lines: [{ name: "cells per second", kind: "green", area: true }] }),
    limit: new Chart({ title: "Calls and limit", format: rate, lines: [{ name: "in flight", kind: "blue", area: true }, { name: "limit", kind: "gold" }] }),
    spend: new Chart({ title: "Spend", format: money, lines: [{ name: "cost", kind: "violet", area: true }] }),
  };
  const chart = (now) => {
    const at = now.elapsed_seconds ?? 0;
    charts.speed.push(at, [sum(now.columns ?? [], "cells_per_second")]);
    charts.limit.push(at, [sum(now.models ?? [], "in_flight"), sum(now.models ?? [], "limit")]);
    charts.spend.push(at, [now.cost ?? null]);
  };
  const draw = () => {
    top.replaceChildren(facts(dataset));
    columns.replaceChildren(columnTable(dataset));
    models.replaceChildren(...(dataset.models?.length ? [part("Models", modelTable(dataset.models))] : []));
    chart(dataset);
  };
  const slow = async () => {
    records.replaceChildren(await recordsPart(path, signal));
    const found = await errorsPart(path, dataset.errors, signal);
    errors.replaceChildren(...(found ? [found] : []));
  };
  draw();
  const state = chip(dataset.state);
  const cancel = ["running", "queued"].includes(dataset.state) ? cancelButton(`${path}/cancel`, "Cancel build") : null;
  main.append(h("div", { class: "bar-row" }, state, h("span", { class: "grow" }), fileLink(h, `${path}/report`, `${id}.html`, "Report"),
    fileLink(h, `${path}/download?format=jsonl`, `${id}.jsonl`, "Download rows"), cancel), top, cells.element,
    h("section", { class: "charts", "aria-label": "Charts" }, charts.speed.element, charts.limit.element, charts.spend.element), part("Columns", columns), models, errors, records);
  if (dataset.config) main.append(part("Configuration", h("details", null, h("summary", null, "show"), h("pre", { class: "panel record" }, dataset.config))));
  if (dataset.state === "queued") {
    await every(QUEUED_MS, signal, async () => {
      const now = await get(path, signal);
      if (now.state !== "queued") dispatchEvent(new Event("hashchange"));
    });
    return;
  }
  if (dataset.state === "running" && dataset.run) {
    hear(`/v1/runs/${encodeURIComponent(dataset.run)}/events`, signal, async (event, data) => {
      if (event === "progress" && data.elapsed_seconds < dataset.elapsed_seconds) {
        chart(data);
      } else if (event === "progress") {
        const kinds = new Map(dataset.columns.map((column) => [column.name, column.kind]));
        const now = data.columns?.map((column) => ({ kind: kinds.get(column.name), ...column })) ?? dataset.columns;
        dataset = { ...dataset, ...data, columns: now, state: dataset.state };
        cells.take(dataset, data);
        draw();
      } else if (event === "stopping") {
        state.replaceWith(chip("stopping"));
      } else if (event === "end") {
        dataset = await get(path, signal);
        main.querySelector(".chip")?.replaceWith(chip(dataset.state));
        cancel?.remove();
        draw();
        slow();
      }
    });
  }
  await Promise.all([cells.fetch(dataset), slow()]);
}

export async function show({ main, signal, args: [id], title }) {
  const dataset = await get(`/v1/datasets/${encodeURIComponent(id)}`, signal);
  title(dataset.name);
  main.append(h("div", { class: "head" }, h("p", { class: "crumb" }, h("a", { href: "#/datasets" }, "Datasets"), " / ", h("code", null, id)),
    h("h1", null, dataset.name), h("span", { class: "grow" }), dataset.run && h("a", { class: "button", href: link("runs", dataset.run) }, "Run and events")));
  if (dataset.error) main.append(notice("bad", dataset.error));
  await showIn(main, id, signal);
}
