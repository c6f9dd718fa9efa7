//! What a call leaves behind: the room it has, what it wrote.

use std::pin::pin;
use std::time::{Duration, Instant};

use anabranch_content::Store;
use anabranch_engine::Engine;
use anabranch_recipe::{Config, Error, Executor, Get, UnknownFunction};
use futures_util::FutureExt;

use crate::world::{World, get, leaf, recipe, recipe_of};

const MIB: usize = 1 << 20;

fn executor(world: &World, memory_bytes: usize) -> Executor {
    let store = Store::in_memory(anabranch_content::Config::default()).unwrap();
    let engine = Engine::new(&anabranch_engine::Config::default()).unwrap();
    let config = Config { memory_bytes: memory_bytes as u32, ..Config::default() };
    Executor::new(store, world.functions(), engine, config)
}

fn within(executor: &Executor, time: Duration) -> Get {
    let deadline: Instant = executor.engine().clock().now() + time;
    Get { deadline: Some(deadline), ..Get::default() }
}

/// A function that nobody waits for any more has its inputs in memory until it ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_was_left_keeps_its_room_until_it_ends() {
    let world = World::default();
    let executor = executor(&world, 12 * MIB);
    let input = leaf(&executor, vec![7; MIB]).await;
    let left = recipe(&executor, "gated/1", &[input]).await;
    let next = recipe(&executor, "counted/1", &[input]).await;
    {
        let mut getting = pin!(get(&executor, left));
        while !world.is_waited_at() {
            assert!((&mut getting).now_or_never().is_none());
            tokio::task::yield_now().await;
        }
    }
    let early = executor.get(&next, &within(&executor, Duration::from_millis(200))).await;
    world.open();
    assert!(matches!(early, Err(Error::Deadline)), "{early:?}");
    assert_eq!(get(&executor, next).await.unwrap().len(), MIB);
}

/// What is answered is written, also if it was computed for something else that is not there yet.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_answered_is_written() {
    let world = World::default();
    let executor = executor(&world, MIB);
    let input = leaf(&executor, "small").await;
    let below = recipe(&executor, "counted/1", &[input]).await;
    let above = recipe(&executor, "gated/1", &[below]).await;
    let mut getting = pin!(get(&executor, above));
    while !world.is_waited_at() {
        assert!((&mut getting).now_or_never().is_none());
        tokio::task::yield_now().await;
    }
    assert_eq!(get(&executor, below).await.unwrap(), "small");
    let memo = executor.store().status(&below).await.unwrap().memo;
    world.open();
    assert!(memo.is_some());
    assert_eq!(getting.await.unwrap(), "small");
    assert_eq!(world.calls(), 2);
}

/// Each get may compute many recipes with large parameters, and there may be many gets.
#[tokio::test]
async fn the_recipes_of_all_gets_share_a_bounded_memory() {
    let world = World::default();
    let store = Store::in_memory(anabranch_content::Config::default()).unwrap();
    let engine = Engine::new(&anabranch_engine::Config::default()).unwrap();
    let config = Config { recipe_bytes: 16 << 20, ..Config::default() };
    let executor = Executor::new(store, world.functions(), engine, config);
    let input = leaf(&executor, "x").await;
    let mut prefixed = Vec::new();
    for number in 0..60 {
        let prefix = recipe_of("prefix", &[input]).with("prefix", format!("{number}{}", " ".repeat(MIB)));
        prefixed.push(executor.add(&prefix, UnknownFunction::Refuse).await.unwrap().address);
    }
    let root = recipe(&executor, "merkle_root", &prefixed).await;
    let error = get(&executor, root).await.unwrap_err();
    assert!(matches!(error, Error::TooMany { most: 16_777_216, .. }), "{error}");
    // The memory was returned, and each of them fits.
    let half = recipe(&executor, "merkle_root", &prefixed[..10]).await;
    assert_eq!(get(&executor, half).await.unwrap().len(), 32);
    for some in prefixed.chunks(10) {
        let some = recipe(&executor, "merkle_root", some).await;
        assert_eq!(get(&executor, some).await.unwrap().len(), 32);
    }
    // What is remembered takes nothing.
    assert_eq!(get(&executor, root).await.unwrap().len(), 32);
}

/// A value is kept in memory for its caller only up to 16 MiB, also if it arrives in one chunk.
#[tokio::test]
async fn a_large_value_in_one_chunk_is_returned() {
    let world = World::default();
    let executor = executor(&world, 256 * MIB);
    let input = leaf(&executor, vec![7; 17 * MIB]).await;
    let whole = recipe(&executor, "counted/1", &[input]).await;
    assert_eq!(get(&executor, whole).await.unwrap().len(), 17 * MIB);
}
