//! A memory budget that all connections share. Each client has at most half of it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anabranch_engine::clock::Clock;
use tokio::sync::oneshot;

/// A number of bytes that calls may take, such as those of messages and bodies until the call is answered. A handle:
/// clones share it.
#[derive(Clone)]
pub(crate) struct ByteBudget {
    shared: Arc<BudgetShared>,
}

struct BudgetShared {
    most: usize,
    wait: Duration,
    clock: Arc<dyn Clock>,
    state: Mutex<BudgetState>,
}

#[derive(Default)]
struct BudgetState {
    taken: usize,
    /// The clients that hold bytes or wait for some.
    clients: HashMap<Arc<str>, ClientBytes>,
    /// The number of waiting calls, including those that have given up.
    waiting: usize,
}

#[derive(Default)]
struct ClientBytes {
    held: usize,
    waiting: VecDeque<(usize, oneshot::Sender<ByteShare>)>,
}

/// The client that takes bytes, and the bytes that its call holds already.
#[derive(Clone, Debug)]
pub(crate) struct Taker {
    pub(crate) client: Arc<str>,
    pub(crate) held: usize,
    pub(crate) bounds: WaitBounds,
}

/// The bounds of a call's waits for bytes, besides those of the budget.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WaitBounds {
    /// The deadline of its client.
    pub(crate) until: Option<Instant>,
    /// The longest single wait.
    pub(crate) longest: Option<Duration>,
}

/// A share of the budget, returned on drop.
pub(crate) struct ByteShare {
    budget: ByteBudget,
    client: Arc<str>,
    bytes: usize,
}

impl ByteBudget {
    /// A budget of `most` bytes. A call waits at most `wait` for its share.
    pub(crate) fn new(most: usize, wait: Duration, clock: Arc<dyn Clock>) -> ByteBudget {
        ByteBudget { shared: Arc::new(BudgetShared { most, wait, clock, state: Mutex::default() }) }
    }

    /// The bytes that calls hold.
    pub(crate) fn taken(&self) -> usize {
        self.lock().taken
    }

    /// The most bytes of one client.
    fn client_most(&self) -> usize {
        self.shared.most.div_ceil(2)
    }

    /// A call that is larger than the share of a client takes all of the share, so that it does not wait forever.
    fn count(&self, taker: &Taker, bytes: usize) -> usize {
        bytes.min(self.client_most().saturating_sub(taker.held))
    }

    fn lock(&self) -> MutexGuard<'_, BudgetState> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn share(&self, client: Arc<str>, bytes: usize) -> ByteShare {
        ByteShare { budget: self.clone(), client, bytes }
    }

    /// Takes bytes if they are available now.
    pub(crate) fn try_take(&self, taker: &Taker, bytes: usize) -> Option<ByteShare> {
        let bytes = self.count(taker, bytes);
        let mut state = self.lock();
        let has_room = bytes <= self.shared.most - state.taken;
        let own = state.clients.entry(Arc::clone(&taker.client)).or_default();
        // Waiting calls of this client come first.
        let is_granted = has_room && own.waiting.is_empty() && own.held + bytes <= self.client_most();
        if is_granted {
            own.held += bytes;
            state.taken += bytes;
        }
        state.forget_idle(&taker.client);
        drop(state);
        is_granted.then(|| self.share(Arc::clone(&taker.client), bytes))
    }

    /// Takes bytes as soon as they are available. The waiting client that holds the fewest is served first. `None` if that
    /// takes longer than the budget's `wait`, or than the bounds of the call.
    pub(crate) async fn take(self, taker: Taker, bytes: usize) -> Option<ByteShare> {
        let bytes = self.count(&taker, bytes);
        let (sender, share) = oneshot::channel();
        {
            let mut state = self.lock();
            state.clients.entry(taker.client).or_default().waiting.push_back((bytes, sender));
            state.waiting += 1;
        }
        self.grant();
        let now = self.shared.clock.now();
        let WaitBounds { until, longest } = taker.bounds;
        let longest = now + longest.map_or(self.shared.wait, |longest| longest.min(self.shared.wait));
        let late = self.shared.clock.sleep_until(until.map_or(longest, |until| until.min(longest)));
        tokio::select! {
            biased;
            share = share => share.ok(),
            () = late => None,
        }
    }

    /// Serves waiting calls while there is room.
    fn grant(&self) {
        loop {
            let next = self.lock().next(self.shared.most, self.client_most());
            let Some((client, bytes, sender)) = next else { return };
            // This happens outside of the lock, because a share whose receiver is gone is returned here.
            let _ = sender.send(self.share(client, bytes));
        }
    }
}

impl BudgetState {
    /// The next call to serve, with its bytes counted as taken.
    fn next(
        &mut self,
        most: usize,
        client_most: usize,
    ) -> Option<(Arc<str>, usize, oneshot::Sender<ByteShare>)> {
        if self.waiting == 0 {
            return None;
        }
        for own in self.clients.values_mut() {
            own.waiting.retain(|(_, sender)| !sender.is_closed());
        }
        self.clients.retain(|_, own| own.held > 0 || !own.waiting.is_empty());
        self.waiting = self.clients.values().map(|own| own.waiting.len()).sum();
        let fits =
            |own: &ClientBytes| own.waiting.front().is_some_and(|(bytes, _)| own.held + bytes <= client_most);
        let waiting = self.clients.iter_mut().filter(|(_, own)| fits(own));
        let (client, own) = waiting.min_by_key(|(_, own)| own.held)?;
        let (bytes, sender) = own.waiting.pop_front_if(|(bytes, _)| *bytes <= most - self.taken)?;
        own.held += bytes;
        self.taken += bytes;
        self.waiting -= 1;
        Some((Arc::clone(client), bytes, sender))
    }

