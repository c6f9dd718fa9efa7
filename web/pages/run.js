// One run: what went wrong first, then the graph, the timeline and the events.

import { datasetPages, getExact, hear, retried } from "../api.js";
import { cancelButton, downloadLink } from "../buttons.js";
import { chip, count, exactly, h, link, many, moment, notice, part, showAgain, size, table, time } from "../dom.js";
import { graph, legend, legendOf } from "../graph.js";
import { Timeline } from "../timeline.js";
import { showIn as showDataset } from "./dataset.js";

const EVENTS_MOST = 500;
const TROUBLE = new Set(["failed", "fell_back", "dropped"]);
const BOX = { failed: "bad", fell_back: "soft", dropped: "gone", not_started: "gone" };

/** Whether the name of an entry of the ledger is that of its node alone, without or with its op, as in `posts (media)`. */
const isNamed = ({ name, node }) => name === node || name.startsWith(`${node} (`);

/** The ledger: the degraded parts of an answer. */
export const ledgerTable = (ledger) => table([
  { head: "Node", cell: (entry) => [entry.name ?? entry.node, entry.name && !isNamed(entry) ? [" ", h("code", { class: "muted" }, entry.node)] : null] },
  { head: "Reason", cell: (entry) => h("span", { class: entry.reason === "error" ? "bad" : "warn" }, entry.reason) },
  { head: "Fallback", cell: (entry) => entry.fallback ?? "–" },
  { head: "Waited", num: true, cell: (entry) => time(entry.waited_us === undefined ? null : entry.waited_us / 1000) },
  { head: "Rows", num: true, opt: true, cell: (entry) => count(entry.rows) },
  { head: "Age", num: true, opt: true, cell: (entry) => time(entry.age_us === undefined ? null : entry.age_us / 1000), is: (entry) => entry.age_us !== undefined },
  { head: "Region", opt: true, cell: (entry) => entry.region ?? "", is: (entry) => entry.region },
  { head: "Detail", wrap: true, cell: (entry) => entry.detail ?? "", is: (entry) => entry.detail },
], ledger, { label: "Ledger" });

/** The entries of a ledger by the node of the graph. */
const stagesOf = (ledger) => new Map((ledger ?? []).filter((entry) => entry.stage).map((entry) => [entry.stage, entry]));

/** The reason in the ledger, also that of the region of a node. */
const reasonOf = (entry) => (entry ? `${entry.reason}${entry.region ? ` of ${entry.region}` : ""}` : "");

function troubles(run, names) {
  const nodes = (run.timeline?.nodes ?? []).filter((node) => TROUBLE.has(node.state));
  if (!nodes.length) return null;
  const ledger = stagesOf(run.ledger);
  nodes.sort((one, other) => (one.end_ms ?? Infinity) - (other.end_ms ?? Infinity));
  return part("Failures and fallbacks", table([
    { head: "Node", cell: (node) => names.get(node.id)?.name ?? node.id },
    { head: "State", cell: (node) => chip(node.state) },
    { head: "Reason", wrap: true, cell: (node) => names.get(node.reason)?.name ?? node.reason ?? reasonOf(ledger.get(node.id)) },
    { head: "Started", num: true, opt: true, cell: (node) => time(node.start_ms) },
    { head: "Ended", num: true, opt: true, cell: (node) => time(node.end_ms) },
    { head: "Timeout", num: true, opt: true, cell: (node) => time(node.timeout_ms) },
  ], nodes.slice(0, 200), { label: "Failures and fallbacks" }));
}

/** The name of a box of a graph: without the op, as in `posts (media)`. The tooltip has it. */
export const nameOf = (node) => (node.name ?? node.id).replace(/ \([^()]*\)$/, "");

