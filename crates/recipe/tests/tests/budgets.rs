//! Budgets of calls: where they begin, when they stop, what they may take; and equal inputs, which cut computing off.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::Duration;

use anabranch_content::{Collect, Store, Time};
use anabranch_engine::Engine;
use anabranch_engine::pool::{Pool, Task};
use anabranch_recipe::{
    Arity, BeginCost, Call, Config, Draft, DraftInput, Error, Executor, Fault, Function, FunctionId,
    Functions, Get, Kernel, Out, Recipe, Signature, Source, UnknownFunction, Value,
};
use bytes::Bytes;
use futures_util::FutureExt as _;

use crate::world::{LONG, TestClock, World, get, leaf, recipe};

fn executor(functions: Functions, config: Config) -> Executor {
    let store = Store::in_memory(anabranch_content::Config::default()).unwrap();
    Executor::new(store, functions, Engine::new(&anabranch_engine::Config::default()).unwrap(), config)
}

fn signature(name: &str, begin: BeginCost) -> Signature {
    let signature = Signature::new(FunctionId::new(name, "1"), "A function of a test.");
    Signature { begin, ..signature.inputs(Arity::at_least(0)).nanos_per_kib(1) }
}

/// The threads on which the parts of a call ran.
type Threads = Arc<Mutex<Vec<ThreadId>>>;

fn note(threads: &Threads) {
    threads.lock().unwrap().push(std::thread::current().id());
}

/// Tells on which threads its calls begin, read their inputs and finish.
struct ThreadRecorder(Signature, Threads);

impl Function for ThreadRecorder {
    fn signature(&self) -> &Signature {
        &self.0
    }

    fn begin(&self, _: &Call<'_>) -> Result<Box<dyn Kernel>, Fault> {
        note(&self.1);
        Ok(Box::new(ThreadRecorderKernel(Arc::clone(&self.1))))
    }
}

struct ThreadRecorderKernel(Threads);

impl Kernel for ThreadRecorderKernel {
    fn push(&mut self, _: usize, _: Bytes, _: &mut Out) -> Result<(), Fault> {
        note(&self.0);
        Ok(())
    }

    fn finish(&mut self, _: &mut Out) -> Result<(), Fault> {
        note(&self.0);
        Ok(())
    }
}

/// An engine with its own threads on which whatever is estimated to take less than this runs in place. The time that it
/// really takes is never too long.
fn engine_in_place(inline_threshold: Duration) -> Engine {
    Engine::new(&anabranch_engine::Config { inline_threshold, ..Default::default() }).unwrap()
}

