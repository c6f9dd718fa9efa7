//! One thread, one agenda: whatever is not runnable now waits for a virtual time.

use std::collections::{BTreeMap, VecDeque};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

use anabranch_engine::clock::{Clock, Sleep};
use anabranch_engine::pool::{Pool, Task};
use anabranch_engine::seams::Seams;
use anabranch_engine::tasks::{AbortOnDrop, Tasks};
use anabranch_engine::{Config, Cost, Engine};

use crate::rng::Rng;

/// A virtual machine for an engine. Time moves only when nothing else can; a future that can never move again is
/// a panic, not a hang.
pub struct Sim {
    world: Arc<World>,
}

/// What is still around in a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leftovers {
    /// Spawned futures.
    pub tasks: usize,
    /// Jobs on a pool or in its queue.
    pub jobs: usize,
}

#[derive(Default)]
struct Lanes {
    threads: usize,
    busy: usize,
    queue: VecDeque<Task>,
}

struct World {
    state: Mutex<State>,
    pools: [Mutex<Lanes>; 3],
}

struct State {
    now: Instant,
    rng: Rng,
    /// By time, then at random, then in order of arrival.
    agenda: BTreeMap<(Instant, u64, u64), Action>,
    arrivals: u64,
    tasks: Vec<Option<(Boxed, Waker)>>,
    /// Tasks to poll; the main future is [`MAIN`].
    runnable: Vec<usize>,
}

type Boxed = Pin<Box<dyn Future<Output = ()> + Send>>;

const MAIN: usize = usize::MAX;

enum Action {
    Wake(Waker),
    EndJob(usize, Task),
}

impl Sim {
    /// A simulation whose choices follow from `seed`, with two threads a pool.
    #[allow(clippy::disallowed_methods, reason = "any instant will do to start virtual time from")]
    pub fn new(seed: u64) -> Sim {
        let state = State {
            now: Instant::now(),
            rng: Rng::new(seed),
            agenda: BTreeMap::new(),
            arrivals: 0,
            tasks: Vec::new(),
            runnable: Vec::new(),
        };
        let lanes = || Mutex::new(Lanes { threads: 2, ..Lanes::default() });
        Sim { world: Arc::new(World { state: Mutex::new(state), pools: [lanes(), lanes(), lanes()] }) }
    }

    /// An engine that lives in this simulation.
    pub fn engine(&self, config: &Config) -> Engine {
        let pool = |which| Arc::new(SimPool { world: Arc::clone(&self.world), which });
        let seams = Seams {
            clock: self.clock(),
            tasks: Arc::new(SimTasks(Arc::clone(&self.world))),
            latency: pool(0),
            batch: pool(1),
            blocking: pool(2),
        };
        Engine::with_seams(seams, config)
    }

    /// The virtual clock.
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(SimClock(Arc::clone(&self.world)))
    }

    /// Runs `future` to its end, moving time as needed.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        let waker = self.world.waker(MAIN);
        self.world.lock().runnable.push(MAIN);
        loop {
            match self.world.pick() {
                Some(MAIN) => {
                    if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                        self.world.lock().runnable.retain(|task| *task != MAIN);
                        return output;
                    }
                }
                Some(task) => self.world.poll_task(task),
                None => assert!(self.world.advance(), "nothing will ever wake the future: it hangs"),
            }
        }
    }

    /// Lets everything that is left come to its end, and tells what did not.
    pub fn settle(&self) -> Leftovers {
        loop {
            match self.world.pick() {
                Some(MAIN) => {}
                Some(task) => self.world.poll_task(task),
                None if self.world.advance() => {}
                None => return self.leftovers(),
            }
        }
    }

    /// What is around now.
    pub fn leftovers(&self) -> Leftovers {
        let jobs = self.world.pools.iter().map(|pool| {
            let lanes = pool.lock().unwrap();
            lanes.busy + lanes.queue.len()
        });
        Leftovers { jobs: jobs.sum(), tasks: self.world.lock().tasks.iter().flatten().count() }
    }
}

