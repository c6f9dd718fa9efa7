//! Budgets of calls: where they begin, when they stop, what they may take; and equal inputs, which cut computing off.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::Duration;

use anabranch_content::Store;
use anabranch_engine::Engine;
use anabranch_recipe::{
    Arity, BeginCost, Call, Config, Error, Executor, Fault, Function, FunctionId, Functions, Get, Kernel,
    Open, Out, Recipe, Signature, Source, UnknownFunction, Value,
};
use bytes::Bytes;
use futures_util::FutureExt as _;

use crate::world::{LONG, World, get, leaf, recipe};

fn executor(functions: Functions, config: Config) -> Executor {
    let store = Store::in_memory(anabranch_content::Config::default()).unwrap();
    Executor::new(store, functions, Engine::new(&anabranch_engine::Config::default()).unwrap(), config)
}

fn signature(name: &str, begin: BeginCost) -> Signature {
    let signature = Signature::new(FunctionId::new(name, "1"), "A function of a test.");
    Signature { begin, ..signature.inputs(Arity::at_least(0)).nanos_per_kib(1) }
}

/// Tells on which thread its calls begin.
struct ThreadRecorder(Signature, Arc<Mutex<Vec<ThreadId>>>);

impl Function for ThreadRecorder {
    fn signature(&self) -> &Signature {
        &self.0
    }

    fn begin(&self, _: &Call<'_>) -> Result<Box<dyn Kernel>, Fault> {
        self.1.lock().unwrap().push(std::thread::current().id());
        Ok(Box::new(Empty))
    }
}

struct Empty;

impl Kernel for Empty {
    fn wants(&self, _: &Open<'_>) -> Option<usize> {
        None
    }

    fn push(&mut self, _: usize, _: Bytes, _: &mut Out) -> Result<(), Fault> {
        Ok(())
    }
}

/// H6, X3: a pattern or template is not compiled on an async worker.
#[tokio::test]
async fn a_call_that_compiles_begins_on_the_pool() {
    for (begin, is_here) in [(BeginCost::Trifling, true), (BeginCost::Compiles, false)] {
        let threads = Arc::new(Mutex::new(Vec::new()));
        let mut functions = Functions::none();
        functions.add(ThreadRecorder(signature("beginning", begin), Arc::clone(&threads)));
        let executor = executor(functions, Config::default());
        let beginning = recipe(&executor, "beginning/1", &[]).await;
        assert_eq!(get(&executor, beginning).await.unwrap(), "");
        let here = std::thread::current().id();
        assert_eq!(threads.lock().unwrap().iter().map(|it| *it == here).collect::<Vec<_>>(), [is_here]);
    }
}

/// X3: each was taken and compiled for seconds, in gigabytes.
#[tokio::test]
async fn patterns_are_bounded_before_they_are_compiled() {
    let executor = Executor::in_memory(Functions::builtin()).unwrap();
    let data = leaf(&executor, "x").await;
    let error = async |function: &str, name: &str, value: Value| {
        let mut asked = Recipe::new(function.parse().unwrap(), vec![data]);
        asked.params.insert(name.to_owned(), value);
        let address = executor.add(&asked, UnknownFunction::Refuse).await.unwrap().address;
        match get(&executor, address).await {
            Err(Error::Function { fault: Fault::Param { problem, .. }, .. }) => problem,
            other => panic!("{other:?}"),
        }
    };
    let text = |text: String| Value::Text(text);
    assert_eq!(
        error("grep/1.0.0", "pattern", text(format!("(?i){}", "\\pL".repeat(60_000)))).await,
        "the pattern has 180004 bytes; it may have 16384"
    );
    let classes = error("grep/1.0.0", "pattern", text("\\pL".repeat(251))).await;
    assert!(classes.starts_with("the pattern has 251 character classes"), "{classes}");
    let many = Value::List(vec![text("\\w{60}".to_owned()); 300]);
    let many = error("redact/2.0.0", "patterns", many).await;
    assert_eq!(many, "there are 300 patterns; there may be 256");
}

/// Works until it is told to stop.
struct Endless(Signature, Mutex<Sender<Fault>>);

impl Function for Endless {
    fn signature(&self) -> &Signature {
        &self.0
    }

    fn begin(&self, call: &Call<'_>) -> Result<Box<dyn Kernel>, Fault> {
        self.1.lock().unwrap().send(Fault::Passing("begun".to_owned())).unwrap();
        loop {
            if let Err(fault) = call.budget.check() {
                self.1.lock().unwrap().send(fault.clone()).unwrap();
                return Err(fault);
            }
            std::hint::spin_loop();
        }
    }
}