/// Whether each part of a call ran on the thread of this task. In place runs what is estimated to take less than a second.
async fn runs_here(signature: Signature, inputs: &[&'static str], params: &[(&str, Value)]) -> Vec<bool> {
    let threads = Threads::default();
    let id = signature.id.clone();
    let mut functions = Functions::none();
    functions.add(ThreadRecorder(Signature { other_params: true, ..signature }, Arc::clone(&threads)));
    let store = Store::in_memory(anabranch_content::Config::default()).unwrap();
    let engine = engine_in_place(Duration::from_secs(1));
    let executor = Executor::new(store, functions, engine, Config::default());
    let mut asked = Recipe::new(id, Vec::new());
    for input in inputs {
        // The call pauses for an input that is in the store.
        asked.inputs.push(leaf(&executor, *input).await);
    }
    asked.params = params.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let address = executor.add(&asked, UnknownFunction::Refuse).await.unwrap().address;
    assert_eq!(get(&executor, address).await.unwrap(), "");
    let here = std::thread::current().id();
    threads.lock().unwrap().iter().map(|thread| *thread == here).collect()
}

/// H6, X3: a pattern or template is not compiled on an async worker, nor is it applied there.
#[tokio::test]
async fn a_call_that_compiles_runs_on_the_pool() {
    for (begin, is_here) in
        [(BeginCost::Trifling, true), (BeginCost::Tables, false), (BeginCost::Compiles, false)]
    {
        assert_eq!(runs_here(signature("recorder", begin), &[], &[]).await, [is_here; 2]);
        assert_eq!(runs_here(signature("recorder", begin), &["x"], &[]).await, [is_here; 3]);
    }
}

/// The time to read parameters does not follow from the length of the inputs.
#[tokio::test]
async fn a_call_with_large_parameters_runs_on_the_pool() {
    for (text, is_here) in [("x".repeat(1000), true), ("x".repeat(100_000), false)] {
        let recorder = signature("recorder", BeginCost::Trifling);
        assert_eq!(runs_here(recorder, &["x"], &[("text", Value::Text(text))]).await, [is_here; 3]);
    }
}

/// The number of inputs takes time, too, also if there is nothing in them.
#[tokio::test]
async fn a_call_with_many_inputs_runs_on_the_pool() {
    let recorder = || signature("recorder", BeginCost::Trifling);
    assert_eq!(runs_here(recorder(), &[""; 100], &[]).await, [true; 2]);
    assert_eq!(runs_here(recorder(), &[""; 10_000], &[]).await, [false; 2]);
}

/// A call whose estimate was far too low for one part of its work does the rest on the pool.
#[tokio::test]
async fn a_call_that_takes_long_in_place_leaves_it() {
    for (step, is_here) in [(Duration::ZERO, true), (Duration::from_millis(1), false)] {
        // Each part in place takes one step of this clock. The call gets five times what it is estimated to take.
        let clock = TestClock::stepping(step);
        let seams = clock.seams(Arc::new(OwnThread));
        let config =
            anabranch_engine::Config { inline_threshold: Duration::from_micros(200), ..Default::default() };
        let threads = Threads::default();
        let mut functions = Functions::none();
        functions.add(ThreadRecorder(signature("recorder", BeginCost::Trifling), Arc::clone(&threads)));
        let store = Store::in_memory(anabranch_content::Config::default()).unwrap();
        let executor = Executor::new(store, functions, Engine::with_seams(seams, &config), Config::default());
        let data = leaf(&executor, "x").await;
        let recorder = recipe(&executor, "recorder/1", &[data]).await;
        assert_eq!(get(&executor, recorder).await.unwrap(), "");
        let here = std::thread::current().id();
        let ran: Vec<bool> = threads.lock().unwrap().iter().map(|thread| *thread == here).collect();
        // It begins in place, and pauses for its input.
        assert_eq!(ran, [true, is_here, is_here], "{step:?}");
    }
}

/// A pool that runs each task on a thread of its own while its caller waits.
struct OwnThread;

impl Pool for OwnThread {
    fn submit(&self, task: Task) {
        std::thread::scope(|scope| scope.spawn(task).join()).unwrap();
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
        "the pattern has 180004 bytes; there may be 16384"
    );
    let classes = error("grep/1.0.0", "pattern", text("\\pL".repeat(251))).await;
    assert!(classes.starts_with("the pattern has 251 character classes"), "{classes}");
    // The bounds are for all patterns of a call.
    let sums = [
        ("redact/1.0.0", "patterns", text(vec!["\\d\\d"; 126].join(","))),
        ("redact/2.0.0", "patterns", Value::List(vec![text("\\d\\d".to_owned()); 126])),
        ("schema_validate/1.0.0", "schema", {
            let rules: Vec<String> = (0..63).map(|at| format!(r#""{at}[a][b][c][d]":true"#)).collect();
            text(format!(r#"{{"patternProperties":{{{}}}}}"#, rules.join(",")))
        }),
    ];
    for (function, name, value) in sums {
        let problem = error(function, name, value).await;
        assert!(problem.starts_with("the patterns have 252 character classes"), "{function}: {problem}");
    }
    let rules: Vec<String> = (0..3).map(|at| format!(r#""{at}{}":true"#, "x".repeat(7_000))).collect();
    let schema = text(format!(r#"{{"patternProperties":{{{}}}}}"#, rules.join(",")));
    let problem = error("schema_validate/1.0.0", "schema", schema).await;
    assert_eq!(problem, "the patterns have 21003 bytes; there may be 16384");
    let many = Value::List(vec![text("\\w{60}".to_owned()); 300]);
    let many = error("redact/2.0.0", "patterns", many).await;
    assert_eq!(many, "there are 300 patterns; there may be 256");
}

/// As many patterns as are allowed have the memory that they need, if they are small.
#[tokio::test]
async fn as_many_patterns_as_are_allowed_fit_into_memory() {
    let executor = Executor::in_memory(Functions::builtin()).unwrap();
    let value = async |function: &str, input: &'static str, name: &str, value: String| {
        let data = leaf(&executor, input).await;
        let asked = Recipe::new(function.parse().unwrap(), vec![data]).with(name, value);
        get(&executor, executor.add(&asked, UnknownFunction::Refuse).await.unwrap().address).await.unwrap()
    };
    let words: Vec<String> = (0..256).map(|at| format!("word{at:03}")).collect();
    let redacted = value("redact/1.0.0", "a word007 b", "patterns", words.join(",")).await;
    assert_eq!(redacted, "a [REDACTED] b");
    let rules: Vec<String> = (0..64)
        .map(|at| match at % 4 {
            0 => format!(r#""a{at}":{{"pattern":"^[a-z0-9_-]{{1,64}}$"}}"#),
            1 => format!(r#""b{at}":{{"pattern":"^\\d{{4}}-\\d{{2}}-\\d{{2}}$"}}"#),
            2 => format!(r#""c{at}":{{"pattern":"^[^@ ]+@[^@ ]+\\.[a-z]{{{},}}$"}}"#, at + 2),
            _ => format!(r#""d{at}":{{"pattern":"^(red|green|blue){at}$"}}"#),
        })
        .collect();
    let schema = format!(r#"{{"properties":{{{}}}}}"#, rules.join(","));
    let valid = value("schema_validate/1.0.0", r#"{"a0":"x","d3":"red3"}"#, "schema", schema).await;
    assert_eq!(valid, r#"{"a0":"x","d3":"red3"}"#);
}

/// Works until it is told to stop.
struct Endless(Signature, Mutex<Sender<Fault>>);

impl Function for Endless {
    fn signature(&self) -> &Signature {
        &self.0
    }

    fn begin(&self, call: &Call<'_>) -> Result<Box<dyn Kernel>, Fault> {
        self.1.lock().unwrap().send(Fault::Transient("begun".to_owned())).unwrap();
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

/// A function of a program can stop, too.
#[tokio::test]
async fn a_custom_function_checks_its_budget() {
    let mut functions = Functions::none();
    functions.add_whole("endless", "1", Arity::at_least(0), |_, arguments| {
        loop {
            arguments.check_budget()?;
            std::hint::spin_loop();
        }
    });
    let executor = executor(functions, Config { call_time: Duration::from_millis(1), ..Config::default() });
    let endless = recipe(&executor, "endless/1", &[]).await;
    let error = get(&executor, endless).await.unwrap_err();
    assert!(matches!(&error, Error::Function { fault: Fault::TooLong { .. }, .. }), "{error}");
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
    let deadline = Some(executor.engine().clock().now() + Duration::from_secs(60));
    let got = executor.get(&quick, &Get { deadline, ..Get::default() }).await;
    world.open();
    assert_eq!(got.unwrap().bytes().await.unwrap(), "small");
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

/// A recipe that was invalidated is computed, also if the value that it reads was forgotten before or collected.
#[tokio::test]
async fn an_invalidated_recipe_is_computed_whatever_was_forgotten_before() {
    let time = Arc::new(AtomicU64::new(0));
    let now = Arc::clone(&time);
    let clock = Arc::new(move || Time(now.load(Ordering::Relaxed)));
    let store = Store::in_memory(anabranch_content::Config { clock, ..Default::default() }).unwrap();
    let engine = Engine::new(&anabranch_engine::Config::default()).unwrap();
    let executor = Executor::new(store, World::default().functions(), engine, Config::default());
    let data = leaf(&executor, "b\na\n").await;
    let sorted = recipe(&executor, "sort", &[data]).await;
    let digest = recipe(&executor, "sha256", &[sorted]).await;
    let got = async || {
        let got = executor.get(&digest, &Get::default()).await.unwrap();
        (got.source, got.cut_off)
    };
    assert_eq!(got().await, (Source::Computed(2), 0));
    for address in [sorted, digest] {
        executor.invalidate(&address, &Default::default()).await.unwrap();
    }
    assert_eq!(got().await, (Source::Computed(2), 0));
    for address in [sorted, digest] {
        executor.invalidate(&address, &Default::default()).await.unwrap();
    }
    // The recipe becomes young again. That it was invalidated is still known.
    time.fetch_add(Duration::from_secs(3600).as_millis() as u64, Ordering::Relaxed);
    assert_eq!(recipe(&executor, "sha256", &[sorted]).await, digest);
    assert_eq!(got().await, (Source::Computed(2), 0));
    executor.store().pin(&digest).await.unwrap();
    let terms = Collect { grace: Duration::ZERO, ..Collect::default() };
    executor.store().collect(terms).await.unwrap();
    assert!(executor.store().recall(&sorted).await.unwrap().is_none(), "collected");
    executor.invalidate(&digest, &Default::default()).await.unwrap();
    assert_eq!(got().await, (Source::Computed(2), 0));
}

/// What was computed for a held recipe still cuts computing off after a collection.
#[tokio::test]
async fn a_collection_leaves_early_cut_off_to_held_recipes() {
    let executor = Executor::in_memory(World::default().functions()).unwrap();
    let digest_of = async |sales: &str| {
        let sales = leaf(&executor, sales.to_owned()).await;
        let grep = Recipe::new(FunctionId::new("grep", "1.0.0"), vec![sales]).with("pattern", "Oslo");
        let oslo = executor.add(&grep, UnknownFunction::Refuse).await.unwrap().address;
        recipe(&executor, "sha256", &[oslo]).await
    };
    let first = digest_of("Oslo 1\nBergen 2\n").await;
    let value = get(&executor, first).await.unwrap();
    executor.store().pin(&first).await.unwrap();
    let terms = Collect { grace: Duration::ZERO, ..Collect::default() };
    executor.store().collect(terms).await.unwrap();
    let second = digest_of("Oslo 1\nBergen 3\n").await;
    let got = executor.get(&second, &Get::default()).await.unwrap();
    assert_eq!((got.source, got.cut_off), (Source::Computed(1), 1), "only `grep` ran");
    assert_eq!(got.bytes().await.unwrap(), value);
    // It goes with the value.
    executor.store().unpin(&first).await.unwrap();
    executor.store().collect(Collect { grace: Duration::ZERO, ..Collect::default() }).await.unwrap();
    assert_eq!(executor.store().stats().memos, 0);
}

/// A streaming call takes the same memory for an input of any size, and does not wait behind large calls.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streaming_calls_do_not_wait_behind_a_large_one() {
    let world = World::default();
    let mut functions = world.functions();
    for name in ["one", "other"] {
        let signature = signature(name, BeginCost::Compiles).base_memory(150 << 20);
        let world = world.clone();
        functions.add_whole_as(signature, move |_, _| {
            world.pass();
            Ok(Bytes::new())
        });
    }
    let executor = executor(functions, Config::default());
    let file = leaf(&executor, vec![7; 2_000_000]).await;
    let digest = recipe(&executor, "sha256", &[file]).await;
    let mut one = Box::pin(get(&executor, recipe(&executor, "one/1", &[]).await));
    while !world.is_waited_at() {
        assert!((&mut one).now_or_never().is_none());
        tokio::task::yield_now().await;
    }
    let mut other = Box::pin(get(&executor, recipe(&executor, "other/1", &[]).await));
    for _ in 0..100 {
        assert!((&mut other).now_or_never().is_none());
        tokio::task::yield_now().await;
    }
    let deadline = Some(executor.engine().clock().now() + Duration::from_secs(60));
    let got = executor.get(&digest, &Get { deadline, ..Get::default() }).await;
    world.open();
    assert_eq!(got.unwrap().size, 32);
    one.await.unwrap();
    other.await.unwrap();
}

/// The number of inputs and the parameters are checked when a recipe is added.
#[tokio::test]
async fn a_recipe_is_checked_when_it_is_added() {
    let executor = Executor::in_memory(Functions::builtin()).unwrap();
    let data = leaf(&executor, "x").await;
    let number = |value: i64| Value::Int(value);
    for (wrong, expected) in [
        (Recipe::new("grep/1.0.0".parse().unwrap(), vec![data]), "`pattern`"),
        (Recipe::new("sha256/1.0.0".parse().unwrap(), vec![]), "it takes 1 input, the recipe has 0"),
        (Recipe::new("take/1.0.0".parse().unwrap(), vec![data]).with("bytes", number(-1)), "`bytes`"),
        (Recipe::new("sha256/1.0.0".parse().unwrap(), vec![data]).with("salt", "x"), "`salt`: unknown"),
    ] {
        for unknown in [UnknownFunction::Refuse, UnknownFunction::Accept] {
            let error = executor.add(&wrong, unknown).await.unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let draft = Draft {
            function: wrong.function.clone(),
            inputs: wrong.inputs.iter().map(|input| DraftInput::Address(*input)).collect(),
            params: wrong.params.clone(),
        };
        let error = executor.check_all(&[draft], UnknownFunction::Refuse).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
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