impl World {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn waker(self: &Arc<Self>, task: usize) -> Waker {
        Waker::from(Arc::new(TaskWaker { world: Arc::clone(self), task }))
    }

    /// Any of the runnable tasks.
    fn pick(&self) -> Option<usize> {
        let mut state = self.lock();
        if state.runnable.is_empty() {
            return None;
        }
        let count = state.runnable.len() as u64;
        let place = state.rng.within(0..count) as usize;
        Some(state.runnable.swap_remove(place))
    }

    fn poll_task(self: &Arc<Self>, task: usize) {
        let Some((mut future, waker)) = self.lock().tasks[task].take() else { return };
        if future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
            self.lock().tasks[task] = Some((future, waker));
        }
    }

    /// Moves time to the next entry of the agenda and does it; `false` when there is none.
    fn advance(self: &Arc<Self>) -> bool {
        let mut state = self.lock();
        let Some(((at, _, _), action)) = state.agenda.pop_first() else { return false };
        state.now = state.now.max(at);
        drop(state);
        match action {
            Action::Wake(waker) => waker.wake(),
            Action::EndJob(pool, task) => {
                (task.run)();
                self.end_job(pool);
            }
        }
        true
    }

    fn at(&self, at: Instant, action: Action) {
        let mut state = self.lock();
        let key = (at, state.rng.bits(), state.arrivals);
        state.arrivals += 1;
        state.agenda.insert(key, action);
    }

    fn begin_job(&self, pool: usize, task: Task) {
        let mut state = self.lock();
        let takes = match task.cost {
            Cost::About(time) => time,
            Cost::Unknown => state.rng.micros(0..5_000),
        };
        let end = state.now + takes;
        drop(state);
        self.at(end, Action::EndJob(pool, task));
    }

    fn end_job(&self, pool: usize) {
        let mut lanes = self.pools[pool].lock().unwrap();
        match lanes.queue.pop_front() {
            Some(task) => {
                drop(lanes);
                self.begin_job(pool, task);
            }
            None => lanes.busy -= 1,
        }
    }
}

struct TaskWaker {
    world: Arc<World>,
    task: usize,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        let mut state = self.world.lock();
        if !state.runnable.contains(&self.task) {
            state.runnable.push(self.task);
        }
    }
}

struct SimClock(Arc<World>);

impl Clock for SimClock {
    fn now(&self) -> Instant {
        self.0.lock().now
    }

    fn sleep_until(&self, at: Instant) -> Sleep {
        let world = Arc::clone(&self.0);
        let mut sleeper: Option<Waker> = None;
        Box::pin(std::future::poll_fn(move |cx| {
            if world.lock().now >= at {
                return Poll::Ready(());
            }
            if !sleeper.as_ref().is_some_and(|known| known.will_wake(cx.waker())) {
                sleeper = Some(cx.waker().clone());
                world.at(at, Action::Wake(cx.waker().clone()));
            }
            Poll::Pending
        }))
    }
}

struct SimPool {
    world: Arc<World>,
    which: usize,
}

impl Pool for SimPool {
    fn submit(&self, task: Task) {
        let mut lanes = self.world.pools[self.which].lock().unwrap();
        if lanes.busy == lanes.threads {
            lanes.queue.push_back(task);
            return;
        }
        lanes.busy += 1;
        drop(lanes);
        self.world.begin_job(self.which, task);
    }
}

struct SimTasks(Arc<World>);

impl Tasks for SimTasks {
    fn spawn(&self, future: Boxed) -> AbortOnDrop {
        let mut state = self.0.lock();
        let task = state.tasks.len();
        state.tasks.push(Some((future, self.0.waker(task))));
        state.runnable.push(task);
        drop(state);
        let world = Arc::clone(&self.0);
        AbortOnDrop::new(move || {
            let future = world.lock().tasks[task].take();
            drop(future);
        })
    }
}
