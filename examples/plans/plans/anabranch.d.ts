// Types of plans: keys, parameters, endpoints, ops. Made from the registries by `anabranch plan types`; make it anew
// when they change.

declare namespace Anabranch {
  interface Keys {
    /** What the row stands for: a user or a post. `int`, plans may not write it. */
    readonly id: Column<number>;
    /** How many people liked the post. `int`, may be null. */
    readonly likes: Column<number>;
    /** How old the post is. `float`, may be null. */
    readonly age_hours: Column<number>;
    /** The id of the user who wrote the post. `int`, may be null. */
    readonly author: Column<number>;
    /** What the answer is ordered by. `float`. */
    readonly score: Column<number>;
    /** The logarithm of the likes. `float`. */
    readonly popularity: Column<number>;
    /** Where the user lives. `string`, may be null. */
    readonly country: Column<string>;
    /** What the post is about. `string`, may be null. */
    readonly topic: Column<string>;
    /** The post's title. `string`, may be null. */
    readonly title: Column<string>;
  }

  interface Params {
    /** What an hour of age costs a post. `float`, 0.04 if not set. */
    readonly freshness: Param<number>;
    /** A regular expression: posts whose topic it matches are left out. `string`, `^$` if not set. */
    readonly muted: Param<string>;
    /** Whether to mix in posts of people that the viewer does not follow. `bool`, true if not set. */
    readonly explore: Param<boolean>;
    /**
     * What an id counts in the score of the small examples; each has a value of its own for requests that set
     * none. `float`, null if not set.
     */
    readonly weight: Param<number>;
  }

  interface Endpoints {
    readonly redis: {
      /** `ep_0001` */
      readonly redis_default: Endpoint<"redis">;
    };
  }

  /** Extensions that plans may require. */
  type Capability = "cap.rfc.0001.extensions_capabilities.v1";
}

declare namespace Anabranch {
  interface CoreSources {
    /**
     * The `candidates` of the request, with those of their columns that are listed here. A listed column that
     * the request does not bring is null, or has its key's default.
     */
    candidates(options?: CandidatesOptions): CandidateSet;
    /** One row, the user of the request, with the `country` of the hash `user:{id}`. */
    viewer(options: ViewerOptions): CandidateSet;
  }

  interface TestSources {
    /** Rows with the ids 1, 2, 3 and so on. */
    fixedSource(options?: TestFixedSourceOptions): CandidateSet;
  }

  /** What a plan begins with: ops that need no rows. */
  interface Context extends CoreSources {
    readonly core: CoreSources;
    readonly test: TestSources;
    /** Requires an extension. */
    requireCapability(id: Capability, payload?: Json): void;
  }

  interface CoreOps {
    /** The ids on the list `follow:{id}` of each row, with the `country` of the hash `user:{id}`. */
    follow(options: FollowOptions): CandidateSet;
    /** The ids on the list `recommendation:{id}` of each row, with the `country` of the hash `user:{id}`. */
    recommendation(options: RecommendationOptions): CandidateSet;
    /** The ids on the list `media:{id}` of each row. */
    media(options: MediaOptions): CandidateSet;
    /** Adds columns to the rows: fields of the hash whose key a pattern makes of each row. */
    lookup(options: LookupOptions): CandidateSet;
    /** The ids on the list whose key a pattern makes of each row, and fields of theirs. */
    fanout(options: FanoutOptions): CandidateSet;
    /** Writes the value of an expression, for each active row, to a column. */
    vm(options: VmOptions): CandidateSet;
    /** Keeps the rows for which a predicate holds. */
    filter(options: FilterOptions): CandidateSet;
    /**
     * Sorts by one column, or by several: rows that are equal in the first are sorted by the next. Rows that
     * are equal in all keep their order; nulls are last either way.
     */
    sort(options: SortOptions): CandidateSet;
    /** Keeps the first rows, after those that it skips. */
    take(options: TakeOptions): CandidateSet;
    /**
     * Keeps these columns and leaves out all others; ids always stay. Before an output it decides which
     * columns the answer has.
     */
    select(options: SelectOptions): CandidateSet;
    /** The rows of its input and then those of `rhs`, with the columns of both. */
    concat(options: ConcatOptions): CandidateSet;
    /**
     * The first rows of those sorted by one or several columns, after those that it skips. Rows that are
     * equal in all columns keep their order; nulls are last either way.
     */
    topk(options: TopkOptions): CandidateSet;
    /**
     * The rows of its input and then those of the nodes `with`, with the columns of all; of rows with the
     * same id the first.
     */
    union(options: UnionOptions): CandidateSet;
    /** Keeps one row for each value of a column, in order; rows without a value are all kept. */
    dedupe(options?: DedupeOptions): CandidateSet;
    /** Keeps the first rows of each value of a column, in order; rows without a value are all kept. */
    groupLimit(options: GroupLimitOptions): CandidateSet;
    /**
     * Matches the rows of its input, in their order, with those of `with` that have the same value; null
     * matches nothing.
     */
    join(options: JoinOptions): CandidateSet;
    /** Writes the score that a trained model gives each active row to a column. */
    model(options: ModelOptions): CandidateSet;
    /**
     * Multiplies a column by `factor` and adds `add` to it, in the active rows for which a predicate holds;
     * nulls stay null.
     */
    boost(options: BoostOptions): CandidateSet;
    /** Puts a value into columns where an active row has none; makes columns that are missing. */
    fill(options: FillOptions): CandidateSet;
    /**
     * The rows of `then` if a predicate holds for the request, otherwise those of `else`. The predicate reads
     * parameters and, with `on`, the columns of one row; without such a row it does not hold.
     */
    if(options: IfOptions): CandidateSet;
    /**
     * The rows of its input, or what its `fallback` says if the nodes that run for them alone are not done in
     * time.
     */
    timeout(options?: TimeoutOptions): CandidateSet;
  }

