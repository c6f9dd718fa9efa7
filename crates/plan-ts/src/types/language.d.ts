declare namespace Anabranch {
  // What stands for a value that is known only when a request comes is a number, string or boolean to the type checker,
  // so that operators work on it, with a mark that tells it from a value that is known now.
  const role: unique symbol;
  const kind: unique symbol;

  type Scalar = number | string | boolean;
  /** A column, `Key.name`. */
  type Column<T extends Scalar = Scalar> = T & { readonly [role]: "key" | "value" };
  /** A column of features, which can be named but not computed with. */
  type FeatureBundle = { readonly [role]: "key" };
  /** Any `Key.name`. */
  type AnyKey = { readonly [role]: "key" | "value" };
  /** A key to sort by, or several: rows that are equal in the first are sorted by the next. */
  type SortKeys = AnyKey | readonly (AnyKey | { readonly key: AnyKey; readonly order?: "asc" | "desc" })[];
  /** A parameter of the request, `P.name`. */
  type Param<T extends Scalar = Scalar> = T & { readonly [role]: "parameter" | "value" };
  /** A parameter of the request that is a list, `P.name`: ask for its items with `x in P.name` or `P.name.includes(x)`. */
  interface ListParam<T extends number | string = number | string> {
    readonly [role]: "list";
    /** Whether `x` is one of its items; false if either is null. */
    includes(x: T | null): Pred;
  }
  /** What is computed for each row. Parameters of functions need not say so: `number`, `string`, `boolean` will do. */
  type Expr<T extends Scalar = Scalar> = T & { readonly [role]: "expression" | "value" };
  /** What holds for a row or does not. Parameters of functions need not say so: `boolean` will do. */
  type Pred = Expr<boolean>;
  /** What is known now: no key, parameter or expression. */
  type Plain<T extends Scalar> = T & { readonly [role]?: never };
  type Kind<T> = T extends number ? number : T extends string ? string : boolean;
  /** JSON, in which keys may stand for their names. */
  type Json = null | Scalar | AnyKey | readonly Json[] | { readonly [name: string]: Json | undefined };

  /** A store that rows come from, `EP.kind.name`. */
  interface Endpoint<K extends EndpointKind = EndpointKind> {
    readonly [kind]: K;
  }
  type EndpointKind = "redis" | "http";

  /** What stands in for rows that are not there in time. */
  type Fallback =
    | "fail"
    | "empty"
    | "pass"
    | { readonly default: Defaults }
    | { readonly stale: { readonly maxAgeMs: Plain<number>; readonly minKnown?: Plain<number> } }
    | CandidateSet;
  type Defaults = {
    readonly [N in keyof Keys as Keys[N] extends Column ? N : never]?: Plain<Kind<Keys[N]>>;
  };
  type Ranges = {
    readonly [N in keyof Keys as Keys[N] extends Column<number> ? N : never]?: readonly [
      least: Plain<number>,
      most: Plain<number>,
    ];
  };

  /** Options that every op takes. */
  interface NodeOptions {
    /** The node's id in the plan, instead of one that is made up. */
    readonly id?: Plain<string>;
    /** A word that marks the node in traces. */
    readonly trace?: Plain<string> | null;
    /** Payloads of extensions, by capability. */
    readonly extensions?: { readonly [C in Capability]?: Json };
    /** How long it may take, in milliseconds. */
    readonly timeoutMs?: Plain<number>;
    /** What stands in if it fails or takes too long: one, or up to four that are tried in turn. Without: the request fails. */
    readonly fallback?: Fallback | readonly Fallback[];
    /** Between what the values of a column lie, whoever makes them: `{ score: [0, 1] }`. */
    readonly range?: Ranges;
  }

  /** A plan, as `definePlan` makes it. */
  interface Plan {
    readonly name: string;
  }
  /** The rows of the answer: of one output, of several, or of several with names. */
  type Outputs = CandidateSet | readonly CandidateSet[] | { readonly [name: string]: CandidateSet };
  interface PlanOptions {
    /** The plan's name, as in the name of its file. */
    readonly name: Plain<string>;
    /** Says where rows come from and what becomes of them. Runs once, when the plan is built. */
    readonly build: (ctx: Context) => Outputs;
    /** How long an answer may take, in milliseconds, if the request does not say. */
    readonly deadlineMs?: Plain<number>;
    /** How long each node may take, in milliseconds. */
    readonly nodeTimeoutMs?: Plain<number>;
  }
  /** Makes a plan; each plan file does so once: `export default definePlan({ ... })`. */
  function definePlan(plan: PlanOptions): Plan;

  /** The columns. */
  const Key: Keys;
  /** The parameters that requests may set. */
  const P: Params;
  /** The endpoints, by kind. */
  const EP: Endpoints;
  /** Expressions, written as calls; operators make the same. */
  const E: Expressions;
  /** Predicates, written as calls; operators make the same. */
  const Pred: Predicates;

  /** The first that is not null. */
  function coalesce(a: number | null, b: number | null, ...more: (number | null)[]): Expr<number>;
  function coalesce(a: string | null, b: string | null, ...more: (string | null)[]): Expr<string>;
  function coalesce(a: boolean | null, b: boolean | null, ...more: (boolean | null)[]): Expr<boolean>;
  /** Whether a regular expression matches a part of the text; `"i"` ignores case. */
  function regex(x: string | null, pattern: Plain<string> | Param<string>, flags?: "" | "i"): Pred;
  /** The least. */
  function min(a: number | null, b: number | null, ...more: (number | null)[]): Expr<number>;
  /** The most. */
  function max(a: number | null, b: number | null, ...more: (number | null)[]): Expr<number>;
  /** Without its sign. */
  function abs(x: number | null): Expr<number>;
  /** The natural logarithm; null unless `x` is positive. */
  function log(x: number | null): Expr<number>;
  /** `e` to the power of `x`. */
  function exp(x: number | null): Expr<number>;
  /** `a` to the power of `b`, as `a ** b`. */
  function pow(a: number | null, b: number | null): Expr<number>;
  /** `x`, but at least `lo` and at most `hi`. */
  function clamp(x: number | null, lo: number | null, hi: number | null): Expr<number>;
  /** The greatest whole number that is not above `x`. */
  function floor(x: number | null): Expr<number>;
  /** The least whole number that is not below `x`. */
  function ceil(x: number | null): Expr<number>;
  /** The nearest whole number; halves go away from 0. */
  function round(x: number | null): Expr<number>;
  /** The remainder of `a / b`, as `a % b`: it has the sign of `a`, and is null if `b` is 0. */
  function mod(a: number | null, b: number | null): Expr<number>;
  /** The time of the request, in seconds since 1970. */
  function now(): Expr<number>;
  /** A whole number from 0 to 2^53 - 1 that looks random: always the same for a seed and a value. */
  function hash(seed: Plain<number>, x: number | string | null): Expr<number>;
  /** The number of characters of a string. */
  function length(x: string | null): Expr<number>;
  /** In lower case. */
  function lower(x: string | null): Expr<string>;
  /** In upper case. */
  function upper(x: string | null): Expr<string>;

  interface Expressions {
    /** A value that is known now. */
    const<T extends Scalar>(value: T): Expr<Kind<T>>;
    /** No value. */
    constNull(): null;
    /** The column. */
    key<K extends Column>(key: K): Expr<Kind<K>>;
    /** The parameter. */
    param<N extends Param>(param: N): Expr<Kind<N>>;
    /** `a + b` */
    add(a: number | null, b: number | null): Expr<number>;
    /** `a - b` */
    sub(a: number | null, b: number | null): Expr<number>;
    /** `a * b` */
    mul(a: number | null, b: number | null): Expr<number>;
    /** `a / b`; null if `b` is 0. */
    div(a: number | null, b: number | null): Expr<number>;
    /** `-x` */
    neg(x: number | null): Expr<number>;
    abs: typeof abs;
    log: typeof log;
    exp: typeof exp;
    pow: typeof pow;
    min: typeof min;
    max: typeof max;
    coalesce: typeof coalesce;
    clamp: typeof clamp;
    floor: typeof floor;
    ceil: typeof ceil;
    round: typeof round;
    mod: typeof mod;
    now: typeof now;
    hash: typeof hash;
    length: typeof length;
    lower: typeof lower;
    upper: typeof upper;
    /** `pred ? a : b` */
    if(pred: boolean, a: number | null, b: number | null): Expr<number>;
    if(pred: boolean, a: string | null, b: string | null): Expr<string>;
    if(pred: boolean, a: boolean | null, b: boolean | null): Expr<boolean>;
  }

  type Comparison = "==" | "!=" | "<" | "<=" | ">" | ">=";
  interface Predicates {
    /** Always, or never. */
    constBool(value: Plain<boolean>): Pred;
    /** `a && b` */
    and(a: boolean, b: boolean, ...more: boolean[]): Pred;
    /** `a || b` */
    or(a: boolean, b: boolean, ...more: boolean[]): Pred;
    /** `!x` */
    not(x: boolean): Pred;
    /** `a < b` and so on. */
    cmp(op: Comparison, a: number | null, b: number | null): Pred;
    cmp(op: Comparison, a: string | null, b: string | null): Pred;
    cmp(op: Comparison, a: boolean | null, b: boolean | null): Pred;
    /** Whether `x` is one of these: `x in [1, 2]`, `[1, 2].includes(x)`. */
    in(x: number | null, list: readonly Plain<number>[] | ListParam<number>): Pred;
    in(x: string | null, list: readonly Plain<string>[] | ListParam<string>): Pred;
    /** `x == null` */
    isNull(x: Scalar | null): Pred;
    /** `x != null` */
    notNull(x: Scalar | null): Pred;
    regex: typeof regex;
  }
}
