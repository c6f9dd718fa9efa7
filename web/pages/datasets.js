// The datasets that the server builds or built.

import { every, getIfThere } from "../api.js";
import { chip, count, h, link, many, meter, moment, money, share, table, time } from "../dom.js";

const EVERY_MS = 2000;
const done = (dataset) => (dataset.rows ? dataset.rows_done / dataset.rows : null);

export async function show({ main, signal }) {
  const body = h("div"), total = h("span", { class: "muted" });
  const filter = h("input", { type: "search", placeholder: "Filter by name  /", "aria-label": "Filter by name" });
  main.append(h("div", { class: "head" }, h("h1", null, "Datasets"), h("span", { class: "grow" }), total), h("div", { class: "bar-row" }, filter), body);
  let datasets = [], was = "";
  const draw = () => {
    const shown = datasets.filter((dataset) => dataset.name.toLowerCase().includes(filter.value.toLowerCase()));
    const now = JSON.stringify(shown);
    if (now === was) return;
    const focus = document.activeElement?.dataset?.open;
    was = now;
    total.textContent = many(shown.length, "dataset");
    body.replaceChildren(table([
      { head: "Dataset", cell: (dataset) => h("a", { href: link("datasets", dataset.id), tabindex: -1 }, dataset.name) },
      { head: "State", cell: (dataset) => chip(dataset.state) },
      { head: "Progress", opt: true, cell: (dataset) => meter(share(done(dataset)), [["finished", done(dataset)]]) },
      { head: "Rows", num: true, cell: (dataset) => `${count(dataset.rows_done)} of ${count(dataset.rows)}` },
      { head: "Done", num: true, opt: true, cell: (dataset) => share(done(dataset)) },
      { head: "Dropped", num: true, opt: true, cell: (dataset) => h("span", { class: dataset.rows_dropped ? "warn" : "muted" }, count(dataset.rows_dropped)) },
      { head: "Cost", num: true, opt: true, cell: (dataset) => money(dataset.cost) },
      { head: "Submitted", opt: true, cell: (dataset) => h("span", { class: "muted" }, moment(dataset.submitted_ms)), is: (dataset) => dataset.submitted_ms },
      { head: "Elapsed", num: true, opt: true, cell: (dataset) => time(dataset.elapsed_seconds === null ? null : dataset.elapsed_seconds * 1000) },
      { head: "Left", num: true, is: (dataset) => dataset.state === "running", cell: (dataset) => (dataset.state === "running" ? time(dataset.left_seconds === null ? null : dataset.left_seconds * 1000) : "") },
    ], shown, { label: "Datasets", open: (dataset) => link("datasets", dataset.id), empty: datasets.length ? "no dataset matches" : ["no datasets yet; ", h("code", null, "POST /v1/datasets"), " starts one"] }));
    if (focus) [...body.querySelectorAll("[data-open]")].find((line) => line.dataset.open === focus)?.focus();
  };
  filter.addEventListener("input", draw);
  await every(EVERY_MS, signal, async () => {
    datasets = (await getIfThere("/v1/datasets", signal))?.datasets ?? [];
    draw();
  });
}