function graphPart(run, states) {
  if (!run.graph?.nodes?.length) return null;
  const ledger = stagesOf(run.ledger);
  const lines = (node) => {
    const of = states.get(node.id), entry = ledger.get(node.id);
    const took = of?.start_ms !== null && of?.end_ms ? time(of.end_ms - of.start_ms) : of?.state.replace("_", " ");
    const figures = [node.note, took, node.size === undefined ? null : size(node.size)].filter(Boolean).join(" · ");
    return [["n", nameOf(node)], ...(figures ? [[of?.state === "failed" ? "e" : of?.state === "fell_back" ? "w" : "m", figures]] : []),
      ...(entry ? [["w", `${entry.reason}: ${entry.fallback}, ${count(entry.rows)} rows`]] : [])];
  };
  const kind = (node) => `${BOX[states.get(node.id)?.state] ?? (ledger.has(node.id) ? "soft" : node.kind ?? "")} ${states.get(node.id)?.critical ? "critical" : ""}`;
  // Of the critical nodes before one, the path came from the last to end.
  const before = new Map();
  for (const [from, to] of run.graph.edges) {
    const [one, other] = [states.get(from), states.get(before.get(to))];
    if (one?.critical && states.get(to)?.critical && !((other?.end_ms ?? -1) > (one.end_ms ?? 0))) before.set(to, from);
  }
  const isPath = (from, to) => before.get(to.id) === from.id;
  return part("Graph", graph(run.graph, { label: `Graph of ${run.name}`, lines, kind, isPath, open: run.kind === "recipe" ? (node) => { location.hash = link("recipes", node.address); } : null }),
    legendOf(run.graph.nodes, kind, run.kind === "recipe" ? [["cpu", "computed"], ["memo", "remembered"], ["blob", "blob"], ["bad", "failed"], ["critical", "critical path"]]
      : [["io", "waits"], ["cpu", "computes"], ["soft", "degraded"], ["bad", "failed"], ["gone", "dropped or not started"], ["critical", "critical path"]]));
}

/** The nodes of a run by id. */
export const namesOf = (run) => new Map((run.graph?.nodes ?? []).map((node) => [node.id, { name: node.name ?? node.id, kind: node.kind }]));

/** The signs that a timeline has. */
function keysOf(run, names, timeline) {
  const { nodes } = run.timeline, has = (is) => nodes.some(is), kind = (node) => names.get(node.id)?.kind;
  return [["queued", "queued", has((node) => (node.start_ms ?? 0) - (node.queued_ms ?? Infinity) > timeline.leastSeen)], ["io", "waits", has((node) => kind(node) !== "cpu")], ["cpu", "computes", has((node) => kind(node) === "cpu")],
    ["soft", "fell back", has((node) => node.state === "fell_back")], ["bad", "failed", has((node) => node.state === "failed")], ["dropped", "dropped", has((node) => node.state === "dropped" && (node.start_ms ?? null) !== null)],
    ["critical", "critical path", has((node) => node.critical)], ["timeout", "timeout", has((node) => node.timeout_ms)], ["deadline", "deadline", timeline.showsDeadline]].filter(([, , isThere]) => isThere);
}

export function timelinePart(run, names) {
  if (!run.timeline?.nodes?.length) return null;
  const timeline = new Timeline(run.timeline, names, run.deadline_ms);
  return part("Timeline", [timeline.element, h("p", { class: "under" }, legend(keysOf(run, names, timeline)))], timeline.tools);
}

/** The events of a run as they happen, the newest first. Calls `lost` if the server does not know the run any more. */
function eventsPart(run, signal, lost) {
  const body = h("tbody"), state = h("span", { class: "muted" }, "");
  let taken = 0;
  hear(`/v1/runs/${encodeURIComponent(run.id)}/events`, signal, (event, data, id) => {
    if (event === "again") return;
    taken++;
    const text = data === null ? "" : typeof data === "string" ? data : JSON.stringify(data);
    body.prepend(h("tr", null, h("th", { class: "num", scope: "row" }, id ?? ""), h("td", { class: "nowrap" }, event), h("td", null, text.length > 400 ? `${text.slice(0, 400)}…` : text)));
    if (body.childElementCount > EVENTS_MOST) body.lastElementChild.remove();
    state.textContent = many(taken, "event");
    if (event === "end" && run.state === "running") showAgain();
  }).catch((error) => {
    if (signal.aborted) return;
    state.textContent = `no more events: ${error.message}`;
    if (error.status === 404) lost();
  });
  return part("Events", h("div", { class: "panel scroll events-box", tabindex: 0, role: "group", "aria-label": "Events" }, h("table", null,
    h("thead", null, h("tr", null, h("th", { class: "num" }, "#"), h("th", null, "Event"), h("th", null, "Data"))), body)), state);
}

