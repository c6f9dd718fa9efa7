// Tokens: what stands for a value that only a request brings.

// Plan JSON is read with a bound on nesting, and an expression is one part of it.
const MAX_DEPTH = 100;
const MAX_PARTS = 10000;

const FUNCTIONS = "log, exp, min, max, abs, pow, clamp, lower, upper";

/** An expression (`expr`), a predicate (`pred`), an `endpoint`, or something that a fault was told about (`bad`). */
class Token {
  #parts;
  constructor(parts) {
    this.#parts = parts;
    Object.freeze(this);
  }
  /** What a token is made of: `kind`, and for expressions `ir`, `size` and `depth`. Nothing for any other value. */
  static parts(value) {
    if (value === ABSENT) return BAD.#parts;
    return typeof value === "object" && value !== null && #parts in value ? value.#parts : undefined;
  }
  [Symbol.toPrimitive]() {
    const native = /at (\w+) \(native\)/.exec(new Error().stack);
    const math = native !== null && Object.hasOwn(Math, native[1]) ? native[1] : undefined;
    if (math !== undefined && [...FUNCTIONS.split(", "), "floor", "ceil", "round"].includes(math)) {
      throw new Refusal(`Math.${math} takes numbers, and this is an expression`, `write \`${math}(x)\``);
    }
    throw new Refusal(
      "an expression has no value while the plan is built: it stands for one that a request brings",
      `operators (but for \`x++\` and \`a.b += x\`) and ${FUNCTIONS} make expressions; text and property names cannot be made of one`,
    );
  }
  toString() {
    return this[Symbol.toPrimitive]();
  }
  valueOf() {
    return this[Symbol.toPrimitive]();
  }
  toJSON() {
    return this[Symbol.toPrimitive]();
  }
}
delete Token.prototype.constructor;

const INSTEAD = {
  __proto__: null,
  toLowerCase: "write `lower(x)`",
  toUpperCase: "write `upper(x)`",
  match: "write `regex(x, \"pattern\")`",
  test: "write `regex(x, \"pattern\")`",
  includes: "write `regex(x, \"pattern\")`",
  startsWith: "write `regex(x, \"^start\")`",
  endsWith: "write `regex(x, \"end$\")`",
};

// What an expression has no method for is told when it is asked for; calls of it then do nothing more.
Object.setPrototypeOf(Token.prototype, new Proxy(Object.prototype, {
  get(target, name, receiver) {
    if (typeof name === "symbol" || name === "then") return undefined;
    if (name in target) return Reflect.get(target, name, receiver);
    if (name === "includes" && Token.parts(receiver)?.ir?.op === "param_ref") {
      return (value) => isIn(takeSite(), value, receiver);
    }
    if (!isBad(receiver)) {
      fault(`an expression has no \`${name}\``, INSTEAD[name], undefined, undefined, name);
    }
    return ABSENT;
  },
}));

const BAD = new Token({ kind: "bad", ir: null, size: 0, depth: 0 });
const ABSENT = Object.freeze(() => BAD);

/** Whether operators make an expression of it. */
function isLifted(value) {
  const parts = Token.parts(value);
  return parts !== undefined && parts.kind !== "endpoint";
}

/** Whether a fault was told about it. */
function isBad(value) {
  return Token.parts(value)?.kind === "bad";
}

/** An expression or predicate with these children (parts of tokens) and other fields. */
function build(kind, site, op, children, fields) {
  const ir = { op, ...fields };
  let size = 1;
  let depth = 1;
  for (const [name, child] of Object.entries(children)) {
    if (child.kind === "bad") return BAD;
    size += child.size;
    depth = Math.max(depth, child.depth + 1);
    ir[name] = child.ir;
  }
  if (isSite(site)) ir.at = site;
  const help = "compute a column with `vm` first, and go on from that";
  if (depth > MAX_DEPTH) return fault(`an expression nested deeper than ${MAX_DEPTH}`, help, site);
  if (size > MAX_PARTS) return fault(`an expression of more than ${MAX_PARTS} parts`, help, site);
  return new Token({ kind, ir, size, depth });
}

const expr = (site, op, children, fields) => build("expr", site, op, children, fields);
const pred = (site, op, children, fields) => build("pred", site, op, children, fields);

