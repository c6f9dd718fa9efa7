//! The examples of the seed document: they compile as they are written there, and run in the shapes it draws.

use std::time::Duration;

use anabranch_plan::{Request, RunOptions};
use anabranch_plan_ts::Compiler;
use anabranch_testkit::Sim;
use expect_test::{Expect, expect};

use crate::world::{engine, examples};

/// The rows of an example's answer for user 7, and when its stages ran, in milliseconds.
fn check(name: &str, expected: Expect) {
    let sim = Sim::new(1);
    let engine = engine(&sim);
    let folder = examples().join("plans");
    let outcome = Compiler::in_place().compile(&engine, &folder.join(format!("{name}.plan.ts")), &folder);
    let plan = outcome.built.unwrap().plan;
    assert_eq!(plan.warnings(), []);
    let request = Request::new(7, engine.registries());
    let (answer, trace) =
        sim.block_on(anabranch_plan_inspect::run_traced(&plan, request, &RunOptions::default()));
    let (answer, trace) = (answer.unwrap(), trace.unwrap());
    let ids: Vec<i64> = answer.candidates().map(|row| row.id).collect();
    let mut text = format!("{} rows: {:?}", ids.len(), &ids[..ids.len().min(8)]);
    for (stage, track) in trace.stages() {
        let millis = |at: Option<Duration>| at.unwrap().as_millis();
        text.push_str(&format!("\n{stage}: {} to {}", millis(track.started), millis(track.ended)));
    }
    expected.assert_eq(&text);
}

#[test]
fn a_single_node() {
    check(
        "simple_viewer",
        expect![[r#"
        1 rows: [7]
        n0 (viewer): 0 to 9"#]],
    );
}

#[test]
fn a_source_and_a_filter() {
    check(
        "viewer_filter",
        expect![[r#"
        1 rows: [7]
        n0 (viewer): 0 to 9
        n1 (filter): 9 to 9"#]],
    );
}

#[test]
fn two_branches_are_in_flight_at_once() {
    check(
        "parallel_fanout",
        expect![[r#"
        17 rows: [13, 42, 25, 59, 43, 2, 55, 41]
        n0 (viewer): 0 to 0
        n1 (follow): 0 to 23
        n2 (recommendation): 0 to 28"#]],
    );
}

#[test]
fn reads_and_computing_in_a_row() {
    check(
        "mixed_pipeline",
        expect![[r#"
        7 rows: [59, 55, 43, 42, 25, 13, 2]
        n0 (viewer): 0 to 0
        n1 (follow): 0 to 23
        n2 > … > n5 (4 nodes): 23 to 23"#]],
    );
}

#[test]
fn a_join_waits_for_both() {
    check(
        "diamond",
        expect![[r#"
        17 rows: [13, 42, 25, 59, 43, 2, 55, 41]
        n0 (viewer): 0 to 0
        n1 (follow): 0 to 23
        n2 (recommendation): 0 to 28
        n3 (concat): 28 to 28"#]],
    );
}

#[test]
fn ten_nodes() {
    check(
        "complex_dag",
        expect![[r#"
        50 rows: [5904, 5903, 5902, 5901, 5504, 5503, 5502, 5501]
        n0 (viewer): 0 to 0
        n1 (follow): 0 to 14
        n4 (recommendation): 0 to 19
        n2 (media): 14 to 38
        n5 (media): 19 to 43
        n3 (vm): 38 to 38
        n6 (vm): 43 to 43
        n7 > n8 > n9 (concat > sort > take): 43 to 43"#]],
    );
}