/** Where the value of a recipe came from, in words. */
function sourceOf({ source, computed, cut_off: cutOff }) {
  if (source !== "computed") return source === "memo" ? "remembered, nothing was computed" : "a blob";
  return `computed with ${count(computed)} ${computed === 1 ? "recipe" : "recipes"}${cutOff ? `, ${count(cutOff)} cut off early` : ""}`;
}

function factsOf(run) {
  const of = {
    plan: () => h("a", { href: link("plans", run.name) }, `plan ${run.name}`),
    recipe: () => h("a", { href: link("recipes", run.name) }, "recipe"),
  };
  const fact = (name, value) => h("span", null, name, " ", h("b", null, value));
  return h("p", { class: "facts" }, h("span", null, of[run.kind]?.() ?? run.kind), h("span", { title: exactly(run.started_ms) }, "started ", h("b", null, moment(run.started_ms))),
    run.duration_ms === null ? null : fact("took", time(run.duration_ms)), run.deadline_ms ? fact("deadline", time(run.deadline_ms)) : null,
    run.rows === null ? null : h("span", null, h("b", null, count(run.rows)), " rows"),
    run.result ? [h("span", null, sourceOf(run.result)), fact("value", size(run.result.size))] : null);
}

/** The dataset that a run builds. */
async function datasetOf(run, signal) {
  if (run.kind !== "dataset") return null;
  if (run.request?.dataset) return run.request.dataset;
  for await (const { datasets } of datasetPages(signal)) {
    const found = datasets.find((dataset) => dataset.run === run.id);
    if (found) return found.id;
  }
  return null;
}

export async function show({ main, signal, args: [id], title }) {
  const path = `/v1/runs/${encodeURIComponent(id)}`;
  const run = await retried(signal, () => getExact(path, signal));
  title(run.name);
  const names = namesOf(run), states = new Map((run.timeline?.nodes ?? []).map((node) => [node.id, node]));
  const dataset = await retried(signal, () => datasetOf(run, signal));
  const state = chip(run.state), cancel = run.state === "running" && !dataset ? cancelButton(`${path}/cancel`, "Cancel run") : null;
  const actions = dataset ? [] : [h("span", { class: "grow" }),
    run.timeline && [h("a", { class: "button", href: link("runs", run.id, "timeline") }, "Timeline page"), downloadLink(`${path}/timeline.json`, `${run.id}.json`, "Perfetto trace")],
    cancel];
  const head = h("div", { class: "head" }, h("p", { class: "crumb" }, h("a", { href: "#/runs" }, "Runs"), " / ", h("code", null, run.id)),
    h("h1", null, run.name), dataset ? null : state, actions);
  main.append(head);
  if (run.error && !dataset) main.append(notice("bad", h("b", null, "Failed. "), typeof run.error === "string" ? run.error : JSON.stringify(run.error)));
  // A dataset that is built with another run now is shown by its own page.
  if (dataset) await showDataset({ main, head, id: dataset, signal, isFor: (run) => run === id, goOn: () => { location.hash = link("datasets", dataset); } });
  head.append(factsOf(run));
  const lost = () => {
    if (!cancel) return;
    cancel.remove();
    state.replaceWith(chip("ended"));
    head.after(notice("warn", "This run ended with the server: the server was started anew and does not know it."));
  };
  const isShort = !run.has_detail && run.state !== "running";
  const request = run.request && part("Request", h("pre", { class: "panel record" }, JSON.stringify(run.request, null, 2)));
  const parts = [troubles(run, names), run.ledger?.length ? part("Ledger: degraded parts of the answer", ledgerTable(run.ledger)) : null,
    isShort && notice("", "Only the summary of this run was kept. A plan that is run with ", h("code", null, "?trace=true"), " keeps everything."),
    timelinePart(run, names), graphPart(run, states), request, eventsPart(run, signal, lost)];
  main.append(...parts.filter(Boolean));
}
