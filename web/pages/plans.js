// The plans that the server has, with what their requests took.

import { every, getIfThere } from "../api.js";
import { count, h, link, many, notice, refill, share, table, time } from "../dom.js";

const EVERY_MS = 2000;
const errors = (value) => h("span", { class: value > 0.01 ? "bad" : value > 0 ? "warn" : "muted" }, share(value));
const degraded = (value) => h("span", { class: value > 0 ? "warn" : "muted" }, share(value));

export async function show({ main, signal }) {
  const body = h("div"), problem = h("div"), total = h("span", { class: "muted" });
  const filter = h("input", { type: "search", placeholder: "Filter by name (press /)", "aria-label": "Filter by name" });
  main.append(h("div", { class: "head" }, h("h1", null, "Plans"), h("span", { class: "grow" }), total), h("div", { class: "bar-row" }, filter), problem, body);
  let plans = [], was = "";
  const draw = () => {
    const shown = plans.filter((plan) => plan.name.toLowerCase().includes(filter.value.toLowerCase()));
    const now = JSON.stringify(shown);
    // A table that is replaced loses what is selected in it.
    if (now === was) return;
    was = now;
    total.textContent = many(shown.length, "plan");
    refill(body, table([
      { head: "Plan", cell: (plan) => [h("a", { href: link("plans", plan.name), tabindex: -1 }, plan.name), plan.problem ? [" ", h("span", { class: "tag warn", title: plan.problem }, "problem")] : null] },
      { head: "Version", opt: true, cell: (plan) => h("code", { class: "muted" }, String(plan.version ?? "–").slice(0, 12)) },
      { head: "Nodes", num: true, opt: true, cell: (plan) => count(plan.nodes) },
      { head: "Deadline", num: true, opt: true, cell: (plan) => time(plan.deadline_ms) },
      { head: "Requests", num: true, cell: (plan) => count(plan.requests) },
      { head: "In flight", num: true, opt: true, cell: (plan) => count(plan.in_flight) },
      { head: "p50", num: true, opt: true, cell: (plan) => time(plan.p50_ms) },
      { head: "p99", num: true, cell: (plan) => time(plan.p99_ms) },
      { head: "Errors", num: true, cell: (plan) => errors(plan.error_rate) },
      { head: "Degraded", num: true, opt: true, cell: (plan) => degraded(plan.degraded_rate) },
      { head: "Canary", opt: true, cell: (plan) => (plan.canary ? h("span", { class: "tag" }, `${share(plan.canary.share)} on ${String(plan.canary.version).slice(0, 8)}`) : "") },
    ], shown, { label: "Plans", open: (plan) => link("plans", plan.name), empty: plans.length ? "no plan matches" : ["no plans are served; start the server in a project with plans, or name it with ", h("code", null, "anabranch serve --project anabranch.toml")] }));
  };
  filter.addEventListener("input", draw);
  await every(EVERY_MS, signal, async () => {
    const found = await getIfThere("/v1/plans", signal);
    plans = found?.plans ?? [];
    problem.replaceChildren(...(found?.problem ? [notice("warn", found.problem)] : []));
    draw();
  });
}
