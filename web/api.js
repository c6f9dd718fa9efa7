// Requests to the server that served this page, with the token of this tab.

const TOKEN = "anabranch-token";
const RETRY_FIRST_MS = 500, RETRY_MOST_MS = 10_000;
/** A line of a stream is given up beyond this many characters. */
const LINE_MOST = 64 << 20;

export class Refused extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export const token = {
  get: () => sessionStorage.getItem(TOKEN),
  set: (text) => sessionStorage.setItem(TOKEN, text),
  drop: () => sessionStorage.removeItem(TOKEN),
};

/** Takes the token out of `#token=...` (`&` and a page may follow), so that it is in no history and no copied address. */
export function takeToken() {
  const found = location.hash.match(/^#token=([^&]*)(?:&(.*))?$/);
  if (!found) return;
  token.set(decodeURIComponent(found[1]));
  history.replaceState(null, "", location.pathname + location.search + (found[2] ? `#${found[2]}` : ""));
}

const headers = (more) => {
  const all = new Headers(more);
  if (token.get()) all.set("Authorization", `Bearer ${token.get()}`);
  return all;
};

/** What the pages are told: `refused` when the token is missing or wrong, `reached` and `lost` of the server. */
export const connection = new EventTarget();
const tell = (what) => connection.dispatchEvent(new Event(what));

/** A request whose answer is good; otherwise an error with the server's sentence. */
export async function request(path, options = {}) {
  let response;
  try {
    response = await fetch(path, { ...options, headers: headers(options.headers), cache: "no-store", redirect: "error" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    tell("lost");
    throw new Refused(0, "unreachable", "the server cannot be reached");
  }
  tell("reached");
  if (response.ok) return response;
  const text = await response.text();
  let said;
  try { said = JSON.parse(text); } catch { /* Not every refusal is JSON. */ }
  const error = said?.error;
  const message = error?.message ?? said?.detail ?? (typeof error === "string" ? error : text.slice(0, 500) || `status ${response.status}`);
  if (response.status === 401) tell("refused");
  throw Object.assign(new Refused(response.status, error?.code ?? "unknown", message), { said });
}

export const get = async (path, signal) => (await request(path, { signal })).json();

export const post = (path, body, { signal, headers } = {}) => request(path, {
  method: "POST", signal, body: JSON.stringify(body ?? {}), headers: { "Content-Type": "application/json", ...headers },
});

/** One answer, or null where the server has no such thing. */
export const getIfThere = async (path, signal) => {
  try { return await get(path, signal); } catch (error) {
    if ([404, 403, 501, 503].includes(error.status)) return null;
    throw error;
  }
};

function* messages(state, text) {
  state.rest += text;
  if (state.rest.length > LINE_MOST) throw new Error("a line of the stream is too long");
  const lines = state.rest.split(/\r\n|\n|\r(?!$)/);
  state.rest = lines.pop();
  for (const line of lines) {
    if (line === "") {
      if (state.data.length) yield { id: state.id, event: state.event || "message", data: state.data.join("\n") };
      state.event = "";
      state.data = [];
      continue;
    }
    const colon = line.indexOf(":");
    if (colon === 0) continue;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") state.data.push(value);
    else if (field === "event") state.event = value;
    else if (field === "id") state.id = value;
  }
}

const pause = (ms, signal) => new Promise((resolve, reject) => {
  const timer = setTimeout(resolve, ms);
  signal.addEventListener("abort", () => { clearTimeout(timer); reject(signal.reason); }, { once: true });
});

/** Hears server-sent events until `end`, until the server says there are none, or until the signal. Reconnects and resumes. */
export async function hear(path, signal, take) {
  const state = { id: null, event: "", data: [], rest: "" };
  for (let wait = RETRY_FIRST_MS; !signal.aborted; wait = Math.min(2 * wait, RETRY_MOST_MS)) {
    try {
      const resume = state.id === null ? {} : { "Last-Event-ID": state.id };
      const response = await request(path, { signal, headers: { Accept: "text/event-stream", ...resume } });
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      Object.assign(state, { event: "", data: [], rest: "" });
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        wait = RETRY_FIRST_MS;
        for (const { id, event, data } of messages(state, value)) {
          let parsed = null;
          try { parsed = JSON.parse(data); } catch { parsed = data; }
          take(event, parsed, id);
          if (event === "end") { await reader.cancel(); return; }
        }
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error.status >= 400 && error.status < 500 && error.status !== 429) return;
      tell("lost");
    }
    try { await pause(wait, signal); } catch { return; }
  }
}

/** Calls `work` now and then every so often, while the page is looked at. */
export async function every(ms, signal, work) {
  while (!signal.aborted) {
    if (!document.hidden) {
      try { await work(); } catch (error) {
        if (signal.aborted) return;
        if (error.status === 401) return;
        if (error.status !== 0) throw error;
      }
    }
    try { await pause(ms, signal); } catch { return; }
  }
}

/** A link that saves a file of the server. A link carries no token, so with one the file is fetched first. */
export function downloadLink(h, path, name, text) {
  if (!token.get()) return h("a", { class: "button", href: path, download: name }, text);
  return h("button", { type: "button", onclick: () => save(path, name) }, text);
}

export async function save(path, name) {
  const url = URL.createObjectURL(await (await request(path)).blob());
  const anchor = document.createElement("a");
  anchor.href = url;
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
