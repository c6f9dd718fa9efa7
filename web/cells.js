// The cells of a build, kept up to date: read once, then changed by what the events say.

import { looked, request, retried } from "./api.js";
import { h, part } from "./dom.js";
import { Grid } from "./grid.js";

/** The server answers at most so many cells one by one; beyond, rows are combined. */
const CELLS_MOST = 4_000_000;
/** Changes that are kept while cells are read; beyond, the cells are read again. */
const LATE_MOST = 256;

export class Cells {
  constructor(path, signal) {
    Object.assign(this, { path, signal, busy: false, again: null, late: [], turn: Promise.resolve(), seen: 0, element: h("div") });
  }

  /** A grid for the columns and rows of now; a stage of a build has its own. */
  #fit(dataset) {
    const names = dataset.columns.map((column) => column.name), shape = JSON.stringify([dataset.rows, names, dataset.stage?.number ?? 0]);
    if (shape === this.shape || !names.length || !dataset.rows) return false;
    this.shape = shape;
    this.bucket = Math.ceil((dataset.rows * names.length) / CELLS_MOST) || 1;
    this.grid = new Grid({ rows: dataset.rows, columns: names, bucket: this.bucket });
    this.element.replaceChildren();
    return true;
  }

  /** Reads cells: all, or those of some rows. One request is under way at most; what is wanted meanwhile is read after it. */
  async fetch(dataset, from = 0, to = dataset.rows) {
    this.#fit(dataset);
    if (!this.grid) return;
    this.again = this.again ? [Math.min(from, this.again[0]), Math.max(to, this.again[1])] : [from, to];
    if (this.busy) return;
    this.busy = true;
    try {
      while (this.again) {
        await looked(this.signal);
        const [first, end] = this.again, { grid, bucket } = this;
        this.again = null;
        const start = Math.floor(first / bucket) * bucket;
        const path = `${this.path}/cells?from=${start}&to=${Math.min(grid.allRows, Math.ceil(end / bucket) * bucket)}${bucket > 1 ? `&bucket=${bucket}` : ""}`;
        const response = await retried(this.signal, () => request(path, { signal: this.signal }));
        const bytes = new Uint8Array(await response.arrayBuffer());
        this.seen = Math.max(this.seen, Number(response.headers.get("X-Event") ?? 0));
        // Of a bucket the share that finished follows each state.
        await this.#inTurn(() => grid.set(start / bucket, bucket > 1 ? bytes.filter((_, at) => at % 2 === 0) : bytes));
        // What has changed since the server read them.
        for (const { cells, number } of this.late.splice(0)) if (number > this.seen) this.#change(cells);
        if (!grid.element.isConnected) this.element.replaceChildren(part("Cells", grid.element, grid.tools));
      }
    } catch (error) {
      // The cells of some builds are not kept: those that ended long ago, and those that are too large.
      if (!this.signal.aborted && ![404, 409, 413, 416].includes(error.status)) throw error;
    } finally { this.busy = false; }
  }

  /** Reads all cells of a server whose events are numbered anew. */
  restart(dataset) {
    this.seen = 0;
    return this.fetch(dataset);
  }

  /** Takes the changes of an event; gives the read that they need, if any. `null` cells stand for more than an event may have. */
  take(dataset, { cells }, number) {
    const isNew = this.#fit(dataset);
    if (cells === undefined || number <= this.seen) return null;
    if (isNew || cells === null || this.late.length === LATE_MOST) {
      this.late = [];
      return this.fetch(dataset);
    }
    if (!this.busy && !this.grid?.element.isConnected) return this.fetch(dataset);
    if (!cells.length) return null;
    if (this.bucket > 1) return this.fetch(dataset, cells[0][0], cells.at(-1)[0] + this.#rowsOf(cells.at(-1)));
    // The answer to a reading may be older.
    if (this.busy) this.late.push({ cells, number });
    this.#change(cells);
    return null;
  }

  #change(cells) {
    const { grid } = this;
    this.#inTurn(() => grid.change(cells));
  }

  /** The grid takes states in pieces: those of one call before those of the next one. */
  #inTurn(work) {
    this.turn = this.turn.then(work);
    return this.turn;
  }

  #rowsOf(group) {
    let count = 0;
    for (let at = 2; at < group.length; at += 2) count += group[at];
    return Math.ceil(count / this.grid.columns.length);
  }
}
