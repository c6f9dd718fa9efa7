// One plan: its graph with latencies, its parameters, and a form to try it.

import { every, getExact, getIfThere, parseExact, post } from "../api.js";
import { count, h, link, notice, own, part, share, shown, table, tiles, time } from "../dom.js";
import { graph, legendOf } from "../graph.js";
import { ledgerTable, nameOf, namesOf, timelinePart } from "./run.js";

const ROWS_SHOWN = 200, SLOW_ERRORS = 0.01, EVERY_MS = 2000;

/** The ops of a node that are run as one, without the name of their family. The tooltip has all of them. */
function briefOps(op) {
  const ops = op.replaceAll("core::", "").split(" > ");
  return ops.length > 2 ? `${ops[0]} > … > ${ops.at(-1)}` : ops.join(" > ");
}

function graphPart(plan) {
  const lines = (node) => {
    const all = [["n", nameOf(node)]];
    if (node.op) all.push(["m", briefOps(node.op)]);
    if (node.runs) all.push(["m", `p50 ${time(node.p50_ms)}`], ["m", `p99 ${time(node.p99_ms)}`]);
    if (node.error_rate > 0) all.push(["e", `${share(node.error_rate)} errors`]);
    if (node.timeout_ms) all.push(["w", `timeout ${time(node.timeout_ms)}`]);
    if (node.fallback) all.push(["w", `else ${node.fallback}`]);
    return all;
  };
  const title = (node) => [`${node.name ?? node.id}: ${node.op}`, node.runs ? `${count(node.runs)} runs, p50 ${time(node.p50_ms)}, p99 ${time(node.p99_ms)}, ${share(node.error_rate)} errors` : "not run yet",
    node.timeout_ms ? `timeout ${time(node.timeout_ms)}` : null, node.fallback ? `fallback ${node.fallback}` : null].filter(Boolean).join("\n");
  const kind = (node) => `${node.kind} ${node.error_rate > SLOW_ERRORS ? "bad" : ""}`;
  return part("Graph", graph(plan.graph, { label: `Graph of ${plan.name}`, lines, title, kind }),
    legendOf(plan.graph?.nodes, kind, [["io", "waits"], ["cpu", "computes"], ["gate", "decides"], ["timer", "watches the time"], ["bad", "fails often"]]));
}

const parametersPart = (plan) => part("Parameters", table([
  { head: "Name", cell: (parameter) => h("code", null, parameter.name) },
  { head: "Type", cell: (parameter) => `${parameter.kind}${parameter.nullable ? " or null" : ""}` },
  { head: "Default", cell: (parameter) => h("code", null, JSON.stringify(parameter.default ?? null)) },
  { head: "Meaning", opt: true, wrap: true, cell: (parameter) => parameter.doc ?? "", is: (parameter) => parameter.doc },
], plan.parameters, { label: "Parameters", empty: "the plan has no parameters" }));

/** A text as a number with all its digits, if it is one. */
const numberOf = (text) => (/^\s*-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?\s*$/.test(text) ? parseExact(text) : text);

/** The text of a field as the id of a user: an integer, or a string, which anything else is. */
const idOf = (text) => (/^(0|[1-9]\d*)$/.test(text) ? parseExact(text) : text);

/** The text of a field as a value of the parameter's type; undefined if it is empty, so that the default holds. */
function valueOf(parameter, text) {
  if (text === "") return undefined;
  if (text === "null" && parameter.nullable) return null;
  if (/list|\[\]/.test(parameter.kind)) {
    try { return parseExact(text); } catch (error) {
      if (error instanceof SyntaxError) return text;
      throw error;
    }
  }
  if (/^(int|float|number|i64|f64|f32)/.test(parameter.kind)) return numberOf(text);
  if (/^bool/.test(parameter.kind)) return text === "true";
  return text;
}

function fieldOf(parameter, changed) {
  const id = `parameter-${parameter.name}`;
  const field = /^bool/.test(parameter.kind)
    ? h("select", { id, onchange: changed }, ["", "true", "false"].map((value) => h("option", { value }, value || "default")))
    : h("input", { id, oninput: changed, placeholder: `default ${shown(parameter.default)}` });
  return { parameter, field, element: h("label", { class: "field", for: id }, h("span", { title: parameter.name }, parameter.name), field) };
}

