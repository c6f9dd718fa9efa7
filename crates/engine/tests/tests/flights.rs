//! What callers of a flight may count on; `threads` has the same under shuttle, `callers` in simulation.

mod callers;
mod threads;

use std::future::{pending, poll_fn};
use std::hash::{BuildHasherDefault, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use anabranch_engine::flight::{Flights, Panicked, Waiter};
use tokio::sync::oneshot;

type Answer = Result<u64, &'static str>;

/// A waiter with a task of its own, which counts how often it is woken.
struct Caller {
    waiter: Pin<Box<Waiter<u64, Answer>>>,
    wakes: Arc<Wakes>,
}

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Caller {
    fn new(waiter: Waiter<u64, Answer>) -> Caller {
        Caller { waiter: Box::pin(waiter), wakes: Arc::default() }
    }

    fn poll(&mut self) -> Poll<Result<Answer, Panicked>> {
        let waker = Waker::from(Arc::clone(&self.wakes));
        self.waiter.as_mut().poll(&mut Context::from_waker(&waker))
    }

    fn wakes(&self) -> usize {
        self.wakes.0.load(Ordering::SeqCst)
    }
}

/// Opens a flight that lands with what is sent.
fn open(flights: &Flights<u64, Answer>) -> (oneshot::Sender<Answer>, Caller) {
    let (sender, receiver) = oneshot::channel();
    (sender, Caller::new(flights.join(1, || None, || async { receiver.await.unwrap() })))
}

/// Joins the open flight.
fn join(flights: &Flights<u64, Answer>) -> Caller {
    Caller::new(flights.join(1, || panic!("looked again"), || async { panic!("began again") }))
}

/// Work that never ends, and does this when it is dropped.
async fn until_dropped(act: impl FnOnce()) -> Answer {
    struct OnDrop<F: FnOnce()>(Option<F>);
    impl<F: FnOnce()> Drop for OnDrop<F> {
        fn drop(&mut self) {
            (self.0.take().unwrap())();
        }
    }
    let _guard = OnDrop(Some(act));
    pending().await
}

const SEVEN: Poll<Result<Answer, Panicked>> = Poll::Ready(Ok(Ok(7)));

#[test]
fn callers_of_one_key_share_one_computation() {
    let flights = Flights::default();
    let (sender, mut first) = open(&flights);
    let mut second = join(&flights.clone());
    assert!(first.poll().is_pending() && second.poll().is_pending());
    assert_eq!((flights.open(), flights.waiters()), (1, 2));
    sender.send(Ok(7)).unwrap();
    assert_eq!((first.poll(), second.poll()), (SEVEN, SEVEN));
    assert_eq!((flights.open(), flights.waiters()), (0, 0));
}

#[test]
fn callers_of_different_keys_do_not_meet() {
    let flights = Flights::default();
    let (_sender, mut waiting) = open(&flights);
    assert!(waiting.poll().is_pending());
    let other = |key| Caller::new(flights.join(key, || None, move || async move { Ok(key) }));
    let mut others: Vec<_> = (2..100).map(other).collect();
    assert_eq!((flights.open(), flights.waiters()), (99, 99));
    assert!(others.iter_mut().zip(2..).all(|(caller, key)| caller.poll() == Poll::Ready(Ok(Ok(key)))));
    assert_eq!(flights.open(), 1);
}

/// Gives all keys the same hash.
#[derive(Default)]
struct SameHash;

impl Hasher for SameHash {
    fn write(&mut self, _: &[u8]) {}

    fn finish(&self) -> u64 {
        7
    }
}

#[test]
fn keys_with_the_same_hash_do_not_meet() {
    let flights = Flights::<u64, Answer, BuildHasherDefault<SameHash>>::with_hasher();
    let join = |key| flights.join(key, || None, move || async move { Ok(key) });
    let (first, second, third) = (join(1), join(2), join(1));
    assert_eq!((flights.open(), flights.waiters()), (2, 3));
    assert!(flights.is_open(&2) && !flights.is_open(&3));
    let mut cx = Context::from_waker(Waker::noop());
    let answers = [first, second, third].map(|mut waiter| Pin::new(&mut waiter).poll(&mut cx));
    assert_eq!(answers, [1, 2, 1].map(|key| Poll::Ready(Ok(Ok(key)))));
    assert_eq!(flights.open(), 0);
}

#[test]
fn derivas_hang_a_driver_dropped_midway_strands_nobody() {
    let flights = Flights::default();
    let (sender, mut driver) = open(&flights);
    let mut others = [join(&flights), join(&flights)];
    assert!(driver.poll().is_pending());
    assert!(others.iter_mut().all(|other| other.poll().is_pending()));
    drop(driver);
    sender.send(Ok(7)).unwrap();
    assert_eq!(others.each_ref().map(Caller::wakes), [1, 0], "the work's wake-up reaches a new driver");
    assert_eq!(others[0].poll(), SEVEN);
    assert_eq!(others.each_ref().map(Caller::wakes), [1, 1]);
    assert_eq!(others[1].poll(), SEVEN);
}

#[test]
fn a_wake_up_that_its_driver_did_not_live_to_use_goes_to_another() {
    let flights = Flights::default();
    let (sender, mut driver) = open(&flights);
    let mut other = join(&flights);
    assert!(driver.poll().is_pending() && other.poll().is_pending());
    sender.send(Ok(7)).unwrap();
    assert_eq!((driver.wakes(), other.wakes()), (1, 0));
    drop(driver);
    assert_eq!(other.wakes(), 1);
    assert_eq!(other.poll(), SEVEN);
}

#[test]
fn the_driver_alone_is_woken_while_pending_and_all_are_once_at_the_end() {
    let flights = Flights::default();
    let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
    let polls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&polls);
    let work = poll_fn(move |cx| {
        count.fetch_add(1, Ordering::SeqCst);
        while let Poll::Ready(number) = receiver.poll_recv(cx) {
            if number == Some(7) {
                return Poll::Ready(Ok(7));
            }
        }
        Poll::Pending
    });
    let mut callers = vec![Caller::new(flights.join(1, || None, || work))];
    callers.extend((0..4).map(|_| join(&flights)));
    assert!(callers.iter_mut().all(|caller| caller.poll().is_pending()));
    for number in [5, 6, 7] {
        sender.try_send(number).unwrap();
        assert_eq!(callers[0].poll().is_ready(), number == 7);
    }
    assert_eq!(callers.iter().map(Caller::wakes).collect::<Vec<_>>(), [3, 1, 1, 1, 1]);
    assert_eq!(polls.load(Ordering::SeqCst), 4, "others who are polled do not poll the work");
}

