// Functions of JavaScript that would take an expression for a plain object: for something that is true, that is no
// number, that no list has. Those few that mean something for expressions make one; the others are faults.

/** Puts a function in the place of one of JavaScript's; `make` is given that. */
function replace(owner, name, make) {
  const before = owner[name];
  if (before !== undefined) Object.defineProperty(owner, name, { value: make(before) });
}

// Calls of those that are called like an op have told where they are.
for (const { prototype } of [Array, Set, Map, String]) {
  for (const { name } of job.methods) {
    replace(prototype, name, (before) => ({ [name](...given) {
      takeSite();
      return Reflect.apply(before, this, given);
    } })[name]);
  }
}

// Those that JavaScript decides by what a function says.
const DECIDING = ["filter", "some", "every", "find", "findIndex", "findLast", "findLastIndex"];

const TOGETHER = {
  __proto__: null,
  some: "write `Pred.or(...list.map((x) => ..))`",
  every: "write `Pred.and(...list.map((x) => ..))`",
};

function deciding(name) {
  return (before) => ({ [name](decide, ...rest) {
    if (typeof decide !== "function") return Reflect.apply(before, this, [decide, ...rest]);
    const plain = function (...given) {
      // An expression is there, so that `Boolean` chooses it; but it need not be true.
      const said = decide === Boolean && name in TOGETHER ? given[0] : Reflect.apply(decide, this, given);
      if (!isLifted(said)) return said;
      const choose = "choose rows with the `filter` op; to leave out what is not there, write `list.filter(Boolean)`";
      if (!isBad(said)) fault(UNKNOWN, TOGETHER[name] ?? choose);
      return false;
    };
    return Reflect.apply(before, this, [plain, ...rest]);
  } })[name];
}

for (const owner of [Array.prototype, globalThis.Iterator?.prototype ?? {}]) {
  for (const name of DECIDING) replace(owner, name, deciding(name));
}

// Those that look for a value: every mention of a key is one of its own, and what it stands for is not known.
function finding(name, missing) {
  return (before) => ({ [name](value, ...rest) {
    const found = Reflect.apply(before, this, [value, ...rest]);
    if (found !== missing) return found;
    const within = Array.isArray(this) ? this.find(isLifted) : undefined;
    if (!isLifted(value) && within === undefined) return found;
    if (isBad(value) || isBad(within)) return BAD;
    const help = "for what a row or request brings write `x in [1, 2]`, or `condition ? a : b` for each case";
    return fault(`\`${name}\` looks for an expression, and not for what it will be`, help);
  } })[name];
}

replace(Array.prototype, "includes", finding("includes", false));
replace(Array.prototype, "includes", (before) => ({ includes(value, ...from) {
  return isLifted(value) ? isIn(undefined, value, this) : Reflect.apply(before, this, [value, ...from]);
} }).includes);
for (const name of ["indexOf", "lastIndexOf"]) replace(Array.prototype, name, finding(name, -1));
for (const { prototype } of [Map, Set, WeakMap, WeakSet]) {
  replace(prototype, "has", finding("has", false));
  replace(prototype, "get", finding("get", undefined));
}

// Those that say what a value is.
function asking(name) {
  return (before) => ({ [name](...values) {
    if (!values.some(isLifted)) return before(...values);
    if (values.some(isBad)) return BAD;
    return fault(`\`${name}\` takes plain values, and this is an expression`);
  } })[name];
}

for (const name of ["isFinite", "isInteger", "isNaN", "isSafeInteger"]) replace(Number, name, asking(name));
replace(Object, "is", asking("is"));

// `Boolean(x)` is `!!x`; `list.filter(Boolean)` leaves out what is not there, and an expression is.
replace(globalThis, "Boolean", (before) => new Proxy(before, {
  apply(target, self, values) {
    return values.length === 1 && isLifted(values[0]) ? new Token(asPred(values[0])) : Reflect.apply(target, self, values);
  },
}));
replace(Boolean.prototype, "constructor", () => Boolean);
