// Operators, as rewritten code calls them: native for plain values, and making expressions of tokens.

const ARITHMETIC = { __proto__: null, "+": "add", "-": "sub", "*": "mul", "/": "div", "%": "mod", "**": "pow" };

const INDEX = "`in` asks a list of plain values for an index, not for an item";

function native(site, op, a, b) {
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
    case "in": return Array.isArray(b) && typeof a !== "symbol" ? fault(INDEX, "write `list.includes(x)`", site) : a in b;
  }
}

function __ab_get(site, object, name) {
  const look = isLifted(object) ? undefined : registries.get(object);
  return look === undefined || typeof name !== "string" ? object[name] : look(name, site);
}

function __ab_op(site, op, a, b) {
  if (!isLifted(a) && !isLifted(b)) return native(site, op, a, b);
  if (isBad(a) || isBad(b)) return BAD;
  if (a === TYPE || b === TYPE) return compareType(site, op, a === TYPE ? b : a);
  if (op in ARITHMETIC) return expr(site, ARITHMETIC[op], { a: asExpr(a, site), b: asExpr(b, site) });
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

const UNKNOWN = "this is known only when a request comes; JavaScript has run by then";

function __ab_test(site, value) {
  if (!isLifted(value)) return value;
  if (isBad(value)) return false;
  const given = ["is_null", "not_null"].includes(Token.parts(value).ir?.op);
  const help = given
    ? "if the question is whether something was given at all, write `typeof x === \"undefined\"`, or `x ?? value`"
    : "to choose between rows write `rows.if({ pred, then, else })`; inside an expression `condition ? a : b`";
  fault(UNKNOWN, help, site);
  return false;
}

// What `typeof` says of an expression. To the type checker it is a number, a string or a boolean, so that no answer but
// that it is something would be true.
const TYPE = new Token({ kind: "type" });

function __ab_typeof(value) {
  return isBad(value) ? BAD : isLifted(value) ? TYPE : typeof value;
}

function compareType(site, op, type) {
  const never = ["undefined", "function", "symbol"].includes(type);
  if (never && (op === "==" || op === "===")) return false;
  if (never && (op === "!=" || op === "!==")) return true;
  return fault("`typeof` cannot tell what an expression will be", "write a function for each kind of values", site);
}

// The site of the call that is about to happen.
let callSite;

function __ab_at(site, value) {
  callSite = isSite(site) ? site : undefined;
  return value;
}

function takeSite() {
  const site = callSite;
  callSite = undefined;
  return site;
}