/** The parts of an expression made of a value. */
function asExpr(value, site) {
  const parts = Token.parts(value);
  switch (parts?.kind) {
    case "expr": case "bad": return parts;
    case "pred": {
      const [yes, no] = [asExpr(true), asExpr(false)];
      return Token.parts(expr(site, "if", { cond: parts, then: yes, else: no }));
    }
  }
  switch (parts === undefined ? typeof value : "endpoint") {
    case "number": if (Number.isFinite(value)) return constant("const_number", value); break;
    case "string": if (value.isWellFormed()) return constant("const_string", value); break;
    case "boolean": return constant("const_bool", value);
    case "object": if (value === null) return { kind: "expr", ir: { op: "const_null" }, size: 1, depth: 1 };
  }
  return Token.parts(fault(`${shown(value)} is no part of an expression`, EXPECTED, site));
}

const EXPECTED = "an expression is made of keys, parameters, numbers, strings, true, false and null";

function constant(op, value) {
  return { kind: "expr", ir: { op, value }, size: 1, depth: 1 };
}

/** The parts of a predicate made of a value: an expression as such is one that is true. */
function asPred(value, site) {
  const parts = Token.parts(value);
  switch (parts?.kind) {
    case "pred": case "bad": return parts;
    case "expr": return Token.parts(pred(site, "cmp", { a: parts, b: asExpr(true) }, { cmp: "==", implied: true }));
  }
  if (typeof value === "boolean") return Token.parts(pred(undefined, "const_bool", {}, { value }));
  const help = "compare it; if it is what to take instead of null, write `x ?? value`";
  return Token.parts(fault(`${shown(value)} is no predicate`, help, site));
}

/** The predicate that a value is one of a list. */
function isIn(site, value, list) {
  const help = "write `x in [1, 2, 3]` or `x in [\"a\", \"b\"]`";
  const given = Token.parts(list);
  if (given?.kind === "bad") return BAD;
  if (given?.ir?.op === "param_ref") {
    return pred(site, "in", { lhs: asExpr(value, site) }, { list: { op: "param_ref", param: given.ir.param } });
  }
  if (!Array.isArray(list)) return fault(`\`in\` takes a list, not ${shown(list)}`, help, site);
  const items = Array.from(list);
  if (items.length > MAX_PARTS) return fault(`a list of more than ${MAX_PARTS} items`, undefined, site);
  for (const item of items) {
    const fine = typeof item === "string" ? item.isWellFormed() : typeof item === "number" && Number.isFinite(item);
    if (!fine) return fault(`a list of \`in\` has numbers or strings, not ${shown(item)}`, help, site);
  }
  const token = pred(site, "in", { lhs: asExpr(value, site) }, { list: items });
  const parts = Token.parts(token);
  return parts.kind === "bad" ? token : new Token({ ...parts, size: parts.size + items.length });
}

// Every registry, and how a name in it is looked up.
const registries = new Map();

/** `Key`, `P`, `EP` and its kinds. `make(name, site)` makes what a name stands for. */
function registry(what, names, make) {
  const target = { __proto__: null };
  for (const name of names) target[name] = make(name);
  const missing = (name, site) => {
    return fault(`there is no ${what} \`${name}\``, closest(name, names), site, undefined, name);
  };
  const proxy = new Proxy(Object.freeze(target), {
    get(target, name) {
      if (typeof name === "symbol" || Object.hasOwn(target, name)) return target[name];
      return missing(name);
    },
  });
  registries.set(proxy, (name, site) => (Object.hasOwn(target, name) ? make(name, site) : missing(name, site)));
  return proxy;
}

const Key = registry("key", job.keys, (key, site) => expr(site, "key_ref", {}, { key }));
const P = registry("parameter", job.params, (param, site) => expr(site, "param_ref", {}, { param }));

/** The endpoints of a kind. */
function endpointsOf(kind) {
  const endpoints = new Map();
  for (const endpoint of job.endpoints) {
    if (endpoint.kind !== kind) continue;
    endpoints.set(endpoint.name, new Token({ kind: "endpoint", id: endpoint.id }));
  }
  return registry(`${kind} endpoint`, [...endpoints.keys()], (name) => endpoints.get(name));
}

const kinds = new Map(job.endpoints.map(({ kind }) => [kind, undefined]));
for (const kind of kinds.keys()) kinds.set(kind, endpointsOf(kind));
const EP = registry("kind of endpoints", [...kinds.keys()], (kind) => kinds.get(kind));
