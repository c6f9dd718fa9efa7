//! Nodes that are ready but must wait for a limit, a serial key or a retry. A waiting node holds no slot and no future.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::queue::AscendingQueue;
use super::timer::Due;
use super::{CurrentCall, Message, Run};
use crate::event::{EventKind, WaitReason};
use crate::frontier::Phase;
use crate::graph::{Graph, NodeId};
use crate::limit::{CallEnd, CallOutcome, LimitKey, Permit, QueuePlace, SlotReceiver, SlotReply};
use crate::mailbox::Mailbox;
use crate::policy::{Policy, SerialKey};
use crate::retry::{Jitter, MAX_REFUSALS, Severity};
use crate::workload::{Failure, Workload};

/// The state of waiting nodes. It is created when the first node of a run must wait.
pub(super) struct Waits {
    /// One per limit, by the limit's number.
    limits: Vec<Queue>,
    serials: HashMap<SerialKey, Turn>,
    /// Nodes that wait for their next retry.
    pausing: BinaryHeap<Reverse<(Instant, NodeId)>>,
    /// Nodes that may be admitted again: their pause is over, or they have got their serial key.
    again: AscendingQueue<Rank>,
    tries: HashMap<NodeId, Tries>,
    jitter: Jitter,
}

/// Nodes that were not tried yet come first, then the lower number.
type Rank = (u32, NodeId);

/// The nodes of the run that wait for one limit. The run has at most one place in the limit's queue, for the best of
/// them.
#[derive(Default)]
struct Queue {
    nodes: AscendingQueue<Rank>,
    place: Option<QueuePlace>,
    look_at: Option<Instant>,
}

#[derive(Default)]
struct Turn {
    holder: Option<NodeId>,
    nodes: AscendingQueue<Rank>,
}

#[derive(Clone, Copy, Default)]
struct Tries {
    failed: u32,
    refused: u32,
}

impl Waits {
    pub(super) fn new(seed: u64) -> Waits {
        Waits {
            limits: Vec::new(),
            serials: HashMap::new(),
            pausing: BinaryHeap::new(),
            again: AscendingQueue::default(),
            tries: HashMap::new(),
            jitter: Jitter(seed),
        }
    }

    /// The next time at which a pause ends or a limit's queue must be served.
    pub(super) fn earliest(&self) -> Option<Instant> {
        let pause = self.pausing.peek().map(|Reverse((at, _))| *at);
        let looks = self.limits.iter().filter_map(|queue| queue.look_at);
        looks.chain(pause).min()
    }

    /// The waiting node with the lowest number.
    pub(super) fn some_node(&self) -> Option<NodeId> {
        let queued = self.limits.iter().filter_map(|queue| queue.nodes.peek());
        let queued = queued.chain(self.again.peek()).map(|(_, node)| node);
        queued.chain(self.pausing.iter().map(|Reverse((_, node))| *node)).min()
    }

    /// Gives back the places in the queues of limits and ends the pauses, in a run that starts no further node: it waits
    /// for nothing but its work in flight.
    pub(super) fn leave_queues(&mut self) {
        for queue in &mut self.limits {
            (queue.place, queue.look_at) = (None, None);
        }
        while let Some(Reverse((_, node))) = self.pausing.pop() {
            let rank = self.rank(node);
            self.again.push(rank);
        }
    }

    fn queue(&mut self, key: LimitKey) -> &mut Queue {
        if self.limits.len() <= key.index() {
            self.limits.resize_with(key.index() + 1, Queue::default);
        }
        &mut self.limits[key.index()]
    }

    fn rank(&self, node: NodeId) -> Rank {
        let tries = self.tries.get(&node).copied().unwrap_or_default();
        (tries.failed + tries.refused, node)
    }
}

impl<V: Send, E: Send> SlotReceiver for Mailbox<Message<V, E>> {
    fn granted(&self, permit: Permit) {
        self.push(Message::Granted(permit));
    }

    fn look_at(&self, key: LimitKey, at: Instant) {
        self.push(Message::LookAt(key, at));
    }
}

