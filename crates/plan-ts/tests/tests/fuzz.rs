//! Any text as a plan: what the fuzzer in `fuzz/` does, without a fuzzer.

use anabranch_plan_ts::fuzz;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Plans that have a bit of everything.
const PLANS: [&str; 4] = [
    include_str!("../../../../examples/plans/plans/complex_dag.plan.ts"),
    include_str!("../../../../examples/plans/plans/mixed_pipeline.plan.ts"),
    include_str!("../../../../examples/plans/plans/viewer_filter.plan.ts"),
    r#"import { definePlan, E, Pred, type CandidateSet } from "anabranch";
type Weights = { [name: string]: number };
const weights: Weights = { id: 2, score: 1 / 3 };
function scored<T extends CandidateSet>(rows: T, by = Key.id ?? 0): CandidateSet {
    let total = E.const(0) as any;
    for (const name of Object.keys(weights)) total += (Key as any)[name] * weights[name]!;
    return rows.vm({ outKey: Key.score, expr: total > 3 ? total : -by ** 2, trace: `t${1 + 1}` });
}
class Part { readonly rows: number[] = []; private static n = 0; get first() { return this.rows[0]; } }
export default definePlan({
    name: "any",
    build(ctx) {
        const v = ctx.viewer({ endpoint: EP.redis.redis_default });
        const kept = v.filter({ pred: (Key.score >= 1 && !(Key.id in [1, 2])) || regex(Key.country, "^d", "i") });
        const rest = [1, 2].map((n) => scored(kept).take({ count: n * 10 }));
        if (rest.length > 5) throw new Error("never");
        return [...rest, v.test.sleep({ durationMs: 1 })];
    },
});
"#,
];

/// Pieces that code is made of.
const PIECES: [&str; 48] = [
    "definePlan(",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ",",
    ";",
    ":",
    "=>",
    "=",
    "\n",
    " ",
    "Key",
    ".id",
    "P.weight",
    "EP.redis",
    ".redis_default",
    "ctx",
    "rows",
    ".viewer({})",
    ".take({ count: 1 })",
    "build",
    "name",
    "return ",
    "const x",
    "let ",
    "class A ",
    "extends ",
    "function* f",
    "async ",
    "await ",
    "yield ",
    "...",
    "?.",
    " ? ",
    " as ",
    "<T>",
    "!",
    "??=",
    "&&",
    " in ",
    "`${",
    "`",
    "\"s\"",
    "/r/i",
    "1e3",
];

/// A change: a piece put in, or a stretch cut out, doubled or moved.
#[derive(Clone, Debug)]
enum Change {
    Piece(Index, &'static str),
    Cut(Index, usize),
    Doubled(Index, usize),
    Moved(Index, Index, usize),
}

fn change() -> impl Strategy<Value = Change> {
    let at = any::<Index>;
    prop_oneof![
        (at(), select(PIECES.to_vec())).prop_map(|(at, piece)| Change::Piece(at, piece)),
        (at(), 1usize..30).prop_map(|(at, length)| Change::Cut(at, length)),
        (at(), 1usize..60).prop_map(|(at, length)| Change::Doubled(at, length)),
        (at(), at(), 1usize..40).prop_map(|(from, to, length)| Change::Moved(from, to, length)),
    ]
}

fn changed(text: String, change: &Change) -> String {
    let letters: Vec<char> = text.chars().collect();
    let place = |at: &Index| at.index(letters.len() + 1);
    let after = |at: &Index, length: usize| (place(at) + length).min(letters.len());
    // What is before, what is put in, and where the text goes on.
    let (before, new, on): (usize, Vec<char>, usize) = match change {
        Change::Piece(at, piece) => (place(at), piece.chars().collect(), place(at)),
        Change::Cut(at, length) => (place(at), Vec::new(), after(at, *length)),
        Change::Doubled(at, length) => {
            (after(at, *length), letters[place(at)..after(at, *length)].to_vec(), after(at, *length))
        }
        Change::Moved(from, to, length) => {
            (place(to), letters[place(from)..after(from, *length)].to_vec(), place(to))
        }
    };
    letters[..before].iter().chain(&new).chain(&letters[on..]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn changed_plans_are_made_or_told(plan in select(PLANS.to_vec()), changes in prop::collection::vec(change(), 0..6)) {
        fuzz::any(&changes.iter().fold(plan.to_owned(), changed));
    }

    #[test]
    fn pieces_are_made_or_told(pieces in prop::collection::vec(select(PIECES.to_vec()), 0..40)) {
        fuzz::any(&pieces.concat());
    }

    #[test]
    fn any_text_is_made_or_told(text in ".{0,80}") {
        fuzz::any(&text);
    }
}
