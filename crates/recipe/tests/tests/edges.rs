//! The seed document's edge cases, and those that Deriva got wrong.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use anabranch_content::{Collect, Config, DryRun, Store};
use anabranch_engine::Engine;
use anabranch_recipe::{
    Address, Arity, Call, Error, Executor, Fault, Function, FunctionId, Functions, Get, Kernel, OpenInputs,
    Out, Recipe, Signature, Source, UnknownFunction,
};
use bytes::Bytes;
use futures_util::future::join_all;

use crate::world::{World, get, leaf, recipe, recipe_of, source};

/// Polls a get until it waits for something, and drops it.
async fn begin_and_leave(executor: &Executor, address: Address, world: &World) {
    let terms = Get::default();
    let mut asked = pin!(executor.get(&address, &terms));
    poll_fn(|cx| {
        assert!(asked.as_mut().poll(cx).is_pending());
        Poll::Ready(())
    })
    .await;
    world.wait_for(1);
}

/// X11, D5: a value that is computed on a full disk is answered from memory.
#[tokio::test]
async fn a_small_value_is_answered_though_the_disk_is_full() {
    let disk = anabranch_testkit::CrashDisk::new(7);
    let store = Store::open_on(Arc::new(disk.clone()), Config::default()).unwrap();
    let engine = Engine::new(&anabranch_engine::Config::default()).unwrap();
    let executor = Executor::new(store, Functions::builtin(), engine, anabranch_recipe::Config::default());
    let data = leaf(&executor, "a few bytes").await;
    let upper = recipe(&executor, "uppercase", &[data]).await;
    let above = recipe(&executor, "reverse", &[upper]).await;
    disk.set_capacity(disk.files().iter().map(|(_, len)| len).sum());
    let mut filler = 0..1_000_000;
    let full = loop {
        let bytes = format!("{:?}", filler.next().expect("the disk is never full"));
        if let Err(full) = executor.put(bytes).await {
            break full;
        }
    };
    assert!(matches!(&full, Error::Store(error) if error.is_disk_full()), "{full:?}");
    for _ in 0..2 {
        assert_eq!(get(&executor, above).await.unwrap(), "SETYB WEF A");
    }
    disk.set_capacity(u64::MAX);
    executor.put("room").await.unwrap();
    assert_eq!(get(&executor, above).await.unwrap(), "SETYB WEF A");
}

/// L10: no caller should repeat a call that fails for good.
#[test]
fn errors_say_if_the_same_call_may_succeed_later() {
    use anabranch_content::Error as StoreError;
    let address = Address::of(b"");
    let for_good = [
        StoreError::Corrupt { address, what: String::new() },
        StoreError::Format { found: String::new() },
        StoreError::Name { name: String::new() },
        StoreError::Missing { address },
    ];
    for error in for_good {
        assert!(!Error::Store(error.clone()).is_transient(), "{error:?}");
    }
    for error in [StoreError::Quota { used: 1, quota: 1 }, StoreError::Closed] {
        assert!(Error::Store(error.clone()).is_transient(), "{error:?}");
    }
}

#[tokio::test]
async fn a_missing_input_is_told_with_who_reads_it() {
    let executor = World::default().executor();
    let nowhere = Address::of(b"nowhere");
    let middle = recipe(&executor, "identity", &[nowhere]).await;
    let top = recipe(&executor, "identity", &[middle]).await;
    let error = get(&executor, top).await.unwrap_err();
    let said = format!("{nowhere} is neither a blob nor a recipe here; recipe {middle} reads it");
    assert_eq!(error.to_string(), said);
    let added =
        executor.add(&recipe_of("concat", &[nowhere, middle]), UnknownFunction::Refuse).await.unwrap();
    assert_eq!(added.dangling, [nowhere]);
}

#[tokio::test]
async fn an_unknown_function_is_refused_unless_asked() {
    let executor = World::default().executor();
    let odd = recipe_of("no_such_thing", &[]);
    let error = executor.add(&odd, UnknownFunction::Refuse).await.unwrap_err();
    assert!(matches!(error, Error::NoSuchFunction { .. }), "{error}");
    assert_eq!(executor.resolve(&odd.address().unwrap()).await.unwrap(), None);
    executor.add(&odd, UnknownFunction::Accept).await.unwrap();
    assert_eq!(executor.resolve(&odd.address().unwrap()).await.unwrap(), Some(odd));
}

#[tokio::test]
async fn a_panic_is_an_error_and_nothing_more() {
    let executor = World::default().executor();
    let bad = recipe(&executor, "panicking/1", &[]).await;
    for _ in 0..2 {
        let error = get(&executor, bad).await.unwrap_err();
        assert!(matches!(&error, Error::Panicked { message, .. } if message == "on purpose"), "{error}");
    }
    assert_eq!(executor.status().computing, 0);
}