impl<G: Graph, W: Workload> Run<'_, G, W> {
    fn waits(&mut self) -> &mut Waits {
        let seed = self.terms.seed;
        self.waits.get_or_insert_with(|| Box::new(Waits::new(seed)))
    }

    /// Starts a node, or lets it wait for its serial key or its limit.
    #[inline]
    pub(super) fn admit(&mut self, node: NodeId) {
        let policy = self.policies.of(node);
        match (policy.serial, policy.limit) {
            (None, None) => self.begin(node, policy),
            (Some(key), _) if !self.takes_turn(key, node) => {}
            _ => self.ask_limit(node, policy),
        }
    }

    /// The next node to admit: the best of the ready nodes and those whose wait is over.
    #[inline]
    pub(super) fn next_node(&mut self) -> Option<NodeId> {
        if self.waits.is_some()
            && let Some(node) = self.next_again()
        {
            return Some(node);
        }
        self.frontier.start_next()
    }

    fn next_again(&mut self) -> Option<NodeId> {
        let waits = self.waits.as_mut()?;
        while let Some((tries, node)) = waits.again.peek() {
            let wanted = self.frontier.phase(node) == Phase::InFlight;
            if wanted && self.frontier.first_ready().is_some_and(|ready| (0, ready) < (tries, node)) {
                return None;
            }
            waits.again.pop();
            if wanted {
                return Some(node);
            }
        }
        None
    }

    /// Ends the pauses that are over, and serves the limits' queues that are due.
    pub(super) fn wake_waits(&mut self) {
        let now = self.slice.now;
        let Some(waits) = self.waits.as_mut() else { return };
        while waits.pausing.peek().is_some_and(|Reverse((at, _))| *at <= now) {
            let Reverse((_, node)) = waits.pausing.pop().expect("was just seen");
            let rank = waits.rank(node);
            waits.again.push(rank);
        }
        let Some(limits) = &self.terms.table else { return };
        for (number, queue) in waits.limits.iter_mut().enumerate() {
            if queue.look_at.take_if(|at| *at <= now).is_some() {
                limits.look(LimitKey::numbered(number));
            }
        }
    }

    fn takes_turn(&mut self, key: SerialKey, node: NodeId) -> bool {
        let waits = self.waits();
        let rank = waits.rank(node);
        let turn = waits.serials.entry(key).or_default();
        match turn.holder {
            None => turn.holder = Some(node),
            Some(holder) if holder == node => {}
            Some(_) => turn.nodes.push(rank),
        }
        turn.holder == Some(node)
    }

    /// Frees the serial key that a node holds. The best node that waits for the key gets it.
    pub(super) fn pass_turn(&mut self, node: NodeId) {
        let Some(key) = self.policies.of(node).serial else { return };
        let Some(turn) = self.waits.as_mut().and_then(|waits| waits.serials.get_mut(&key)) else { return };
        if turn.holder != Some(node) {
            return;
        }
        turn.holder = None;
        while let Some((_, next)) = turn.nodes.pop() {
            if self.frontier.phase(next) == Phase::InFlight {
                turn.holder = Some(next);
                let rank = self.waits().rank(next);
                self.waits().again.push(rank);
                return;
            }
        }
    }

    fn ask_limit(&mut self, node: NodeId, policy: &Policy) {
        let Some(key) = policy.limit else {
            return self.begin(node, policy);
        };
        self.doing = CurrentCall::Step(node, self.log.start_time());
        if !self.work.needs_limit(node) {
            return self.begin(node, policy);
        }
        let waits = self.waits();
        let rank = waits.rank(node);
        waits.queue(key).nodes.push(rank);
        self.serve_key(key);
        let untried = self.waits().rank(node) == rank;
        if self.over.is_none() && untried && self.is_waiting(node) {
            self.log.now(EventKind::Waiting(node, WaitReason::Limit));
            let cutoff = self.cutoff(node, policy);
            self.set_timer(cutoff, Due::Node(node));
        }
    }

    /// Starts the best node that waits for `key`, or joins the limit's queue if it has no slot.
    fn serve_key(&mut self, key: LimitKey) {
        let Some(node) = self.best_of(key) else { return };
        if self.waits().queue(key).place.is_some() {
            return;
        }
        self.mail();
        let tokens = self.policies.of(node).tokens;
        let (Some(limits), Some(mail)) = (&self.terms.table, &self.mail) else { return };
        match limits.ask(key, tokens, || Arc::clone(mail) as Arc<dyn SlotReceiver>) {
            SlotReply::Granted(permit) => self.begin_with(permit),
            SlotReply::Queued(place) => self.waits().queue(key).place = Some(place),
        }
    }

    /// Takes a slot from a limit. A full run returns the slot, and requests it again when a node has ended. A drained
    /// run returns it as well.
    pub(super) fn granted(&mut self, permit: Permit) {
        let queue = self.waits().queue(permit.key());
        queue.place = None;
        queue.look_at = None;
        if !self.is_draining() && self.slots.in_flight() < self.terms.in_flight {
            self.begin_with(permit);
        }
    }

    pub(super) fn look_at(&mut self, key: LimitKey, at: Instant) {
        let queue = self.waits().queue(key);
        if queue.place.is_some() {
            queue.look_at = Some(at);
        }
    }

    /// Starts nodes that wait for limits while the run has free slots of its own, the best node first.
    pub(super) fn serve_limits(&mut self) {
        while self.over.is_none() && !self.is_draining() && self.slots.in_flight() < self.terms.in_flight {
            let Some(waits) = &self.waits else { return };
            let unasked = waits.limits.iter().enumerate().filter(|(_, queue)| queue.place.is_none());
            let best = unasked.filter_map(|(number, queue)| Some((queue.nodes.peek()?, number))).min();
            let Some((_, number)) = best else { return };
            self.serve_key(LimitKey::numbered(number));
        }
    }

    fn begin_with(&mut self, permit: Permit) {
        let key = permit.key();
        let Some(node) = self.best_of(key) else { return };
        self.waits().queue(key).nodes.pop();
        self.permit = Some(permit);
        self.begin(node, self.policies.of(node));
        // A node that ended at once has left the limit's slot here.
        self.permit = None;
    }

    /// The best node that waits for `key`. Nodes that have been dropped are removed.
    fn best_of(&mut self, key: LimitKey) -> Option<NodeId> {
        let queue = self.waits.as_mut()?.limits.get_mut(key.index())?;
        while let Some((_, node)) = queue.nodes.peek() {
            if self.frontier.phase(node) == Phase::InFlight && self.frontier.ticket(node).is_none() {
                return Some(node);
            }
            queue.nodes.pop();
        }
        queue.place = None;
        None
    }

    /// Tells the limit how the current node's call ended.
    pub(super) fn report(&mut self, ended: CallEnd) {
        if let Some(permit) = self.permit.take() {
            let key = permit.key();
            if let Some(change) = permit.end(ended) {
                self.log.now(EventKind::Limit(key, change));
            }
        }
    }

    pub(super) fn report_failure(&mut self, failure: &Failure<W::Error>) {
        let retry_after = match failure.severity() {
            Severity::Throttled { retry_after } => Some(retry_after),
            Severity::Transient | Severity::Permanent => None,
        };
        let outcome = match failure {
            Failure::Timeout(_) => CallOutcome::TimedOut,
            Failure::Deadline => CallOutcome::GivenUp,
            _ if retry_after.is_some() => CallOutcome::Refused,
            _ => CallOutcome::Failed,
        };
        self.report(CallEnd { retry_after: retry_after.flatten(), ..CallEnd::with(outcome) });
    }

    /// Schedules a retry of a failed node, if its policy and its failure allow one.
    /// `reported_to` is the limit that the failure was reported to.
    pub(super) fn try_again(
        &mut self,
        node: NodeId,
        failure: &Failure<W::Error>,
        reported_to: Option<LimitKey>,
    ) -> bool {
        let policy = self.policies.of(node);
        let Some(retry) = policy.retry else { return false };
        let severity = failure.severity();
        if severity == Severity::Permanent {
            return false;
        }
        let waits = self.waits();
        let random = waits.jitter.next();
        let tries = waits.tries.entry(node).or_default();
        let pause = match severity {
            Severity::Throttled { retry_after } => {
                tries.refused += 1;
                let pause = match retry_after {
                    // The limit applies the backend's `Retry-After` to all nodes of the key.
                    Some(_) if reported_to.is_some() => Duration::ZERO,
                    Some(pause) => pause,
                    None => retry.pause(tries.refused.min(8) - 1, random),
                };
                (tries.refused <= MAX_REFUSALS).then_some(pause)
            }
            _ => {
                tries.failed += 1;
                retry.pause_after(tries.failed, random)
            }
        };
        let Some(at) = pause.and_then(|pause| self.slice.now.checked_add(pause)) else { return false };
        self.waits().pausing.push(Reverse((at, node)));
        self.frontier.clear_ticket(node);
        self.log.now(EventKind::Waiting(node, WaitReason::Retry));
        let cutoff = self.cutoff(node, policy);
        self.set_timer(cutoff, Due::Node(node));
        true
    }

    /// Fails a waiting node that must be replaced by its fallback.
    pub(super) fn expire_node(&mut self, node: NodeId) {
        if self.is_waiting(node) && !self.is_draining() {
            self.failed(node, Failure::Deadline);
        }
    }

    /// Whether a node was admitted and waits for its start or its retry.
    fn is_waiting(&self, node: NodeId) -> bool {
        self.frontier.phase(node) == Phase::InFlight && self.frontier.ticket(node).is_none()
    }
}
