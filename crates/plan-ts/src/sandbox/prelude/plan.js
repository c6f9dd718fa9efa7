// `definePlan`, its context, rows, and what they were called with.

const MAX_NODES = 10000;
const MAX_NESTING = 64;
// Values in all options together, so that what refers to itself many times cannot make more of them than anyone reads.
const MAX_VALUES = 300000;

const nodes = [];
const capabilities = [];
let plan;
let building = false;
let values = 0;

// The node of rows that come of something that a fault was told about.
const LOST = -1;

/** The context (`node` is null), rows, or a namespace of either. */
class Receiver {
  #node;
  constructor(node) {
    this.#node = node;
    Object.freeze(this);
  }
  static is(value) {
    return typeof value === "object" && value !== null && #node in value;
  }
  static node(value) {
    return value.#node;
  }
  [Symbol.toPrimitive]() {
    throw new Refusal("rows have no value while the plan is built", "`concat`, `union` and `join` put rows together");
  }
  toJSON() {
    return this[Symbol.toPrimitive]();
  }
}

class Context extends Receiver {}
class Rows extends Receiver {}

function isRows(value) {
  return Receiver.is(value) && value instanceof Rows;
}

/** An option as data. Faults tell the site of the call and the option's name. */
function copy(value, place, depth, above) {
  if (++values > MAX_VALUES) stop(`the options of a plan have at most ${MAX_VALUES} values`, place.site);
  const wrong = (what, help) => (fault(`\`${place.option}\` ${what}`, help, place.site, place.option), { $: "bad" });
  const parts = Token.parts(value);
  if (parts !== undefined) return copyToken(parts, place, depth, wrong);
  if (Receiver.is(value)) {
    if (!isRows(value)) return wrong("is no data");
    return Receiver.node(value) === LOST ? { $: "bad" } : { $: "node", node: Receiver.node(value) };
  }
  switch (typeof value) {
    case "boolean": return value;
    case "number": return Number.isFinite(value) ? value : wrong(`is ${value}, which no plan can say`);
    case "string": return value.isWellFormed() ? value : wrong("has half of a surrogate pair");
    case "object": break;
    default: return wrong(`is ${shown(value)}, which no plan can say`);
  }
  if (value === null) return null;
  if (above.includes(value)) return wrong("contains itself");
  if (depth >= MAX_NESTING) return wrong(`is nested deeper than ${MAX_NESTING}`);
  const below = [...above, value];
  if (Array.isArray(value)) {
    const items = [];
    for (let at = 0, length = value.length; at < length; at++) items.push(copy(value[at], place, depth + 1, below));
    return items;
  }
  if (!isPlain(value)) return wrong("is an object of a class; options are plain objects");
  const fields = { __proto__: null };
  for (const name of Object.keys(value)) {
    const field = value[name];
    if (name === "$" || !name.isWellFormed()) return wrong("has a field that no plan can say");
    if (field !== undefined) fields[name] = copy(field, place, depth + 1, below);
  }
  return fields;
}

function copyToken({ kind, id, ir, size, depth: deep }, place, depth, wrong) {
  switch (kind) {
    case "bad": return { $: "bad" };
    case "endpoint": return { $: "endpoint", id };
    case "type": return wrong("is known only when a request comes");
  }
  values += size;
  if (depth + deep > MAX_DEPTH + 4) return wrong("is nested too deep");
  return { $: kind, ir };
}

