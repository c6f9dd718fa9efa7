//! Load: the limit of concurrent requests, the queue of waiting requests, and load shedding.
//!
//! A slot is held from the guard until the headers of the response, or for one item of a stream. Free slots go to the
//! waiting client that holds the fewest, and no client holds more than half of them, so that a client with many slow
//! requests leaves room for the others.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anabranch_engine::clock::Clock;
use tokio::sync::oneshot;
use tonic::Code;

use crate::failure::Failure;

/// The reason why a request gets no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlotRefusal {
    /// Its client has more requests than its share.
    Client,
    /// The server has more requests than it can work on.
    Server,
    /// The time of the request passed while it waited.
    Deadline,
}

impl SlotRefusal {
    /// The failure of a request, or of one item of a stream.
    pub(crate) fn of_request(self) -> Failure {
        let (code, message) = match self {
            SlotRefusal::Client => (
                Code::ResourceExhausted,
                "this client has more requests under way than its share; try again later",
            ),
            SlotRefusal::Server => {
                (Code::Unavailable, "the server has more requests than it can work on; try again later")
            }
            SlotRefusal::Deadline => {
                (Code::DeadlineExceeded, "the time of the request passed while it waited for other requests")
            }
        };
        Failure::new(code, message)
    }
}

/// The work of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Runs of plans, which are short.
    Plan,
    /// Everything else. Some of it takes hours.
    Other,
}

/// The slots of each kind of work, so that a client that waits for recipes keeps none of its plans waiting.
pub(crate) struct WorkSlots {
    plans: Arc<Slots>,
    others: Arc<Slots>,
}

impl WorkSlots {
    /// The same bounds for each kind.
    pub(crate) fn new(bounds: SlotBounds, clock: &Arc<dyn Clock>) -> WorkSlots {
        let [plans, others] = [(), ()].map(|()| Slots::new(bounds, Arc::clone(clock)));
        WorkSlots { plans, others }
    }

    pub(crate) fn of(&self, work: Work) -> &Arc<Slots> {
        match work {
            Work::Plan => &self.plans,
            Work::Other => &self.others,
        }
    }

    /// The numbers of held slots and of waiting requests.
    pub(crate) fn load(&self) -> (usize, usize) {
        let [(plans, plans_waiting), (others, others_waiting)] = [self.plans.load(), self.others.load()];
        (plans + others, plans_waiting + others_waiting)
    }
}

/// The bounds of [`Slots`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotBounds {
    /// The slots of all clients together.
    pub(crate) most: usize,
    /// The requests that may wait for a slot.
    pub(crate) queue_most: usize,
    /// The timeout of waiting.
    pub(crate) wait: Duration,
}

/// The slots of a server.
pub(crate) struct Slots {
    bounds: SlotBounds,
    clock: Arc<dyn Clock>,
    state: Mutex<SlotState>,
}

#[derive(Default)]
struct SlotState {
    held: usize,
    waiting: usize,
    clients: HashMap<Arc<str>, ClientLoad>,
}

#[derive(Default)]
struct ClientLoad {
    held: usize,
    waiting: VecDeque<oneshot::Sender<Slot>>,
}

/// A slot, released on drop.
pub(crate) struct Slot {
    slots: Arc<Slots>,
    client: Arc<str>,
}

impl Slots {
    pub(crate) fn new(bounds: SlotBounds, clock: Arc<dyn Clock>) -> Arc<Slots> {
        Arc::new(Slots { bounds, clock, state: Mutex::default() })
    }

    /// The most slots of one client.
    fn client_most(&self) -> usize {
        self.bounds.most.div_ceil(2)
    }

    fn lock(&self) -> MutexGuard<'_, SlotState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The numbers of held slots and of waiting requests.
    pub(crate) fn load(&self) -> (usize, usize) {
        let state = self.lock();
        (state.held, state.waiting)
    }

