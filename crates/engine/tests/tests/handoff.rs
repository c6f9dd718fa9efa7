//! The pool, the mailbox and the limits under shuttle: the engine's own source files, compiled against its primitives, so that
//! each interleaving of threads is chosen, not met by luck.

mod sync {
    pub(crate) use shuttle::sync::{Arc, Condvar, Mutex, MutexGuard};
    pub(crate) use std::sync::PoisonError;
}

#[path = "../../src/mailbox.rs"]
mod mailbox;
#[allow(dead_code, unreachable_pub, reason = "some of it serves the engine alone")]
#[path = "../../src/pool.rs"]
mod pool;

mod clock {
    pub(crate) use anabranch_engine::clock::Clock;
}
#[allow(dead_code, unreachable_pub, unused_imports, reason = "some of it serves the engine alone")]
#[path = "../../src/limit/mod.rs"]
mod limit;

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Wake, Waker};

use mailbox::Mailbox;
use pool::{Task, ThreadPool};
use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::thread;

const SCHEDULES: usize = 2_000;

fn check(test: impl Fn() + Send + Sync + 'static) {
    let test = Arc::new(test);
    let random = Arc::clone(&test);
    shuttle::check_random(move || random(), SCHEDULES);
    shuttle::check_pct(move || test(), SCHEDULES, 3);
}

fn pool(threads: usize) -> ThreadPool {
    ThreadPool::new("test", threads, |_, body| {
        drop(thread::spawn(body));
        Ok(())
    })
}

fn task(run: impl FnOnce() + Send + 'static) -> Task {
    Box::new(run)
}

struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for `count` messages the way a run does: take, else ask to be woken and sleep.
fn receive(mailbox: &Mailbox<usize>, count: usize) -> Vec<usize> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let (mut inbox, mut received) = (VecDeque::new(), Vec::new());
    while received.len() < count {
        mailbox.take(&mut inbox);
        received.extend(inbox.drain(..));
        if received.len() < count && mailbox.wait(&waker) {
            thread::park();
        }
    }
    received
}

#[test]
fn every_result_reaches_the_owner_and_no_wake_up_is_lost() {
    check(|| {
        let mailbox = Arc::new(Mailbox::new());
        let pool = pool(2);
        for number in 0..3 {
            let mailbox = Arc::clone(&mailbox);
            pool.push(task(move || mailbox.push(number)));
        }
        let mut received = receive(&mailbox, 3);
        received.sort_unstable();
        assert_eq!(received, [0, 1, 2]);
    });
}

