// Lines over time, for figures that arrive while one looks.

import { h, s, time } from "./dom.js";

const WIDTH = 520, HEIGHT = 120, SAMPLES_MOST = 600;

/** A chart of one or more lines. `push(at, values)` adds a sample; old ones are thinned out, not dropped. */
export class Chart {
  constructor({ title, lines, format }) {
    Object.assign(this, { lines, format, samples: [], waiting: false });
    this.picture = s("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": title });
    this.most = h("span", { class: "chart-most muted" });
    this.values = lines.map((line) => h("b", null));
    this.from = h("span");
    this.to = h("span");
    this.element = h("figure", { class: "chart-box" },
      h("figcaption", null, h("h3", null, title), lines.map((line, at) => h("span", { class: `line-key ${line.kind}` }, line.name, " ", this.values[at]))),
      h("div", { class: "chart-plot" }, this.picture, this.most), h("div", { class: "ends muted" }, this.from, h("span", null, "elapsed"), this.to));
  }

  push(at, values) {
    // Events of the past may arrive behind the state of now.
    let place = this.samples.length;
    while (place > 0 && this.samples[place - 1].at > at) place--;
    const isKnown = place > 0 && this.samples[place - 1].at === at;
    this.samples.splice(isKnown ? place - 1 : place, isKnown ? 1 : 0, { at, values });
    if (this.samples.length > SAMPLES_MOST) this.samples = this.samples.filter((_, number) => number % 2 === 0 || number === this.samples.length - 1);
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.#draw(); });
  }

  #draw() {
    // One sample is a level line from the beginning.
    const [only] = this.samples;
    const samples = this.samples.length > 1 ? this.samples : [{ ...only, at: Math.min(0, only.at - 1) }, only];
    const known = samples.flatMap(({ values }) => values).filter((value) => value !== null && value !== undefined);
    const peak = Math.max(0, ...known), most = peak || 1;
    const first = samples[0].at, span = Math.max(1e-9, samples.at(-1).at - first);
    const x = (at) => ((at - first) / span) * WIDTH, y = (value) => HEIGHT - 2 - (value / most) * (HEIGHT - 10);
    const parts = [0, 0.5, 1].map((part) => s("line", { class: "grid", x1: 0, x2: WIDTH, y1: y(part * most), y2: y(part * most) }));
    this.lines.forEach((line, number) => {
      const points = samples.filter(({ values }) => values[number] !== null && values[number] !== undefined).map(({ at, values }) => `${x(at).toFixed(1)} ${y(values[number]).toFixed(1)}`);
      if (!points.length) return;
      if (line.area) parts.push(s("path", { class: `area ${line.kind}`, d: `M${points.join("L")}L${WIDTH} ${HEIGHT}L${points[0].split(" ")[0]} ${HEIGHT}Z` }));
      parts.push(s("path", { class: `line ${line.kind}`, d: `M${points.join("L")}` }));
    });
    this.picture.replaceChildren(...parts);
    this.most.textContent = peak > 0 ? this.format(peak) : "";
    this.values.forEach((value, number) => { value.textContent = this.format(samples.at(-1).values[number]); });
    const written = (at) => time((at < 10 ? Math.max(0, at) : Math.round(at)) * 1000);
    this.from.textContent = written(first);
    this.to.textContent = written(samples.at(-1).at);
  }
}
