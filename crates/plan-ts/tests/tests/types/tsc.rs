//! The real type checker on plans.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anabranch_plan::op::Ops;
use anabranch_plan::registry::Endpoint;
use anabranch_plan::source::{Memory, MemoryData, Source};
use anabranch_plan::{Config, Engine, Registries};
use anabranch_plan_ts::{Compiler, declarations};
use anabranch_testkit::{Sim, tsc};
use expect_test::expect;

use super::{REGISTRY, own, registries};
use crate::world::{Folder, examples};

const OPTIONS: [&str; 9] = [
    "--strict",
    "--noEmit",
    "--noUnusedLocals",
    "--target",
    "es2023",
    "--module",
    "esnext",
    "--moduleResolution",
    "bundler",
];

/// An empty folder with these declarations.
fn folder(name: &str, types: &str) -> PathBuf {
    Folder::new(name, &[("anabranch.d.ts", types)]).0
}

/// The declarations of all ops there are.
fn types() -> String {
    declarations(&own::beside(Ops::builtin()), &registries(&REGISTRY))
}

/// Copies all TypeScript from there.
fn copy(from: &Path, folder: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let file = entry.unwrap().path();
        if file.extension().is_some_and(|ending| ending == "ts") {
            std::fs::copy(&file, folder.join(file.file_name().unwrap())).unwrap();
        }
    }
}

/// The errors of the type checker for all files of a folder.
fn complaints(folder: &Path) -> Vec<String> {
    let files = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<_> = files.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    files.sort();
    let args: Vec<&str> = OPTIONS.into_iter().chain(files.iter().map(String::as_str)).collect();
    tsc(env!("CARGO_TARGET_TMPDIR"), folder, &args)
}

#[test]
fn tsc_accepts_plans() {
    let folder = folder("types_accepted", &types());
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tests/types/accepted"), &folder);
    let everything = std::fs::read_to_string(folder.join("everything.plan.ts")).unwrap();
    for op in Ops::builtin().iter() {
        let (_, name) = op.spec().name.split_once("::").unwrap();
        let words = name.split('_').enumerate().map(|(at, word)| match at {
            0 => word.to_owned(),
            _ => word[..1].to_uppercase() + &word[1..],
        });
        let call = format!(".{}(", words.collect::<String>());
        assert!(everything.contains(&call), "everything.plan.ts calls {call}");
    }
    assert_eq!(complaints(&folder), Vec::<String>::new());
}

#[test]
fn what_tsc_accepts_compiles() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tests/types/accepted");
    let registries = registries(&REGISTRY);
    let sim = Sim::new(1);
    let nowhere = Arc::new(MemoryData::default());
    let source = |endpoint: &Endpoint| -> Arc<dyn Source> {
        Arc::new(Memory::new(endpoint.id.as_str(), Arc::clone(&nowhere), sim.clock()))
    };
    let sources = registries.endpoints.iter().map(source).collect();
    let mut config = Config::new(registries, sources);
    config.ops = own::beside(Ops::builtin());
    let engine = Engine::on(sim.engine(&config.runs), config);
    let outcome = Compiler::in_place().compile(&engine, &folder.join("everything.plan.ts"), &folder);
    assert_eq!(outcome.built.map(|built| built.plan.name().to_owned()).as_deref(), Ok("everything"));
}

#[test]
fn tsc_accepts_the_examples() {
    let (registries, _) = Registries::load(&examples().join("registry"), None).unwrap();
    let folder = folder("types_examples", &declarations(&Ops::builtin(), &registries));
    copy(&examples().join("plans"), &folder);
    for seed in
        ["simple_viewer", "viewer_filter", "parallel_fanout", "mixed_pipeline", "diamond", "complex_dag"]
    {
        assert!(folder.join(format!("{seed}.plan.ts")).is_file(), "{seed} is an example");
    }
    assert_eq!(complaints(&folder), Vec::<String>::new());
}

