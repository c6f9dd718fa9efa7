// One run: what went wrong first, then the graph, the timeline and the events.

import { fileLink, get, getIfThere, hear } from "../api.js";
import { cancelButton } from "../cancel.js";
import { chip, count, exactly, h, link, moment, notice, part, table, time } from "../dom.js";
import { graph, legend } from "../graph.js";
import { Timeline } from "../timeline.js";
import { showIn as showDataset } from "./dataset.js";

const EVENTS_MOST = 500;
const TROUBLE = new Set(["failed", "fell_back", "dropped"]);
const BOX = { failed: "bad", fell_back: "soft", dropped: "gone", not_started: "gone" };

/** The boxes of a graph by the nodes of the plan in them. Boxes have ids of their own. */
export const planNodes = (graph) => new Map((graph?.nodes ?? []).flatMap((box) => (box.nodes ?? []).map((id) => [id, box])));

/** The ledger: the degraded parts of an answer. */
export const ledgerTable = (ledger, names) => table([
  { head: "Node", cell: (entry) => (names?.has(entry.node) ? [names.get(entry.node).name, " ", h("code", { class: "muted" }, entry.node)] : entry.node) },
  { head: "Reason", cell: (entry) => h("span", { class: entry.reason === "error" ? "bad" : "warn" }, entry.reason) },
  { head: "Fallback", cell: (entry) => entry.fallback ?? "–" },
  { head: "Waited", num: true, cell: (entry) => time(entry.waited_us === undefined ? null : entry.waited_us / 1000) },
  { head: "Rows", num: true, opt: true, cell: (entry) => count(entry.rows) },
  { head: "Age", num: true, opt: true, cell: (entry) => time(entry.age_us === undefined ? null : entry.age_us / 1000) },
  { head: "Region", opt: true, cell: (entry) => entry.region ?? "" },
  { head: "Detail", wrap: true, cell: (entry) => entry.detail ?? "" },
], ledger, { label: "Ledger" });

function troubles(run, names) {
  const nodes = (run.timeline?.nodes ?? []).filter((node) => TROUBLE.has(node.state));
  if (!nodes.length) return null;
  nodes.sort((one, other) => (one.end_ms ?? Infinity) - (other.end_ms ?? Infinity));
  return part("Failures and fallbacks", table([
    { head: "Node", cell: (node) => names.get(node.id)?.name ?? node.id },
    { head: "State", cell: (node) => chip(node.state) },
    { head: "Reason", wrap: true, cell: (node) => names.get(node.reason)?.name ?? node.reason ?? "" },
    { head: "Started", num: true, cell: (node) => time(node.start_ms) },
    { head: "Ended", num: true, cell: (node) => time(node.end_ms) },
    { head: "Timeout", num: true, opt: true, cell: (node) => time(node.timeout_ms) },
  ], nodes.slice(0, 200), { label: "Failures and fallbacks" }));
}

function graphPart(run, states) {
  if (!run.graph?.nodes?.length) return null;
  const lines = (node) => {
    const of = states.get(node.id);
    const took = of?.start_ms !== null && of?.end_ms ? time(of.end_ms - of.start_ms) : of?.state.replace("_", " ");
    return [["n", node.name ?? node.id], ...(took ? [[of.state === "failed" ? "e" : of.state === "fell_back" ? "w" : "m", took]] : [])];
  };
  const kind = (node) => `${BOX[states.get(node.id)?.state] ?? node.kind ?? ""} ${states.get(node.id)?.critical ? "critical" : ""}`;
  // Of the critical nodes before one, the path came from the last to end.
  const before = new Map();
  for (const [from, to] of run.graph.edges) {
    const [one, other] = [states.get(from), states.get(before.get(to))];
    if (one?.critical && states.get(to)?.critical && !((other?.end_ms ?? -1) > (one.end_ms ?? 0))) before.set(to, from);
  }
  const isPath = (from, to) => before.get(to.id) === from.id;
  return part("Graph", graph(run.graph, { label: `Graph of ${run.name}`, lines, kind, isPath }),
    legend([["io", "waits"], ["cpu", "computes"], ["soft", "fell back"], ["bad", "failed"], ["critical", "critical path"]]));
}

