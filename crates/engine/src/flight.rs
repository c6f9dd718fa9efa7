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
/// computation. Work whose result should be kept stores it itself. Each waiter gets a clone of the value, so a large
/// value should be an `Arc`, or a `Result` of one.
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
pub struct Flights<K, V, S = RandomState> {
    table: Arc<Table<K, V, S>>,
}

/// A caller's part in a flight: a future of the result. Dropping it leaves the flight.
///
/// Polling a waiter polls the shared work. So a waiter that is kept must be polled when it is woken, like any future;
/// otherwise the other waiters do not get their result.
#[must_use = "a waiter that is dropped has left its flight"]
pub struct Waiter<K: Eq + Hash, V, S: BuildHasher = RandomState> {
    shard: Arc<Shard<K, V, S>>,
    key: K,
    flight: Arc<Flight<V>>,
    place: u64,
}

/// The work of a flight panicked; holds the message of the panic.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("panicked: {0}")]
pub struct Panicked(pub String);

/// With this many locks, callers of different keys seldom wait for each other.
const SHARDS: usize = 16;

/// A flight is in its shard from when it opens until it has its result, or until its cancelled work is dropped.
///
/// The lock of a shard is taken before the lock of a flight. The only code of the caller that runs under a lock is the
/// methods of the key, and the clones of values and wakers. The only objects of the caller that are dropped under a
/// lock are keys.
struct Table<K, V, S> {
    shards: [Arc<Shard<K, V, S>>; SHARDS],
    hasher: S,
}

type Shard<K, V, S> = Mutex<HashMap<K, Arc<Flight<V>>, S>>;

type Work<V> = Pin<Box<dyn Future<Output = V> + Send>>;

struct Flight<V> {
    state: Mutex<State<V>>,
}

struct State<V> {
    waiters: usize,
    /// The number of waiters so far, which is also the place of the newest one.
    entered: u64,
    /// The wakers of the waiters that were polled, by place. The first of them is the driver, which polls the work.
    wakers: BTreeMap<u64, Waker>,
    /// `None` while a waiter polls the work.
    work: Option<Work<V>>,
    /// The work must not be taken: a waiter polls it, an earlier last waiter still drops its work, or the work is done.
    held: bool,
    /// Whether the work has requested to be polled.
    due: bool,
    result: Option<Result<V, Panicked>>,
}

impl<K, V> Default for Flights<K, V> {
    fn default() -> Self {
        Flights::with_hasher()
    }
}

impl<K, V, S: Default> Flights<K, V, S> {
    /// A table that hashes keys with `S`: for keys that are hashes already.
    pub fn with_hasher() -> Self {
        let shards = std::array::from_fn(|_| Arc::new(Mutex::new(HashMap::default())));
        Flights { table: Arc::new(Table { shards, hasher: S::default() }) }
    }
}

impl<K: Eq + Hash + Clone, V: Clone + Send + 'static, S: BuildHasher> Flights<K, V, S> {
    /// Joins the flight of `key`, or opens one.
    ///
    /// If a flight is open, `look` and `work` are ignored. A new flight, when it is first polled, calls `look` to see
    /// whether the result has been published in the meantime. If not, it starts `work`, which must publish its result
    /// before it ends. The flight stays open until then. So a caller that did not find a published result either joins
    /// this flight, or opens one whose `look` finds the result: nothing is computed twice.
    ///
    /// Any waiter that is polled may poll the work. The work is cancelled when the last waiter leaves. The key becomes
    /// free when the cancelled work has been dropped, so a key never has two computations at a time. A panic, also one
    /// in `look`, is the result of all present waiters. The work must not wait for its own key, not even indirectly.
    pub fn join<F>(
        &self,
        key: K,
        look: impl FnOnce() -> Option<V> + Send + 'static,
        work: impl FnOnce() -> F + Send + 'static,
    ) -> Waiter<K, V, S>
    where
        F: Future<Output = V> + Send + 'static,
    {
        let shard = self.table.shard(&key);
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
            // The flight is new, or its last waiter is still dropping the earlier work.
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

impl<K: Eq + Hash, V, S: BuildHasher> Flights<K, V, S> {
    /// True if the flight of `key` is open.
    pub fn is_open(&self, key: &K) -> bool {
        lock(self.table.shard(key)).contains_key(key)
    }
}

impl<K: Hash, V, S: BuildHasher> Table<K, V, S> {
    /// The maps of the shards take the low and the high bits of a hash, so the shard is chosen by others.
    fn shard(&self, key: &K) -> &Arc<Shard<K, V, S>> {
        &self.shards[(self.hasher.hash_one(key) >> 32) as usize % SHARDS]
    }
}

impl<K, V, S> Flights<K, V, S> {
    /// The number of open flights.
    pub fn open(&self) -> usize {
        self.table.shards.iter().map(|shard| lock(shard).len()).sum()
    }

    /// The number of waiters in all open flights.
    pub fn waiters(&self) -> usize {
        let in_shard = |shard: &Arc<Shard<K, V, S>>| -> usize {
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

impl<K: Eq + Hash, V: Clone + Send + 'static, S: BuildHasher> Future for Waiter<K, V, S> {
    type Output = Result<V, Panicked>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(work) = self.flight.take_work(self.place, cx.waker()) {
            self.drive(work, cx.waker());
        }
        self.flight.lock().result.clone().map_or(Poll::Pending, Poll::Ready)
    }
}

impl<K: Eq + Hash, V: Send + 'static, S: BuildHasher> Waiter<K, V, S> {
    /// Polls the work, then puts it back or sets the result. Finished work is dropped before its result is seen.
    fn drive(&self, mut work: Work<V>, own: &Waker) {
        let waker = Waker::from(Arc::clone(&self.flight));
        let polled = catch_unwind(AssertUnwindSafe(move || {
            match work.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(value) => Ok(value),
                Poll::Pending => Err(work),
            }
        }));
        match polled {
            Ok(Ok(value)) => self.set_result(Ok(value)),
            Ok(Err(work)) => self.flight.put_back(work, self.place, own),
            Err(payload) => self.set_result(Err(Panicked(panics::message(&*payload)))),
        }
    }

    /// Sets the result before the flight leaves the table, so that every caller that finds the flight gets it.
    fn set_result(&self, result: Result<V, Panicked>) {
        let mut state = self.flight.lock();
        state.result = Some(result);
        let mut wakers = std::mem::take(&mut state.wakers);
        drop(state);
        lock(&self.shard).remove(&self.key);
        if !wakers.is_empty() {
            wakers.remove(&self.place);
            wakers.into_values().for_each(Waker::wake);
        }
    }
}

