// One dataset: its cells as they fill, throughput, limits, spend, errors, and some of its rows.

import { every, get, getExact, getIfThere, hear, retried } from "../api.js";
import { cancelButton, downloadLink } from "../buttons.js";
import { Cells } from "../cells.js";
import { Chart } from "../chart.js";
import { chip, compact, count, h, link, meter, money, notice, part, rate, share, showAgain, shown, table, tiles, time } from "../dom.js";

const SAMPLES = 20, ERRORS = 50, QUEUED_MS = 1000;

const sum = (list, field) => list.reduce((total, entry) => total + (entry[field] ?? 0), 0);
const seconds = (value) => time(value === null || value === undefined ? null : value * 1000);

function columnTable(dataset) {
  const bar = (column) => meter(`${count(column.finished)} of ${count(dataset.rows)} finished`,
    ["finished", "failed", "skipped"].map((state) => [state, (column[state] ?? 0) / Math.max(1, dataset.rows)]));
  const isRunning = dataset.state === "running";
  return table([
    { head: "Column", cell: (column) => column.name },
    { head: "Kind", opt: true, cell: (column) => h("span", { class: "muted" }, column.kind ?? "") },
    { head: "Progress", cell: bar },
    { head: "Finished", num: true, cell: (column) => count(column.finished) },
    { head: "Failed", num: true, cell: (column) => h("span", { class: column.failed ? "bad" : "muted" }, count(column.failed)) },
    { head: "Skipped", num: true, opt: true, cell: (column) => count(column.skipped) },
    { head: "Retried", num: true, opt: true, cell: (column) => count(column.retried) },
    ...(isRunning ? [{ head: "Cells per second", num: true, opt: true, cell: (column) => rate(column.cells_per_second) }] : []),
  ], dataset.columns, { label: "Columns", empty: "the build has not begun" });
}

const modelTable = (models) => table([
  { head: "Model", cell: (model) => model.name },
  { head: "In flight", num: true, cell: (model) => count(model.in_flight) },
  { head: "Limit", num: true, cell: (model) => count(model.limit) },
  { head: "Calls", num: true, opt: true, cell: (model) => count(model.calls) },
  { head: "Refused", num: true, opt: true, cell: (model) => count(model.refused) },
  { head: "Cooling", num: true, cell: (model) => (model.cooling_ms ? h("span", { class: "warn" }, time(model.cooling_ms)) : "–") },
], models, { label: "Models" });

/** What was used: the sums of the numbers of each model or column, whatever they are called. */
function tokensOf(usage) {
  const of = (entry) => (entry && typeof entry === "object" ? Object.values(entry).reduce((total, value) => total + tokensOf(value), 0) : 0);
  if (!usage || typeof usage !== "object") return 0;
  const own = ["input_tokens", "output_tokens"].reduce((total, name) => total + (typeof usage[name] === "number" ? usage[name] : 0), 0);
  return own || of(usage);
}

function facts(dataset) {
  const cells = sum(dataset.columns, "finished"), isRunning = dataset.state === "running";
  // Of a build that is over, the mean.
  const speed = isRunning ? sum(dataset.columns, "cells_per_second") : dataset.elapsed_seconds ? cells / dataset.elapsed_seconds : null;
  return tiles([
    ["Rows", count(dataset.rows_done), `of ${count(dataset.rows)}${dataset.rows ? `, ${share(dataset.rows_done / dataset.rows)}` : ""}`],
    ["Dropped", count(dataset.rows_dropped), "rows", dataset.rows_dropped ? "warn" : null],
    ["Cells per second", rate(speed), `${compact(cells)} cells`],
    ["Cost", money(dataset.cost), `${compact(tokensOf(dataset.usage))} tokens`],
    ["Elapsed", seconds(dataset.elapsed_seconds)],
    ...(isRunning ? [["Left", seconds(dataset.left_seconds), "about"]] : []),
  ]);
}

