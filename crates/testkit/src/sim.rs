//! One thread, one agenda: whatever is not runnable now waits for a virtual time.

mod job;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

use anabranch_engine::clock::{Clock, Sleep};
use anabranch_engine::pool::{Pool, Task};
use anabranch_engine::seams::Seams;
use anabranch_engine::tasks::{AbortOnDrop, Tasks};
use anabranch_engine::{Config, Engine};

pub use self::job::spend;
use self::job::{Progress, RunningJob};
use crate::rng::Rng;

/// A virtual machine for an engine. Time moves only when nothing else can; a future that can never move again is
/// a panic, not a hang.
///
/// A job begins when a thread of its pool takes it, takes as long as it says by [`spend`], and may ask its check in
/// between.
pub struct Sim {
    world: Arc<World>,
    /// Jobs that have begun, by number.
    jobs: RefCell<BTreeMap<u64, RunningJob>>,
    jobs_begun: Cell<usize>,
}

/// What is still around in a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leftovers {
    /// Spawned futures.
    pub tasks: usize,
    /// Jobs on a pool or in its queue.
    pub jobs: usize,
}

/// The threads of one pool, and the tasks that wait for one.
#[derive(Default)]
struct Threads {
    count: usize,
    busy: usize,
    queue: VecDeque<Task>,
}

struct World {
    state: Mutex<State>,
    pools: [Mutex<Threads>; 3],
}

struct State {
    now: Instant,
    rng: Rng,
    /// By time, then at random, then in order of arrival.
    agenda: BTreeMap<(Instant, u64, u64), Action>,
    arrivals: u64,
    tasks: Vec<Option<(TaskFuture, Waker)>>,
    /// Tasks to poll; the main future is [`MAIN`].
    runnable: Vec<usize>,
}

type TaskFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

const MAIN: usize = usize::MAX;

enum Action {
    Wake(Waker),
    /// A thread of this pool takes a task, if both are there.
    TakeTask(usize),
    /// This job of that pool goes on.
    Resume(usize, u64),
}

impl Sim {
    /// A simulation whose choices follow from `seed`, with two threads per pool.
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
        let threads = || Mutex::new(Threads { count: 2, ..Threads::default() });
        let pools = [threads(), threads(), threads()];
        Sim {
            world: Arc::new(World { state: Mutex::new(state), pools }),
            jobs: RefCell::default(),
            jobs_begun: Cell::new(0),
        }
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

    /// Spawns tasks of this simulation.
    pub fn tasks(&self) -> Arc<dyn Tasks> {
        Arc::new(SimTasks(Arc::clone(&self.world)))
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
                None => assert!(self.advance(), "nothing will ever wake the future: it hangs"),
            }
        }
    }

    /// Lets everything that is left come to its end, and tells what did not.
    pub fn settle(&self) -> Leftovers {
        loop {
            match self.world.pick() {
                Some(MAIN) => {}
                Some(task) => self.world.poll_task(task),
                None if self.advance() => {}
                None => return self.leftovers(),
            }
        }
    }

    /// What is around now.
    pub fn leftovers(&self) -> Leftovers {
        let jobs = self.world.pools.iter().map(|pool| {
            let threads = pool.lock().unwrap();
            threads.busy + threads.queue.len()
        });
        Leftovers { jobs: jobs.sum(), tasks: self.world.lock().tasks.iter().flatten().count() }
    }

    /// The number of jobs that threads of the pools have taken so far.
    pub fn jobs_begun(&self) -> usize {
        self.jobs_begun.get()
    }

    /// Moves time to the next entry of the agenda and does it; `false` when there is none.
    fn advance(&self) -> bool {
        let mut state = self.world.lock();
        let Some(((at, _, arrival), action)) = state.agenda.pop_first() else { return false };
        state.now = state.now.max(at);
        drop(state);
        match action {
            Action::Wake(waker) => waker.wake(),
            Action::TakeTask(pool) => {
                if let Some(task) = self.world.take_task(pool) {
                    self.jobs_begun.update(|count| count + 1);
                    self.resume(pool, arrival, RunningJob::new(task));
                }
            }
            Action::Resume(pool, number) => {
                let job = self.jobs.borrow_mut().remove(&number).expect("a job on the agenda has begun");
                self.resume(pool, number, job);
            }
        }
        true
    }

    /// Lets a job work until it spends time or ends.
    fn resume(&self, pool: usize, number: u64, mut job: RunningJob) {
        match job.resume() {
            Progress::Spends(time) => {
                self.jobs.borrow_mut().insert(number, job);
                let at = self.world.lock().now + time;
                self.world.at(at, Action::Resume(pool, number));
            }
            Progress::Ended => {
                self.world.pools[pool].lock().unwrap().busy -= 1;
                let now = self.world.lock().now;
                self.world.at(now, Action::TakeTask(pool));
            }
        }
    }
}

/// Jobs that nobody let come to their end do so now: they have values and replies on their stacks.
impl Drop for Sim {
    fn drop(&mut self) {
        for mut job in std::mem::take(self.jobs.get_mut()).into_values() {
            while let Progress::Spends(_) = job.resume() {}
        }
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

    fn at(&self, at: Instant, action: Action) {
        let mut state = self.lock();
        let key = (at, state.rng.bits(), state.arrivals);
        state.arrivals += 1;
        state.agenda.insert(key, action);
    }

    /// Gives a waiting task to an idle thread.
    fn take_task(&self, pool: usize) -> Option<Task> {
        let mut threads = self.pools[pool].lock().unwrap();
        if threads.busy == threads.count {
            return None;
        }
        let task = threads.queue.pop_front()?;
        threads.busy += 1;
        Some(task)
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
        self.world.pools[self.which].lock().unwrap().queue.push_back(task);
        let now = self.world.lock().now;
        self.world.at(now, Action::TakeTask(self.which));
    }
}

struct SimTasks(Arc<World>);

impl Tasks for SimTasks {
    fn spawn(&self, future: TaskFuture) -> AbortOnDrop {
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