#[tokio::test]
async fn failures_are_not_remembered() {
    let world = World::default();
    let executor = world.executor();
    let good = recipe(&executor, "counted/1", &[]).await;
    for function in ["failing/1", "passing/1"] {
        let bad = recipe(&executor, function, &[good]).await;
        let above = recipe(&executor, "concat", &[good, bad]).await;
        for _ in 0..2 {
            let error = get(&executor, above).await.unwrap_err();
            assert!(matches!(&error, Error::Function { address, .. } if *address == bad), "{error}");
            assert!(executor.store().recall(&above).await.unwrap().is_none());
        }
    }
    assert_eq!((world.calls(), executor.status().failed), (1, 4));
}

/// In Deriva, whoever asks for what a failed sibling left half done waits for ever.
#[tokio::test]
async fn what_a_failed_sibling_interrupted_can_be_had_later() {
    let world = World::default();
    let executor = world.executor();
    let slow = recipe(&executor, "gated/1", &[]).await;
    let failing = recipe(&executor, "failing/1", &[]).await;
    let both = recipe(&executor, "concat", &[slow, failing]).await;
    assert!(matches!(get(&executor, both).await, Err(Error::Function { .. })));
    assert_eq!(executor.status().computing, 0);
    world.open();
    assert_eq!(get(&executor, slow).await.unwrap(), "");
}

