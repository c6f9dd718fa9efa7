// The datasets that the server builds or built.

import { LISTED_MOST, datasetPages, every } from "../api.js";
import { chip, count, h, link, many, meter, moment, money, notice, share, time } from "../dom.js";
import { List } from "../list.js";

const EVERY_MS = 2000;
const done = (dataset) => (dataset.rows ? dataset.rows_done / dataset.rows : null);
const seconds = (value) => time(value === null ? null : value * 1000);

const columns = [
  { head: "Dataset", width: "minmax(130px,2fr)", narrow: "minmax(0,1fr)", cell: (dataset) => h("a", { href: link("datasets", dataset.id), tabindex: -1 }, dataset.name) },
  { head: "State", width: "104px", cell: (dataset) => chip(dataset.state) },
  { head: "Progress", width: "minmax(70px,1fr)", opt: true, cell: (dataset) => meter(share(done(dataset)), [["finished", done(dataset)]]) },
  { head: "Rows", width: "minmax(150px,1fr)", narrow: "minmax(130px,1fr)", num: true, cell: (dataset) => `${count(dataset.rows_done)} of ${count(dataset.rows)}` },
  { head: "Done", width: "64px", num: true, opt: true, cell: (dataset) => share(done(dataset)) },
  { head: "Dropped", width: "80px", num: true, opt: true, cell: (dataset) => h("span", { class: dataset.rows_dropped ? "warn" : "muted" }, count(dataset.rows_dropped)) },
  { head: "Cost", width: "80px", num: true, opt: true, cell: (dataset) => money(dataset.cost) },
  { head: "Submitted", width: "160px", opt: true, cell: (dataset) => h("span", { class: "muted" }, moment(dataset.submitted_ms)) },
  { head: "Elapsed", width: "80px", num: true, opt: true, cell: (dataset) => seconds(dataset.elapsed_seconds) },
  { head: "Left", width: "76px", num: true, opt: true, cell: (dataset) => (dataset.state === "running" ? seconds(dataset.left_seconds) : "") },
];

export async function show({ main, signal }) {
  const list = new List({ label: "Datasets", columns, key: (dataset) => dataset.id, open: (dataset) => link("datasets", dataset.id), empty: "no dataset matches" });
  const nothing = notice("", "No datasets yet. ", h("code", null, "anabranch dataset submit CONFIG --rows N --server URL"), " or ", h("code", null, "POST /v1/datasets"), " starts one.");
  nothing.hidden = true;
  const total = h("span", { class: "muted" });
  const filter = h("input", { type: "search", placeholder: "Filter by name (press /)", "aria-label": "Filter by name" });
  main.append(h("div", { class: "head" }, h("h1", null, "Datasets"), h("span", { class: "grow" }), total), h("div", { class: "bar-row" }, filter), nothing, list.element);
  let datasets = [], isCut = false, was = "";
  const draw = () => {
    const shown = datasets.filter((dataset) => dataset.name.toLowerCase().includes(filter.value.toLowerCase()));
    const now = JSON.stringify([isCut, shown]);
    // Lines that are made anew lose what is selected in them.
    if (now === was) return;
    was = now;
    total.textContent = isCut && shown.length === datasets.length ? `the newest ${many(shown.length, "dataset")}; there are more` : many(shown.length, "dataset");
    list.set(shown);
  };
  filter.addEventListener("input", draw);
  await every(EVERY_MS, signal, async () => {
    const all = [];
    for await (const page of datasetPages(signal)) {
      all.push(...page.datasets);
      isCut = all.length >= LISTED_MOST && Boolean(page.next);
    }
    datasets = all.slice(0, LISTED_MOST);
    nothing.hidden = datasets.length > 0;
    list.element.hidden = !nothing.hidden;
    draw();
  });
}
