// `E`, `Pred`, and the functions that are there without them.

const UNARY = ["neg", "abs", "log", "exp", "floor", "ceil", "round", "length", "lower", "upper"];
const BINARY = ["add", "sub", "mul", "div", "mod", "pow"];
const MANY = ["min", "max", "coalesce"];
const COMPARISONS = ["==", "!=", "<", "<=", ">", ">="];

/** A function that takes so many arguments, else it is a fault; it is given the site of its call first. */
function taking(name, least, most, make) {
  const count = least === most ? least : most === Infinity ? `at least ${least}` : `${least} or ${most}`;
  return { [name]: (...values) => {
    const site = takeSite();
    if (values.length >= least && values.length <= most) return make(site, ...values);
    return fault(`\`${name}\` takes ${count} arguments, not ${values.length}`, undefined, site);
  } }[name];
}

/** `f(f(a, b), c)`. */
function leftwards(site, make, op, as, values) {
  const [first, ...rest] = values.map((value) => as(value, site));
  const fold = (a, b) => Token.parts(make(site, op, { a, b }));
  return new Token(rest.reduce(fold, first));
}

/** The token itself if it refers to a key or a parameter (`op`), else a fault. */
function reference(op, what, site, value) {
  const parts = Token.parts(value);
  if (parts?.kind === "bad" || parts?.ir?.op === op) return value;
  return fault(`this takes ${what}, not ${shown(value)}`, undefined, site);
}

function regexOf(site, text, pattern, flags) {
  const x = asExpr(text, site);
  const subject = x.ir?.op === "key_ref" ? { key: x.ir.key } : {};
  const children = subject.key === undefined || x.kind === "bad" ? { x } : {};
  const given = Token.parts(pattern);
  if (given?.kind === "bad") return BAD;
  if (flags !== undefined && flags !== "" && flags !== "i") {
    return fault(`the flags of a pattern are "" or "i", not ${shown(flags)}`, undefined, site);
  }
  const fields = { ...subject, flags: flags ?? "" };
  if (given?.ir?.op === "param_ref") {
    return pred(site, "regex", children, { ...fields, pattern: { kind: "param", param: given.ir.param } });
  }
  if (typeof pattern === "string" && pattern.isWellFormed()) {
    return pred(site, "regex", children, { ...fields, pattern: { kind: "literal", value: pattern } });
  }
  return fault(`a pattern is a string or a parameter, not ${shown(pattern)}`, "write `regex(x, \"pattern\", \"i\")`", site);
}

function cmpOf(site, cmp, a, b) {
  if (typeof cmp === "string" && COMPARISONS.includes(cmp)) return pred(site, "cmp", { a: asExpr(a, site), b: asExpr(b, site) }, { cmp });
  return fault(`no comparison: ${shown(cmp)}`, `one of ${COMPARISONS.join(" ")}`, site);
}

function hashOf(site, seed, x) {
  if (Number.isSafeInteger(seed)) return expr(site, "hash", { x: asExpr(x, site) }, { seed });
  return fault(`the seed of a hash is a whole number that is known now, not ${shown(seed)}`, "write `hash(7, Key.id)`", site);
}

const E = {
  now: taking("now", 0, 0, (site) => expr(site, "now", {})),
  hash: taking("hash", 2, 2, hashOf),
  const: taking("const", 1, 1, (site, value) => new Token(asExpr(value, site))),
  constNull: taking("constNull", 0, 0, () => new Token(asExpr(null))),
  key: taking("key", 1, 1, (site, key) => reference("key_ref", "a key, as `Key.id`", site, key)),
  param: taking("param", 1, 1, (site, param) => reference("param_ref", "a parameter, as `P.weight`", site, param)),
  clamp: taking("clamp", 3, 3, (site, x, lo, hi) => {
    return expr(site, "clamp", { x: asExpr(x, site), lo: asExpr(lo, site), hi: asExpr(hi, site) });
  }),
  if: taking("if", 3, 3, (site, test, a, b) => {
    return expr(site, "if", { cond: asPred(test, site), then: asExpr(a, site), else: asExpr(b, site) });
  }),
};
for (const op of UNARY) E[op] = taking(op, 1, 1, (site, x) => expr(site, op, { x: asExpr(x, site) }));
for (const op of BINARY) {
  E[op] = taking(op, 2, 2, (site, a, b) => expr(site, op, { a: asExpr(a, site), b: asExpr(b, site) }));
}
for (const op of MANY) {
  E[op] = taking(op, 1, Infinity, (site, ...values) => leftwards(site, expr, op, asExpr, values));
}

const Pred = {
  constBool: taking("constBool", 1, 1, (site, value) => new Token(asPred(value, site))),
  and: taking("and", 1, Infinity, (site, ...values) => leftwards(site, pred, "and", asPred, values)),
  or: taking("or", 1, Infinity, (site, ...values) => leftwards(site, pred, "or", asPred, values)),
  not: taking("not", 1, 1, (site, x) => pred(site, "not", { x: asPred(x, site) })),
  cmp: taking("cmp", 3, 3, cmpOf),
  in: taking("in", 2, 2, isIn),
  isNull: taking("isNull", 1, 1, (site, x) => pred(site, "is_null", { x: asExpr(x, site) })),
  notNull: taking("notNull", 1, 1, (site, x) => pred(site, "not_null", { x: asExpr(x, site) })),
  regex: taking("regex", 2, 3, regexOf),
};

// Of plain values these compute what they are called, so that they do for options as well.
const PLAIN = {
  min: Math.min,
  max: Math.max,
  abs: Math.abs,
  log: Math.log,
  exp: Math.exp,
  pow: Math.pow,
  clamp: (x, lo, hi) => Math.min(Math.max(x, lo), hi),
  floor: Math.floor,
  ceil: Math.ceil,
  round: (x) => Math.sign(x) * Math.round(Math.abs(x)),
  mod: (a, b) => a % b,
  length: (text) => [...text].length,
  lower: (text) => text.toLowerCase(),
  upper: (text) => text.toUpperCase(),
  coalesce: (...values) => values.find((value) => value != null) ?? null,
};

const functions = { regex: Pred.regex, now: E.now, hash: E.hash };
for (const [name, plain] of Object.entries(PLAIN)) {
  functions[name] = { [name]: (...values) => {
    return values.length > 0 && !values.some(isLifted) ? (takeSite(), plain(...values)) : E[name](...values);
  } }[name];
}