#[tokio::test]
async fn a_computation_ends_with_its_last_caller() {
    let world = World::default();
    let executor = world.executor();
    let slow = recipe(&executor, "gated/1", &[]).await;
    let terms = Get::default();
    {
        let mut first = pin!(executor.get(&slow, &terms));
        poll_fn(|cx| {
            assert!(first.as_mut().poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
        begin_and_leave(&executor, slow, &world).await;
        assert_eq!(executor.status().computing, 1);
    }
    assert_eq!(executor.status().computing, 0);
    world.open();
    assert_eq!(get(&executor, slow).await.unwrap(), "");
    assert_eq!(executor.status().computing, 0);
}

#[test]
fn a_runtime_that_ends_leaves_nothing_behind() {
    let world = World::default();
    let executor = world.executor();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let slow = runtime.block_on(async {
        let slow = recipe(&executor, "gated/1", &[]).await;
        begin_and_leave(&executor, slow, &world).await;
        slow
    });
    drop(runtime);
    world.open();
    assert_eq!(executor.status().computing, 0);
    assert_eq!(executor.blocking().unwrap().get(&slow, &Get::default()).unwrap(), "");
}

#[tokio::test]
async fn a_blocking_call_in_async_code_is_an_error() {
    let executor = World::default().executor();
    let leaf = leaf(&executor, "x").await;
    let blocking = executor.blocking().unwrap();
    let error = blocking.get(&leaf, &Get::default()).unwrap_err();
    assert!(matches!(error, Error::InsideRuntime), "{error}");
    drop(blocking);
}

#[tokio::test]
async fn a_deadline_is_kept() {
    let world = World::default();
    let executor = world.executor();
    let slow = recipe(&executor, "gated/1", &[]).await;
    let deadline = executor.engine().clock().now() + Duration::from_millis(20);
    let terms = Get { deadline: Some(deadline), ..Get::default() };
    assert!(matches!(executor.get(&slow, &terms).await, Err(Error::Deadline)));
    assert_eq!(executor.status().computing, 0);
    world.open();
}

fn small_cache(world: &World) -> Executor {
    let store = Store::in_memory(Config { cache_bytes: 10_000, ..Config::default() }).unwrap();
    let engine = Engine::new(&anabranch_engine::Config::default()).unwrap();
    Executor::new(store, world.functions(), engine, anabranch_recipe::Config::default())
}

#[tokio::test]
async fn a_value_larger_than_the_cache_is_served_and_throws_nothing_out() {
    let executor = small_cache(&World::default());
    let small = leaf(&executor, "small").await;
    let kept = recipe(&executor, "identity", &[small]).await;
    get(&executor, kept).await.unwrap();
    let large = Bytes::from(vec![7u8; 3 << 20]);
    let leaf = leaf(&executor, large.clone()).await;
    let same = recipe(&executor, "identity", &[leaf]).await;
    assert_eq!(get(&executor, same).await.unwrap(), large);
    assert_eq!(source(&executor, same).await, Source::Memo);
    assert_eq!(get(&executor, same).await.unwrap(), large);
    assert!(executor.status().store.cache.bytes <= 10_000);
}

/// A recipe's address is a hash of its inputs' addresses, so it cannot be among them.
#[test]
fn a_recipe_cannot_read_itself() {
    let mut recipe = recipe_of("identity", &[Address::of(b"start")]);
    for _ in 0..100 {
        let own = recipe.address().unwrap();
        assert!(!recipe.inputs.contains(&own));
        recipe.inputs = vec![own];
        assert_ne!(recipe.address().unwrap(), own);
    }
}

/// In Deriva, a leaf that is put again is truncated first, and who reads it then gets, and remembers, wrong bytes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blob_put_again_is_never_seen_torn() {
    let executor = World::default().executor();
    for size in [4_000, 200_000, 3_000_000] {
        let bytes = Bytes::from((0..size).map(|place: u32| (place % 251) as u8).collect::<Vec<_>>());
        let address = leaf(&executor, bytes.clone()).await;
        let work = join_all((0..8).map(|who| {
            let (executor, bytes) = (executor.clone(), bytes.clone());
            async move {
                for round in 0..10 {
                    if who % 2 == 0 {
                        leaf(&executor, bytes.clone()).await;
                        continue;
                    }
                    assert!(get(&executor, address).await.unwrap() == bytes);
                    let own = leaf(&executor, format!("{who} {round}")).await;
                    let fresh = recipe(&executor, "concat", &[address, own]).await;
                    let value = get(&executor, fresh).await.unwrap();
                    assert!(value[..bytes.len()] == bytes && value == get(&executor, fresh).await.unwrap());
                }
            }
        }));
        work.await;
    }
}

#[tokio::test]
async fn a_young_blob_survives_a_collection() {
    let executor = World::default().executor();
    let young = leaf(&executor, "just put").await;
    let terms = Collect { grace: Duration::from_secs(300), ..Collect::default() };
    assert_eq!(executor.store().collect(terms.clone()).await.unwrap().blobs, 0);
    let at_once = Collect { grace: Duration::ZERO, dry_run: DryRun::No, ..terms };
    assert_eq!(executor.store().collect(at_once).await.unwrap().blobs, 1);
    assert!(matches!(get(&executor, young).await, Err(Error::NotFound { gone: Some(_), .. })));
}

/// What collection took is derived again, and a value in use is not taken.
#[tokio::test]
async fn what_is_collected_is_derived_again() {
    let world = World::default();
    let executor = world.executor();
    let data = leaf(&executor, "data").await;
    let below = recipe(&executor, "counted/1", &[data]).await;
    let above = recipe(&executor, "concat", &[below, below]).await;
    executor.store().pin(&above).await.unwrap();
    for round in 1..=3 {
        assert_eq!(get(&executor, above).await.unwrap(), "datadata");
        assert_eq!(world.calls(), round);
        executor.invalidate(&above, &Default::default()).await.unwrap();
        executor.store().invalidate(&[below]).await.unwrap();
        let terms = Collect { grace: Duration::ZERO, ..Collect::default() };
        executor.store().collect(terms).await.unwrap();
    }
}

#[test]
fn pins_memos_and_names_outlive_a_restart() {
    let folder = std::env::temp_dir().join(format!("anabranch-recipe-restart-{}", std::process::id()));
    // A folder that is not there need not be removed.
    let _ = std::fs::remove_dir_all(&folder);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let world = World::default();
    let computed = runtime.block_on(async {
        let executor = Executor::open(&folder, world.functions()).await.unwrap();
        let data = leaf(&executor, "kept").await;
        let computed = recipe(&executor, "counted/1", &[data]).await;
        get(&executor, computed).await.unwrap();
        executor.store().pin(&computed).await.unwrap();
        executor.store().name("newest", Some(computed)).await.unwrap();
        executor.store().clone().close().await.unwrap();
        computed
    });
    runtime.block_on(async {
        let executor = Executor::open(&folder, world.functions()).await.unwrap();
        let terms = Collect { grace: Duration::ZERO, ..Collect::default() };
        assert_eq!(executor.store().collect(terms).await.unwrap().blobs, 0);
        assert_eq!(executor.find("newest").await.unwrap(), computed);
        assert_eq!(source(&executor, computed).await, Source::Memo);
        assert_eq!(get(&executor, computed).await.unwrap(), "kept");
        assert_eq!(executor.store().pins(None, 10).await.unwrap(), [computed]);
        // Nothing writes into the folder any more when it is removed.
        executor.store().clone().close().await.unwrap();
    });
    assert_eq!(world.calls(), 1);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test]
async fn parameters_are_checked_where_they_are() {
    let executor = World::default().executor();
    let data = leaf(&executor, "data").await;
    let odd = recipe_of("identity", &[data]).with("color", "red");
    let error = executor.add(&odd, UnknownFunction::Accept).await.unwrap_err();
    assert_eq!(error.to_string(), "`identity/1.0.0`: parameter `color`: unknown; it takes none");
    let two = recipe_of("identity", &[data, data]);
    let error = executor.add(&two, UnknownFunction::Accept).await.unwrap_err();
    assert_eq!(error.to_string(), "`identity/1.0.0`: it takes 1 input, the recipe has 2");
    let recipe = Recipe {
        params: [("x".to_owned(), anabranch_recipe::Value::Null)].into(),
        ..recipe_of("identity", &[data])
    };
    assert!(executor.add(&recipe, UnknownFunction::Accept).await.is_err());
}

/// Values that nobody reads on keep their own share of memory, not that of functions at work.
#[tokio::test]
async fn slow_readers_keep_nobody_from_computing() {
    let store = Store::in_memory(Config::default()).unwrap();
    let engine = Engine::new(&anabranch_engine::Config::default()).unwrap();
    let config =
        anabranch_recipe::Config { memory_bytes: 16 << 20, kept_bytes: 32 << 20, ..Default::default() };
    let executor = Executor::new(store, World::default().functions(), engine, config);
    let data = Bytes::from(vec![1u8; 2 << 20]);
    let mut unread = Vec::new();
    for number in 0..8u8 {
        let own = leaf(&executor, vec![number]).await;
        let data = leaf(&executor, data.clone()).await;
        let large = recipe(&executor, "concat", &[own, data]).await;
        unread.push((number, executor.get(&large, &Get::default()).await.unwrap()));
    }
    for (number, got) in unread {
        let value = got.bytes().await.unwrap();
        assert!(value[0] == number && value[1..] == data);
    }
}

/// Wants its first input for ever.
struct Greedy(Signature);

struct GreedyKernel;

impl Function for Greedy {
    fn signature(&self) -> &Signature {
        &self.0
    }

    fn begin(&self, _: &Call<'_>) -> Result<Box<dyn Kernel>, Fault> {
        Ok(Box::new(GreedyKernel))
    }
}

impl Kernel for GreedyKernel {
    fn wants(&self, _: &OpenInputs<'_>) -> Option<usize> {
        Some(0)
    }

    fn push(&mut self, _: usize, _: Bytes, _: &mut Out) -> Result<(), Fault> {
        Ok(())
    }
}

#[tokio::test]
async fn a_function_that_wants_more_than_there_is_is_stopped() {
    let mut functions = World::default().functions();
    let greedy = Signature::new(FunctionId::new("greedy", "1"), "Never has enough.");
    functions.add(Greedy(greedy.nanos_per_kib(5)));
    let executor = Executor::in_memory(functions).unwrap();
    let data = leaf(&executor, "data").await;
    let greedy = recipe(&executor, "greedy/1", &[data]).await;
    let error = get(&executor, greedy).await.unwrap_err();
    assert!(matches!(&error, Error::Panicked { message, .. } if message.contains("has ended")), "{error}");
}

/// H7: each open input takes memory, whatever its size, so a call cannot open more files than memory allows.
#[tokio::test]
async fn a_call_with_many_open_inputs_has_the_memory_for_them() {
    let store = Store::in_memory(Config::default()).unwrap();
    let engine = Engine::new(&anabranch_engine::Config::default()).unwrap();
    let config = anabranch_recipe::Config { memory_bytes: 32 << 20, ..Default::default() };
    let executor = Executor::new(store, Functions::builtin(), engine, config);
    let lines = leaf(&executor, "a\nb\n").await;
    // 24 MiB are for large calls.
    for (inputs, fits) in [(20, true), (40, false)] {
        let merged = recipe(&executor, "merge_sorted", &vec![lines; inputs]).await;
        match get(&executor, merged).await {
            Ok(value) => assert!(fits && value.len() == inputs * 4 - 1, "{inputs}: {value:?}"),
            Err(Error::Function { fault: Fault::TooLarge { .. }, .. }) => assert!(!fits, "{inputs}"),
            Err(other) => panic!("{inputs}: {other}"),
        }
    }
}

/// Two functions of one id would give two values one address.
#[test]
#[should_panic(expected = "there is a function `uppercase/1.0.0` already; choose another name or version")]
fn a_function_does_not_take_the_place_of_another() {
    Functions::builtin().add_whole(
        "uppercase",
        "1.0.0",
        Arity::exactly(1),
        |inputs, _| Ok(inputs[0].clone()),
    );
}
