//! Single flight: concurrent callers that want the same key share one computation.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Wake, Waker};

use super::panics;
use super::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The computations in flight, by key. A handle: clones share the table.
///
/// The table is not a cache: a result goes to the callers that wait for it, and the next caller starts another
/// computation. Work whose result is worth keeping stores it itself. Each waiter gets a clone, so let the value be an
/// `Arc`, or a `Result` of one.
///
/// ```
/// use anabranch_engine::flight::Flights;
/// use std::sync::{Arc, Mutex};
///
/// let flights = Flights::default();
/// let memo = Arc::new(Mutex::new(None));
/// let join = || {
///     let (seen, publish) = (Arc::clone(&memo), Arc::clone(&memo));
///     flights.join("six times seven", move || *seen.lock().unwrap(), move || async move {
///         *publish.lock().unwrap() = Some(42);
///         42
///     })
/// };
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let (first, second) = (join(), join());
/// assert_eq!((flights.open(), flights.waiters()), (1, 2));
/// drop(first);
/// assert_eq!(second.await, Ok(42));
/// assert_eq!(flights.open(), 0);
/// # });
/// ```
#[derive(Clone)]
pub struct Flights<K, V> {
    table: Arc<Table<K, V>>,
}

/// A place in a flight: a future of the result, which leaves the flight when dropped.
///
/// Waiters carry the work forward when they are polled, so one that is kept must be polled when woken, like any
/// future: the others count on it.
#[must_use = "a waiter that is dropped has left its flight"]
pub struct Waiter<K: Eq + Hash, V> {
    shard: Arc<Shard<K, V>>,
    key: K,
    flight: Arc<Flight<V>>,
    place: u64,
}

/// The work of a flight panicked, with this message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("panicked: {0}")]
pub struct Panicked(pub String);

/// Enough that callers of different keys seldom meet at a lock.
const SHARDS: usize = 16;

/// A flight is in its shard from when it opens until its result is in it, or until its cancelled work is dropped.
/// Locks are taken shard first, then flight. Of a caller's code only that of its key and the clones of its value and
/// wakers run under them; nothing of the caller's but a key is dropped there.
struct Table<K, V> {
    shards: [Arc<Shard<K, V>>; SHARDS],
    hasher: RandomState,
}

type Shard<K, V> = Mutex<HashMap<K, Arc<Flight<V>>>>;

type Work<V> = Pin<Box<dyn Future<Output = V> + Send>>;

struct Flight<V> {
    state: Mutex<State<V>>,
}

struct State<V> {
    waiters: usize,
    /// How many have ever entered; the newest has this place.
    entered: u64,
    /// Of the waiters that have been polled, by place. The first of them drives.
    wakers: BTreeMap<u64, Waker>,
    /// The work, unless somebody has it in hand.
    work: Option<Work<V>>,
    /// Nobody may take the work: a waiter polls it, or the last to leave drops the one before it, or it is done.
    held: bool,
    /// The work asks to be polled.
    due: bool,
    landed: Option<Result<V, Panicked>>,
}

impl<K, V> Default for Flights<K, V> {
    fn default() -> Self {
        let shards = std::array::from_fn(|_| Arc::new(Mutex::new(HashMap::new())));
        Flights { table: Arc::new(Table { shards, hasher: RandomState::new() }) }
    }
}

impl<K: Eq + Hash + Clone, V: Clone + Send + 'static> Flights<K, V> {
    /// Joins the flight of `key`, or opens one.
    ///
    /// An open flight ignores `look` and `work`. A new one, when first polled, asks `look` whether the result has
    /// been published meanwhile, and only if not begins `work`, which publishes its result before it ends. As the
    /// flight stays open until then, a caller who missed the published result either meets the flight, or opens one
    /// whose `look` finds it: nothing is computed twice.
    ///
    /// Whichever waiter is awake polls the work. It is cancelled only when the last one leaves, and then the key is
    /// free as soon as it is dropped: no two works of a key are ever alive together. A panic, also in `look`, is
    /// every present waiter's result. A work must not wait, in any roundabout way, for its own key.
    pub fn join<F>(
        &self,
        key: K,
        look: impl FnOnce() -> Option<V> + Send + 'static,
        work: impl FnOnce() -> F + Send + 'static,
    ) -> Waiter<K, V>
    where
        F: Future<Output = V> + Send + 'static,
    {
        let shard = &self.table.shards[self.table.hasher.hash_one(&key) as usize % SHARDS];
        let mut flights = lock(shard);
        let flight = match flights.get(&key) {
            Some(flight) => Arc::clone(flight),
            None => {
                let flight = Arc::new(Flight::new());
                flights.insert(key.clone(), Arc::clone(&flight));
                flight
            }
        };
        let mut state = flight.lock();
        if state.waiters == 0 {
            // The flight is new, or the last to leave it is still dropping the work it had.
            state.work = Some(begin(look, work));
            state.due = true;
        }
        state.waiters += 1;
        state.entered += 1;
        let place = state.entered;
        drop(state);
        drop(flights);
        Waiter { shard: Arc::clone(shard), key, flight, place }
    }
}

impl<K, V> Flights<K, V> {
    /// How many flights are open.
    pub fn open(&self) -> usize {
        self.table.shards.iter().map(|shard| lock(shard).len()).sum()
    }