/// X7, H5: a function stops when the last caller that waits for it leaves.
#[tokio::test]
async fn a_call_stops_when_nobody_waits_for_it() {
    let (tell, told) = channel();
    let mut functions = Functions::none();
    functions.add(Endless(signature("endless", BeginCost::Compiles), Mutex::new(tell)));
    let executor = executor(functions, Config::default());
    let endless = recipe(&executor, "endless/1", &[]).await;
    {
        let mut getting = Box::pin(get(&executor, endless));
        while told.try_recv().is_err() {
            assert!((&mut getting).now_or_never().is_none());
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(told.recv_timeout(LONG).unwrap(), Fault::Stopped);
}

/// A function also stops when its time is over, and is not tried again for a while.
#[tokio::test]
async fn a_call_that_takes_too_long_is_stopped_and_remembered() {
    let (tell, told) = channel();
    let mut functions = Functions::none();
    functions.add(Endless(signature("endless", BeginCost::Compiles), Mutex::new(tell)));
    let executor = executor(functions, Config { call_time: Duration::from_millis(1), ..Config::default() });
    let endless = recipe(&executor, "endless/1", &[]).await;
    for _ in 0..2 {
        let error = get(&executor, endless).await.unwrap_err();
        assert!(matches!(&error, Error::Function { fault: Fault::TooLong { .. }, .. }), "{error}");
    }
    // It has begun once, and ended once.
    assert_eq!(told.try_iter().count(), 2);
}

/// X5: a call that needs much waits; calls that need little do not wait behind it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn small_calls_do_not_wait_behind_a_large_one() {
    const MIB: usize = 1 << 20;
    let world = World::default();
    let executor = executor(world.functions(), Config { memory_bytes: 32 << 20, ..Config::default() });
    let large = leaf(&executor, vec![7; 4 * MIB]).await;
    let gated = recipe(&executor, "gated/1", &[large]).await;
    let waiting = recipe(&executor, "counted/1", &[large, large]).await;
    let small = leaf(&executor, "small").await;
    let quick = recipe(&executor, "sort", &[small]).await;
    let mut gated = Box::pin(get(&executor, gated));
    while !world.is_waited_at() {
        assert!((&mut gated).now_or_never().is_none());
        tokio::task::yield_now().await;
    }
    let mut waiting = Box::pin(get(&executor, waiting));
    // It waits for the memory of the gated one.
    for _ in 0..100 {
        assert!((&mut waiting).now_or_never().is_none());
        tokio::task::yield_now().await;
    }
    assert_eq!(get(&executor, quick).await.unwrap(), "small");
    world.open();
    assert_eq!(gated.await.unwrap().len(), 4 * MIB);
    assert_eq!(waiting.await.unwrap().len(), 8 * MIB);
}

/// C2: a changed input that leaves a value as it was costs nothing downstream.
#[tokio::test]
async fn equal_values_cut_computing_off() {
    let executor = Executor::in_memory(World::default().functions()).unwrap();
    let report = async |sales: &str| {
        let sales = leaf(&executor, sales.to_owned()).await;
        let grep = Recipe::new(FunctionId::new("grep", "1.0.0"), vec![sales]).with("pattern", "Oslo");
        let oslo = executor.add(&grep, UnknownFunction::Refuse).await.unwrap().address;
        let sorted = recipe(&executor, "sort", &[oslo]).await;
        let digest = recipe(&executor, "sha256", &[sorted]).await;
        let got = executor.get(&digest, &Get::default()).await.unwrap();
        (got.source, got.cut_off, got.bytes().await.unwrap(), digest)
    };
    let (source, cut_off, before, first) = report("Oslo 1\nBergen 2\n").await;
    assert_eq!((source, cut_off), (Source::Computed(3), 0));
    let (source, cut_off, after, second) = report("Oslo 1\nBergen 3\n").await;
    assert_eq!((source, cut_off), (Source::Computed(1), 2), "only `grep` ran");
    assert_eq!(before, after);
    assert_ne!(first, second);
    // It is remembered under its own address, too.
    let got = executor.get(&second, &Get::default()).await.unwrap();
    assert_eq!((got.source, got.cut_off), (Source::Memo, 0));
    // To invalidate it is to have it computed.
    executor.invalidate(&second, &Default::default()).await.unwrap();
    assert_eq!(executor.get(&second, &Get::default()).await.unwrap().source, Source::Computed(1));
    let (source, cut_off, changed, _) = report("Oslo 2\nBergen 3\n").await;
    assert_eq!((source, cut_off), (Source::Computed(3), 0));
    assert_ne!(changed, after);
}

/// M2: five values that are damaged are five values that are computed again, not a value that is given up.
#[tokio::test]
async fn many_damaged_values_are_computed_again() {
    let folder = std::env::temp_dir().join(format!("anabranch-recipe-damage-{}", std::process::id()));
    // It may be left from an earlier process of this number.
    let _ = std::fs::remove_dir_all(&folder);
    let executor = Executor::open(&folder, Functions::builtin()).await.unwrap();
    let mut parts = Vec::new();
    for number in 0..5_u8 {
        let data = leaf(&executor, vec![number; 100_000]).await;
        parts.push(recipe(&executor, "bitwise_not", &[data]).await);
    }
    let all = recipe(&executor, "concat", &parts).await;
    let value = get(&executor, all).await.unwrap();
    for part in &parts {
        let output = executor.store().recall(part).await.unwrap().unwrap().output.to_string();
        let files = std::fs::read_dir(folder.join("files").join(&output[..2])).unwrap();
        let paths = files.map(|file| file.unwrap().path());
        let is_it = |path: &std::path::PathBuf| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&output))
        };
        let damaged = paths.filter(is_it).inspect(|path| std::fs::write(path, vec![1; 100_000]).unwrap());
        assert_eq!(damaged.count(), 1);
    }
    // Once more, from the parts.
    executor.invalidate(&all, &Default::default()).await.unwrap();
    assert!(get(&executor, all).await.unwrap() == value);
    executor.store().clone().close().await.unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
}
