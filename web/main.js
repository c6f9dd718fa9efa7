// The frame: which page is shown, keys, theme, sign-in.

import { connection, takeToken, token } from "./api.js";
import { h, notice, own } from "./dom.js";
import { show as showDataset } from "./pages/dataset.js";
import { show as showDatasets } from "./pages/datasets.js";
import { fileView } from "./pages/file.js";
import { show as showOverview } from "./pages/overview.js";
import { show as showPlan } from "./pages/plan.js";
import { show as showPlans } from "./pages/plans.js";
import { show as showRecipes } from "./pages/recipes.js";
import { show as showRun } from "./pages/run.js";
import { show as showRuns } from "./pages/runs.js";
import { show as showSignIn } from "./pages/sign-in.js";

const PAGES = [
  { name: "Overview", path: "", key: "o", list: showOverview },
  { name: "Runs", path: "runs", key: "r", list: showRuns, one: showRun, parts: {
    timeline: fileView({ noun: "Runs", of: "runs", file: "timeline.html", name: (id) => `${id}.html`, text: "Timeline" }) } },
  { name: "Plans", path: "plans", key: "p", list: showPlans, one: showPlan },
  { name: "Recipes", path: "recipes", key: "c", list: showRecipes, one: showRecipes },
  { name: "Datasets", path: "datasets", key: "d", list: showDatasets, one: showDataset, parts: {
    report: fileView({ noun: "Datasets", of: "datasets", file: "report", name: (id) => `${id}.html`, text: "Report" }) } },
];

const KEYS = [
  ...PAGES.map((page) => [["g", page.key], `Go to ${page.name}`]),
  [["/"], "Filter"], [["j", "k"], "Next or previous line (or arrow keys)"], [["Enter"], "Open the line"],
  [["Esc"], "Leave the filter, or go up one page"], [["+", "−", "0"], "Zoom a timeline or a grid"], [["t"], "Light or dark"], [["?"], "These keys"],
];

const main = document.getElementById("main");
const help = document.getElementById("help");
let leaving = new AbortController();

function route() {
  leaving.abort();
  leaving = new AbortController();
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [first = "", ...rest] = path.split("/").filter(Boolean).map((part) => {
    try { return decodeURIComponent(part); } catch { return part; }
  });
  const page = PAGES.find((page) => page.path === first);
  for (const anchor of document.querySelectorAll("#nav a")) {
    if (anchor.dataset.path === first) anchor.setAttribute("aria-current", "page");
    else anchor.removeAttribute("aria-current");
  }
  const view = {
    main, signal: leaving.signal, args: rest, query: new URLSearchParams(query),
    title: (text) => { document.title = text ? `${text} · Anabranch` : "Anabranch"; },
  };
  main.replaceChildren();
  scrollTo(0, 0);
  const shown = rest.length > 1 ? page?.parts && own(page.parts, rest[1]) : rest.length ? page?.one : page?.list;
  view.title(page?.name);
  if (!shown) {
    main.append(h("div", { class: "head" }, h("h1", null, "No such page")), notice("warn", `There is no page ${location.hash}. `, h("a", { href: "#/" }, "Overview")));
    return;
  }
  Promise.resolve(shown(view)).catch((error) => {
    if (view.signal.aborted || error.status === 401) return;
    if (!main.querySelector("h1")) main.append(h("div", { class: "head" }, rest.length > 0 && h("p", { class: "crumb" }, h("a", { href: `#/${page.path}` }, page.name), ` / ${rest.join(" / ")}`), h("h1", null, rest.at(-1) ?? page.name)));
    main.append(notice("bad", error.message));
    if (error.status === undefined) console.error(error);
  });
}

function signIn() {
  leaving.abort();
  leaving = new AbortController();
  showSignIn({ main, signal: leaving.signal, hadToken: token.get() !== null, done: start });
  token.drop();
  document.getElementById("sign-out").hidden = true;
}

function start() {
  document.getElementById("sign-out").hidden = !token.get();
  route();
}

