//! Flights under shuttle: the engine's own source file, compiled against its primitives.

mod sync {
    pub(crate) use shuttle::sync::{Arc, Mutex, MutexGuard};
    pub(crate) use std::sync::PoisonError;
}

#[path = "../../../src/panics.rs"]
mod panics;
#[allow(dead_code, unreachable_pub, reason = "some of it serves the engine's callers alone")]
#[path = "../../../src/flight.rs"]
mod source;

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use shuttle::rand::Rng;
use shuttle::sync::Mutex;
use shuttle::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use shuttle::thread;
use source::{Flights, Panicked, Waiter};

const SCHEDULES: usize = 5_000;

fn check(test: impl Fn() + Send + Sync + 'static) {
    let test = Arc::new(test);
    let random = Arc::clone(&test);
    shuttle::check_random(move || random(), SCHEDULES);
    shuttle::check_pct(move || test(), SCHEDULES, 3);
}

struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

fn poll_once<F: Future>(future: F) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// What a work waits for: raised once, by another thread.
#[derive(Default)]
struct Signal {
    raised: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Signal {
    fn raise(&self) {
        self.raised.store(true, Ordering::SeqCst);
        let waker = self.waker.lock().unwrap().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    async fn wait(&self) {
        std::future::poll_fn(|cx| {
            *self.waker.lock().unwrap() = Some(cx.waker().clone());
            if self.raised.load(Ordering::SeqCst) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

/// How many works were begun, are alive, and were most at a time.
#[derive(Default)]
struct Works {
    begun: AtomicUsize,
    alive: AtomicUsize,
    most: AtomicUsize,
}

struct Alive(Arc<Works>);

impl Works {
    fn begin(self: &Arc<Self>) -> Alive {
        self.begun.fetch_add(1, Ordering::SeqCst);
        self.most.fetch_max(1 + self.alive.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
        Alive(Arc::clone(self))
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        thread::yield_now();
        self.0.alive.fetch_sub(1, Ordering::SeqCst);
    }
}

#[derive(Default)]
struct World {
    flights: Flights<u64, u64>,
    signal: Signal,
    works: Arc<Works>,
}

impl World {
    /// Joins a flight that lands when the signal is raised.
    fn join(self: &Arc<Self>, end: fn() -> u64) -> Waiter<u64, u64> {
        let world = Arc::clone(self);
        let work = move || async move {
            let alive = world.works.begin();
            world.signal.wait().await;
            // Shuttle must not switch threads inside a panic: they share one, and all would seem to panic.
            drop(alive);
            end()
        };
        self.flights.join(1, || None, work)
    }

    fn assert_over(&self) {
        assert_eq!((self.flights.open(), self.flights.waiters()), (0, 0));
        assert_eq!(self.works.alive.load(Ordering::SeqCst), 0);
        assert!(self.works.most.load(Ordering::SeqCst) <= 1, "two works of one key at a time");
    }
}

/// Three threads that stay, leave after a poll, or leave before it, while a fourth raises the signal.
fn come_and_go(end: fn() -> u64, expected: &Result<u64, Panicked>) {
    let world = Arc::new(World::default());
    let callers = [0; 3].map(|_| {
        let (world, expected) = (Arc::clone(&world), expected.clone());
        let patience = shuttle::rand::thread_rng().gen_range(0..4);
        thread::spawn(move || match patience {
            0 => drop(world.join(end)),
            1 => drop(poll_once(world.join(end))),
            _ => assert_eq!(block_on(world.join(end)), expected),
        })
    });
    world.signal.raise();
    for caller in callers {
        caller.join().unwrap();
    }
    world.assert_over();
}

#[test]
fn callers_that_come_and_go_leave_nothing_and_who_stays_is_served() {
    check(|| come_and_go(|| 7, &Ok(7)));
}

#[test]
fn a_panic_reaches_who_stays_whoever_comes_and_goes() {
    let panicked = Err(Panicked("boom".to_owned()));
    check(move || come_and_go(|| std::panic::resume_unwind(Box::new("boom")), &panicked));
}

#[test]
fn a_wake_up_that_meets_a_leaving_driver_is_not_lost() {
    check(|| {
        let world = Arc::new(World::default());
        let mut driver = Box::pin(world.join(|| 7));
        assert!(poll_once(driver.as_mut()).is_pending());
        let stays = world.join(|| 7);
        let raise = Arc::clone(&world);
        let raiser = thread::spawn(move || raise.signal.raise());
        let other = thread::spawn(move || block_on(stays));
        drop(driver);
        assert_eq!(other.join().unwrap(), Ok(7));
        raiser.join().unwrap();
        assert_eq!(world.works.begun.load(Ordering::SeqCst), 1);
        world.assert_over();
    });
}

#[test]
fn the_last_to_leave_and_the_next_to_come_never_share_or_overlap() {
    check(|| {
        let world = Arc::new(World::default());
        let callers = [0; 3].map(|_| {
            let world = Arc::clone(&world);
            thread::spawn(move || drop(poll_once(world.join(|| 7))))
        });
        for caller in callers {
            caller.join().unwrap();
        }
        world.assert_over();
    });
}

#[test]
fn derivas_remove_before_publish_race_computes_once() {
    check(|| {
        let world = Arc::new(World::default());
        let memo = Arc::new(Mutex::new(None));
        let ask = |world: &Arc<World>, memo: &Arc<Mutex<Option<u64>>>| {
            let (known, seen, publish) = (*memo.lock().unwrap(), Arc::clone(memo), Arc::clone(memo));
            let works = Arc::clone(&world.works);
            let work = move || async move {
                let _alive = works.begin();
                *publish.lock().unwrap() = Some(7);
                7
            };
            let join = || block_on(world.flights.join(1, move || *seen.lock().unwrap(), work));
            assert_eq!(known.map_or_else(join, Ok), Ok(7));
        };
        let callers = [0; 3].map(|_| {
            let (world, memo) = (Arc::clone(&world), Arc::clone(&memo));
            thread::spawn(move || ask(&world, &memo))
        });
        for caller in callers {
            caller.join().unwrap();
        }
        assert_eq!(world.works.begun.load(Ordering::SeqCst), 1);
        world.assert_over();
    });
}