function recordsPart(rows) {
  if (!rows.length) return part("Sample rows", h("div", { class: "panel" }, h("p", { class: "empty" }, "no rows are written yet")));
  const text = (value) => (value === null || value === undefined ? "–" : shown(value));
  const record = (row, at) => h("details", { class: "record", open: at < 2 }, h("summary", null, h("span", { class: "muted" }, count(at)), " ", text(Object.values(row)[0]).slice(0, 120)),
    h("dl", null, Object.entries(row).map(([name, value]) => [h("dt", null, name), h("dd", null, text(value).slice(0, 4000))])));
  return part("Sample rows", h("div", { class: "panel" }, rows.map(record)), h("span", { class: "muted" }, `the first ${count(rows.length)}`));
}

/** Failed cells, which the server has when the build has ended, and their number per class, which it has before. */
function errorsPart(errors, classes) {
  const counts = Object.entries(classes ?? {});
  if (!errors.length && !counts.length) return null;
  return part("Errors", errors.length ? table([
    { head: "Row", num: true, cell: (error) => count(error.row) },
    { head: "Column", cell: (error) => error.column ?? "" },
    { head: "Class", cell: (error) => h("span", { class: "bad" }, error.class ?? "") },
    { head: "Message", wrap: true, cell: (error) => error.message ?? "" },
  ], errors, { label: "Errors" }) : h("div", { class: "panel" }, h("p", { class: "empty" }, "the cells that failed are listed when the build ends")),
  h("span", { class: "legend" }, counts.map(([name, number]) => h("span", null, `${name} `, h("b", { class: "bad" }, count(number))))));
}

/** The curves of a build: all that the server remembers, then what it tells. */
class Curves {
  constructor(dataset) {
    this.speed = new Chart({ title: "Throughput", format: rate, lines: [{ name: "cells per second", kind: "green", area: true }] });
    this.limit = new Chart({ title: "Calls and limit", format: rate, lines: [{ name: "in flight", kind: "blue", area: true }, { name: "limit", kind: "gold" }] });
    this.spend = new Chart({ title: "Spend", format: money, lines: [{ name: "cost", kind: "violet", area: true }] });
    // Models without prices cost nothing that is known.
    this.spend.element.hidden = true;
    this.element = h("section", { class: "charts", "aria-label": "Charts" }, this.speed.element, this.limit.element, this.spend.element);
    for (const sample of dataset.history ?? []) this.#push(...sample);
    if (dataset.state === "running") this.take(dataset);
  }

  #push(at, speed, inFlight, limit, cost) {
    this.speed.push(at, [speed]);
    this.limit.push(at, [inFlight, limit]);
    this.spend.push(at, [cost]);
    if (cost !== null) this.spend.element.hidden = false;
  }

  take(now) {
    const models = now.models ?? [];
    this.#push(now.elapsed_seconds ?? 0, sum(now.columns ?? [], "cells_per_second"), sum(models, "in_flight"), sum(models, "limit"), now.cost ?? null);
  }
}

const isUnderWay = (dataset) => ["running", "queued"].includes(dataset.state);

/** Hears the run of a build to its end, and gives what has become of the dataset. */
async function follow({ path, dataset, signal, handlers }) {
  try {
    await hear(`/v1/runs/${encodeURIComponent(dataset.run)}/events?after=${dataset.event ?? 0}`, signal, (event, data, id) => {
      if (Object.hasOwn(handlers, event)) handlers[event](data, Number(id));
    });
  } catch (error) {
    // A server that was started anew builds with another run.
    if (error.status !== 404) throw error;
  }
  return retried(signal, () => get(path, signal));
}

/**
 * The parts of a dataset, under what the page has already. `head` has the state and what can be done. `goOn` follows a dataset
 * that goes on with a run that this page `isFor` not.
 */
