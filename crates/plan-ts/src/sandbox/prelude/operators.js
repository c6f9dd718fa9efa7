// Operators, as rewritten code calls them: native for plain values, and making expressions of tokens.

const ARITHMETIC = { __proto__: null, "+": "add", "-": "sub", "*": "mul", "/": "div", "**": "pow" };

function native(op, a, b) {
  switch (op) {
    case "+": return a + b;
    case "-": return a - b;
    case "*": return a * b;
    case "/": return a / b;
    case "%": return a % b;
    case "**": return a ** b;
    case "==": return a == b;
    case "!=": return a != b;
    case "===": return a === b;
    case "!==": return a !== b;
    case "<": return a < b;
    case "<=": return a <= b;
    case ">": return a > b;
    case ">=": return a >= b;
    case "in": return a in b;
  }
}

function __ab_get(site, object, name) {
  const look = registries.get(object);
  return look === undefined ? object[name] : look(name, site);
}

function __ab_op(site, op, a, b) {
  if (!isLifted(a) && !isLifted(b)) return native(op, a, b);
  if (op in ARITHMETIC) return expr(site, ARITHMETIC[op], { a: asExpr(a, site), b: asExpr(b, site) });
  if (op === "%") return fault("expressions have no `%`", undefined, site);
  if (op === "in") return isIn(site, a, b);
  return compare(site, op.replace("===", "==").replace("!==", "!="), a, b);
}

/** A comparison; with null it is a null test. */
function compare(site, cmp, a, b) {
  const test = cmp === "==" ? "is_null" : cmp === "!=" ? "not_null" : undefined;
  if (test !== undefined && (a ?? b) == null) return fault("null is compared with null", undefined, site);
  if (test !== undefined && a == null) return pred(site, test, { x: asExpr(b, site) });
  if (test !== undefined && b == null) return pred(site, test, { x: asExpr(a, site) });
  return pred(site, "cmp", { a: asExpr(a, site), b: asExpr(b, site) }, { cmp });
}

function __ab_logic(site, op, a, right) {
  if (!isLifted(a)) {
    switch (op) {
      case "&&": return a && right();
      case "||": return a || right();
      case "??": return a ?? right();
    }
  }
  const b = right();
  if (op === "??") return expr(site, "coalesce", { a: asExpr(a, site), b: asExpr(b, site) });
  return pred(site, op === "&&" ? "and" : "or", { a: asPred(a, site), b: asPred(b, site) });
}

function __ab_if(site, test, then, other) {
  if (!isLifted(test)) return test ? then() : other();
  const [yes, no] = [then(), other()];
  if (isValue(yes) && isValue(no)) {
    return expr(site, "if", { cond: asPred(test, site), then: asExpr(yes, site), else: asExpr(no, site) });
  }
  return fault(
    "the condition is known only when a request comes; JavaScript has run by then",
    "to choose between rows write `rows.if({ pred, then, else })`",
    site,
  );
}

/** Whether it can be a part of an expression. */
function isValue(value) {
  return value === null || isLifted(value) || ["number", "string", "boolean"].includes(typeof value);
}

function __ab_unary(site, op, a) {
  if (!isLifted(a)) {
    switch (op) {
      case "!": return !a;
      case "-": return -a;
      case "+": return +a;
    }
  }
  switch (op) {
    case "!": return pred(site, "not", { x: asPred(a, site) });
    case "-": return expr(site, "neg", { x: asExpr(a, site) });
    case "+": return a;
  }
}

function __ab_test(site, value) {
  if (!isLifted(value)) return value;
  if (Token.parts(value).kind === "bad") return false;
  fault(
    "this is known only when a request comes; JavaScript has run by then",
    "to choose between rows write `rows.if({ pred, then, else })`; inside an expression `condition ? a : b`",
    site,
  );
  return false;
}

// The site of the call that is about to happen.
let callSite;

function __ab_at(site, value) {
  callSite = site;
  return value;
}

function takeSite() {
  const site = callSite;
  callSite = undefined;
  return site;
}

const includes = Array.prototype.includes;
Object.defineProperty(Array.prototype, "includes", {
  value: {
    includes(value, ...from) {
      return isLifted(value) ? isIn(undefined, value, this) : Reflect.apply(includes, this, [value, ...from]);
    },
  }.includes,
});
