// One plan: its graph with latencies, its parameters, and a form to try it.

import { get, getIfThere, post } from "../api.js";
import { count, h, link, notice, own, part, share, table, tiles, time } from "../dom.js";
import { graph, legendOf } from "../graph.js";
import { ledgerTable, namesOf, timelinePart } from "./run.js";

const ROWS_SHOWN = 200, SLOW_ERRORS = 0.01;

function graphPart(plan) {
  const lines = (node) => {
    const all = [["n", node.name ?? node.id], ["m", node.op ?? ""]];
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

/** The text of a field as a value of the parameter's type; undefined if it is empty, so that the default holds. */
function valueOf(parameter, text) {
  if (text === "") return undefined;
  if (text === "null" && parameter.nullable) return null;
  if (/list|\[\]/.test(parameter.kind)) {
    try { return JSON.parse(text); } catch { return text; }
  }
  if (/^(int|float|number|i64|f64|f32)/.test(parameter.kind)) return Number(text);
  if (/^bool/.test(parameter.kind)) return text === "true";
  return text;
}

function fieldOf(parameter, changed) {
  const id = `parameter-${parameter.name}`;
  const field = /^bool/.test(parameter.kind)
    ? h("select", { id, onchange: changed }, ["", "true", "false"].map((value) => h("option", { value }, value || "default")))
    : h("input", { id, oninput: changed, placeholder: `default ${JSON.stringify(parameter.default ?? null)}` });
  return { parameter, field, element: h("label", { class: "field", for: id }, h("span", { title: parameter.name }, parameter.name), field) };
}

function answerPart(answer, run, took) {
  const rows = answer.candidates ?? [];
  const names = [];
  for (const row of rows.slice(0, ROWS_SHOWN)) for (const name of Object.keys(row.fields ?? {})) if (!names.includes(name)) names.push(name);
  const shown = (value) => (typeof value === "number" ? (Number.isInteger(value) ? String(value) : String(+value.toPrecision(6))) : typeof value === "string" ? value : JSON.stringify(value ?? null));
  const columns = [{ head: "#", num: true, cell: (row) => String(row.at + 1) }, { head: "id", num: true, cell: (row) => String(row.id) },
    ...names.map((name) => {
      const isNumber = rows.every((row) => ["number", "undefined"].includes(typeof own(row.fields, name)));
      return { head: name, num: isNumber, cell: (row) => shown(own(row.fields, name)) };
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

/** Fields and JSON show the same request: either changes the other. */
function tryPart(plan, signal) {
  const text = h("textarea", { spellcheck: "false", "aria-label": "Request as JSON", rows: 12 });
  const wrong = h("p", { class: "bad", role: "alert" });
  const deadline = h("input", { id: "try-deadline", placeholder: plan.deadline_ms ? `default ${plan.deadline_ms} ms` : "none, e.g. 150ms" });
  const answer = h("div", { "aria-live": "polite" });
  text.value = JSON.stringify(plan.example_request ?? { user_id: 1 }, null, 2);
  const read = () => {
    try { wrong.textContent = ""; return JSON.parse(text.value); } catch (error) { wrong.textContent = error.message; return null; }
  };
  const user = h("input", { id: "try-user" });
  const write = () => {
    const request = read();
    if (!request) return;
    if (user.value !== "") request.user_id = /^-?\d+$/.test(user.value) ? Number(user.value) : user.value;
    const overrides = { ...request.param_overrides };
    for (const { parameter, field } of fields) {
      const value = valueOf(parameter, field.value);
      if (value === undefined) delete overrides[parameter.name];
      else overrides[parameter.name] = value;
    }
    if (Object.keys(overrides).length) request.param_overrides = overrides;
    else delete request.param_overrides;
    text.value = JSON.stringify(request, null, 2);
  };
  const fields = plan.parameters.map((parameter) => fieldOf(parameter, write));
  const spread = () => {
    const request = read();
    if (!request) return;
    user.value = request.user_id ?? "";
    for (const { parameter, field } of fields) {
      const value = own(request.param_overrides, parameter.name);
      field.value = value === undefined ? "" : typeof value === "object" && value !== null ? JSON.stringify(value) : String(value);
    }
  };
  user.addEventListener("input", write);
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
      const body = await response.json(), took = performance.now() - started, runId = response.headers.get("X-Run-Id");
      const run = runId && await getIfThere(`/v1/runs/${encodeURIComponent(runId)}`, signal);
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

export async function show({ main, signal, args: [name] }) {
  const plan = await get(`/v1/plans/${encodeURIComponent(name)}`, signal);
  document.title = `${plan.name} · Anabranch`;
  const latency = plan.latency ?? {};
  main.append(h("div", { class: "head" }, h("p", { class: "crumb" }, h("a", { href: "#/plans" }, "Plans"), " / ", plan.name), h("h1", null, plan.name),
    h("code", { class: "muted", title: String(plan.version) }, String(plan.version ?? "").slice(0, 12)), plan.canary && h("span", { class: "tag" }, `canary ${share(plan.canary.share)} on ${String(plan.canary.version).slice(0, 12)}`),
    h("span", { class: "grow" }), h("a", { class: "button", href: `#/runs?kind=plan&q=${encodeURIComponent(plan.name)}` }, "Runs of this plan")));
  if (plan.problem) main.append(notice("warn", plan.problem));
  for (const warning of plan.warnings ?? []) main.append(notice("warn", typeof warning === "string" ? warning : JSON.stringify(warning)));
  main.append(h("section", null, tiles([
    ["Requests timed", count(latency.count)], ["p50", time(latency.p50_ms)], ["p90", time(latency.p90_ms)], ["p99", time(latency.p99_ms)],
    ["Deadline", time(plan.deadline_ms)], ["Nodes", count(plan.graph?.nodes.length ?? 0)],
  ])), graphPart(plan), tryPart(plan, signal), parametersPart(plan));
}
