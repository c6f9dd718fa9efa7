//! Failures for lack of resources are remembered for a while, and only for the recipes that have them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anabranch_content::Store;
use anabranch_recipe::{Address, Arity, Config, Error, Executor, Fault, Functions, Get, UnknownFunction};

use crate::world::{TestClock, get, leaf, recipe, recipe_of};

/// An executor on a clock that stands still, whose function `costly/1` fails for lack of resources; and how often that was
/// called.
fn executor(fuse_from: u64) -> (Executor, Arc<TestClock>, Arc<AtomicU32>) {
    let (clock, calls) = (TestClock::stepping(Duration::ZERO), Arc::new(AtomicU32::new(0)));
    let mut functions = Functions::builtin();
    let counted = Arc::clone(&calls);
    functions.add_whole("costly", "1", Arity::exactly(1), move |_, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        Err(Fault::TooLarge { what: "the table", most: 7 })
    });
    let store = Store::in_memory(anabranch_content::Config::default()).unwrap();
    let config = Config { fuse_from, ..Config::default() };
    (Executor::new(store, functions, clock.engine(Duration::from_micros(50)), config), clock, calls)
}

/// The recipe that a get says has failed.
async fn failing(executor: &Executor, address: Address) -> Address {
    match executor.get(&address, &Get::default()).await {
        Err(Error::Function { address, fault: Fault::TooLarge { .. }, .. }) => address,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_refusal_is_forgotten_after_a_minute() {
    let (executor, clock, calls) = executor(u64::MAX);
    let data = leaf(&executor, "x").await;
    let costly = recipe(&executor, "costly/1", &[data]).await;
    for (wait, expected) in [(0, 1), (30, 1), (29, 1), (1, 2), (59, 2), (1, 3)] {
        clock.advance(Duration::from_secs(wait));
        assert_eq!(failing(&executor, costly).await, costly);
        assert_eq!(calls.load(Ordering::SeqCst), expected, "after {wait} more seconds");
    }
}

/// The same function of the same values fails in the same way for another recipe.
#[tokio::test]
async fn a_call_is_refused_for_every_recipe_that_makes_it() {
    let (executor, _, calls) = executor(u64::MAX);
    let mut found = Vec::new();
    for text in ["a", "A"] {
        let data = leaf(&executor, text).await;
        let upper = recipe(&executor, "uppercase", &[data]).await;
        let costly = recipe(&executor, "costly/1", &[upper]).await;
        found.push(failing(&executor, costly).await == costly);
    }
    // As a recipe of the value itself, too.
    let value = leaf(&executor, "A").await;
    let direct = recipe(&executor, "costly/1", &[value]).await;
    found.push(failing(&executor, direct).await == direct);
    assert_eq!((found, calls.load(Ordering::SeqCst)), (vec![true; 3], 1));
}

/// In a row of fused functions, the one that failed is refused: by itself, too, and for others that read it.
#[tokio::test]
async fn the_failing_function_of_a_row_is_refused() {
    let (executor, clock, _) = executor(1);
    let data = leaf(&executor, "x".repeat(100)).await;
    let before = recipe(&executor, "bitwise_not", &[data]).await;
    let bounded = recipe_of("repeat", &[before]).with("count", 1_000).with("max_bytes", 1_000);
    let failed = executor.add(&bounded, UnknownFunction::Refuse).await.unwrap().address;
    let after = recipe(&executor, "hex_encode", &[failed]).await;
    assert_eq!(failing(&executor, after).await, failed);
    let attempts = executor.status().failed;
    for address in [after, failed] {
        assert_eq!(failing(&executor, address).await, failed);
    }
    assert_eq!(executor.status().failed, attempts, "neither was tried");
    assert_eq!(get(&executor, before).await.unwrap().len(), 100);
    clock.advance(Duration::from_secs(60));
    assert_eq!(failing(&executor, failed).await, failed);
    assert_eq!(executor.status().failed, attempts + 1);
}