    /// Takes a slot now, or as soon as it is this client's turn. It waits no longer than until `deadline`, which it asks
    /// for only if it must wait.
    pub(crate) async fn enter(
        self: &Arc<Self>,
        client: &Arc<str>,
        deadline: impl FnOnce() -> Option<Instant>,
    ) -> Result<Slot, SlotRefusal> {
        let waiter = {
            let mut state = self.lock();
            if self.take(&mut state, client) {
                return Ok(Slot { slots: Arc::clone(self), client: Arc::clone(client) });
            }
            let queued = self.queue(&mut state, client);
            if queued.is_err() {
                state.forget_idle(client);
            }
            queued?
        };
        let longest = self.clock.now() + self.bounds.wait;
        let (until, refusal) = match deadline() {
            Some(deadline) if deadline < longest => (deadline, SlotRefusal::Deadline),
            _ => (longest, SlotRefusal::Server),
        };
        tokio::select! {
            biased;
            // The sender is dropped if the queue needs the place for another client.
            slot = waiter => slot.map_err(|_| SlotRefusal::Client),
            () = self.clock.sleep_until(until) => Err(refusal),
        }
    }

    /// Takes a slot if one is free for this client.
    pub(crate) fn try_enter(self: &Arc<Self>, client: &Arc<str>) -> Result<Slot, SlotRefusal> {
        let mut state = self.lock();
        if self.take(&mut state, client) {
            return Ok(Slot { slots: Arc::clone(self), client: Arc::clone(client) });
        }
        let is_at_share = state.clients.get(client).is_some_and(|load| load.held >= self.client_most());
        state.forget_idle(client);
        Err(if is_at_share { SlotRefusal::Client } else { SlotRefusal::Server })
    }

    fn take(&self, state: &mut SlotState, client: &Arc<str>) -> bool {
        let has_room = state.held < self.bounds.most;
        let load = state.clients.entry(Arc::clone(client)).or_default();
        // Waiting requests of this client come first.
        if !has_room || load.held >= self.client_most() || !load.waiting.is_empty() {
            return false;
        }
        load.held += 1;
        state.held += 1;
        true
    }

    fn queue(
        &self,
        state: &mut SlotState,
        client: &Arc<str>,
    ) -> Result<oneshot::Receiver<Slot>, SlotRefusal> {
        let SlotBounds { queue_most, .. } = self.bounds;
        if state.waiting >= queue_most {
            state.forget_gone();
        }
        let load = state.clients.entry(Arc::clone(client)).or_default();
        let (own, is_at_share) = (load.waiting.len(), load.held >= self.client_most());
        if own > 0 && own >= queue_most.div_ceil(2) {
            return Err(SlotRefusal::Client);
        }
        if state.waiting >= queue_most && !state.displace(own) {
            return Err(if is_at_share || own > 0 { SlotRefusal::Client } else { SlotRefusal::Server });
        }
        let (sender, waiter) = oneshot::channel();
        state.clients.entry(Arc::clone(client)).or_default().waiting.push_back(sender);
        state.waiting += 1;
        Ok(waiter)
    }

    fn give_back(self: &Arc<Self>, client: &Arc<str>) {
        let next = {
            let mut state = self.lock();
            state.held -= 1;
            if let Some(load) = state.clients.get_mut(client) {
                load.held -= 1;
            }
            state.forget_idle(client);
            state.next(self.client_most())
        };
        // This happens outside of the lock, because a slot whose receiver is gone is released here, too.
        if let Some((client, sender)) = next {
            let _ = sender.send(Slot { slots: Arc::clone(self), client });
        }
    }
}

impl SlotState {
    /// The next request to serve, with the slot counted as its own.
    fn next(&mut self, client_most: usize) -> Option<(Arc<str>, oneshot::Sender<Slot>)> {
        loop {
            let may =
                |(_, load): &(&Arc<str>, &ClientLoad)| !load.waiting.is_empty() && load.held < client_most;
            let (client, _) = self.clients.iter().filter(may).min_by_key(|(_, load)| load.held)?;
            let client = Arc::clone(client);
            let load = self.clients.get_mut(&client)?;
            let sender = load.waiting.pop_front()?;
            self.waiting -= 1;
            if !sender.is_closed() {
                load.held += 1;
                self.held += 1;
                return Some((client, sender));
            }
            self.forget_idle(&client);
        }
    }

    /// Forgets a client without requests.
    fn forget_idle(&mut self, client: &Arc<str>) {
        if self.clients.get(client).is_some_and(|load| load.held == 0 && load.waiting.is_empty()) {
            self.clients.remove(client);
        }
    }

    /// Forgets requests whose clients have disconnected.
    fn forget_gone(&mut self) {
        for load in self.clients.values_mut() {
            load.waiting.retain(|sender| !sender.is_closed());
        }
        self.waiting = self.clients.values().map(|load| load.waiting.len()).sum();
        self.clients.retain(|_, load| load.held > 0 || !load.waiting.is_empty());
    }