  interface TestOps {
    /** Gives back its input after a while, or fails then. */
    sleep(options: TestSleepOptions): CandidateSet;
    /** Gives back its input after keeping a core busy for a while. */
    busyCpu(options: TestBusyCpuOptions): CandidateSet;
  }

  /** Rows, and what can be made of them. Each method makes new ones; these stay as they are. */
  interface CandidateSet extends CoreOps {
    readonly core: CoreOps;
    readonly test: TestOps;
    readonly [kind]: "rows";
  }

  /** Options of `candidates`. */
  interface CandidatesOptions extends NodeOptions {
    /** The keys of the columns; only the ids if not given. */
    readonly columns?: Json;
  }

  /** Options of `viewer`. */
  interface ViewerOptions extends NodeOptions {
    /** Where users are kept. */
    readonly endpoint: Endpoint<"redis">;
  }

  /** Options of `fixedSource`. */
  interface TestFixedSourceOptions extends NodeOptions {
    /** How many; 1 if not given. From 0 to 10000000. */
    readonly rowCount?: Plain<number>;
  }

  /** Options of `follow`. */
  interface FollowOptions extends NodeOptions {
    /** Where lists and users are kept. */
    readonly endpoint: Endpoint<"redis">;
    /** The most ids of a list. From 1 to 4294967295. 100 if not given. */
    readonly fanout?: Plain<number>;
  }

  /** Options of `recommendation`. */
  interface RecommendationOptions extends NodeOptions {
    /** Where lists and users are kept. */
    readonly endpoint: Endpoint<"redis">;
    /** The most ids of a list. From 1 to 4294967295. 100 if not given. */
    readonly fanout?: Plain<number>;
  }

  /** Options of `media`. */
  interface MediaOptions extends NodeOptions {
    /** Where lists are kept. */
    readonly endpoint: Endpoint<"redis">;
    /** The most ids of a list. From 1 to 10000. 100 if not given. */
    readonly fanout?: Plain<number>;
  }

  /** Options of `lookup`. */
  interface LookupOptions extends NodeOptions {
    /** Where the hashes are kept. */
    readonly endpoint: Endpoint;
    /** The key of a row's hash, as in `user:{id}`. */
    readonly key: Plain<string>;
    /** What to read: names of fields that are names of keys, or {"name": field, "key": key}. */
    readonly fields: Json;
    /** Whether it may replace columns; no if not given. */
    readonly overwrite?: Plain<boolean>;
  }

  /** Options of `fanout`. */
  interface FanoutOptions extends NodeOptions {
    /** Where the lists are kept. */
    readonly endpoint: Endpoint;
    /** The key of a row's list, as in `follow:{id}`. */
    readonly key: Plain<string>;
    /** The most ids of a list. From 1 to 4294967295. 100 if not given. */
    readonly limit?: Plain<number>;
    /** A list, or a sorted set from its highest score down; `list` if not given. */
    readonly kind?: "list" | "scored";
    /** The float column for the scores. */
    readonly scoreKey?: AnyKey;
    /** The int column for the id of the row it came from. */
    readonly parentKey?: AnyKey;
    /** Fields of the new rows, as for core::lookup. */
    readonly fields?: Json;
    /** The key of a new row's hash, as in `user:{id}`. */
    readonly fieldsKey?: Plain<string>;
  }

