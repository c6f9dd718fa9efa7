// All runs, newest first, as they start and end.

import { LISTED_MOST, hear, looked, pages, pause, retried } from "../api.js";
import { chip, compact, count, exactly, h, link, many, moment, notice, tookOf } from "../dom.js";
import { List } from "../list.js";

const PAGE = 1000, SECOND_MS = 1000;
/** Between two pictures so many runs are held: those of the list, and new ones. */
const HELD_MOST = 2 * LISTED_MOST;
/** The least time between two readings of the whole list, however often events are lost. */
const READ_AGAIN_MS = 2000;
const KINDS = ["plan", "recipe", "dataset"];
const RUN_STATES = ["running", "complete", "degraded", "failed", "stopped"];

export const runColumns = [
  { head: "Run", width: "minmax(150px,2fr)", narrow: "minmax(0,1fr)", cell: (run) => h("a", { href: link("runs", run.id), tabindex: -1 }, run.name) },
  { head: "Kind", width: "84px", opt: true, cell: (run) => h("span", { class: "muted" }, run.kind) },
  { head: "State", width: "110px", cell: (run) => chip(run.state) },
  { head: "Started", width: "160px", opt: true, cell: (run) => h("span", { title: exactly(run.started_ms), class: "muted" }, moment(run.started_ms)) },
  { head: "Duration", width: "92px", num: true, cell: (run) => h("span", { class: run.state === "running" ? "muted" : null }, tookOf(run)) },
  { head: "Degraded", width: "88px", num: true, opt: true, cell: (run) => mark(run.degraded, "warn") },
  { head: "Failures", width: "80px", num: true, opt: true, cell: (run) => mark(run.failures, "bad") },
  { head: "Rows", width: "92px", num: true, opt: true, cell: (run) => count(run.rows) },
  { head: "Id", width: "152px", opt: true, cell: (run) => h("code", { class: "muted" }, run.id) },
];

/** A count that fits into its column. */
const mark = (number, kind) => (number ? h("span", { class: kind, title: count(number) }, number < 100_000 ? count(number) : compact(number)) : h("span", { class: "muted" }, "0"));

export async function show({ main, signal, query }) {
  const runs = new Map();
  const list = new List({ label: "Runs", columns: runColumns, key: (run) => run.id, open: (run) => link("runs", run.id), empty: "no runs match" });
  const filter = { kind: query.get("kind") ?? "", state: query.get("state") ?? "", text: query.get("q") ?? "" };
  const total = h("span", { class: "muted", role: "status", "aria-live": "polite" });
  const nothing = notice("", "No runs yet. A plan, a recipe or a dataset that runs on this server appears here.");
  nothing.hidden = true;
  const tellNothing = () => { list.element.hidden = runs.size === 0; nothing.hidden = !list.element.hidden; };
  let planned = false, isCut = false;
  /** The newest runs; older ones are forgotten. */
  const newest = () => {
    const all = [...runs.values()].sort((one, other) => (one.id < other.id ? 1 : -1));
    if (all.length > LISTED_MOST) isCut = true;
    for (const run of all.splice(LISTED_MOST)) runs.delete(run.id);
    return all;
  };
  const draw = () => {
    planned = false;
    const wanted = filter.text.toLowerCase();
    const fits = (run) => (!filter.kind || run.kind === filter.kind) && (!filter.state || run.state === filter.state)
      && (!wanted || run.name.toLowerCase().includes(wanted) || run.id.startsWith(wanted));
    const all = newest(), shown = all.filter(fits), of = `${isCut ? "the newest " : ""}${many(all.length, "run")}`;
    total.textContent = shown.length === all.length ? of : `${count(shown.length)} of ${of}`;
    list.set(shown);
  };
  const later = () => { if (!planned) { planned = true; setTimeout(draw, 120); } };
  const change = (field) => (event) => {
    filter[field] = event.target.value;
    const now = new URLSearchParams(Object.entries({ kind: filter.kind, state: filter.state, q: filter.text }).filter(([, value]) => value));
    history.replaceState(null, "", `#/runs${String(now) && `?${now}`}`);
    draw();
  };
  const choice = (field, label, values) => h("select", { "aria-label": label, onchange: change(field) }, h("option", { value: "" }, label),
    values.map((value) => h("option", { value, selected: filter[field] === value }, value)));
  main.append(h("div", { class: "head" }, h("h1", null, "Runs"), h("span", { class: "grow" }), total),
    h("div", { class: "bar-row" },
      h("input", { type: "search", placeholder: "Name or id (press /)", "aria-label": "Filter by name or id", value: filter.text, oninput: change("text") }),
      choice("kind", "All kinds", KINDS), choice("state", "All states", RUN_STATES)), nothing, list.element);

  /** The runs that the server has not named since its list is read anew. */
  let unnamed = new Set();
  const take = (run) => {
    unnamed.delete(run.id);
    // A page of the list may be older than an event. A run ends once.
    const isOlder = run.state === "running" && runs.has(run.id) && runs.get(run.id).state !== "running";
    if (!isOlder) runs.set(run.id, run);
    if (runs.size > HELD_MOST) newest();
  };
  const readAll = async () => {
    unnamed = new Set(runs.keys());
    for await (const page of pages({ path: "/v1/runs", entries: "runs", cursor: "before", size: PAGE, most: LISTED_MOST }, signal)) {
      page.runs.forEach(take);
      isCut = Boolean(page.next) && runs.size >= LISTED_MOST;
      draw();
    }
    unnamed.forEach((id) => runs.delete(id));
    tellNothing();
    draw();
  };
  let isReading = false, isWanted = false;
  const refresh = async () => {
    isWanted = true;
    if (isReading) return;
    isReading = true;
    try {
      while (isWanted) {
        isWanted = false;
        await looked(signal);
        await retried(signal, readAll);
        await pause(READ_AGAIN_MS, signal);
      }
    } finally { isReading = false; }
  };
  const report = (error) => { if (!signal.aborted && error.status !== 401) list.element.before(notice("bad", `This page is no longer up to date: ${error.message}`)); };
  const ticks = setInterval(() => { if (!document.hidden) list.refresh((run) => run.state === "running"); }, SECOND_MS);
  signal.addEventListener("abort", () => clearInterval(ticks), { once: true });
  // Events first, so that no run is missed between the list and them.
  hear("/v1/events", signal, (event, run) => {
    if (event === "run") { take(run); tellNothing(); later(); }
    // Events were missed: those that this page was too slow for, or all of another server.
    if (event === "lost" || event === "again") refresh().catch(report);
  }).catch(report);
  await refresh();
}
