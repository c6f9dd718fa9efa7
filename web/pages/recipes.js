// Recipes: the names of the store, the closure of one target with the state of its values, and the functions.

import { get, getIfThere, pages, retried } from "../api.js";
import { chip, count, h, link, many, notice, part, size, table, time } from "../dom.js";
import { graph, legendOf } from "../graph.js";
import { List } from "../list.js";

const NODES_MOST = 1000, NAMES_MOST = 200_000, PAGE = 10_000;
const brief = (address) => String(address).slice(0, 12);
const stateOf = (node) => (node.kind === "missing" ? "missing" : node.kind === "blob" ? "blob" : node.value === "unknown" ? "not_computed" : node.value);
const words = (state) => state.replace("_", " ");

function closure(found) {
  const nodes = found.nodes.map((node) => ({ ...node, id: node.address }));
  const edges = nodes.flatMap((node) => (node.inputs ?? []).map((input) => [input, node.id]));
  const label = (node) => node.name ?? node.function ?? brief(node.address);
  const lines = (node) => {
    const figures = [words(stateOf(node)), node.size === null || node.size === undefined ? null : size(node.size), node.cpu_ms === null || node.cpu_ms === undefined ? null : time(node.cpu_ms)].filter(Boolean);
    return [["n", label(node)], ...(node.name && node.function ? [["m", node.function]] : []), ["m", figures.join(" · ")]];
  };
  const picture = graph({ nodes, edges }, { label: "Closure", lines, kind: stateOf, title: (node) => `${node.address}\n${node.function ?? node.kind}`, open: (node) => { location.hash = link("recipes", node.address); } });
  return [
    part("Closure", picture, legendOf(nodes, stateOf, [["stored", "value stored"], ["evicted", "evicted, is computed again"], ["blob", "blob"], ["missing", "missing"], ["not_computed", "not computed"]])),
    found.truncated && notice("warn", `only ${count(found.nodes.length)} nodes are shown; the closure is larger`),
    part("Parts", table([
      { head: "Address", cell: (node) => h("code", { title: node.address }, brief(node.address)) },
      { head: "Name", wrap: true, cell: (node) => node.name ?? "" },
      { head: "Function", opt: true, cell: (node) => node.function ?? h("span", { class: "muted" }, node.kind) },
      { head: "Value", cell: (node) => chip(stateOf(node)) },
      { head: "Size", num: true, cell: (node) => size(node.size) },
      { head: "CPU time", num: true, opt: true, cell: (node) => time(node.cpu_ms) },
      { head: "Inputs", num: true, opt: true, cell: (node) => count(node.inputs?.length ?? 0) },
    ], nodes, { label: "Parts of the closure", open: (node) => link("recipes", node.address) })),
  ].filter(Boolean);
}

function functionsPart(found) {
  const functions = found?.functions ?? [];
  if (!functions.length) return null;
  return part("Functions", h("details", null, h("summary", null, many(functions.length, "function")), table([
    { head: "Function", cell: (entry) => h("code", null, entry.function) },
    { head: "Parameters", opt: true, wrap: true, cell: (entry) => (entry.params ?? []).map((param) => (param.needed ? param.name : `[${param.name}]`)).join(" ") },
    { head: "What it does", wrap: true, cell: (entry) => entry.about },
  ], functions, { label: "Functions" })));
}

const nameColumns = [
  { head: "Name", width: "minmax(0,2fr)", cell: (entry) => h("a", { href: link("recipes", entry.name), tabindex: -1 }, entry.name) },
  { head: "Address", width: "minmax(0,1fr)", cell: (entry) => h("code", { class: "muted", title: entry.address }, brief(entry.address)) },
];

/** The names, and what reads them page by page. */
function namesPart(signal) {
  const list = new List({ label: "Names", columns: nameColumns, key: (entry) => entry.name, open: (entry) => link("recipes", entry.name),
    empty: ["no names yet; ", h("code", null, "anabranch recipe ref set NAME TARGET"), " makes one"] });
  const total = h("span", { class: "muted", role: "status" });
  const read = async () => {
    const names = [];
    for await (const { refs, next } of pages({ path: "/v1/refs", entries: "refs", cursor: "after", size: PAGE, most: NAMES_MOST }, signal)) {
      names.push(...refs);
      total.textContent = next && names.length >= NAMES_MOST ? `the first ${many(names.length, "name")}; there are more` : many(names.length, "name");
      list.set(names);
    }
    list.set(names);
  };
  return { part: part("Names", list.element, total), read };
}

export async function show({ main, signal, args: [target], title }) {
  const field = h("input", { type: "search", value: target ?? "", placeholder: "Name or address (press /)", "aria-label": "Name or address of a recipe", spellcheck: "false" });
  const go = (event) => { event.preventDefault(); if (field.value.trim()) location.hash = link("recipes", field.value.trim()); };
  main.append(h("div", { class: "head" }, target && h("p", { class: "crumb" }, h("a", { href: "#/recipes" }, "Recipes"), " / ", target), h("h1", null, target ?? "Recipes")),
    h("form", { class: "bar-row", onsubmit: go }, field, h("button", { class: "primary" }, "Show closure")));
  if (target) {
    title(target);
    const found = await retried(signal, () => get(`/v1/recipes/${encodeURIComponent(target)}/graph?most=${NODES_MOST}`, signal));
    const counts = (state) => found.nodes.filter((node) => stateOf(node) === state).length;
    main.append(h("p", { class: "facts" }, h("span", null, "root ", h("code", null, found.root)), h("span", null, h("b", null, count(found.nodes.length)), " parts"),
      h("span", null, h("b", null, count(counts("stored"))), " stored"), h("span", null, h("b", null, count(counts("evicted"))), " evicted")), ...closure(found));
    return;
  }
  const names = namesPart(signal);
  main.append(names.part);
  const [functions] = await Promise.all([retried(signal, () => getIfThere("/v1/functions", signal)), retried(signal, names.read)]);
  main.append(functionsPart(functions) ?? "");
}