impl<K: Eq + Hash, V, S: BuildHasher> Drop for Waiter<K, V, S> {
    fn drop(&mut self) {
        let mut state = self.flight.lock();
        let _waker = state.wakers.remove(&self.place);
        state.waiters -= 1;
        if state.waiters > 0 {
            return wake_driver(state);
        }
        let leftover = (state.work.take(), state.result.take());
        let held = std::mem::replace(&mut state.held, true);
        drop(state);
        // If it was held already, there is a result, or an earlier last waiter is dropping its work and will close.
        let _guard = (!held).then(|| CloseGuard(self));
        drop(leftover);
    }
}

/// Runs once the cancelled work is dropped, even if that drop panics. Frees the key, or lets the callers start that
/// joined in the meantime.
struct CloseGuard<'a, K: Eq + Hash, V, S: BuildHasher>(&'a Waiter<K, V, S>);

impl<K: Eq + Hash, V, S: BuildHasher> Drop for CloseGuard<'_, K, V, S> {
    fn drop(&mut self) {
        let Waiter { shard, key, flight, .. } = self.0;
        let mut flights = lock(shard);
        let mut state = flight.lock();
        state.held = false;
        if state.waiters == 0 {
            flights.remove(key);
        }
        drop(flights);
        wake_driver(state);
    }
}

impl<V> Flight<V> {
    fn new() -> Flight<V> {
        let (work, result, wakers) = (None, None, BTreeMap::new());
        let state = State { waiters: 0, entered: 0, wakers, work, held: false, due: false, result };
        Flight { state: Mutex::new(state) }
    }

    /// Takes the work if it is due and not held. If not, `waker` is woken when the waiter should be polled again.
    fn take_work(&self, place: u64, waker: &Waker) -> Option<Work<V>> {
        // Dropped after the lock: the last waker of a task drops the task, which may hold a waiter.
        let _stale;
        let mut state = self.lock();
        if state.result.is_some() {
            return None;
        }
        if !state.held && state.due {
            (state.held, state.due) = (true, false);
            return state.work.take();
        }
        _stale = state.wait(place, waker);
        None
    }

    /// Returns the pending work. The waiter that polled it waits from now on; before, it did not need a waker.
    fn put_back(&self, work: Work<V>, place: u64, waker: &Waker) {
        let mut state = self.lock();
        state.work = Some(work);
        state.held = false;
        let _stale = state.wait(place, waker);
        wake_driver(state);
    }

    fn lock(&self) -> MutexGuard<'_, State<V>> {
        lock(&self.state)
    }
}

impl<V> State<V> {
    /// Stores the waker of a waiter and returns the one it replaces.
    fn wait(&mut self, place: u64, waker: &Waker) -> Option<Waker> {
        match self.wakers.get(&place) {
            Some(known) if known.will_wake(waker) => None,
            _ => self.wakers.insert(place, waker.clone()),
        }
    }
}

/// The waker of the work. It wakes the driver of that moment, so that a driver may leave at any time.
impl<V: Send + 'static> Wake for Flight<V> {
    fn wake(self: Arc<Self>) {
        let mut state = self.lock();
        state.due = true;
        wake_driver(state);
    }
}

/// Wakes the driver if the work is due. Must follow every change that makes work due or makes another waiter the driver.
fn wake_driver<V>(state: MutexGuard<'_, State<V>>) {
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