function answerPart(answer, run, took) {
  const rows = answer.candidates ?? [];
  const names = [];
  for (const row of rows.slice(0, ROWS_SHOWN)) for (const name of Object.keys(row.fields ?? {})) if (!names.includes(name)) names.push(name);
  const brief = (value) => (typeof value === "number" && !Number.isInteger(value) ? String(+value.toPrecision(6)) : shown(value));
  const isNumber = (value) => typeof value === "number" || value === undefined || JSON.isRawJSON?.(value);
  const columns = [{ head: "#", num: true, cell: (row) => String(row.at + 1) }, { head: "id", num: true, cell: (row) => shown(row.id) },
    ...names.map((name) => {
      return { head: name, num: rows.every((row) => isNumber(own(row.fields, name))), cell: (row) => brief(own(row.fields, name)) };
    })];
  const numbered = rows.slice(0, ROWS_SHOWN).map((row, at) => ({ ...row, at }));
  return [
    h("p", { class: "bar-row" }, h("b", null, `${count(rows.length)} rows`), h("span", { class: "muted" }, `in ${time(took)}, as the browser saw it`),
      answer.ledger?.length ? h("span", { class: "warn" }, `degraded: ${count(answer.ledger.length)} ledger ${answer.ledger.length === 1 ? "entry" : "entries"}`) : h("span", { class: "good" }, "complete"),
      run && h("a", { href: link("runs", run.id) }, "this run")),
    // The ledger of the run names the nodes of the graph.
    answer.ledger?.length ? ledgerTable(run?.ledger ?? answer.ledger) : null,
    run && timelinePart(run, namesOf(run)),
    table(columns, numbered, { label: "Answer", empty: "the answer has no rows" }),
    rows.length > ROWS_SHOWN && h("p", { class: "muted" }, `the first ${ROWS_SHOWN} are shown`),
    h("details", null, h("summary", null, "Answer as JSON"), h("pre", { class: "panel record" }, JSON.stringify(answer, null, 2).slice(0, 100_000))),
  ];
}

/** The request of a text. */
function objectOf(text) {
  const request = parseExact(text);
  if (!text.trim().startsWith("{")) throw new Error("the request must be a JSON object");
  return request;
}

/** Fields and JSON show the same request: either changes the other. */
function tryPart(plan, signal) {
  const text = h("textarea", { spellcheck: "false", "aria-label": "Request as JSON", rows: 12 });
  const wrong = h("p", { class: "bad", role: "alert" });
  const deadline = h("input", { id: "try-deadline", placeholder: plan.deadline_ms ? `default ${plan.deadline_ms} ms` : "none, e.g. 150ms" });
  const answer = h("div", { "aria-live": "polite" });
  text.value = JSON.stringify(plan.example_request ?? { user_id: 1 }, null, 2);
  const read = () => {
    try { wrong.textContent = ""; return objectOf(text.value); } catch (error) { wrong.textContent = error.message; return null; }
  };
  const user = h("input", { id: "try-user" });
  /** Changes the request by what a field says; everything else in it stays as it was written. */
  const write = (change) => {
    const request = read();
    if (!request) return;
    try { change(request); } catch (error) { wrong.textContent = error.message; return; }
    text.value = JSON.stringify(request, null, 2);
  };
  const setUser = (request) => {
    if (user.value === "") delete request.user_id;
    else request.user_id = idOf(user.value);
  };
  const setParameter = (request, parameter, written) => {
    const overrides = { ...request.param_overrides }, value = valueOf(parameter, written);
    if (value === undefined) delete overrides[parameter.name];
    else overrides[parameter.name] = value;
    if (Object.keys(overrides).length) request.param_overrides = overrides;
    else delete request.param_overrides;
  };
  const fields = plan.parameters.map((parameter) => fieldOf(parameter, ({ target }) => write((request) => setParameter(request, parameter, target.value))));
  const spread = () => {
    const request = read();
    if (!request) return;
    user.value = shown(request.user_id ?? "");
    for (const { parameter, field } of fields) {
      const value = own(request.param_overrides, parameter.name);
      field.value = value === undefined ? "" : shown(value);
    }
  };
  user.addEventListener("input", () => write(setUser));
  text.addEventListener("input", spread);
  spread();
  const run = async (event) => {
    event.preventDefault();
    const request = read();
    if (!request) return;
    const button = event.target.querySelector("button.primary"), started = performance.now();
    button.disabled = true;
    try {
      const headers = deadline.value.trim() ? { "Request-Timeout": deadline.value.trim() } : {};
      const response = await post(`/v1/plans/${encodeURIComponent(plan.name)}/run?trace=true`, request, { signal, headers });
      const body = parseExact(await response.text()), took = performance.now() - started, runId = response.headers.get("X-Run-Id");
      const run = runId && await getIfThere(`/v1/runs/${encodeURIComponent(runId)}`, signal, getExact);
      answer.replaceChildren(...answerPart(body, run, took).filter(Boolean));
    } catch (error) {
      if (!signal.aborted) answer.replaceChildren(notice("bad", error.said?.error && typeof error.said.error === "string" ? `${error.said.error}: ` : "", error.message));
    } finally { button.disabled = false; }
  };
  return part("Try it", h("form", { onsubmit: run }, h("div", { class: "panel pad try" },
    h("div", { class: "fields" }, h("label", { class: "field", for: "try-user" }, h("span", null, "user_id"), user), fields.map((field) => field.element),
      h("label", { class: "field", for: "try-deadline" }, h("span", null, "deadline"), deadline),
      h("div", { class: "bar-row" }, h("button", { class: "primary" }, "Run"), h("span", { class: "muted" }, "the run is kept with its timeline"))),
    h("div", null, h("h3", null, "Request"), text, wrong)), h("div", { class: "answer" }, answer)));
}