export async function showIn({ main, head, id, signal, isFor = () => true, goOn = showAgain }) {
  const path = `/v1/datasets/${encodeURIComponent(id)}`;
  let dataset = await retried(signal, () => get(path, signal));
  const top = h("div"), columns = h("div"), models = h("div"), records = h("div"), errors = h("div");
  const cells = new Cells(path, signal), curves = new Curves(dataset);
  const draw = () => {
    top.replaceChildren(facts(dataset));
    columns.replaceChildren(columnTable(dataset));
    models.replaceChildren(...(dataset.models?.length ? [part("Models", modelTable(dataset.models))] : []));
  };
  let samples = 0, failures = [];
  const drawErrors = () => { errors.replaceChildren(errorsPart(failures, dataset.errors) ?? ""); };
  const readRows = async () => {
    const rows = (await getIfThere(`${path}/rows?limit=${SAMPLES}`, signal, getExact))?.rows ?? [];
    samples = rows.length;
    records.replaceChildren(recordsPart(rows));
  };
  const readErrors = async () => {
    failures = (await getIfThere(`${path}/errors?limit=${ERRORS}`, signal))?.errors ?? [];
    drawErrors();
  };
  const readFiles = () => Promise.all([retried(signal, readRows), retried(signal, readErrors)]);
  /** Reads sample rows when there are more, until there are enough. */
  let isReading = false;
  const sample = async (written) => {
    if (isReading || samples >= SAMPLES || written <= samples) return;
    isReading = true;
    try { await retried(signal, readRows); } finally { isReading = false; }
  };
  const report = (error) => { if (!signal.aborted && error.status !== 401) top.before(notice("bad", `This page is no longer up to date: ${error.message}`)); };
  draw();
  const cancel = isUnderWay(dataset) ? cancelButton(`${path}/cancel`, "Cancel build") : null;
  const state = h("span", { class: "build-state" }, chip(dataset.state));
  head.append(state, h("span", { class: "grow" }), h("a", { class: "button", href: link("datasets", id, "report") }, "Report"),
    downloadLink(`${path}/download?format=jsonl`, `${id}.jsonl`, "Download rows"), cancel ?? "");
  if (dataset.error) main.append(notice("bad", dataset.error));
  main.append(top, cells.element, curves.element, part("Columns", columns), models, errors, records);
  if (dataset.config) main.append(part("Configuration", h("details", null, h("summary", null, "show"), h("pre", { class: "panel record" }, dataset.config))));
  if (dataset.state === "queued") {
    await every(QUEUED_MS, signal, async () => {
      const now = await get(path, signal);
      if (now.state !== "queued") showAgain();
    });
    return;
  }
  const handlers = {
    progress: (data, number) => {
      const kinds = new Map(dataset.columns.map((column) => [column.name, column.kind]));
      const now = data.columns?.map((column) => ({ kind: kinds.get(column.name), ...column })) ?? dataset.columns;
      dataset = { ...dataset, ...data, columns: now, state: dataset.state };
      cells.take(dataset, data, number)?.catch(report);
      curves.take(dataset);
      draw();
      drawErrors();
      sample(data.rows_written ?? 0).catch(report);
    },
    lost: () => cells.fetch(dataset).catch(report),
    again: () => cells.restart(dataset).catch(report),
    stopping: () => state.replaceChildren(chip("stopping")),
  };
  const end = async (now) => {
    if (isUnderWay(now)) { (isFor(now.run) ? showAgain : goOn)(); return; }
    dataset = now;
    state.replaceChildren(chip(dataset.state));
    cancel?.remove();
    draw();
    await readFiles();
  };
  if (dataset.state === "running" && dataset.run) follow({ path, dataset, signal, handlers }).then(end).catch(report);
  await Promise.all([cells.fetch(dataset), readFiles()]);
}

export async function show({ main, signal, args: [id], title }) {
  const dataset = await retried(signal, () => get(`/v1/datasets/${encodeURIComponent(id)}`, signal));
  title(dataset.name);
  const head = h("div", { class: "head" }, h("p", { class: "crumb" }, h("a", { href: "#/datasets" }, "Datasets"), " / ", h("code", null, id)), h("h1", null, dataset.name));
  main.append(head);
  await showIn({ main, head, id, signal });
  if (dataset.run) head.append(h("a", { class: "button", href: link("runs", dataset.run) }, "Run and events"));
}
