// What a plan's code sees, and what it does not.

/** A class that is there for its name in types alone. */
function typeOnly(name) {
  return { [name]: class { constructor() { throw new Refusal(`\`${name}\` is a type`, "plans make none of these"); } } }[name];
}

const TYPES = ["CandidateSet", "Context", "Expr", "Endpoint", "Plan"];
const surface = { Key, P, EP, E, Pred, definePlan, ...functions };
const exported = { ...surface };
for (const name of TYPES) exported[name] = typeOnly(name);

const hide = (object, name, value) => Object.defineProperty(object, name, { value });

for (const [name, value] of Object.entries(surface)) hide(globalThis, name, value);
const helpers = { __ab_get, __ab_op, __ab_logic, __ab_if, __ab_unary, __ab_test, __ab_typeof, __ab_at };
for (const [name, value] of Object.entries(helpers)) hide(globalThis, name, value);
hide(globalThis, "__ab_exports", exported);
hide(globalThis, "console", console);

// Nothing turns text into code.
const noCode = (what) => function () { throw new Refusal(`${what} is not there`, "a plan's code is what its files say"); };
const kindsOfFunctions = [
  function () {}, async function () {}, function* () {}, async function* () {},
].map((made) => Object.getPrototypeOf(made));
for (const prototype of kindsOfFunctions) hide(prototype, "constructor", noCode("a constructor of functions"));
const Function = noCode("`Function`");
hide(Function, "prototype", kindsOfFunctions[0]);
hide(globalThis, "Function", Function);
hide(globalThis, "eval", noCode("`eval`"));

// Nothing is different the next time.
hide(Math, "random", () => {
  throw new Refusal("`Math.random` is not there", "plans are deterministic: the same files make the same plan");
});
const ABSENTEES = {
  Date: "plans are deterministic: what depends on the time belongs into the request",
  performance: "plans are deterministic: what depends on the time belongs into the request",
  setTimeout: "a plan is built at once; `timeoutMs` and the `timeout` op are about requests",
  setInterval: "a plan is built at once",
};
for (const [name, help] of Object.entries(ABSENTEES)) {
  const get = () => { throw new Refusal(`\`${name}\` is not there`, help); };
  Object.defineProperty(globalThis, name, { get, set: undefined, configurable: false });
}
delete globalThis.queueMicrotask;

// Stacks are for messages: no code of a plan is handed the frames of this one.
Error.stackTraceLimit = 64;
delete Error.stackTraceLimit;
delete Error.prepareStackTrace;
delete Error.captureStackTrace;

/** Freezes everything that can be reached from there, but for methods: nothing here looks at what those have. */
function freeze(roots) {
  const seen = new Set(roots);
  for (const object of seen) {
    Object.freeze(object);
    const found = [Object.getPrototypeOf(object)];
    for (const key of Reflect.ownKeys(object)) {
      const { value, get, set } = Reflect.getOwnPropertyDescriptor(object, key);
      found.push(value, get, set);
    }
    for (const value of found) {
      if (typeof value === "object" && value !== null) seen.add(value);
      else if (typeof value === "function" && Object.hasOwn(value, "prototype")) seen.add(value);
    }
  }
}

// Those that have no name are reached through what makes them.
const iterators = [[].values(), "".matchAll(/x/g), ""[Symbol.iterator](), new Map().values(), new Set().values()];
const generators = [function* () {}, async function* () {}].map((made) => made());
const tokens = [Token.prototype, Receiver.prototype, Context.prototype, Rows.prototype, Refusal.prototype, BAD];
freeze([globalThis, Reflect, ...kindsOfFunctions, ...iterators, ...generators, ...tokens, Token, Receiver, Refusal]);