  /** Options of `vm`. */
  interface VmOptions extends NodeOptions {
    /** The column to write. */
    readonly outKey: AnyKey;
    /** The expression. */
    readonly expr: Scalar | null;
  }

  /** Options of `filter`. */
  interface FilterOptions extends NodeOptions {
    /** The predicate. */
    readonly pred: boolean;
  }

  /** Options of `sort`. */
  type SortOptions = NodeOptions & {
    /** Which way, for columns that do not say; `asc` if not given. */
    readonly order?: "asc" | "desc";
  } & (
    | {
      /** The column to sort by, or several, each with its order. */
      readonly by: SortKeys;
      readonly key?: never;
    }
    | {
      /** The column to sort by, or several, each with its order. */
      readonly key: SortKeys;
      readonly by?: never;
    }
  );

  /** Options of `take`. */
  interface TakeOptions extends NodeOptions {
    /** How many rows to keep. At least 1. */
    readonly count: Plain<number>;
    /** How many rows to skip; 0 if not given. At least 0. */
    readonly offset?: Plain<number>;
  }

  /** Options of `select`. */
  interface SelectOptions extends NodeOptions {
    /** The keys of the columns that stay. */
    readonly columns: Json;
  }

  /** Options of `concat`. */
  interface ConcatOptions extends NodeOptions {
    /** The node whose rows come last. */
    readonly rhs: CandidateSet;
  }

  /** Options of `topk`. */
  type TopkOptions = NodeOptions & {
    /** How many rows to keep. At least 1. */
    readonly count: Plain<number>;
    /** How many rows to skip; 0 if not given. At least 0. */
    readonly offset?: Plain<number>;
    /** Which way, for columns that do not say; `desc` if not given. */
    readonly order?: "asc" | "desc";
  } & (
    | {
      /** The column to sort by, or several, each with its order. */
      readonly by: SortKeys;
      readonly key?: never;
    }
    | {
      /** The column to sort by, or several, each with its order. */
      readonly key: SortKeys;
      readonly by?: never;
    }
  );

  /** Options of `union`. */
  interface UnionOptions extends NodeOptions {
    /** The nodes whose rows come after, in this order. */
    readonly with: readonly CandidateSet[];
    /** Whether each id comes once; yes if not given. */
    readonly dedupe?: Plain<boolean>;
  }

  /** Options of `dedupe`. */
  type DedupeOptions = NodeOptions & {
    /** Which of equal rows stays, where it stands; `first` if not given. */
    readonly keep?: "first" | "last";
  } & (
    | {
      /** The column; the ids if not given. */
      readonly by?: AnyKey;
      readonly key?: never;
    }
    | {
      /** The column; the ids if not given. */
      readonly key?: AnyKey;
      readonly by?: never;
    }
  );

  /** Options of `groupLimit`. */
  type GroupLimitOptions = NodeOptions & {
    /** The most rows of a value. At least 1. */
    readonly count: Plain<number>;
  } & (
    | {
      /** The column. */
      readonly by: AnyKey;
      readonly key?: never;
    }
    | {
      /** The column. */
      readonly key: AnyKey;
      readonly by?: never;
    }
  );

  /** Options of `join`. */
  interface JoinOptions extends NodeOptions {
    /** The node whose rows are matched. */
    readonly with: CandidateSet;
    /** A row for each match; the same and rows that match nothing; rows that match; rows that do not. */
    readonly kind: "inner" | "left" | "semi" | "anti";
    /** The input's column to match by; the ids if not given. */
    readonly on?: AnyKey;
    /** The column of `with`; that of `on` if not given. */
    readonly onRight?: AnyKey;
    /** Keys, by name or number, to bring from `with`; all it has if not given. */
    readonly columns?: Json;
    /** Whether they may replace columns; no if not given. */
    readonly overwrite?: Plain<boolean>;
  }

  /** Options of `model`. */
  interface ModelOptions extends NodeOptions {
    /** The float column to write. */
    readonly outKey: AnyKey;
    /** Weights; trees of a LightGBM text file; trees of an XGBoost JSON file. */
    readonly kind: "linear" | "lightgbm" | "xgboost";
    /** The model's file; relative to the plan's folder. */
    readonly file?: Plain<string>;
    /** A linear model itself: {"intercept": number, "weights": {feature: number}}. */
    readonly model?: Json;
    /** {feature: key, by name or number}; a feature that is not listed is the key of its name. */
    readonly features?: Json;
    /**
     * A null feature makes the score null, counts as 0, or goes where the model sends it; `null` for linear
     * models and `model` for trees if not given.
     */
    readonly missing?: "null" | "zero" | "model";
    /** Of trees: their sum, or what the objective makes of it; `transformed` if not given. */
    readonly output?: "raw" | "transformed";
  }

