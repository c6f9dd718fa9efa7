//! Calls that take long, and calls that take much memory, do not hold up those that do not.

use std::time::Duration;

use anabranch_content::Store;
use anabranch_engine::Engine;
use anabranch_recipe::{
    Arity, BeginCost, Config, Executor, FunctionId, Functions, Get, Recipe, Signature, UnknownFunction, Value,
};
use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::stream::{FuturesUnordered, StreamExt as _};

use crate::kit::{given, one};
use crate::world::{World, get, leaf, recipe};

fn executor(functions: Functions, engine: &anabranch_engine::Config, config: Config) -> Executor {
    let store = Store::in_memory(anabranch_content::Config::default()).unwrap();
    Executor::new(store, functions, Engine::new(engine).unwrap(), config)
}

/// A get that ends with an error instead of waiting for ever.
fn soon(executor: &Executor) -> Get {
    Get { deadline: Some(executor.engine().clock().now() + Duration::from_secs(60)), ..Get::default() }
}

/// H5: calls that never pause occupy all threads but one, even if somebody waits for each of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endless_calls_leave_a_thread_to_short_ones() {
    for threads in [2, 3] {
        let engine = anabranch_engine::Config { batch_threads: threads, ..Default::default() };
        let world = World::default();
        let executor = executor(world.functions(), &engine, Config::default());
        let mut endless = FuturesUnordered::new();
        for number in 0..threads {
            let input = leaf(&executor, number.to_string()).await;
            endless.push(get(&executor, recipe(&executor, "gated/1", &[input]).await));
        }
        while world.waiting() < threads as u32 - 1 {
            assert!(endless.next().now_or_never().is_none());
            tokio::task::yield_now().await;
        }
        // All of them have been started, if they ever are.
        for _ in 0..100 {
            assert!(endless.next().now_or_never().is_none());
            tokio::task::yield_now().await;
        }
        let data = leaf(&executor, vec![7; 100_000]).await;
        let packed = recipe(&executor, "gzip_compress", &[data]).await;
        let got = executor.get(&packed, &soon(&executor)).await;
        world.open();
        assert!(got.is_ok(), "{threads} threads: {got:?}");
        while let Some(value) = endless.next().await {
            assert_eq!(value.unwrap().len(), 1);
        }
    }
}

/// H7: a small call does not wait for memory behind a large one, whatever function it is of.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn small_inputs_do_not_wait_behind_a_large_call() {
    let world = World::default();
    let mut functions = world.functions();
    for name in ["one", "other"] {
        let signature = Signature {
            begin: BeginCost::Compiles,
            ..Signature::new(FunctionId::new(name, "1"), "A function of a test.").inputs(Arity::at_least(0))
        };
        let world = world.clone();
        functions.add_whole_as(signature.base_memory(150 << 20), move |_, _| {
            world.pass();
            Ok(Bytes::new())
        });
    }
    let engine = anabranch_engine::Config { batch_threads: 4, ..Default::default() };
    let executor = executor(functions, &engine, Config::default());
    let packed =
        given(&Functions::builtin(), "brotli_compress/1.0.0", &one(b"ten bytes."), &Default::default());
    let (packed, plain) = (leaf(&executor, packed.unwrap()).await, leaf(&executor, "ten bytes.").await);
    let of = |id: &str, input| Recipe::new(id.parse().unwrap(), vec![input]);
    let recipes = [
        of("brotli_decompress/1.0.0", packed),
        of("brotli_compress/1.0.0", plain),
        of("brotli_compress/1.0.0", plain).with("quality", 1),
        of("zstd_compress/1.0.0", plain),
        of("zstd_decompress/1.0.0", leaf(&executor, vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0x58, 1, 0, 0]).await),
        of("template/1", plain).with("template", Value::Text("{{ inputs[0] | upper }}".to_owned())),
    ];
    let mut first = Box::pin(get(&executor, recipe(&executor, "one/1", &[]).await));
    while !world.is_waited_at() {
        assert!((&mut first).now_or_never().is_none());
        tokio::task::yield_now().await;
    }
    let mut second = Box::pin(get(&executor, recipe(&executor, "other/1", &[]).await));
    for _ in 0..100 {
        assert!((&mut second).now_or_never().is_none());
        tokio::task::yield_now().await;
    }
    let mut results = Vec::new();
    for recipe in recipes {
        let address = executor.add(&recipe, UnknownFunction::Refuse).await.unwrap().address;
        results.push((recipe.function, executor.get(&address, &soon(&executor)).await));
    }
    world.open();
    let failed: Vec<_> = results.iter().filter(|(_, result)| result.is_err()).collect();
    assert!(failed.is_empty(), "{failed:?}");
    first.await.unwrap();
    second.await.unwrap();
}
