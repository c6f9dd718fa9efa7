//! What the tests share: executors, and functions that count, wait, fail and panic.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use anabranch_engine::Engine;
use anabranch_engine::clock::{Clock, Sleep, SystemClock};
use anabranch_engine::pool::{Pool, Task};
use anabranch_engine::seams::Seams;
use anabranch_engine::tasks::TokioTasks;
use anabranch_recipe::{
    Address, Arity, Error, Executor, Fault, FunctionId, Functions, Get, Recipe, Source, UnknownFunction,
};
use bytes::Bytes;

/// Functions that tests look into.
#[derive(Clone, Default)]
pub(crate) struct World {
    /// How often `counted` was called.
    pub calls: Arc<AtomicU32>,
    /// Whether `gated` may go on, and how many wait there.
    gate: Arc<(Mutex<Gate>, Condvar)>,
}

#[derive(Default)]
struct Gate {
    open: bool,
    waiting: u32,
}

/// Nothing here takes longer, unless it hangs.
pub(crate) const LONG: Duration = Duration::from_secs(600);

impl World {
    pub(crate) fn functions(&self) -> Functions {
        let mut functions = Functions::builtin();
        let calls = Arc::clone(&self.calls);
        let any = Arity::at_least(0);
        functions.add_whole("counted", "1", any, move |inputs, _| {
            calls.fetch_add(1, Ordering::SeqCst);
            Ok(inputs.concat().into())
        });
        let (world, calls) = (self.clone(), Arc::clone(&self.calls));
        functions.add_whole("gated", "1", any, move |inputs, _| {
            world.pass();
            calls.fetch_add(1, Ordering::SeqCst);
            Ok(inputs.concat().into())
        });
        functions.add_whole("failing", "1", any, |_, _| Err(Fault::input(0, "not to its taste")));
        functions.add_whole("passing", "1", any, |_, _| Err(Fault::Transient("out of luck".to_owned())));
        functions.add_whole("panicking", "1", any, |_, _| panic!("on purpose"));
        functions
    }

    pub(crate) fn executor(&self) -> Executor {
        Executor::in_memory(self.functions()).unwrap()
    }

    /// Waits at the gate.
    pub(crate) fn pass(&self) {
        let (gate, changed) = &*self.gate;
        let mut state = gate.lock().unwrap();
        state.waiting += 1;
        changed.notify_all();
        let (mut state, late) = changed.wait_timeout_while(state, LONG, |state| !state.open).unwrap();
        assert!(!late.timed_out(), "the gate was never opened");
        state.waiting -= 1;
    }

    pub(crate) fn open(&self) {
        self.gate.0.lock().unwrap().open = true;
        self.gate.1.notify_all();
    }

    /// Until so many wait at the gate.
    pub(crate) fn wait_for(&self, count: u32) {
        let state = self.gate.0.lock().unwrap();
        let (_state, late) =
            self.gate.1.wait_timeout_while(state, LONG, |state| state.waiting < count).unwrap();
        assert!(!late.timed_out(), "nobody came to the gate");
    }

    /// How many wait at the gate.
    pub(crate) fn waiting(&self) -> u32 {
        self.gate.0.lock().unwrap().waiting
    }

    /// Whether somebody waits at the gate.
    pub(crate) fn is_waited_at(&self) -> bool {
        self.waiting() > 0
    }

    pub(crate) fn calls(&self) -> u32 {
        self.calls.load(Ordering::SeqCst)
    }
}

/// A clock that moves only when a test advances it, and by a step with each reading.
pub(crate) struct TestClock {
    now: Mutex<Instant>,
    step: Duration,
}

impl TestClock {
    pub(crate) fn stepping(step: Duration) -> Arc<TestClock> {
        Arc::new(TestClock { now: Mutex::new(SystemClock.now()), step })
    }

    pub(crate) fn advance(&self, by: Duration) {
        *self.now.lock().unwrap() += by;
    }

    /// The parts of an engine on this clock, with this pool.
    pub(crate) fn seams(self: &Arc<TestClock>, pool: Arc<dyn Pool>) -> Seams {
        Seams {
            clock: Arc::clone(self) as Arc<dyn Clock>,
            tasks: Arc::new(TokioTasks),
            latency: Arc::clone(&pool),
            batch: Arc::clone(&pool),
            blocking: pool,
        }
    }

    /// An engine on this clock. What is estimated to take no longer than this runs in place, and so does a task for its
    /// pools.
    pub(crate) fn engine(self: &Arc<TestClock>, inline_threshold: Duration) -> Engine {
        let config = anabranch_engine::Config { inline_threshold, ..anabranch_engine::Config::default() };
        Engine::with_seams(self.seams(Arc::new(AtOnce)), &config)
    }
}

impl Clock for TestClock {
    fn now(&self) -> Instant {
        let mut now = self.now.lock().unwrap();
        *now += self.step;
        *now
    }

    fn sleep_until(&self, _: Instant) -> Sleep {
        Box::pin(std::future::pending())
    }
}

/// A pool that runs each task on the thread of its caller.
struct AtOnce;

impl Pool for AtOnce {
    fn submit(&self, task: Task) {
        task();
    }
}

pub(crate) async fn leaf(executor: &Executor, bytes: impl Into<Bytes>) -> Address {
    executor.put(bytes).await.unwrap().address
}

/// A recipe without parameters; the function is `name` (of version 1.0.0) or `name/version`.
pub(crate) fn recipe_of(function: &str, inputs: &[Address]) -> Recipe {
    let function = match function.split_once('/') {
        Some((name, version)) => FunctionId::new(name, version),
        None => FunctionId::new(function, "1.0.0"),
    };
    Recipe::new(function, inputs.to_vec())
}

pub(crate) async fn recipe(executor: &Executor, function: &str, inputs: &[Address]) -> Address {
    executor.add(&recipe_of(function, inputs), UnknownFunction::Accept).await.unwrap().address
}

pub(crate) async fn get(executor: &Executor, address: Address) -> Result<Bytes, Error> {
    executor.get(&address, &Get::default()).await?.bytes().await
}

pub(crate) async fn source(executor: &Executor, address: Address) -> Source {
    executor.get(&address, &Get::default()).await.unwrap().source
}