/// Rows that nobody should get through the type checker.
const REJECTED: [&str; 28] = [
    "rows.vm({ outKey: Key.scroe, expr: 1 })",
    "rows.vm({ outKey: Key.gone, expr: 1 })",
    "rows.vm({ outKey: 2, expr: 1 })",
    "rows.vm({ outKey: P.limit, expr: 1 })",
    "rows.vm({ outKey: Key.score, expr: Key.features * 2 })",
    "rows.vm({ outKey: Key.score, expr: Key.country * 2 })",
    "rows.vm({ outKey: Key.score, expr: log(Key.country) })",
    "rows.vm({ outKey: Key.score, expr: P.wieght })",
    "rows.filter({ pred: Key.country == 3 })",
    "rows.filter({ pred: Key.score })",
    "rows.filter({ pred: Pred.cmp(\"==\", Key.score, \"x\") })",
    "rows.take({ cuont: 3 })",
    "rows.take({ count: \"3\" })",
    "rows.take({ count: Key.id })",
    "rows.take({ count: coalesce(P.limit, 3) })",
    "rows.take()",
    "rows.follow({})",
    "rows.follow({ endpoint: EP.redis.redis_defualt })",
    "rows.follow({ endpoint: EP.http[\"catalogue-api\"] })",
    "rows.sort({ by: Key.score, key: Key.score })",
    "rows.sort({ by: Key.score, order: \"down\" })",
    "rows.sort({ by: [Key.score, P.limit] })",
    "rows.sort({ by: [{ key: Key.score, order: \"down\" }] })",
    "rows.if({ on: Key.id, pred: P.explore, then: rows })",
    "{ main: rows, more: 3 }",
    "rows.vieweer({})",
    "rows.dedupe",
    "rows.take({ count: 3, fallback: { default: { country: 3 } } })",
];

/// A plan with these rows, on its fourth line.
fn plan(rows: &str) -> String {
    format!(
        "import {{ definePlan }} from \"anabranch\";\n\
         export default definePlan({{ name: \"a\", build: (ctx) => {{\n\
         const rows = ctx.viewer({{ endpoint: EP.redis.redis_default }});\n\
         return {rows};\n}} }});\n"
    )
}

/// The errors of the type checker for each of the mistakes.
fn rejected() -> String {
    let folder = folder("types_rejected", &types());
    let files: Vec<String> = (0..REJECTED.len()).map(|at| format!("{at:02}.plan.ts")).collect();
    for (file, rows) in files.iter().zip(REJECTED) {
        std::fs::write(folder.join(file), plan(rows)).unwrap();
    }
    let complaints = complaints(&folder);
    let mut shown = String::new();
    for (file, rows) in files.iter().zip(REJECTED) {
        let of_file: Vec<&str> = complaints.iter().filter_map(|line| line.strip_prefix(file)).collect();
        assert!(!of_file.is_empty(), "accepted: {rows}");
        shown.push_str(&format!("{rows}\n"));
        of_file.iter().for_each(|complaint| shown.push_str(&format!("    {complaint}\n")));
    }
    shown
}

