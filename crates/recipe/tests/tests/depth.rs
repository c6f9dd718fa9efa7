//! Deep and wide graphs: in linear time, in flat stack, in bounded memory.

use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anabranch_content::Store;
use anabranch_engine::Engine;
use anabranch_recipe::{
    Address, Config, Draft, DraftInput, Error, Executor, FunctionId, Get, Invalidate, Params, Reach, Recipe,
    Source, UnknownFunction,
};
use futures_util::future::{Either, join_all, select};

use crate::world::{World, get, leaf, recipe, recipe_of};

/// Adds a chain of so many recipes over a leaf; answers its tip.
async fn chain(executor: &Executor, leaf: Address, depth: usize) -> Address {
    let function = FunctionId::new("identity", "1.0.0");
    let draft = |place: usize| Draft {
        function: function.clone(),
        inputs: vec![if place == 0 { DraftInput::Address(leaf) } else { DraftInput::Earlier(place - 1) }],
        params: Params::new(),
    };
    let drafts: Vec<Draft> = (0..depth).map(draft).collect();
    let added = executor.add_all(&drafts, UnknownFunction::Refuse).await.unwrap();
    assert!(added.iter().all(|added| added.dangling.is_empty()));
    added.last().unwrap().address
}

/// Deriva's stack ends at 866.
#[tokio::test]
async fn chains_of_any_depth() {
    let executor = World::default().executor();
    for depth in [50, 1_000, 10_000, 100_000] {
        let leaf = leaf(&executor, format!("below {depth}")).await;
        let tip = chain(&executor, leaf, depth).await;
        let got = executor.get(&tip, &Get::default()).await.unwrap();
        // Each has an equal input, so that one call serves them all.
        assert_eq!((got.source, got.cut_off), (Source::Computed(1), depth as u32 - 1));
        assert_eq!(get(&executor, tip).await.unwrap(), format!("below {depth}"));
    }
}

#[tokio::test]
async fn a_fan_of_a_hundred_thousand() {
    let executor = World::default().executor();
    let leaf = leaf(&executor, "x").await;
    let same = recipe(&executor, "identity", &[leaf]).await;
    let inputs: Vec<Address> = (0..100_000).map(|place| if place % 2 == 0 { leaf } else { same }).collect();
    let wide = recipe(&executor, "concat", &inputs).await;
    assert_eq!(get(&executor, wide).await.unwrap(), "x".repeat(100_000));
}

fn small(world: &World, config: Config) -> Executor {
    let store = Store::in_memory(anabranch_content::Config::default()).unwrap();
    let engine = Engine::new(&anabranch_engine::Config::default()).unwrap();
    Executor::new(store, world.functions(), engine, config)
}

#[tokio::test]
async fn a_graph_larger_than_allowed_is_refused() {
    let executor = small(&World::default(), Config { recipes_most: 100, ..Config::default() });
    let leaf = leaf(&executor, "x").await;
    let tip = chain(&executor, leaf, 101).await;
    let error = get(&executor, tip).await.unwrap_err();
    assert!(matches!(error, Error::TooMany { most: 100, .. }), "{error}");
    let fits = chain(&executor, leaf, 100).await;
    assert_eq!(get(&executor, fits).await.unwrap(), "x");
    // What is remembered is not counted.
    assert_eq!(get(&executor, tip).await.unwrap(), "x");
}

/// With no room for values at hand, all of them go through the store.
#[tokio::test]
async fn values_at_hand_are_bounded() {
    let executor = small(&World::default(), Config { value_bytes: 100, ..Config::default() });
    let mut level = Vec::new();
    for number in 0..64 {
        let leaf = leaf(&executor, format!("{number:03}").repeat(100)).await;
        level.push(recipe(&executor, "identity", &[leaf]).await);
    }
    while level.len() > 1 {
        let mut next = Vec::new();
        for pair in level.chunks(2) {
            next.push(recipe(&executor, "concat", pair).await);
        }
        level = next;
    }
    let value = get(&executor, level[0]).await.unwrap();
    assert_eq!(value.len(), 64 * 300);
    assert!(value.starts_with(b"000000") && value.ends_with(b"063063"));
}

/// Adds recipes over a leaf, sixty-four at a time; answers how long that took.
async fn add_many(executor: &Executor, leaf: Address, from: u32, count: u32) -> Duration {
    let clock = executor.engine().clock();
    let began = clock.now();
    let recipes: Vec<Recipe> = (from..from + count)
        .map(|number| recipe_of("prefix", &[leaf]).with("prefix", number.to_string()))
        .collect();
    for some in recipes.chunks(64) {
        let added = join_all(some.iter().map(|recipe| executor.add(recipe, UnknownFunction::Refuse))).await;
        assert!(added.into_iter().all(|added| added.unwrap().new));
    }
    clock.now() - began
}

/// Deriva looks at all recipes for each that is added, and at all readers of a leaf: at 100,000 it is 280 times slower.
#[tokio::test]
async fn adding_does_not_slow_down() {
    let [empty, full] = [World::default().executor(), World::default().executor()];
    let popular = leaf(&empty, "popular").await;
    assert_eq!(leaf(&full, "popular").await, popular);
    add_many(&full, popular, 0, 40_000).await;
    // In turns, so that a machine that is busy for a while slows down both.
    let (mut few, mut many) = (Duration::ZERO, Duration::ZERO);
    for turn in 0..30 {
        few += add_many(&empty, popular, turn * 100, 100).await;
        many += add_many(&full, popular, 40_000 + turn * 100, 100).await;
    }
    assert_eq!(full.status().store.derivations, 43_000);
    assert!(
        many < few * 8 + Duration::from_millis(300),
        "{few:?} if there are few, {many:?} if there are many"
    );
}

/// Whoever else is on the thread has its turn while a large graph is looked through, and a deadline is noticed.
#[tokio::test]
async fn a_large_search_holds_up_nobody() {
    let executor = World::default().executor();
    let leaf = leaf(&executor, "x").await;
    let tip = chain(&executor, leaf, 20_000).await;
    let turns = AtomicU32::new(0);
    let other = async {
        loop {
            turns.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    };
    let terms = Get::default();
    let (asked, other) = (pin!(executor.get(&tip, &terms)), pin!(other));
    assert!(matches!(select(asked, other).await, Either::Left((Ok(_), _))));
    assert!(turns.load(Ordering::Relaxed) > 50, "{turns:?}");
    let late = Get { deadline: Some(executor.engine().clock().now()), ..Get::default() };
    executor.invalidate(&leaf, &Invalidate { reach: Reach::Dependents, ..Default::default() }).await.unwrap();
    assert!(matches!(executor.get(&tip, &late).await, Err(Error::Deadline)));
}
