//! The trace of a get: what was computed, in which order, and what was there before.

use anabranch_engine::NodeId;
use anabranch_engine::event::FailureReason;
use anabranch_engine::timeline::NodeOutcome;
use anabranch_recipe::{Executor, Functions, Get, Trace, TracedOutcome};

use crate::world::{get, leaf, recipe};

/// The recipes of a trace: function, outcome, the recipes and values that it reads.
fn recipes(trace: &Trace) -> String {
    let one = |recipe: &anabranch_recipe::TracedRecipe| {
        let outcome = recipe.outcome.map_or_else(|| "none".to_owned(), |outcome| format!("{outcome:?}"));
        format!("{} {outcome} {:?} {:?}", recipe.function.name, recipe.recipes, recipe.values)
    };
    trace.recipes.iter().map(one).collect::<Vec<_>>().join("; ")
}

#[tokio::test]
async fn a_trace_has_recipes_values_and_the_critical_path() {
    let executor = Executor::in_memory(Functions::builtin()).unwrap();
    let data = leaf(&executor, "a word").await;
    let known = recipe(&executor, "bitwise_not", &[data]).await;
    get(&executor, known).await.unwrap();
    let digest = recipe(&executor, "sha256", &[known]).await;
    let hex = recipe(&executor, "hex_encode", &[digest]).await;
    let twice = recipe(&executor, "concat", &[hex, data, hex]).await;
    let mut trace = Trace::default();
    executor.get_traced(&twice, &Get::default(), &mut trace).await.unwrap();
    assert_eq!(recipes(&trace), "sha256 Ran [] [0]; hex_encode Ran [0] []; concat Ran [1] [1]");
    let values: Vec<_> =
        trace.values.iter().map(|value| (value.address, value.is_memo, value.size)).collect();
    assert_eq!(values, [(known, true, 6), (data, false, 6)]);
    let timeline = trace.timeline().unwrap();
    assert_eq!(timeline.critical_path(), [NodeId(0), NodeId(1), NodeId(2)]);
    assert!(timeline.tracks().iter().all(|track| track.outcome == NodeOutcome::Finished));

    // Of a value that is there, nothing is computed.
    let mut again = Trace::default();
    executor.get_traced(&twice, &Get::default(), &mut again).await.unwrap();
    assert!(again.recipes.is_empty() && again.timeline().is_none());
}

#[tokio::test]
async fn a_failure_is_where_it_happened() {
    let executor = Executor::in_memory(Functions::builtin()).unwrap();
    let data = leaf(&executor, "not packed").await;
    let unpacked = recipe(&executor, "gzip_decompress", &[data]).await;
    let digest = recipe(&executor, "sha256", &[unpacked]).await;
    let mut trace = Trace::default();
    executor.get_traced(&digest, &Get::default(), &mut trace).await.unwrap_err();
    assert_eq!(recipes(&trace), "gzip_decompress none [] [0]; sha256 none [0] []");
    let timeline = trace.timeline().unwrap();
    let outcomes: Vec<_> = timeline.tracks().iter().map(|track| track.outcome).collect();
    assert_eq!(outcomes, [NodeOutcome::Failed(FailureReason::Error), NodeOutcome::NotStarted]);
}

#[tokio::test]
async fn a_get_of_very_many_recipes_has_an_empty_trace() {
    let executor = Executor::in_memory(Functions::builtin()).unwrap();
    let mut last = leaf(&executor, "a word").await;
    for _ in 0..1_001 {
        last = recipe(&executor, "bitwise_not", &[last]).await;
    }
    let mut trace = Trace::default();
    executor.get_traced(&last, &Get::default(), &mut trace).await.unwrap();
    assert!(trace.recipes.is_empty() && trace.timeline().is_none());
}

#[tokio::test]
async fn fused_recipes_are_marked() {
    let executor = Executor::in_memory(Functions::builtin()).unwrap();
    let data = leaf(&executor, vec![7; 8 << 20]).await;
    let first = recipe(&executor, "bitwise_not", &[data]).await;
    let second = recipe(&executor, "hex_encode", &[first]).await;
    let mut trace = Trace::default();
    executor.get_traced(&second, &Get::default(), &mut trace).await.unwrap();
    let outcomes: Vec<_> = trace.recipes.iter().map(|recipe| recipe.outcome).collect();
    assert_eq!(outcomes, [Some(TracedOutcome::Ran), Some(TracedOutcome::Fused)]);
}