#[test]
fn work_that_wakes_itself_inside_its_poll_is_polled_again() {
    let flights = Flights::default();
    let mut polls = 0;
    let work = poll_fn(move |cx| {
        polls += 1;
        cx.waker().wake_by_ref();
        if polls == 3 { Poll::Ready(Ok(7)) } else { Poll::Pending }
    });
    let mut caller = Caller::new(flights.join(1, || None, || work));
    assert!(caller.poll().is_pending());
    assert_eq!(caller.wakes(), 1);
    assert!(caller.poll().is_pending());
    assert_eq!(caller.poll(), SEVEN);
}

#[test]
fn a_new_flight_looks_before_it_begins() {
    let flights = Flights::default();
    let mut caller = Caller::new(flights.join(1, || Some(Ok(7)), || async { panic!("began") }));
    assert_eq!(caller.poll(), SEVEN);
    assert_eq!(flights.open(), 0);
}

#[test]
fn a_failure_reaches_all_present_and_is_not_remembered() {
    let flights = Flights::default();
    let (sender, mut first) = open(&flights);
    let mut second = join(&flights);
    assert!(first.poll().is_pending());
    sender.send(Err("busy")).unwrap();
    assert_eq!(first.poll(), Poll::Ready(Ok(Err("busy"))));
    assert_eq!(second.poll(), Poll::Ready(Ok(Err("busy"))));
    let (sender, mut third) = open(&flights);
    sender.send(Ok(7)).unwrap();
    assert_eq!(third.poll(), SEVEN, "though those who met the failure are still there");
}

#[test]
fn a_panic_in_work_or_look_reaches_all_present_and_is_not_remembered() {
    let flights = Flights::default();
    let panics: [fn() -> Option<Answer>; 2] = [|| None, || panic!("boom")];
    for look in panics {
        let mut first = Caller::new(flights.join(1, look, || async { panic!("boom") }));
        let mut second = join(&flights);
        let boom = Poll::Ready(Err(Panicked("boom".to_owned())));
        assert_eq!((second.poll(), first.poll()), (boom.clone(), boom));
        assert_eq!(flights.open(), 0);
    }
    let (sender, mut third) = open(&flights);
    sender.send(Ok(7)).unwrap();
    assert_eq!(third.poll(), SEVEN);
}