function timelinePart(run, names) {
  if (!run.timeline?.nodes?.length) return null;
  const timeline = new Timeline(run.timeline, names, run.deadline_ms);
  return part("Timeline", [timeline.element, h("p", { class: "bar-row" }, legend([["queued", "queued"], ["io", "waits"], ["cpu", "computes"], ["soft", "fell back"], ["bad", "failed"], ["gone", "dropped"],
    ["critical", "critical path"], ["timeout", "timeout"], ["deadline", "deadline"]]))], timeline.tools);
}

/** The events of a run as they happen, the newest first. */
function eventsPart(run, signal, ended) {
  const body = h("tbody"), state = h("span", { class: "muted" }, "");
  let taken = 0;
  hear(`/v1/runs/${encodeURIComponent(run.id)}/events`, signal, (event, data, id) => {
    taken++;
    const text = data === null ? "" : typeof data === "string" ? data : JSON.stringify(data);
    body.prepend(h("tr", null, h("th", { class: "num", scope: "row" }, id ?? ""), h("td", { class: "nowrap" }, event), h("td", null, text.length > 400 ? `${text.slice(0, 400)}…` : text)));
    if (body.childElementCount > EVENTS_MOST) body.lastElementChild.remove();
    state.textContent = `${count(taken)} events`;
    if (event === "end" && run.state === "running") ended();
  });
  return part("Events", h("div", { class: "panel scroll events-box", tabindex: 0, role: "group", "aria-label": "Events" }, h("table", null,
    h("thead", null, h("tr", null, h("th", { class: "num" }, "#"), h("th", null, "Event"), h("th", null, "Data"))), body)), state);
}

export async function show(view) {
  const { main, signal, args: [id], title } = view;
  const path = `/v1/runs/${encodeURIComponent(id)}`;
  const run = await get(path, signal);
  title(run.name);
  const names = new Map((run.graph?.nodes ?? []).map((node) => [node.id, { name: node.name ?? node.id, kind: node.kind }]));
  const states = new Map((run.timeline?.nodes ?? []).map((node) => [node.id, node]));
  const again = () => { if (!signal.aborted) { main.replaceChildren(); show(view); } };
  const plan = run.kind === "plan" ? h("a", { href: link("plans", run.name) }, `plan ${run.name}`) : run.kind;
  main.append(h("div", { class: "head" }, h("p", { class: "crumb" }, h("a", { href: "#/runs" }, "Runs"), " / ", h("code", null, run.id)),
    h("h1", null, run.name), chip(run.state), h("span", { class: "grow" }),
    run.timeline && [fileLink(h, `${path}/timeline.html`, `${run.id}.html`, "Timeline file"), fileLink(h, `${path}/timeline.json`, `${run.id}.json`, "Perfetto trace")],
    run.state === "running" && cancelButton(`${path}/cancel`, "Cancel run"),
    h("p", { class: "facts" }, h("span", null, plan), h("span", { title: exactly(run.started_ms) }, "started ", h("b", null, moment(run.started_ms))),
      h("span", null, "took ", h("b", null, time(run.duration_ms))), run.deadline_ms ? h("span", null, "deadline ", h("b", null, time(run.deadline_ms))) : null,
      run.rows === null ? null : h("span", null, h("b", null, count(run.rows)), " rows"))));
  if (run.error) main.append(notice("bad", h("b", null, "Failed. "), typeof run.error === "string" ? run.error : JSON.stringify(run.error)));
  if (run.kind === "dataset") {
    const all = await getIfThere("/v1/datasets", signal);
    const dataset = all?.datasets?.find((dataset) => dataset.run === run.id);
    if (dataset) await showDataset(main, dataset.id, signal);
  }
  const found = troubles(run, names);
  if (found) main.append(found);
  if (run.ledger?.length) main.append(part("Ledger: degraded parts of the answer", ledgerTable(run.ledger, planNodes(run.graph))));
  if (!run.has_detail && run.state !== "running") main.append(notice("", "Only the summary of this run was kept. Ask for the detail of a plan run with ", h("code", null, "?trace=true"), "."));
  for (const shown of [timelinePart(run, names), graphPart(run, states)]) if (shown) main.append(shown);
  if (run.request) main.append(part("Request", h("pre", { class: "panel record" }, JSON.stringify(run.request, null, 2))));
  main.append(eventsPart(run, signal, again));
}