    /// How many waiters the open flights have in all.
    pub fn waiters(&self) -> usize {
        let in_shard = |shard: &Arc<Shard<K, V>>| -> usize {
            lock(shard).values().map(|flight| flight.lock().waiters).sum()
        };
        self.table.shards.iter().map(in_shard).sum()
    }
}

fn begin<V: Send + 'static, F>(
    look: impl FnOnce() -> Option<V> + Send + 'static,
    work: impl FnOnce() -> F + Send + 'static,
) -> Work<V>
where
    F: Future<Output = V> + Send + 'static,
{
    Box::pin(async move {
        match look() {
            Some(published) => published,
            None => work().await,
        }
    })
}

impl<K: Eq + Hash, V: Clone + Send + 'static> Future for Waiter<K, V> {
    type Output = Result<V, Panicked>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(work) = self.flight.take_work(self.place, cx.waker()) {
            self.drive(work, cx.waker());
        }
        self.flight.lock().landed.clone().map_or(Poll::Pending, Poll::Ready)
    }
}

impl<K: Eq + Hash, V: Send + 'static> Waiter<K, V> {
    /// Polls the work and puts it back, or lands its result; what is done is dropped first.
    fn drive(&self, mut work: Work<V>, own: &Waker) {
        let waker = Waker::from(Arc::clone(&self.flight));
        let polled = catch_unwind(AssertUnwindSafe(move || {
            match work.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(value) => Ok(value),
                Poll::Pending => Err(work),
            }
        }));
        match polled {
            Ok(Ok(value)) => self.land(Ok(value)),
            Ok(Err(work)) => self.flight.put_back(work, self.place, own),
            Err(payload) => self.land(Err(Panicked(panics::message(&*payload)))),
        }
    }

    /// The result is in the flight before the flight leaves the table, so whoever meets it there is served.
    fn land(&self, result: Result<V, Panicked>) {
        let mut state = self.flight.lock();
        state.landed = Some(result);
        let mut wakers = std::mem::take(&mut state.wakers);
        drop(state);
        lock(&self.shard).remove(&self.key);
        wakers.remove(&self.place);
        wakers.into_values().for_each(Waker::wake);
    }
}

impl<K: Eq + Hash, V> Drop for Waiter<K, V> {
    fn drop(&mut self) {
        let mut state = self.flight.lock();
        let _waker = state.wakers.remove(&self.place);
        state.waiters -= 1;
        if state.waiters > 0 {
            return call_next(state);
        }
        let leftover = (state.work.take(), state.landed.take());
        let held = std::mem::replace(&mut state.held, true);
        drop(state);
        // Held already: the result is in, or another who was the last is dropping an earlier work and will close.
        let _closing = (!held).then(|| Closing(self));
        drop(leftover);
    }
}

/// Frees the key once the cancelled work is dropped, even if that panics; or lets those who came meanwhile begin.
struct Closing<'a, K: Eq + Hash, V>(&'a Waiter<K, V>);

impl<K: Eq + Hash, V> Drop for Closing<'_, K, V> {
    fn drop(&mut self) {
        let Waiter { shard, key, flight, .. } = self.0;
        let mut flights = lock(shard);
        let mut state = flight.lock();
        state.held = false;
        if state.waiters == 0 {
            flights.remove(key);
        }
        drop(flights);
        call_next(state);
    }
}

impl<V> Flight<V> {
    fn new() -> Flight<V> {
        let (work, landed, wakers) = (None, None, BTreeMap::new());
        let state = State { waiters: 0, entered: 0, wakers, work, held: false, due: false, landed };
        Flight { state: Mutex::new(state) }
    }

    /// The work, if it asks to be polled and nobody has it. If not, `waker` is woken when there is news.
    fn take_work(&self, place: u64, waker: &Waker) -> Option<Work<V>> {
        // Outlives the lock: the last waker of a task drops the task, and with it perhaps a waiter.
        let _stale;
        let mut state = self.lock();
        if state.landed.is_some() {
            return None;
        }
        if !state.held && state.due {
            (state.held, state.due) = (true, false);
            return state.work.take();
        }
        _stale = state.wait(place, waker);
        None
    }

    /// Whoever polled the work in vain waits from now on; while it had the work nobody needed to call it.
    fn put_back(&self, work: Work<V>, place: u64, waker: &Waker) {
        let mut state = self.lock();
        state.work = Some(work);
        state.held = false;
        let _stale = state.wait(place, waker);
        call_next(state);
    }

    fn lock(&self) -> MutexGuard<'_, State<V>> {
        lock(&self.state)
    }
}

impl<V> State<V> {
    /// Has a waiter woken when there is news; hands back the waker it had before.
    fn wait(&mut self, place: u64, waker: &Waker) -> Option<Waker> {
        match self.wakers.get(&place) {
            Some(known) if known.will_wake(waker) => None,
            _ => self.wakers.insert(place, waker.clone()),
        }
    }
}

/// The waker of the work. It reaches whoever drives when it fires, so a driver may leave at any time.
impl<V: Send + 'static> Wake for Flight<V> {
    fn wake(self: Arc<Self>) {
        let mut state = self.lock();
        state.due = true;
        call_next(state);
    }
}

/// Wakes the driver if there is work for it. Ends whatever may have made some, or have made another the driver.
fn call_next<V>(state: MutexGuard<'_, State<V>>) {
    let is_wanted = state.due && !state.held;
    let driver = state.wakers.values().next().filter(|_| is_wanted).cloned();
    drop(state);
    if let Some(driver) = driver {
        driver.wake();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
