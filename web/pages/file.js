// A timeline or a report: a page of its own, in a frame that reaches nothing. It is fetched with the token of the tab.

import { request, retried } from "../api.js";
import { saveButton } from "../buttons.js";
import { h, link } from "../dom.js";

const FRAME = "/console/frame.html";
const themeNow = () => document.documentElement.dataset.theme ?? null;

/** Shows the page at `path`. The frame says when it can take it. */
async function fill(frame, path, signal) {
  const page = await retried(signal, async () => (await request(path, { signal })).text());
  const give = () => frame.contentWindow?.postMessage({ page, theme: themeNow() }, "*");
  addEventListener("message", (event) => { if (event.source === frame.contentWindow && event.data === "ready") give(); }, { signal });
  // A frame takes one page; for the other theme it begins again.
  addEventListener("theme", () => { frame.src = FRAME; }, { signal });
  return frame;
}

/** A view of a file of a run or a dataset: `#/runs/ID/timeline`, `#/datasets/ID/report`. */
export const fileView = ({ noun, of, file, name, text }) => async ({ main, signal, args: [id], title }) => {
  title(text);
  const path = `/v1/${of}/${encodeURIComponent(id)}/${file}`;
  const frame = h("iframe", { class: "file", title: text, sandbox: "allow-scripts", src: FRAME });
  const shown = await fill(frame, path, signal);
  main.append(h("div", { class: "head" }, h("p", { class: "crumb" }, h("a", { href: `#/${of}` }, noun), " / ", h("a", { href: link(of, id) }, h("code", null, id)), ` / ${text.toLowerCase()}`),
    h("h1", null, text), h("span", { class: "grow" }), saveButton(path, name(id), "Download")), shown);
};
