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
    let (answer, trace) = sim.block_on(plan.run_traced(request, &RunOptions::default()));
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
    check("simple_viewer", expect![[r#""#]]);
}

#[test]
fn a_source_and_a_filter() {
    check("viewer_filter", expect![[r#""#]]);
}

#[test]
fn two_branches_are_in_flight_at_once() {
    check("parallel_fanout", expect![[r#""#]]);
}

#[test]
fn reads_and_computing_in_a_row() {
    check("mixed_pipeline", expect![[r#""#]]);
}

#[test]
fn a_join_waits_for_both() {
    check("diamond", expect![[r#""#]]);
}

#[test]
fn ten_nodes() {
    check("complex_dag", expect![[r#""#]]);
}
