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

/**
 * Tells the frame `refused` when the token is missing or wrong, and the `state` of the server: `off` when requests that are
 * repeated do not reach it, `busy` while it refuses some of them, `on` otherwise.
 */
export const connection = new EventTarget();
let isReached = true;
/** The sentences of the server about the works that it refuses for now. A work is any object of its own. */
const busy = new Map();
const tell = (what, detail) => connection.dispatchEvent(new CustomEvent(what, { detail }));
const tellState = () => tell("state", { state: !isReached ? "off" : busy.size ? "busy" : "on", message: [...busy.values()].at(-1) });

/** Whether the same request may succeed later: the server was not reached, is busy, or failed by itself. */
const mayPass = (error) => error instanceof Refused && (error.status === 0 || error.status === 429 || error.status >= 500);

/** A work that is tried again has failed. */
function failed(work, error) {
  if (error.status) busy.set(work, error.message);
  else isReached = false;
  tellState();
}

/** A work has succeeded, or nobody wants it any more. */
function settled(work) { if (busy.delete(work)) tellState(); }

const unreachable = () => new Refused(0, "unreachable", "the server cannot be reached");

/** A request whose answer is good; otherwise an error with the server's sentence. */
export async function request(path, options = {}) {
  let response;
  try {
    response = await fetch(path, { ...options, headers: headers(options.headers), cache: "no-store", redirect: "error" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw unreachable();
  }
  isReached = true;
  tellState();
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

/** Beyond it, an integer is no id. Browsers that do not tell how a number was written take it for a float. */
const ID_MOST = 2 ** 64;

/**
 * JSON whose integers keep their digits. One beyond 2^53 is a raw number: `JSON.stringify` gives it back as it was written,
 * and so does `shown`.
 */
export const parseExact = (text) => JSON.parse(text, (_, value, context) => {
  if (typeof value !== "number" || !Number.isInteger(value) || Number.isSafeInteger(value)) return value;
  const isInteger = context?.source ? /^-?\d+$/.test(context.source) : Math.abs(value) < ID_MOST;
  if (!isInteger) return value;
  if (!JSON.rawJSON) throw new Error("this browser rounds large integers; use a newer one");
  return JSON.rawJSON(context.source);
});

/** An answer with values that users chose, such as ids. */
export const getExact = async (path, signal) => parseExact(await (await request(path, { signal })).text());

export const post = (path, body, { signal, headers } = {}) => request(path, {
  method: "POST", signal, body: JSON.stringify(body ?? {}), headers: { "Content-Type": "application/json", ...headers },
});

/** One answer, or null where the server has no such thing. */
export const getIfThere = async (path, signal, read = get) => {
  try { return await read(path, signal); } catch (error) {
    if ([404, 501].includes(error.status)) return null;
    throw error;
  }
};

/**
 * The pages of a list, one after the other, until the list ends or `most` entries are read; none where the server has no such
 * list. The `next` of a page is the `cursor` of the page behind it.
 */
export async function* pages({ path, entries, cursor, size, most }, signal) {
  let page, read = 0;
  do {
    page = await getIfThere(`${path}?limit=${size}${page ? `&${cursor}=${encodeURIComponent(page.next)}` : ""}`, signal);
    if (!page) return;
    yield page;
    read += page[entries].length;
  } while (page.next && page[entries].length && read < most);
}

/** A page shows at most so many runs or datasets: the newest. */
export const LISTED_MOST = 10_000;

/** The datasets of the server, newest first: pages of `{ datasets, next }`. */
export const datasetPages = (signal) => pages({ path: "/v1/datasets", entries: "datasets", cursor: "before", size: 200, most: LISTED_MOST }, signal);

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

export const pause = (ms, signal) => new Promise((resolve, reject) => {
  const leave = () => { clearTimeout(timer); reject(signal.reason); };
  const timer = setTimeout(() => { signal.removeEventListener("abort", leave); resolve(); }, ms);
  signal.addEventListener("abort", leave, { once: true });
});

/** Waits until the page is looked at. */
export const looked = (signal) => new Promise((resolve, reject) => {
  if (!document.hidden) { resolve(); return; }
  const leave = () => reject(signal.reason);
  signal.addEventListener("abort", leave, { once: true });
  document.addEventListener("visibilitychange", () => { signal.removeEventListener("abort", leave); resolve(); }, { once: true, signal });
});

/** A connection to a stream of events. */
async function connect(path, signal, lastId) {
  const resume = lastId === null ? {} : { "Last-Event-ID": lastId };
  const response = await request(path, { signal, headers: { Accept: "text/event-stream", ...resume } });
  return response.body.pipeThrough(new TextDecoderStream()).getReader();
}

/**
 * Hears server-sent events until `end` or until the signal; fails when the server refuses, or when `take` fails. Reconnects and
 * resumes while the page is looked at. Each time it is connected again, it says so by the event `again`: a server that was
 * started anew does not have the old events.
 */
export async function hear(path, signal, take) {
  const state = { id: null, event: "", data: [], rest: "" }, work = {};
  let wait = RETRY_FIRST_MS, isAgain = false;
  /** What the network gives, or null when it may give it later. */
  const tried = async (io) => {
    try { return await io(); } catch (error) {
      if (signal.aborted || !mayPass(error)) throw error;
      failed(work, error);
      return null;
    }
  };
  const drain = async (reader) => {
    const read = () => reader.read().catch(() => { throw unreachable(); });
    for (let piece; (piece = await tried(read)) && !piece.done;) {
      wait = RETRY_FIRST_MS;
      for (const { id, event, data } of messages(state, piece.value)) {
        let parsed = null;
        try { parsed = JSON.parse(data); } catch { parsed = data; }
        take(event, parsed, id);
        if (event === "end") return true;
      }
    }
    return false;
  };
  try {
    for (;;) {
      await looked(signal);
      const reader = await tried(() => connect(path, signal, state.id));
      if (reader) {
        settled(work);
        try {
          if (isAgain) take("again", null, null);
          isAgain = true;
          Object.assign(state, { event: "", data: [], rest: "" });
          if (await drain(reader)) return;
        } finally { reader.cancel().catch(() => { /* It broke by itself. */ }); }
      }
      await pause(wait, signal);
      wait = Math.min(2 * wait, RETRY_MOST_MS);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally { settled(work); }
}

/** Calls `work` until the server answers it, be it with a refusal. A page that nobody looks at waits. */
export async function retried(signal, work) {
  try {
    for (let wait = RETRY_FIRST_MS; ; wait = Math.min(2 * wait, RETRY_MOST_MS)) {
      await looked(signal);
      try { return await work(); } catch (error) {
        if (signal.aborted || !mayPass(error)) throw error;
        failed(work, error);
      }
      await pause(wait, signal);
    }
  } finally { settled(work); }
}

/** Calls `work` now, and then every so often while the page is looked at. A busy server is asked again the next time. */
export async function every(ms, signal, work) {
  try {
    while (!signal.aborted) {
      await looked(signal);
      try {
        await work();
        settled(work);
      } catch (error) {
        if (error.status === 401) return;
        if (!mayPass(error)) throw error;
        failed(work, error);
      }
      await pause(ms, signal);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally { settled(work); }
}

/** Saves a file of the server. A link carries no token, so the file is fetched first. */
export async function save(path, name) {
  const url = URL.createObjectURL(await (await request(path)).blob());
  const anchor = document.createElement("a");
  anchor.href = url;
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
