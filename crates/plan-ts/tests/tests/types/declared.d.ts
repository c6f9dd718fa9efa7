// Types of plans: keys, parameters, endpoints, ops. Made from the registries by `anabranch plan types`; make it anew
// when they change.

declare namespace Anabranch {
  interface Keys {
    /** What the row stands for. `int`, plans may not write it. */
    readonly id: Column<number>;
    /** What the answer is ordered by. `float`. */
    readonly score: Column<number>;
    /**
     * Who wrote it: *\/ the end of a comment does no harm, nor does a long text, which is broken into lines
     * that fit on a page. `int`, may be null.
     */
    readonly author: Column<number>;
    /** `string`, may be null. */
    readonly country: Column<string>;
    /** `string`, may be null. */
    readonly title: Column<string>;
    /** `bool`, may be null. */
    readonly seen: Column<boolean>;
    /**
     * What score was called. `float`, may be null, plans may not write it.
     * @deprecated Use `Key.score`.
     */
    readonly rank: Column<number>;
    /** Feature bundle, may be null. */
    readonly features: FeatureBundle;
    /** `int`, may be null. */
    readonly "odd-name": Column<number>;
  }

  interface Params {
    /** What an id is worth. `float`, null if not set. */
    readonly weight: Param<number>;
    /** `bool`, true if not set. */
    readonly explore: Param<boolean>;
    /** `string`, `^$` if not set. */
    readonly muted: Param<string>;
    /** `int`, 10 if not set. */
    readonly limit: Param<number>;
  }

  interface Endpoints {
    readonly http: {
      /** `ep_0002` */
      readonly "catalogue-api": Endpoint<"http">;
    };
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
    /** Does something. */
    allRows(options?: AllRowsOptions): CandidateSet;
  }

  /** What a plan begins with: ops that need no rows. */
  interface Context extends CoreSources {
    readonly core: CoreSources;
    /** Requires an extension. */
    requireCapability(id: Capability, payload?: Json): void;
  }

  interface CoreOps {
    /** Does something. */
    everyKind(options: EveryKindOptions): CandidateSet;
    /** Does something. */
    byColumn(options: ByColumnOptions): CandidateSet;
    /** Does something. */
    byOrNot(options?: ByOrNotOptions): CandidateSet;
  }

  interface MineOps {
    /** Does something. */
    everyKind(options?: MineEveryKindOptions): CandidateSet;
  }

  interface MyOwnOps {
    /** Does something. */
    "2nd"(options?: MyOwn2ndOptions): CandidateSet;
  }

  /** Rows, and what can be made of them. Each method makes new ones; these stay as they are. */
  interface CandidateSet extends CoreOps {
    readonly core: CoreOps;
    readonly mine: MineOps;
    readonly "my-own": MyOwnOps;
    readonly [kind]: "rows";
  }

  /** Options of `allRows`. */
  interface AllRowsOptions extends NodeOptions {
    /** The most. From 1 to 9. 100 if not given. */
    readonly fanout?: Plain<number>;
  }

  /** Options of `everyKind`. */
  interface EveryKindOptions extends NodeOptions {
    /** How many. From 1 to 9. */
    readonly count: Plain<number>;
    /** From where. At least 0. */
    readonly least?: Plain<number>;
    /** Which. */
    readonly anyInt?: Plain<number>;
    /** How much. */
    readonly share?: Plain<number>;
    /** Whether it says so. */
    readonly loud?: Plain<boolean>;
    /** What it says. */
    readonly label?: Plain<string>;
    /** Which way. */
    readonly way?: "up" | "\"down\"";
    /** Where to. */
    readonly outKey?: AnyKey;
    /** Whose. */
    readonly other?: CandidateSet;
    /** Whose. */
    readonly others?: readonly CandidateSet[];
    /** Where from. */
    readonly endpoint?: Endpoint;
    /** What. */
    readonly expr?: Scalar | null;
    /** When. */
    readonly pred?: boolean;
    readonly extra?: Json;
  }

  /** Options of `byColumn`. */
  type ByColumnOptions = NodeOptions & {
    /** How many. From 1 to 9. */
    readonly count?: Plain<number>;
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

  /** Options of `byOrNot`. */
  type ByOrNotOptions = NodeOptions & (
    | {
      /** The column. */
      readonly by?: AnyKey;
      readonly key?: never;
    }
    | {
      /** The column. */
      readonly key?: AnyKey;
      readonly by?: never;
    }
  );

  /** Options of `everyKind`. */
  interface MineEveryKindOptions extends NodeOptions {}

  /** Options of `2nd`. */
  interface MyOwn2ndOptions extends NodeOptions {}
}

// (what is the same for all)

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