#[test]
fn a_task_is_run_or_dropped_exactly_once_when_the_pool_goes() {
    struct Count(Arc<AtomicUsize>);
    impl Drop for Count {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    check(|| {
        let (ran, gone) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let threads = pool(2);
        for _ in 0..3 {
            let (ran, count) = (Arc::clone(&ran), Count(Arc::clone(&gone)));
            threads.push(task(move || {
                let _count = count;
                ran.fetch_add(1, Ordering::SeqCst);
            }));
        }
        drop(threads);
        while gone.load(Ordering::SeqCst) < 3 {
            thread::yield_now();
        }
        assert!(ran.load(Ordering::SeqCst) <= 3);
        assert_eq!(gone.load(Ordering::SeqCst), 3);
    });
}

#[test]
fn mail_to_a_run_that_is_gone_is_dropped_at_once() {
    check(|| {
        let mailbox = Arc::new(Mailbox::new());
        let value = Arc::new(());
        let sender = {
            let (mailbox, value) = (Arc::clone(&mailbox), Arc::clone(&value));
            thread::spawn(move || mailbox.push(value))
        };
        mailbox.close();
        sender.join().unwrap();
        assert_eq!(Arc::strong_count(&value), 1, "nothing keeps the value");
    });
}

#[test]
fn a_pool_runs_no_more_tasks_at_a_time_than_it_has_threads() {
    check(|| {
        let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let mailbox = Arc::new(Mailbox::new());
        let pool = pool(2);
        for number in 0..4 {
            let (running, most, mailbox) = (Arc::clone(&running), Arc::clone(&most), Arc::clone(&mailbox));
            pool.push(task(move || {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                thread::yield_now();
                running.fetch_sub(1, Ordering::SeqCst);
                mailbox.push(number);
            }));
        }
        receive(&mailbox, 4);
        assert!(most.load(Ordering::SeqCst) <= 2);
    });
}

#[test]
fn an_idle_thread_is_not_counted_on_twice() {
    check(|| {
        let mailbox = Arc::new(Mailbox::new());
        let pool = pool(2);
        let first = Arc::clone(&mailbox);
        pool.push(task(move || first.push(0)));
        receive(&mailbox, 1);
        // Each waits until the other runs too: on one thread they would wait for ever.
        let met = Arc::new(shuttle::sync::Barrier::new(2));
        for number in 0..2 {
            let (mailbox, met) = (Arc::clone(&mailbox), Arc::clone(&met));
            pool.push(task(move || {
                met.wait();
                mailbox.push(number);
            }));
        }
        receive(&mailbox, 2);
    });
}

#[test]
fn without_any_thread_tasks_are_dropped_not_kept() {
    let test = || {
        let pool = ThreadPool::new("test", 2, |_, _| Err(std::io::Error::other("no threads left")));
        let value = Arc::new(());
        let held = Arc::clone(&value);
        pool.push(task(move || drop(held)));
        assert_eq!(Arc::strong_count(&value), 1);
    };
    shuttle::check_random(test, 1);
}

/// A clock that stands still.
struct Still(std::time::Instant);

impl anabranch_engine::clock::Clock for Still {
    fn now(&self) -> std::time::Instant {
        self.0
    }

    fn sleep_until(&self, _: std::time::Instant) -> anabranch_engine::clock::Sleep {
        Box::pin(std::future::pending())
    }
}

/// A thread that waits for a slot, or has gone.
struct Asker {
    state: shuttle::sync::Mutex<AskerState>,
    thread: thread::Thread,
}

enum AskerState {
    Waiting,
    Granted(limit::Permit),
    Gone,
}

impl limit::SlotReceiver for Asker {
    fn granted(&self, permit: limit::Permit) {
        let mut state = self.state.lock().unwrap();
        if matches!(*state, AskerState::Waiting) {
            *state = AskerState::Granted(permit);
            drop(state);
            self.thread.unpark();
        } else {
            // As a closed mailbox does: the slot goes to the next, with no lock held.
            drop(state);
            drop(permit);
        }
    }

    fn look_at(&self, _: limit::LimitKey, _: std::time::Instant) {}
}

/// Asks for a slot, and gives up its place at once or waits, then holds the slot while others may run.
fn call(limits: &limit::Limits, key: limit::LimitKey, patient: bool, running: &AtomicUsize) {
    let asker =
        Arc::new(Asker { state: shuttle::sync::Mutex::new(AskerState::Waiting), thread: thread::current() });
    let permit = match limits.ask(key, 0, || Arc::clone(&asker) as Arc<dyn limit::SlotReceiver>) {
        limit::SlotReply::Granted(permit) => Some(permit),
        limit::SlotReply::Queued(place) if !patient => {
            let state = std::mem::replace(&mut *asker.state.lock().unwrap(), AskerState::Gone);
            drop(place);
            drop(state);
            None
        }
        limit::SlotReply::Queued(place) => Some(wait_for_slot(&asker, place)),
    };
    if let Some(mut permit) = permit {
        assert_eq!(running.fetch_add(1, Ordering::SeqCst), 0, "two hold the only slot");
        thread::yield_now();
        running.fetch_sub(1, Ordering::SeqCst);
        permit.call_made = true;
        permit.end(limit::CallEnd::with(limit::CallOutcome::Answered));
    }
}

fn wait_for_slot(asker: &Asker, place: limit::QueuePlace) -> limit::Permit {
    loop {
        let mut state = asker.state.lock().unwrap();
        if let AskerState::Granted(_) = *state
            && let AskerState::Granted(permit) = std::mem::replace(&mut *state, AskerState::Gone)
        {
            drop(state);
            drop(place);
            return permit;
        }
        drop(state);
        thread::park();
    }
}

#[test]
fn a_limit_grants_every_patient_asker_one_at_a_time_and_ends_empty() {
    #[allow(clippy::disallowed_methods, reason = "any instant will do")]
    let now = std::time::Instant::now();
    check(move || {
        let limits = limit::Limits::new(Arc::new(Still(now)));
        let allowance = limit::Allowance {
            concurrency: limit::Concurrency::Fixed(1),
            requests: None,
            tokens: None,
            parent: None,
        };
        let parent = limits.add("account", allowance).unwrap();
        let key = limits.add("backend", limit::Allowance { parent: Some(parent), ..allowance }).unwrap();
        let running = Arc::new(AtomicUsize::new(0));
        let askers: Vec<_> = [true, false, true, true]
            .into_iter()
            .map(|patient| {
                let (limits, running) = (limits.clone(), Arc::clone(&running));
                thread::spawn(move || call(&limits, key, patient, &running))
            })
            .collect();
        for asker in askers {
            asker.join().unwrap();
        }
        for key in [key, parent] {
            let status = limits.status(key);
            assert_eq!((status.in_flight, status.waiting), (0, 0));
        }
    });
}