    /// Forgets a client that holds nothing and waits for nothing.
    fn forget_idle(&mut self, client: &Arc<str>) {
        if self.clients.get(client).is_some_and(|own| own.held == 0 && own.waiting.is_empty()) {
            self.clients.remove(client);
        }
    }
}

impl ByteShare {
    /// The bytes of the share.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns some of the bytes.
    pub(crate) fn give_back(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        drop(self.budget.share(Arc::clone(&self.client), bytes));
    }

    /// Adds another share of the same client.
    pub(crate) fn merge(&mut self, mut other: ByteShare) {
        debug_assert_eq!(self.client, other.client);
        self.bytes += std::mem::take(&mut other.bytes);
    }
}

impl Drop for ByteShare {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        let mut state = self.budget.lock();
        state.taken -= self.bytes;
        if let Some(own) = state.clients.get_mut(&self.client) {
            own.held -= self.bytes;
        }
        state.forget_idle(&self.client);
        drop(state);
        self.budget.grant();
    }
}

#[cfg(test)]
mod tests {
    use anabranch_engine::clock::SystemClock;
    use futures_util::FutureExt as _;

    use super::*;

    fn budget(most: usize) -> ByteBudget {
        ByteBudget::new(most, Duration::from_secs(3600), Arc::new(SystemClock))
    }

    fn by(client: &str) -> Taker {
        Taker { client: client.into(), held: 0, bounds: WaitBounds::default() }
    }

    #[tokio::test]
    async fn a_client_has_half_of_the_bytes() {
        let budget = budget(100);
        let held = [budget.try_take(&by("a"), 30).unwrap(), budget.try_take(&by("a"), 20).unwrap()];
        assert!(budget.try_take(&by("a"), 1).is_none());
        let mut more = Box::pin(budget.clone().take(by("a"), 40));
        assert!((&mut more).now_or_never().is_none());
        let other = budget.try_take(&by("b"), 50).unwrap();
        assert_eq!(budget.taken(), 100);
        drop(held);
        let more = more.now_or_never().unwrap().unwrap();
        assert_eq!((more.bytes(), budget.taken()), (40, 90));
        drop((more, other));
        assert_eq!(budget.taken(), 0);
        assert!(budget.lock().clients.is_empty());
    }

    #[tokio::test]
    async fn a_large_call_takes_the_share_of_its_client() {
        let budget = budget(100);
        let mut first = budget.try_take(&by("a"), 30).unwrap();
        let rest = budget.try_take(&Taker { held: 30, ..by("a") }, 900).unwrap();
        first.merge(rest);
        assert_eq!((first.bytes(), budget.taken()), (50, 50));
        assert_eq!(budget.try_take(&Taker { held: 50, ..by("a") }, 900).unwrap().bytes(), 0);
    }

    #[tokio::test]
    async fn bytes_are_given_back_one_by_one() {
        let budget = budget(100);
        let mut share = budget.try_take(&by("a"), 50).unwrap();
        let mut more = Box::pin(budget.clone().take(by("a"), 20));
        assert!((&mut more).now_or_never().is_none());
        share.give_back(20);
        let more = more.now_or_never().unwrap().unwrap();
        assert_eq!((share.bytes(), more.bytes(), budget.taken()), (30, 20, 50));
        share.give_back(90);
        assert_eq!((share.bytes(), budget.taken()), (0, 20));
    }

    /// A wait ends with the deadline of its call.
    #[tokio::test]
    async fn nobody_waits_longer_than_the_call_has_time() {
        let budget = budget(100);
        let _held = budget.try_take(&by("a"), 50).unwrap();
        let now = budget.shared.clock.now();
        for bounds in [
            WaitBounds { until: Some(now), longest: None },
            WaitBounds { until: None, longest: Some(Duration::ZERO) },
        ] {
            assert!(budget.clone().take(Taker { bounds, ..by("a") }, 10).await.is_none(), "{bounds:?}");
        }
    }

    #[tokio::test]
    async fn the_client_with_the_fewest_bytes_is_next() {
        let budget = budget(100);
        let [a, b] = ["a", "b"].map(|client| budget.try_take(&by(client), 50).unwrap());
        let mut gone = Box::pin(budget.clone().take(by("c"), 10));
        assert!((&mut gone).now_or_never().is_none());
        drop(gone);
        let mut waiting = ["b", "c"].map(|client| Box::pin(budget.clone().take(by(client), 10)));
        assert!(waiting.iter_mut().all(|waiting| waiting.now_or_never().is_none()));
        drop(a);
        let [more_b, c] = waiting;
        let c = c.now_or_never().expect("it holds nothing").unwrap();
        let mut more_b = more_b;
        assert!((&mut more_b).now_or_never().is_none(), "it has its share");
        drop(b);
        drop((more_b.now_or_never().unwrap().unwrap(), c));
        assert_eq!(budget.taken(), 0);
        assert!(budget.lock().clients.is_empty());
    }
}