function setTheme(theme) {
  if (theme) {
    document.documentElement.dataset.theme = theme;
    localStorage.setItem("anabranch-theme", theme);
  }
  const dark = isDark();
  document.getElementById("theme").replaceChildren(h("span", null, dark ? "Light theme" : "Dark theme"), h("kbd", null, "t"));
  dispatchEvent(new Event("theme"));
}

const isDark = () => (document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
const switchTheme = () => setTheme(isDark() ? "light" : "dark");

function showKeys() {
  help.replaceChildren(h("h2", { id: "help-title" }, "Keyboard"),
    h("dl", null, KEYS.map(([keys, what]) => [h("dt", null, keys.map((key, at) => [at ? " " : "", h("kbd", null, key)])), h("dd", null, what)])),
    h("form", { method: "dialog" }, h("button", { autofocus: true }, "Close")));
  help.showModal();
}

/** The lines of the page that j and k move over: a long list, or a table. */
function moveLine(step) {
  const list = main.querySelector("[data-list]");
  if (list) {
    if (document.activeElement !== list) list.focus();
    list.dispatchEvent(new CustomEvent("step", { detail: step }));
    return;
  }
  const lines = [...main.querySelectorAll("tr[data-open]")];
  const next = lines[Math.min(lines.length - 1, Math.max(0, lines.indexOf(document.activeElement) + step))];
  next?.focus();
}

/** The page above this one. */
function up() {
  const parts = location.hash.replace(/^#\/?/, "").split("?")[0].split("/").filter(Boolean);
  return `#/${parts.slice(0, -1).join("/")}`;
}

let goes = false;
function key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
  const field = event.target.closest?.("input, textarea, select");
  if (event.key === "Escape") {
    if (field) field.blur();
    else if (!event.defaultPrevented) location.hash = up();
    return;
  }
  if (field) return;
  if (goes) {
    goes = false;
    const page = PAGES.find((page) => page.key === event.key);
    if (page) { location.hash = `#/${page.path}`; event.preventDefault(); return; }
  }
  const inList = event.target.closest?.("[data-arrows]");
  const actions = {
    g: () => { goes = true; },
    "/": () => main.querySelector("input[type=search]")?.focus(),
    j: () => moveLine(1), k: () => moveLine(-1),
    ArrowDown: inList ? null : () => moveLine(1), ArrowUp: inList ? null : () => moveLine(-1),
    Enter: event.target.dataset?.open ? () => { location.hash = event.target.dataset.open; } : null,
    t: switchTheme, "?": showKeys,
  };
  const arrows = event.key.startsWith("Arrow");
  if (arrows && !main.querySelector("[data-list]") && !event.target.dataset?.open) return;
  const action = Object.hasOwn(actions, event.key) ? actions[event.key] : null;
  if (action) { event.preventDefault(); action(); }
}

const live = document.getElementById("live");
const trouble = document.getElementById("trouble");
/** What is known of the server; `remark` says more about a server that does not answer as it should. */
function setLive(state, text, remark = "") {
  if (live.dataset.state === state && trouble.textContent === remark) return;
  live.dataset.state = state;
  live.replaceChildren(h("span", null, text));
  live.title = text;
  trouble.textContent = remark;
  trouble.hidden = !remark;
}

takeToken();
document.getElementById("nav").append(...PAGES.map((page) => h("a", { href: `#/${page.path}`, "data-path": page.path },
  page.name, h("kbd", { "aria-hidden": "true" }, `g ${page.key}`))));
document.getElementById("theme").addEventListener("click", switchTheme);
document.getElementById("keys").addEventListener("click", showKeys);
document.getElementById("sign-out").addEventListener("click", () => { token.drop(); signIn(); });
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTheme());
addEventListener("keydown", key);
addEventListener("hashchange", () => { takeToken(); start(); });
connection.addEventListener("refused", signIn);
connection.addEventListener("state", ({ detail: { state, message } }) => setLive(state, ...{
  on: ["connected"],
  off: ["server not reachable", "The server cannot be reached. This page tries again until it answers."],
  busy: ["server busy", `The server is busy: ${message}. This page tries again until it answers.`],
}[state]));
setTheme();
start();
