// Is the server well, what is it doing, what went wrong lately?

import { every, get, getIfThere, request } from "../api.js";
import { chip, count, h, link, many, moment, notice, part, refill, share, size, table, tiles, tookOf } from "../dom.js";

const EVERY_MS = 3000, RUNNING_MOST = 20, LATELY_MOST = 8;
/** Datasets are counted up to here; the list has all of them. */
const DATASETS_MOST = 100;

const runTable = (runs, label, empty) => table([
  { head: "Run", width: "40%", cell: (run) => run.name },
  { head: "Kind", width: "12%", opt: true, cell: (run) => h("span", { class: "muted" }, run.kind) },
  { head: "State", width: "16%", cell: (run) => chip(run.state) },
  { head: "Started", width: "18%", opt: true, cell: (run) => moment(run.started_ms) },
  { head: "Duration", num: true, cell: (run) => tookOf(run) },
], runs, { label, empty, open: (run) => link("runs", run.id) });

/** What the store complains about, in sentences. */
function complaints(health) {
  if (!health || health.fine) return [];
  const words = {
    lost: "acknowledged values are lost", damaged: "stored values are damaged", diverged: "functions gave another value for the same inputs",
    failures: "writes to the disk failed", index_damaged: "index files are damaged", over_quota: "the store is over its quota",
  };
  return Object.entries(words).filter(([name]) => health[name]).map(([name, text]) => (health[name] === true ? text : `${count(Number(health[name]))} ${text}`));
}

async function ready(signal) {
  try { await request("/readyz", { signal }); return null; } catch (error) {
    if (error.name === "AbortError" || error.status === 0) throw error;
    return error.message;
  }
}

export async function show({ main, signal }) {
  const body = h("div");
  main.append(h("div", { class: "head" }, h("h1", null, "Overview")), body);
  await every(EVERY_MS, signal, async () => {
    const limited = (state, most) => get(`/v1/runs?state=${state}&limit=${most}`, signal);
    const [unready, status, plans, datasets, running, failed, degraded] = await Promise.all([
      ready(signal), get("/v1/status", signal), getIfThere("/v1/plans", signal), getIfThere(`/v1/datasets?limit=${DATASETS_MOST}`, signal),
      limited("running", RUNNING_MOST), limited("failed", LATELY_MOST), limited("degraded", LATELY_MOST),
    ]);
    const troubles = complaints(status.health);
    const kept = status.gets ? share(status.hits / status.gets) : "–";
    const requests = plans?.plans.reduce((sum, plan) => sum + plan.requests, 0);
    const building = running.runs.filter((run) => run.kind === "dataset").length;
    const lately = [...failed.runs, ...degraded.runs].sort((one, other) => other.started_ms - one.started_ms).slice(0, 10);
    refill(body,
      ...(unready ? [notice("bad", `Not ready: ${unready}`)] : []),
      ...troubles.map((text) => notice("bad", `Store: ${text}. `, h("code", null, "anabranch recipe scrub"), " tells which.")),
      tiles([
        ["Server", unready ? "not ready" : "ready", null, unready ? "bad" : "good"],
        ["Store", troubles.length ? "needs care" : "fine", size(status.used_bytes), troubles.length ? "bad" : "good"],
        ["Active runs", count(running.runs.length), running.next ? "or more" : null],
        ["Plan requests", count(requests ?? 0), many(plans?.plans.length ?? 0, "plan")],
        ["Values from the store", kept, `${count(status.computed)} computed`],
        ["Datasets", count(datasets?.datasets.length ?? 0), [datasets?.next && "or more", `${count(building)} running`].filter(Boolean).join(", ")],
      ]),
      ...(plans?.plans ?? []).filter((plan) => plan.problem).map((plan) => notice("warn", h("a", { href: link("plans", plan.name) }, plan.name), `: ${plan.problem}`)),
      part("Active runs", runTable(running.runs, "Active runs", "nothing runs now")),
      part("Failed or degraded lately", runTable(lately, "Failed or degraded runs", "nothing failed, nothing was degraded"), h("a", { href: "#/runs?state=failed" }, "all failed runs")),
      part("Store", tiles([
        ["Blobs", count(status.blobs), size(status.blob_bytes)], ["Recipes", count(status.recipes)], ["Memos", count(status.memos)],
        ["Names", count(status.names)], ["Cache", size(status.cache_bytes), many(status.cache_entries, "value")], ["Computing", count(status.computing), `${count(status.failed)} failed so far`],
      ])));
  });
}