function isPlain(value) {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** The options of a call as data; `but` is left out. */
function copyOptions(options, name, site, but) {
  const copied = { __proto__: null };
  if (options === undefined) return copied;
  if (!isPlain(options) || Token.parts(options) !== undefined || Receiver.is(options)) {
    const given = shown(options) === "an object" ? "an object of a class" : shown(options);
    fault(`\`${name}\` takes an object of options, not ${given}`, `write \`${name}({ option: value })\``, site);
    return copied;
  }
  for (const option of Object.keys(options)) {
    if (option === but) continue;
    const value = options[option];
    if (option === "$" || !option.isWellFormed()) fault("an option that no plan can say", undefined, site);
    else if (value !== undefined) copied[option] = copy(value, { site, option: short(option) }, 1, []);
  }
  if (Object.getOwnPropertySymbols(options).length > 0) fault(`\`${name}\` has no options named by symbols`, undefined, site);
  return copied;
}

/** A call of an op. */
function call(method, receiver, given) {
  const site = takeSite();
  if (!Receiver.is(receiver) || (method.input && Receiver.node(receiver) === null)) {
    throw new Refusal(`\`${method.name}\` is called without what it belongs to`, `write \`rows.${method.name}(..)\``);
  }
  if (given.length > 1) fault(`\`${method.name}\` takes one object of options`, undefined, site);
  const options = copyOptions(given[0], method.name, site);
  if (!building) stop("ops can be called inside `build` only", site);
  if (nodes.length >= MAX_NODES) stop(`a plan has at most ${MAX_NODES} nodes`, site);
  if (Receiver.node(receiver) === LOST) return receiver;
  const inputs = method.input ? [Receiver.node(receiver)] : [];
  nodes.push({ op: method.op, inputs, options, site });
  return new Rows(nodes.length - 1);
}

/** Gives a prototype its methods, and tells about those that it does not have. */
function equip(prototype, what, methods) {
  delete prototype.constructor;
  for (const method of methods) {
    const value = { [method.name](...given) { return call(method, this, given); } }[method.name];
    Object.defineProperty(prototype, method.name, { value, configurable: true });
  }
  const names = () => Object.getOwnPropertyNames(prototype);
  Object.setPrototypeOf(prototype, new Proxy(Receiver.prototype, {
    get(target, name, receiver) {
      if (typeof name === "symbol" || name in target) return Reflect.get(target, name, receiver);
      if (name === "then" || name === "toJSON") return undefined;
      const other = OTHER[what]?.includes(name) ? OTHER_HELP[what] : undefined;
      fault(`there is no method \`${name}\` of ${what}`, other ?? closest(name, names()), undefined, undefined, name);
      return () => new Rows(Receiver.node(receiver) ?? LOST);
    },
  }));
  Object.freeze(prototype);
}

const [sources, transforms] = [job.methods.filter(({ input }) => !input), job.methods.filter(({ input }) => input)];
const OTHER = { "`ctx`": transforms.map(({ name }) => name), rows: sources.map(({ name }) => name) };
const OTHER_HELP = { "`ctx`": "it is a method of rows", rows: "it is a method of `ctx`" };

/** Gives the context or rows their ops: `core` has no prefix, others are in a namespace of their own. */
function equipAll(prototype, what, methods) {
  for (const namespace of new Set(methods.map((method) => method.namespace))) {
    const Space = class extends Receiver {};
    equip(Space.prototype, `\`${namespace}\` of ${what}`, methods.filter((method) => method.namespace === namespace));
    const get = function () {
      return new Space(Receiver.node(this));
    };
    Object.defineProperty(prototype, namespace, { get, configurable: true });
  }
  equip(prototype, what, methods.filter((method) => method.namespace === job.root));
}

Object.defineProperty(Context.prototype, "requireCapability", {
  value: function requireCapability(id, payload, ...more) {
    const site = takeSite();
    if (typeof id !== "string" || !id.isWellFormed() || more.length > 0) {
      fault("`requireCapability` takes the id of a capability, and what it is given", undefined, site);
      return;
    }
    if (!building) stop("`requireCapability` can be called inside `build` only", site);
    const given = isPlain(payload)
      ? copyOptions(payload, "requireCapability", site)
      : copy(payload ?? null, { site, option: "payload" }, 1, []);
    if (capabilities.length >= MAX_NODES) stop(`a plan has at most ${MAX_NODES} capabilities`, site);
    capabilities.push([id, given, site]);
  },
});
equipAll(Context.prototype, "`ctx`", sources);
equipAll(Rows.prototype, "rows", transforms);
delete Receiver.prototype.constructor;

/** The numbers of the nodes that `build` returned, with their names if it names them. */
function outputsOf(returned, site) {
  const help = "return rows, a list of rows, or an object of rows by name";
  const wrong = (what) => (fault(what, help, site, "build"), []);
  if (isBad(returned)) return [];
  if (isRows(returned)) return outputsOf([returned], site);
  if (returned === undefined) return wrong("`build` returns nothing");
  if (returned instanceof Promise) return wrong("`build` returns a promise");
  if (isPlain(returned) && Token.parts(returned) === undefined && !Receiver.is(returned)) return namedOutputs(returned, wrong);
  if (!Array.isArray(returned)) return wrong(`\`build\` returns ${shown(returned)}`);
  const outputs = Array.from(returned);
  if (outputs.length === 0) return wrong("`build` returns an empty list");
  const odd = outputs.findIndex((output) => !isRows(output));
  if (odd >= 0) return wrong(`\`build\` returns a list with ${shown(outputs[odd])} in it`);
  return outputs.map((output) => [Receiver.node(output), null]).filter(([node]) => node !== LOST);
}

function namedOutputs(returned, wrong) {
  const names = Object.keys(returned);
  if (names.length === 0) return wrong("`build` returns an empty object");
  const outputs = [];
  for (const name of names) {
    const rows = returned[name];
    if (isBad(rows)) continue;
    if (!isRows(rows)) return wrong(`\`build\` returns ${shown(rows)} as \`${name}\``);
    if (name === "" || !name.isWellFormed()) return wrong("`build` returns an output with a name that no plan can say");
    if (Receiver.node(rows) !== LOST) outputs.push([Receiver.node(rows), name]);
  }
  return outputs;
}

const PLAN = Object.freeze({ __proto__: null });

function definePlan(definition, ...more) {
  const site = takeSite();
  if (plan !== undefined) {
    fault("a plan is defined a second time", "a file has one `definePlan`; what plans share goes into a fragment", site);
    return PLAN;
  }
  plan = { options: { __proto__: null }, site, nodes, outputs: [], capabilities };
  if (!isPlain(definition) || more.length > 0) {
    fault("`definePlan` takes one object", "write `definePlan({ name: \"..\", build: (ctx) => .. })`", site);
    return PLAN;
  }
  plan.options = copyOptions(definition, "definePlan", site, "build");
  const build = definition.build;
  if (typeof build !== "function") {
    fault(`\`build\` is ${shown(build)}, not a function`, "write `build: (ctx) => ctx.viewer({ .. })`", site, "build");
    return PLAN;
  }
  building = true;
  try {
    plan.outputs = outputsOf(Reflect.apply(build, definition, [new Context(null)]), site);
  } finally {
    building = false;
  }
  return PLAN;
}

/** What was recorded, as JSON. */
function finish() {
  if (plan === undefined && faults.length === 0) {
    fault("the file defines no plan", "write `export default definePlan({ name: \"..\", build: (ctx) => .. })`");
  }
  return JSON.stringify({ faults, plan, printed });
}