#[test]
fn work_is_cancelled_when_the_last_waiter_leaves_and_its_key_is_free() {
    let flights = Flights::default();
    let cancelled = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&cancelled);
    let work = || until_dropped(move || _ = count.fetch_add(1, Ordering::SeqCst));
    let mut first = Caller::new(flights.join(1, || None, work));
    let second = join(&flights);
    assert!(first.poll().is_pending());
    drop(first);
    assert_eq!((cancelled.load(Ordering::SeqCst), flights.waiters()), (0, 1));
    drop(second);
    assert_eq!((cancelled.load(Ordering::SeqCst), flights.open()), (1, 0));
    let (sender, mut third) = open(&flights);
    sender.send(Ok(7)).unwrap();
    assert_eq!(third.poll(), SEVEN);
}

#[test]
fn a_waiter_that_leaves_before_it_is_polled_leaves_nothing() {
    let flights = Flights::default();
    drop(join(&flights));
    assert_eq!((flights.open(), flights.waiters()), (0, 0));
    let ((sender, unpolled), mut second) = (open(&flights), join(&flights));
    drop(unpolled);
    sender.send(Ok(7)).unwrap();
    assert_eq!(second.poll(), SEVEN, "with the work that the first one brought");
}

#[test]
fn waiters_of_a_table_whose_handles_are_gone_get_their_result() {
    let flights = Flights::default();
    let (sender, mut caller) = open(&flights);
    assert!(caller.poll().is_pending());
    drop(flights);
    sender.send(Ok(7)).unwrap();
    assert_eq!(caller.poll(), SEVEN);
}

#[test]
fn who_comes_while_cancelled_work_is_being_dropped_begins_after_it() {
    let flights = Flights::default();
    let late = Arc::new(Mutex::new(None));
    let (handle, slot) = (flights.clone(), Arc::clone(&late));
    let join_again = move || {
        drop(join(&handle));
        let (sender, mut caller) = open(&handle);
        sender.send(Ok(7)).unwrap();
        assert!(caller.poll().is_pending());
        assert_eq!(caller.wakes(), 0);
        *slot.lock().unwrap() = Some(caller);
    };
    let mut first = Caller::new(flights.join(1, || None, || until_dropped(join_again)));
    assert!(first.poll().is_pending());
    drop(first);
    let mut caller = late.lock().unwrap().take().unwrap();
    assert_eq!((caller.wakes(), flights.open(), flights.waiters()), (1, 1, 1));
    assert_eq!(caller.poll(), SEVEN);
    assert_eq!(flights.open(), 0);
}

#[test]
fn cancelled_work_that_panics_when_dropped_frees_its_key_all_the_same() {
    let flights = Flights::default();
    let mut caller = Caller::new(flights.join(1, || None, || until_dropped(|| panic!("boom"))));
    assert!(caller.poll().is_pending());
    assert!(catch_unwind(AssertUnwindSafe(|| drop(caller))).is_err());
    assert_eq!(flights.open(), 0);
}

#[test]
fn a_waker_may_own_a_waiter_of_the_same_flight() {
    struct Owner {
        _waiter: Caller,
    }
    impl Wake for Owner {
        fn wake(self: Arc<Self>) {}
    }
    let flights = Flights::default();
    let (_sender, mut caller) = open(&flights);
    for _ in 0..2 {
        let owner = Waker::from(Arc::new(Owner { _waiter: join(&flights) }));
        assert!(caller.waiter.as_mut().poll(&mut Context::from_waker(&owner)).is_pending());
        drop(owner);
        assert_eq!(flights.waiters(), 2);
        assert!(caller.poll().is_pending());
        assert_eq!(flights.waiters(), 1, "the waker was replaced, and the waiter in it has left");
    }
    drop(caller);
    assert_eq!(flights.open(), 0);
}

#[test]
fn a_waker_that_outlives_the_flight_does_nothing_and_keeps_no_value() {
    let flights = Flights::default();
    let (value, kept) = (Arc::new(7), Arc::new(Mutex::new(None)));
    let (result, keep) = (Arc::clone(&value), Arc::clone(&kept));
    let work = poll_fn(move |cx| {
        *keep.lock().unwrap() = Some(cx.waker().clone());
        Poll::Ready(Arc::clone(&result))
    });
    let mut waiter = Box::pin(flights.join(1, || None, || work));
    assert!(waiter.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
    kept.lock().unwrap().as_ref().unwrap().wake_by_ref();
    assert!(waiter.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
    drop(waiter);
    assert_eq!(Arc::strong_count(&value), 1);
    kept.lock().unwrap().take().unwrap().wake();
}
