// What is wrong with a plan is noted, and the code runs on: everything wrong is told at once.
//
// The files of this folder are one function, put together by mod.rs. All intrinsics are frozen before a plan's code
// runs (lockdown.js), so what is called here later is what it was; only values of the plan itself need care, and they
// may be proxies, have getters, or throw.

const MAX_FAULTS = 1000;
const MAX_TEXT = 500;

const MAX_REJECTIONS = 10;

const faults = [];

/** A text that fits into a message, and into JSON. */
function short(text) {
  return (text.length > MAX_TEXT ? text.slice(0, MAX_TEXT) + "…" : text).toWellFormed();
}

/** A value in few words; never runs code of the plan. */
function shown(value) {
  const kind = Token.parts(value)?.kind;
  if (value === TYPE) return "what `typeof` says of an expression";
  if (kind !== undefined) return kind === "endpoint" ? "an endpoint" : "an expression";
  if (Receiver.is(value)) return isRows(value) ? "rows" : "`ctx` or a namespace";
  switch (typeof value) {
    case "string": return short(JSON.stringify(value.slice(0, 60)));
    case "bigint": return "a bigint";
    case "object": return value === null ? "null" : Array.isArray(value) ? "a list" : "an object";
    case "function": return "a function";
    case "symbol": return "a symbol";
    default: return String(value);
  }
}

/** Whether it is the number of a site: code can call what it is not meant to call. */
function isSite(site) {
  return typeof site === "number" && site >>> 0 === site;
}

/** The topmost line and column of a plan's file in a stack. */
function position(stack) {
  const found = typeof stack === "string" ? /file:(\d+):(\d+):(\d+)\)?$/m.exec(stack) : null;
  return found === null ? undefined : [Number(found[1]), Number(found[2]), Number(found[3])];
}

/**
 * Notes something wrong at a site (and there at an option), or where the plan's code is now: at `word` from there on,
 * as the engine knows calls better than what is between them. Makes the bad value.
 */
function fault(what, help, site, option, word) {
  if (faults.length > MAX_FAULTS) return BAD;
  if (faults.length === MAX_FAULTS) {
    faults.push({ what: `more than ${MAX_FAULTS} faults: the rest is not told` });
    return BAD;
  }
  if (!isSite(site)) site = undefined;
  const stack = site === undefined ? position(new Error().stack) : undefined;
  faults.push({ what: short(what), help: help && short(help), site, option, stack, word: word && short(word) });
  return BAD;
}

/** An error that the plan's code cannot go on from, with a way out; `null` if a fault has told it already. */
class Refusal extends TypeError {
  #help;
  constructor(what, help) {
    super(what);
    this.#help = help;
  }
  static help(error) {
    return #help in error ? error.#help : undefined;
  }
}
delete Refusal.prototype.constructor;

/** Notes something wrong, and ends the code: there is no use in going on. */
function stop(what, site) {
  fault(what, undefined, site);
  throw new Refusal(what, null);
}

// What promises were rejected with that nobody has asked.
const rejections = new Map();
let endedBy = {};

/** Notes that a promise was rejected, or that somebody asks it after all. */
function rejected(promise, reason, asked) {
  if (asked) rejections.delete(promise);
  else if (rejections.size < MAX_REJECTIONS) rejections.set(promise, reason);
}

/** Notes what was thrown where nothing waits for it: an `async` function that is not awaited. */
function unheard() {
  const told = [endedBy];
  for (const reason of rejections.values()) {
    if (told.some((other) => other === reason)) continue;
    told.push(reason);
    ended(reason);
  }
}

/** Notes that the code ended there. `what` and `help` say why, if its host knows better than the error. */
function ended(error, what, help) {
  endedBy = error;
  let stack;
  try {
    if (!Error.isError(error)) {
      what ??= `the plan's code threw ${shown(error)}`;
    } else {
      const way = Refusal.help(error);
      if (way === null && what === undefined) return;
      stack = position(error.stack);
      help ??= way;
      what ??= way === undefined ? `${error.name}: ${error.message}` : error.message;
    }
  } catch {
    what ??= "the plan's code threw an error that cannot be shown";
  }
  faults.push({ what: short(what), help, stack });
}

/** `did you mean ..?`, if one of the names is close; else all, if they are few. */
function closest(name, names) {
  const near = name.length > 100 ? undefined : nearest(name, names);
  if (near !== undefined) return `did you mean \`${near}\`?`;
  return names.length > 0 && names.length <= 5 ? `there is ${names.map((known) => `\`${known}\``).join(", ")}` : undefined;
}
