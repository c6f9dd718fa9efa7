// `console.log`: lines for whoever writes the plan. They are recorded, and printed when the code has ended.

const MAX_LINES = 200;
const MAX_ITEMS = 20;
const MAX_PRINTED_NESTING = 4;

const printed = [];

/** A value as a line shows it; a text within another value has quotes. */
function written(value, nesting) {
  if (typeof value === "string") return nesting > 0 ? JSON.stringify(value) : value;
  if (Token.parts(value) !== undefined || Receiver.is(value) || typeof value !== "object" || value === null) return shown(value);
  if (nesting >= MAX_PRINTED_NESTING) return "...";
  if (Array.isArray(value)) {
    const items = Array.from(value.slice(0, MAX_ITEMS), (item) => written(item, nesting + 1));
    return `[${items.concat(value.length > MAX_ITEMS ? "..." : []).join(", ")}]`;
  }
  if (!isPlain(value)) return Error.isError(value) ? `${value.name}: ${value.message}` : shown(value);
  const names = Object.keys(value);
  const fields = names.slice(0, MAX_ITEMS).map((name) => `${name}: ${written(value[name], nesting + 1)}`);
  return `{${fields.concat(names.length > MAX_ITEMS ? "..." : []).join(", ")}}`;
}

/** Records a line with its place in the code; lines beyond the bound are not kept. */
function print(...values) {
  if (printed.length > MAX_LINES) return;
  const text = printed.length === MAX_LINES
    ? `more than ${MAX_LINES} lines: the rest is not printed`
    : values.map((value) => written(value, 0)).join(" ");
  printed.push({ text: short(text), stack: position(new Error().stack) });
}

const console = { __proto__: null };
for (const name of ["log", "info", "warn", "error", "debug"]) {
  console[name] = { [name](...values) { print(...values); } }[name];
}