#[test]
fn tsc_rejects_mistakes() {
    expect![[r#"
        rows.vm({ outKey: Key.scroe, expr: 1 })
            (4,30): error TS2551: Property 'scroe' does not exist on type 'Keys'. Did you mean 'score'?
        rows.vm({ outKey: Key.gone, expr: 1 })
            (4,30): error TS2339: Property 'gone' does not exist on type 'Keys'.
        rows.vm({ outKey: 2, expr: 1 })
            (4,18): error TS2322: Type 'number' is not assignable to type 'AnyKey'.
        rows.vm({ outKey: P.limit, expr: 1 })
            (4,18): error TS2322: Type 'Param<number>' is not assignable to type 'AnyKey'.
        rows.vm({ outKey: Key.score, expr: Key.features * 2 })
            (4,43): error TS2362: The left-hand side of an arithmetic operation must be of type 'any', 'number', 'bigint' or an enum type.
        rows.vm({ outKey: Key.score, expr: Key.country * 2 })
            (4,43): error TS2362: The left-hand side of an arithmetic operation must be of type 'any', 'number', 'bigint' or an enum type.
        rows.vm({ outKey: Key.score, expr: log(Key.country) })
            (4,47): error TS2345: Argument of type 'Column<string>' is not assignable to parameter of type 'number | null'.
        rows.vm({ outKey: Key.score, expr: P.wieght })
            (4,45): error TS2551: Property 'wieght' does not exist on type 'Params'. Did you mean 'weight'?
        rows.filter({ pred: Key.country == 3 })
            (4,28): error TS2367: This comparison appears to be unintentional because the types 'Column<string>' and 'number' have no overlap.
        rows.filter({ pred: Key.score })
            (4,22): error TS2322: Type 'Column<number>' is not assignable to type 'boolean'.
        rows.filter({ pred: Pred.cmp("==", Key.score, "x") })
            (4,33): error TS2769: No overload matches this call.
        rows.take({ cuont: 3 })
            (4,20): error TS2561: Object literal may only specify known properties, but 'cuont' does not exist in type 'TakeOptions'. Did you mean to write 'count'?
        rows.take({ count: "3" })
            (4,20): error TS2322: Type 'string' is not assignable to type 'Plain<number>'.
        rows.take({ count: Key.id })
            (4,20): error TS2322: Type 'Column<number>' is not assignable to type 'Plain<number>'.
        rows.take({ count: coalesce(P.limit, 3) })
            (4,20): error TS2322: Type 'Expr<number>' is not assignable to type 'Plain<number>'.
        rows.take()
            (4,13): error TS2554: Expected 1 arguments, but got 0.
        rows.follow({})
            (4,20): error TS2345: Argument of type '{}' is not assignable to parameter of type 'FollowOptions'.
        rows.follow({ endpoint: EP.redis.redis_defualt })
            (4,41): error TS2551: Property 'redis_defualt' does not exist on type '{ readonly redis_default: Endpoint<"redis">; }'. Did you mean 'redis_default'?
        rows.follow({ endpoint: EP.http["catalogue-api"] })
            (4,22): error TS2322: Type 'Endpoint<"http">' is not assignable to type 'Endpoint<"redis">'.
        rows.sort({ by: Key.score, key: Key.score })
            (4,18): error TS2345: Argument of type '{ by: Column<number>; key: Column<number>; }' is not assignable to parameter of type 'SortOptions'.
        rows.sort({ by: Key.score, order: "down" })
            (4,35): error TS2322: Type '"down"' is not assignable to type '"desc" | "asc" | undefined'.
        rows.sort({ by: [Key.score, P.limit] })
            (4,36): error TS2322: Type 'Param<number>' is not assignable to type 'AnyKey | { readonly key: AnyKey; readonly order?: "desc" | "asc" | undefined; }'.
        rows.sort({ by: [{ key: Key.score, order: "down" }] })
            (4,43): error TS2322: Type '"down"' is not assignable to type '"desc" | "asc" | undefined'.
        rows.if({ on: Key.id, pred: P.explore, then: rows })
            (4,18): error TS2322: Type 'Column<number>' is not assignable to type 'CandidateSet | undefined'.
        { main: rows, more: 3 }
            (2,40): error TS2322: Type '(ctx: Context) => { main: CandidateSet; more: number; }' is not assignable to type '(ctx: Context) => Outputs'.
        rows.vieweer({})
            (4,13): error TS2339: Property 'vieweer' does not exist on type 'CandidateSet'.
        rows.dedupe
            (2,40): error TS2322: Type '(ctx: Context) => (options?: DedupeOptions | undefined) => CandidateSet' is not assignable to type '(ctx: Context) => Outputs'.
        rows.take({ count: 3, fallback: { default: { country: 3 } } })
            (4,30): error TS2322: Type '{ default: { country: number; }; }' is not assignable to type 'Fallback | readonly Fallback[] | undefined'.
    "#]].assert_eq(&rejected());
}
