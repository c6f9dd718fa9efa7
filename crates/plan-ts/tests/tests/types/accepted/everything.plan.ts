import { type Fallback, AnyKey, Context, CandidateSet, Expr, Plan, definePlan } from "anabranch";
import { E as Built, Pred } from "@ranking-dsl/generated";
import { WEIGHT, scored } from "./scoring.fragment";

const redis: Endpoint<"redis"> = EP.redis.redis_default;
const recent: Fallback = { stale: { maxAgeMs: 60_000 } };
const order: AnyKey = Key.score;
const half = Key.score / 2;
const local = Key.country == "US" || Key.country == Key.title || Key.country === P.muted;

function expressions(rows: CandidateSet): CandidateSet {
  const numbers: (number | null)[] = [
    Key.id + 1 - Key.author * WEIGHT,
    (-Key.score) ** 2 + +half,
    Key.author ?? 0,
    coalesce(P.weight, Key.score, 0.5) * coalesce(Key.author, null),
    Key.seen ? Key.score : null,
    Key.author == null ? 0 : Key.author,
    min(Key.score, 1, half) + max(Key.score, 0) + abs(Key.score) + log(Key.score) + exp(half) + pow(half, 2),
    clamp(Key.score, 0, P.limit),
    Key["odd-name"] * 2,
  ];
  const strings = [coalesce(Key.country, "nowhere"), lower(Key.title), upper(coalesce(Key.title, Key.country))];
  const booleans = [coalesce(Key.seen, false), Key.score > 0.5, P.explore];
  rows = numbers.reduce<CandidateSet>((rows, expr) => rows.vm({ outKey: Key.score, expr }), rows);
  rows = strings.reduce<CandidateSet>((rows, expr) => rows.vm({ outKey: Key.title, expr }), rows);
  return booleans.reduce<CandidateSet>((rows, expr) => rows.vm({ outKey: Key.seen, expr }), rows);
}

function predicates(rows: CandidateSet): CandidateSet {
  const all: boolean[] = [
    true,
    Key.seen,
    !Key.seen && P.explore,
    local && !(half > 3),
    Key.author == Key.id && Key.author != 3 && Key.score === P.weight,
    Key.country != null || null == Key.title,
    Key.country in ["US", "CA"] || Key.id in [1, 2] || ["US", "CA"].includes(Key.country) || [1].includes(Key.id),
    regex(Key.title, "^a", "i") || regex(lower(Key.title), P.muted),
    half < 3 && half <= 3 && half >= P.limit && Key.country < Key.title,
    Key.id / 2 == 1 ? Key.seen : P.explore,
    coalesce(Key.seen, false),
    Pred.regex(Key.title, P.muted, "i"),
    Pred.and(Pred.or(Key.seen, true), Pred.not(local), Pred.constBool(true)),
    Pred.in(Key.country, ["US"]) && Pred.in(Key.id, [1]) && Pred.isNull(Key.seen) && Pred.notNull(half),
    Pred.cmp("!=", Built.if(local, Key.score, Built.constNull()), Built.const(3)),
    Pred.cmp("==", Built.key(Key.country), Built.const("x")),
  ];
  return all.reduce<CandidateSet>((rows, pred) => rows.filter({ pred }), rows);
}

const built: Expr<number> = Built.add(
  Built.sub(Built.key(Key.id), Built.param(P.weight)),
  Built.mul(Built.div(Key.score, 2), Built.neg(Built.min(Key.score, Built.abs(half)))),
);

function sources(ctx: Context): readonly CandidateSet[] {
  ctx.requireCapability("cap.rfc.0001.extensions_capabilities.v1", {});
  const viewer = ctx.viewer({ endpoint: redis, trace: null, timeoutMs: 20, fallback: "pass" });
  const lists = [
    viewer.follow({ endpoint: redis }),
    viewer.core.recommendation({ endpoint: redis, fanout: 10, fallback: ["empty"] }),
    viewer.media({ endpoint: redis, fallback: [recent, "empty"] }),
    viewer.fanout({ endpoint: EP.http["catalogue-api"], key: "top:{id}", kind: "scored", scoreKey: Key.score }),
    ctx.candidates(),
    ctx.candidates({ columns: [Key.score, "title"] }),
    ctx.test.fixedSource(),
    ctx.test.fixedSource({ rowCount: 3 }).test.sleep({ durationMs: 1 }).test.busyCpu({ busyWaitMs: 1 }),
  ];
  return lists;
}

const plan: Plan = definePlan({
  name: "everything",
  deadlineMs: 150,
  nodeTimeoutMs: 100,
  build(ctx) {
    const [first = ctx.core.viewer({ endpoint: redis }), ...others] = sources(ctx);
    const rows = predicates(expressions(first.union({ with: others, dedupe: false })))
      .lookup({
        endpoint: redis,
        key: "post:{id}",
        fields: [Key.title, "seen", { name: "written_by", key: Key.author }],
        overwrite: true,
        fallback: { default: { title: "", author: 0, seen: false } },
      })
      .fill({ keys: [Key.author, "score"], value: 0 })
      .boost({ outKey: Key.score, pred: local, factor: 1.5, add: 1 })
      .model({
        outKey: Key.score,
        kind: "linear",
        model: { intercept: 0, weights: { id: 1 } },
        features: { id: Key.id },
        range: { score: [0, 1] },
        extensions: { "cap.rfc.0001.extensions_capabilities.v1": {} },
      })
      .dedupe()
      .mine.everyKind()
      ["my-own"]["2nd"]()
      .byColumn({ by: Key.score })
      .byOrNot({})
      .groupLimit({ key: Key.author, count: 2 })
      .timeout({ timeoutMs: 90, fallback: first });
    const mixed = rows
      .join({ with: first, kind: "left", on: Key.author, onRight: Key.id, columns: [Key.country], overwrite: true })
      .if({ pred: P.explore && P.weight > 0, then: rows, else: first })
      .if({ on: first, pred: Key.country == "US" && P.explore, then: rows })
      .concat({ rhs: scored(first, Key.score, local) });
    console.log("mixed", mixed, [1, { two: Key.score }]);
    return {
      best: mixed.sort({ by: order, order: "desc" }).take({ count: 10 * WEIGHT, id: "best" }),
      page: mixed
        .sort({ by: [Key.country, { key: Key.score, order: "desc" }, { key: Key.author }] })
        .take({ count: 10, offset: 20 })
        .select({ columns: [Key.title, "score"] }),
      "the top": mixed.topk({ by: [Key.score], count: 5, offset: 1 }).vm({ outKey: Key.score, expr: built }),
    };
  },
});

export default plan;