  /** Options of `boost`. */
  interface BoostOptions extends NodeOptions {
    /** The float column to change. */
    readonly outKey: AnyKey;
    /** The predicate. */
    readonly pred: boolean;
    /** What to multiply by; 1 if not given. */
    readonly factor?: Plain<number>;
    /** What to add then; 0 if not given. */
    readonly add?: Plain<number>;
  }

  /** Options of `fill`. */
  interface FillOptions extends NodeOptions {
    /** The columns: a list of names or numbers of keys. */
    readonly keys: Json;
    /** The value; the registered default of each if not given. */
    readonly value?: Json;
  }

  /** Options of `if`. */
  interface IfOptions extends NodeOptions {
    /** The predicate. */
    readonly pred: boolean;
    /** The node if it holds. */
    readonly then: CandidateSet;
    /** The node if it does not; the input if not given. */
    readonly else?: CandidateSet;
    /** The node whose first row it reads, such as the viewer. */
    readonly on?: CandidateSet;
  }

  /** Options of `timeout`. */
  interface TimeoutOptions extends NodeOptions {}

  /** Options of `sleep`. */
  interface TestSleepOptions extends NodeOptions {
    /** How long it takes. From 0 to 3600000. */
    readonly durationMs: Plain<number>;
    /** Whether it then fails; no if not given. */
    readonly failAfterSleep?: Plain<boolean>;
  }

  /** Options of `busyCpu`. */
  interface TestBusyCpuOptions extends NodeOptions {
    /** How long it takes. From 0 to 3600000. */
    readonly busyWaitMs: Plain<number>;
  }
}

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

// Lines for whoever writes the plan, printed when it is checked, built or run.
interface Console {
  log(...values: unknown[]): void;
  info(...values: unknown[]): void;
  warn(...values: unknown[]): void;
  error(...values: unknown[]): void;
  debug(...values: unknown[]): void;
}
declare var console: Console;

// Everything is there without an import.
import definePlan = Anabranch.definePlan;
import Key = Anabranch.Key;
import P = Anabranch.P;
import EP = Anabranch.EP;
import E = Anabranch.E;
import Pred = Anabranch.Pred;
import coalesce = Anabranch.coalesce;
import regex = Anabranch.regex;
import min = Anabranch.min;
import max = Anabranch.max;
import abs = Anabranch.abs;
import log = Anabranch.log;
import exp = Anabranch.exp;
import pow = Anabranch.pow;
import clamp = Anabranch.clamp;
import lower = Anabranch.lower;
import upper = Anabranch.upper;
import CandidateSet = Anabranch.CandidateSet;
import Context = Anabranch.Context;
import Expr = Anabranch.Expr;
import Endpoint = Anabranch.Endpoint;
import Plan = Anabranch.Plan;
import AnyKey = Anabranch.AnyKey;
import Column = Anabranch.Column;
import Param = Anabranch.Param;
import Fallback = Anabranch.Fallback;
import Json = Anabranch.Json;
import NodeOptions = Anabranch.NodeOptions;

declare module "anabranch" {
  export import definePlan = Anabranch.definePlan;
  export import Key = Anabranch.Key;
  export import P = Anabranch.P;
  export import EP = Anabranch.EP;
  export import E = Anabranch.E;
  export import Pred = Anabranch.Pred;
  export import coalesce = Anabranch.coalesce;
  export import regex = Anabranch.regex;
  export import min = Anabranch.min;
  export import max = Anabranch.max;
  export import abs = Anabranch.abs;
  export import log = Anabranch.log;
  export import exp = Anabranch.exp;
  export import pow = Anabranch.pow;
  export import clamp = Anabranch.clamp;
  export import lower = Anabranch.lower;
  export import upper = Anabranch.upper;
  export import CandidateSet = Anabranch.CandidateSet;
  export import Context = Anabranch.Context;
  export import Expr = Anabranch.Expr;
  export import Endpoint = Anabranch.Endpoint;
  export import Plan = Anabranch.Plan;
  export import AnyKey = Anabranch.AnyKey;
  export import Column = Anabranch.Column;
  export import Param = Anabranch.Param;
  export import Fallback = Anabranch.Fallback;
  export import Json = Anabranch.Json;
  export import NodeOptions = Anabranch.NodeOptions;
}
declare module "@ranking-dsl/runtime" {
  export * from "anabranch";
}
declare module "@ranking-dsl/generated" {
  export * from "anabranch";
}
