
(() => {
  const root = document.querySelector("svg.timeline");
  const plot = root.querySelector(".plot"), view = root.querySelector(".view"), axis = root.querySelector(".axis");
  const labels = [...root.querySelectorAll("[data-zoom]")];
  const wall = Math.max(1, +root.dataset.wall), second = 1e9, long = 120 * second, maxZoom = 5000;
  const units = [[second, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
  let zoom = 1, left = 0;

  const pad = (n) => String(n).padStart(2, "0");
  function long_words(nanos) {
    const s = Math.round(nanos / second);
    return s < 3600 ? `${Math.floor(s / 60)}m ${pad(s % 60)}s` : `${Math.floor(s / 3600)}h ${pad(Math.floor(s / 60) % 60)}m`;
  }
  function round_step(nanos) {
    const steps = [];
    for (let power = 1; power <= 1e10; power *= 10) steps.push(power, 2 * power, 5 * power);
    const longer = [60, 120, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400].map((s) => s * second);
    const all = steps.filter((step) => step <= 20 * second).concat(longer);
    return all.find((step) => step >= nanos) ?? Math.ceil(nanos / 864e11) * 864e11;
  }
  function words(at, step) {
    if (at === 0) return "0";
    if (wall >= long && step >= second) return long_words(at);
    const [unit, name] = units.find(([unit]) => unit <= wall);
    return `${(at / unit).toFixed(Math.max(0, Math.ceil(Math.log10(unit / step) - 1e-9)))} ${name}`;
  }
  function draw_axis() {
    const step = round_step(wall / zoom / 10), bottom = axis.dataset.height, parts = [];
    const end = Math.min(wall, (left + 1 / zoom) * wall);
    for (let n = Math.floor((left * wall) / step); n * step <= end; n++) {
      const share = ((n * step) / wall) * 100, place = (share / 100 - left) * zoom;
      const anchor = place < 0.01 ? "start" : place > 0.97 ? "end" : "middle";
      parts.push(`<line x1="${share}%" x2="${share}%" y1="22" y2="${bottom}"/><text x="${share}%" y="14" text-anchor="${anchor}">${words(n * step, step)}</text>`);
    }
    axis.innerHTML = parts.join("");
  }
  function draw() {
    zoom = Math.min(maxZoom, Math.max(1, zoom));
    left = Math.min(1 - 1 / zoom, Math.max(0, left));
    view.setAttribute("width", `${100 * zoom}%`);
    view.setAttribute("x", `${-100 * left * zoom}%`);
    for (const label of labels) label.setAttribute("visibility", label.dataset.zoom <= zoom ? "visible" : "hidden");
    draw_axis();
  }
  function zoom_at(place, factor) {
    const at = left + place / zoom;
    zoom = Math.min(maxZoom, Math.max(1, zoom * factor));
    left = at - place / zoom;
    draw();
  }
  const bounds = () => plot.querySelector(".ground").getBoundingClientRect();
  const place_of = (event) => (event.clientX - bounds().left) / bounds().width;

  plot.addEventListener("wheel", (event) => {
    /* A wheel alone scrolls the page, as everywhere else. */
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    left += event.deltaX / bounds().width / zoom;
    zoom_at(place_of(event), Math.exp(-event.deltaY / 300));
  }, { passive: false });
  let held = null;
  plot.addEventListener("pointerdown", (event) => {
    held = { place: place_of(event), left };
    plot.setPointerCapture(event.pointerId);
  });
  plot.addEventListener("pointermove", (event) => {
    if (!held) return;
    left = held.left - (place_of(event) - held.place) / zoom;
    draw();
  });
  for (const kind of ["pointerup", "pointercancel"]) plot.addEventListener(kind, () => { held = null; });
  const show_all = () => { zoom = 1; left = 0; draw(); };
  plot.addEventListener("dblclick", show_all);
  document.getElementById("in").onclick = () => zoom_at(0.5, 2);
  document.getElementById("out").onclick = () => zoom_at(0.5, 0.5);
  document.getElementById("all").onclick = show_all;
  document.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: -0.2, ArrowRight: 0.2 };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "+" || event.key === "=") zoom_at(0.5, 2);
    else if (event.key === "-") zoom_at(0.5, 0.5);
    else if (event.key === "0") show_all();
    else if (moves[event.key]) { left += moves[event.key] / zoom; draw(); }
  });
})();
