//! Requests that take long. They are listed as runs while they run, and the many short ones must not pay for that: a
//! request notes its waker when it first has to wait, and one ticker for all wakes those that have waited long.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use anabranch_engine::clock::Clock;

/// Shorter requests are not listed while they run.
const LONG: Duration = Duration::from_millis(50);

/// The interval of looking for requests that have waited long.
const LOOK_EVERY: Duration = Duration::from_millis(25);

/// The most requests that are listed at a time. Under overload, further ones are listed when they end.
const LISTED_MOST: usize = 256;

/// The locks of the waiting requests, so that threads seldom want the same one.
const SHARDS: usize = 16;

/// The waiting requests of all plans.
pub(super) struct LateRequests {
    shards: [Mutex<Shard>; SHARDS],
    next_shard: AtomicUsize,
    listed: AtomicUsize,
}

/// A table of waiting requests. Its places are used again, so that a request allocates nothing.
#[derive(Default)]
struct Shard {
    places: Vec<Option<WaitingRequest>>,
    free: Vec<usize>,
}

struct WaitingRequest {
    since: Instant,
    waker: Waker,
}

/// A place among the requests that are listed.
pub(super) struct ListedPlace<'a>(&'a LateRequests);

/// One request, until it ends or has waited long.
pub(super) struct RequestWatch<'a> {
    all: &'a LateRequests,
    began: Instant,
    place: Option<(usize, usize)>,
}

impl LateRequests {
    pub(super) fn new() -> LateRequests {
        LateRequests {
            shards: std::array::from_fn(|_| Mutex::default()),
            next_shard: AtomicUsize::new(0),
            listed: AtomicUsize::new(0),
        }
    }

    /// Wakes the requests that have waited long, until the future is dropped.
    pub(super) async fn wake(self: Arc<Self>, clock: Arc<dyn Clock>) {
        loop {
            let now = clock.now();
            self.wake_late(now);
            clock.sleep_until(now + LOOK_EVERY).await;
        }
    }

    fn wake_late(&self, now: Instant) {
        for shard in &self.shards {
            let mut shard = lock(shard);
            let late = |waiting: &&mut WaitingRequest| now.saturating_duration_since(waiting.since) >= LONG;
            for waiting in shard.places.iter_mut().flatten().filter(late) {
                waiting.waker.wake_by_ref();
            }
        }
    }

    /// A place in the list, if there is one.
    pub(super) fn list(&self) -> Option<ListedPlace<'_>> {
        let listed = self.listed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |listed| {
            (listed < LISTED_MOST).then_some(listed + 1)
        });
        listed.is_ok().then(|| ListedPlace(self))
    }

    /// Waits for a request that began at `began`; `None` if it takes long.
    pub(super) async fn short<T>(
        &self,
        clock: &dyn Clock,
        began: Instant,
        mut request: Pin<&mut impl Future<Output = T>>,
    ) -> Option<T> {
        let mut watch = RequestWatch { all: self, began, place: None };
        std::future::poll_fn(move |cx| match request.as_mut().poll(cx) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending => watch.poll_late(cx, clock).map(|()| None),
        })
        .await
    }
}

impl RequestWatch<'_> {
    /// Ready when the request has waited long.
    fn poll_late(&mut self, cx: &mut Context<'_>, clock: &dyn Clock) -> Poll<()> {
        let Some((shard, place)) = self.place else {
            let number = self.all.next_shard.fetch_add(1, Ordering::Relaxed) % SHARDS;
            let mut shard = lock(&self.all.shards[number]);
            let waiting = Some(WaitingRequest { since: self.began, waker: cx.waker().clone() });
            let place = match shard.free.pop() {
                Some(place) => {
                    shard.places[place] = waiting;
                    place
                }
                None => {
                    shard.places.push(waiting);
                    shard.places.len() - 1
                }
            };
            self.place = Some((number, place));
            return Poll::Pending;
        };
        if clock.now().saturating_duration_since(self.began) >= LONG {
            return Poll::Ready(());
        }
        if let Some(waiting) = &mut lock(&self.all.shards[shard]).places[place] {
            waiting.waker.clone_from(cx.waker());
        }
        Poll::Pending
    }
}

impl Drop for RequestWatch<'_> {
    fn drop(&mut self) {
        if let Some((shard, place)) = self.place {
            let mut shard = lock(&self.all.shards[shard]);
            let waiting = shard.places[place].take();
            shard.free.push(place);
            drop(shard);
            drop(waiting);
        }
    }
}

impl Drop for ListedPlace<'_> {
    fn drop(&mut self) {
        self.0.listed.fetch_sub(1, Ordering::Relaxed);
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::pin::pin;

    use anabranch_engine::clock::SystemClock;

    use super::*;

    fn waiting(all: &LateRequests) -> usize {
        all.shards.iter().map(|shard| lock(shard).places.iter().flatten().count()).sum()
    }

    #[tokio::test]
    async fn a_request_that_never_waits_is_not_noted() {
        let all = LateRequests::new();
        let began = SystemClock.now();
        assert_eq!(all.short(&SystemClock, began, pin!(ready(7))).await, Some(7));
        assert!(all.shards.iter().all(|shard| lock(shard).places.is_empty()));
    }

    #[tokio::test]
    async fn a_request_that_waits_long_is_woken_by_the_ticker() {
        let all = Arc::new(LateRequests::new());
        let wake = Arc::clone(&all).wake(Arc::new(SystemClock));
        let began = SystemClock.now();
        let request = pin!(pending::<()>());
        let done = tokio::select! {
            done = all.short(&SystemClock, began, request) => done,
            () = wake => unreachable!("it ends when it is dropped"),
        };
        assert_eq!((done, waiting(&all)), (None, 0));
        assert!(SystemClock.now() - began >= LONG);
    }

    #[test]
    fn places_are_used_again_and_lists_are_bounded() {
        let all = LateRequests::new();
        let began = SystemClock.now();
        for _ in 0..10 * SHARDS {
            let mut watch = RequestWatch { all: &all, began, place: None };
            let mut cx = Context::from_waker(Waker::noop());
            assert!(watch.poll_late(&mut cx, &SystemClock).is_pending());
            assert_eq!(waiting(&all), 1);
        }
        assert!(all.shards.iter().all(|shard| lock(shard).places.len() == 1));
        let listed: Vec<_> = std::iter::from_fn(|| all.list()).collect();
        assert_eq!(listed.len(), LISTED_MOST);
        drop(listed);
        assert!(all.list().is_some());
    }
}
