//! The work that a run has in flight. Slots are reused, so a node costs no allocation once the run is warm.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use super::Message;
use super::timer::Ticket;
use super::trip::Trip;
use crate::clock::{after, earlier};
use crate::graph::NodeId;
use crate::limit::Permit;
use crate::mailbox::Mailbox;
use crate::tasks::AbortOnDrop;
use crate::workload::Workload;

pub(super) type Mail<V, E> = Mailbox<Message<V, E>>;

pub(super) struct Slots<W: Workload> {
    slots: Vec<Slot<W>>,
    free: Vec<u32>,
}

pub(super) struct Slot<W: Workload> {
    /// The node, or the first node of a trip.
    pub(super) node: NodeId,
    pub(super) hold: Hold,
    /// The limit's slot that the work occupies.
    permit: Option<Permit>,
    generation: u32,
    future: Option<Pin<Box<Option<W::Future>>>>,
    waker: Option<SlotHandle<W::Value, W::Error>>,
}

/// A slot's waker: the handle that its future gets, and the state behind it.
type SlotHandle<V, E> = (Waker, Arc<SlotWaker<V, E>>);

/// Keeps a slot's work alive. Dropping it cancels the work.
pub(super) enum Hold {
    Nothing,
    Future,
    Task(#[allow(dead_code, reason = "held for its drop")] AbortOnDrop),
    Trip(OnTrip),
}

/// A trip in progress, and the nodes of its links with their timeouts.
pub(super) struct OnTrip {
    pub(super) trip: Arc<Trip>,
    pub(super) nodes: Vec<(NodeId, Option<Duration>)>,
}

impl OnTrip {
    /// The earliest time at which a link can exceed its timeout, as known at `now`.
    pub(super) fn look_at(&self, now: Instant) -> Option<Instant> {
        let (link, began) = self.trip.progress();
        let to_come = self.nodes[link + 1..].iter().filter_map(|(_, timeout)| *timeout);
        // A timeout of zero must not set a timer for this very instant, again and again.
        let shortest = to_come.min().map(|timeout| timeout.max(Duration::from_micros(1)));
        earlier(after(began, self.nodes[link].1), after(now, shortest))
    }
}

impl Drop for OnTrip {
    fn drop(&mut self) {
        self.trip.stop();
    }
}

impl<W: Workload> Slots<W> {
    pub(super) fn new() -> Slots<W> {
        Slots { slots: Vec::new(), free: Vec::new() }
    }

    pub(super) fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(super) fn take(&mut self, node: NodeId, permit: Option<Permit>) -> Ticket {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                let empty = Slot {
                    node,
                    hold: Hold::Nothing,
                    permit: None,
                    generation: 0,
                    future: None,
                    waker: None,
                };
                self.slots.push(empty);
                self.slots.len() as u32 - 1
            }
        };
        let entry = &mut self.slots[slot as usize];
        entry.node = node;
        entry.permit = permit;
        Ticket { slot, generation: entry.generation }
    }

    /// Cancels the slot's work and frees the slot.
    pub(super) fn release(&mut self, slot: u32) -> Option<Permit> {
        let entry = &mut self.slots[slot as usize];
        entry.generation = entry.generation.wrapping_add(1);
        if let Hold::Future = std::mem::replace(&mut entry.hold, Hold::Nothing)
            && let Some(future) = &mut entry.future
        {
            future.as_mut().set(None);
        }
        self.free.push(slot);
        entry.permit.take()
    }

    /// The slot, if the ticket's use of it is not over.
    pub(super) fn live(&self, ticket: Ticket) -> Option<&Slot<W>> {
        self.slots.get(ticket.slot as usize).filter(|slot| slot.generation == ticket.generation)
    }

    pub(super) fn hold(&mut self, ticket: Ticket, hold: Hold) {
        self.slots[ticket.slot as usize].hold = hold;
    }

    pub(super) fn node(&self, slot: u32) -> NodeId {
        self.slots[slot as usize].node
    }

    /// Stores a future to poll in place, in the box and with the waker of the slot's last future.
    pub(super) fn put_future(
        &mut self,
        ticket: Ticket,
        future: W::Future,
        mail: &Arc<Mail<W::Value, W::Error>>,
    ) {
        let entry = &mut self.slots[ticket.slot as usize];
        entry.hold = Hold::Future;
        match &mut entry.future {
            Some(place) => place.as_mut().set(Some(future)),
            none => *none = Some(Box::pin(Some(future))),
        }
        if entry.waker.is_none() {
            let shared = Arc::new(SlotWaker {
                mail: Arc::clone(mail),
                slot: ticket.slot,
                queued: AtomicBool::new(false),
            });
            entry.waker = Some((Waker::from(Arc::clone(&shared)), shared));
        }
    }

    /// Polls the slot's future. A late wake-up of an earlier future causes one needless poll, which is harmless.
    pub(super) fn poll_future(&mut self, slot: u32) -> Poll<Result<W::Value, W::Error>> {
        let entry = &mut self.slots[slot as usize];
        let (Some(future), Some((waker, shared))) = (&mut entry.future, &entry.waker) else {
            return Poll::Pending;
        };
        shared.queued.store(false, Ordering::Release);
        match future.as_mut().as_pin_mut() {
            Some(future) => future.poll(&mut Context::from_waker(waker)),
            None => Poll::Pending,
        }
    }

    /// The nodes in flight, in order.
    pub(super) fn nodes_in_flight(&self) -> Vec<NodeId> {
        let mut nodes: Vec<NodeId> = self.slots.iter().filter_map(Slot::current_node).collect();
        nodes.sort_unstable();
        nodes
    }

    pub(super) fn clear(&mut self) {
        self.slots.clear();
        self.free.clear();
    }
}

impl<W: Workload> Slot<W> {
    fn current_node(&self) -> Option<NodeId> {
        match &self.hold {
            Hold::Nothing => None,
            Hold::Future | Hold::Task(_) => Some(self.node),
            Hold::Trip(on_trip) => Some(on_trip.nodes[on_trip.trip.progress().0].0),
        }
    }
}

/// Wakes the future of one slot through the run's mailbox, with at most one message at a time.
struct SlotWaker<V, E> {
    mail: Arc<Mail<V, E>>,
    slot: u32,
    queued: AtomicBool,
}

impl<V: Send + 'static, E: Send + 'static> Wake for SlotWaker<V, E> {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, Ordering::AcqRel) {
            self.mail.push(Message::Poll(self.slot));
        }
    }
}