    /// Refuses the last request of the client with the most waiting ones, if it has at least two more than `own`.
    fn displace(&mut self, own: usize) -> bool {
        let longest = self.clients.values_mut().max_by_key(|load| load.waiting.len());
        let Some(load) = longest.filter(|load| load.waiting.len() > own + 1) else { return false };
        load.waiting.pop_back();
        self.waiting -= 1;
        true
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.give_back(&self.client);
    }
}

#[cfg(test)]
mod tests {
    use anabranch_engine::clock::SystemClock;
    use futures_util::FutureExt;

    use super::*;

    fn slots(most: usize, queue_most: usize) -> Arc<Slots> {
        Slots::new(SlotBounds { most, queue_most, wait: Duration::from_secs(3600) }, Arc::new(SystemClock))
    }

    fn name(name: &str) -> Arc<str> {
        name.into()
    }

    /// A request that is not granted yet is pending.
    macro_rules! enter {
        ($slots:expr, $client:expr) => {{
            let (slots, client) = (Arc::clone(&$slots), name($client));
            Box::pin(async move { slots.enter(&client, || None).await })
        }};
    }

    #[tokio::test]
    async fn a_client_has_half_of_the_slots() {
        let slots = slots(4, 8);
        let held = [
            slots.enter(&name("a"), || None).await.unwrap(),
            slots.enter(&name("a"), || None).await.unwrap(),
        ];
        let mut third = enter!(slots, "a");
        assert!((&mut third).now_or_never().is_none(), "half is held");
        let other = slots.enter(&name("b"), || None).await.unwrap();
        assert_eq!(slots.load(), (3, 1));
        drop(held);
        let third = third.await.unwrap();
        drop((other, third));
        assert_eq!(slots.load(), (0, 0));
        assert!(slots.lock().clients.is_empty());
    }

    #[tokio::test]
    async fn a_free_slot_goes_to_the_client_with_the_fewest() {
        let slots = slots(2, 8);
        let (a, b) = (
            slots.enter(&name("a"), || None).await.unwrap(),
            slots.enter(&name("b"), || None).await.unwrap(),
        );
        let (mut more_b, mut c) = (enter!(slots, "b"), enter!(slots, "c"));
        assert!((&mut more_b).now_or_never().is_none() && (&mut c).now_or_never().is_none());
        drop(a);
        let c = c.now_or_never().expect("it is its turn").unwrap();
        assert!((&mut more_b).now_or_never().is_none());
        drop(b);
        drop((more_b.now_or_never().unwrap().unwrap(), c));
        assert_eq!(slots.load(), (0, 0));
    }

    #[tokio::test]
    async fn a_full_queue_refuses_the_client_that_fills_it() {
        let slots = slots(1, 4);
        let _held = slots.enter(&name("a"), || None).await.unwrap();
        let mut waiting = Vec::new();
        for client in ["a", "a", "b", "b"] {
            let mut waiter = enter!(slots, client);
            assert!((&mut waiter).now_or_never().is_none());
            waiting.push(waiter);
        }
        assert_eq!(slots.enter(&name("a"), || None).await.err(), Some(SlotRefusal::Client));
        let mut newcomer = enter!(slots, "c");
        assert!((&mut newcomer).now_or_never().is_none(), "it takes a place from those with two");
        let refused: Vec<_> = waiting.iter_mut().filter_map(|waiter| waiter.now_or_never()).collect();
        assert_eq!(refused.len(), 1);
        assert!(matches!(refused[0], Err(SlotRefusal::Client)));
        let mut second = enter!(slots, "d");
        assert!((&mut second).now_or_never().is_none());
        assert_eq!(slots.enter(&name("e"), || None).await.err(), Some(SlotRefusal::Server));
    }

    #[tokio::test]
    async fn requests_that_are_given_up_make_room() {
        let slots = slots(1, 2);
        let held = slots.enter(&name("a"), || None).await.unwrap();
        let mut gone = enter!(slots, "b");
        assert!((&mut gone).now_or_never().is_none());
        drop(gone);
        let mut next = enter!(slots, "c");
        assert!((&mut next).now_or_never().is_none());
        drop(held);
        assert!(next.now_or_never().unwrap().is_ok());
        assert_eq!(slots.load(), (0, 0));
    }
}