/** The nodes of the plan. Those that run as one are one box of the graph. */
function nodesOf({ explain, graph }) {
  const boxes = graph?.nodes?.filter((node) => node.op).length ?? 0, nodes = explain?.nodes?.length ?? boxes;
  return ["Nodes", count(nodes), nodes > boxes ? `run as ${count(boxes)}` : null];
}

const factsPart = (plan, latency = plan.latency ?? {}) => h("section", null, tiles([
  ["Requests timed", count(latency.count)], ["p50", time(latency.p50_ms)], ["p90", time(latency.p90_ms)], ["p99", time(latency.p99_ms)],
  ["Deadline", time(plan.deadline_ms)], nodesOf(plan),
]));

const headOf = (plan) => [h("p", { class: "crumb" }, h("a", { href: "#/plans" }, "Plans"), " / ", plan.name), h("h1", null, plan.name),
  h("code", { class: "muted", title: String(plan.version) }, String(plan.version ?? "").slice(0, 12)), plan.canary && h("span", { class: "tag" }, `canary ${share(plan.canary.share)} on ${String(plan.canary.version).slice(0, 12)}`),
  h("span", { class: "grow" }), h("a", { class: "button", href: `#/runs?kind=plan&q=${encodeURIComponent(plan.name)}` }, "Runs of this plan")].filter(Boolean);

const warningsOf = (plan) => [plan.problem, ...(plan.warnings ?? [])].filter(Boolean).map((warning) => notice("warn", shown(warning)));

/** What each place shows. */
const shownIn = new WeakMap();

/** Draws a place anew if it shows something else; a graph stays scrolled and in focus. */
function replace(place, value, draw) {
  const now = JSON.stringify(value);
  if (shownIn.get(place) === now) return;
  shownIn.set(place, now);
  const before = place.querySelector(".graph-scroll"), { scrollLeft = 0, scrollTop = 0 } = before ?? {}, hasFocus = before && before === document.activeElement;
  place.replaceChildren(...[draw()].flat());
  const after = place.querySelector(".graph-scroll");
  after?.scrollTo(scrollLeft, scrollTop);
  if (hasFocus) after?.focus({ preventScroll: true });
}

export async function show({ main, signal, args: [name], title }) {
  title(name);
  const [head, warnings, facts, graph, form, parameters] = [h("div", { class: "head" }), ...Array.from({ length: 5 }, () => h("div"))];
  await every(EVERY_MS, signal, async () => {
    const plan = await getExact(`/v1/plans/${encodeURIComponent(name)}`, signal);
    if (!head.isConnected) main.append(head, warnings, facts, graph, form, parameters);
    replace(head, [plan.version, plan.canary], () => headOf(plan));
    replace(warnings, [plan.problem, plan.warnings], () => warningsOf(plan));
    replace(facts, [plan.latency, plan.deadline_ms], () => factsPart(plan));
    replace(graph, plan.graph, () => graphPart(plan));
    // What somebody has typed stays, unless the plan has other parameters now.
    replace(form, [plan.parameters, plan.deadline_ms], () => tryPart(plan, signal));
    replace(parameters, plan.parameters, () => parametersPart(plan));
  });
}
