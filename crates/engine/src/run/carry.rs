//! Runs the steps of nodes: decides where each step goes and takes its result.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::Poll;
use std::time::{Duration, Instant};

use super::slots::{Hold, OnTrip};
use super::timer::{Due, Ticket};
use super::trip::{self, Link, MAX_LINKS, Outcome, Reply, Trip, TripRunner};
use super::{CurrentCall, Run};
use crate::check::Check;
use crate::clock::{after, earlier};
use crate::event::{EventKind, Placement};
use crate::frontier::Phase;
use crate::graph::{Edge, Graph, NodeId};
use crate::options::Class;
use crate::panics;
use crate::policy::{OnError, Policy, StepKind};
use crate::workload::{Budget, Cost, Failure, Step, Workload};

impl<G: Graph, W: Workload> Run<'_, G, W> {
    pub(super) fn begin(&mut self, node: NodeId, policy: &Policy) {
        let cutoff = self.cutoff(node, policy);
        if cutoff.is_some_and(|cutoff| self.slice.now >= cutoff) {
            return self.failed(node, Failure::Deadline);
        }
        let timeout = after(self.slice.now, policy.timeout);
        let deadline = earlier(cutoff, self.grace_until.or(self.terms.deadline));
        let own_due = earlier(timeout, cutoff);
        let at = self.log.start_time();
        self.doing = CurrentCall::Step(node, at);
        let step = self.work.step(node, Budget { now: self.slice.now, due: earlier(timeout, deadline) });
        self.doing = CurrentCall::Node(node);
        if let Some(permit) = &mut self.permit {
            permit.call_made = !matches!(step, Step::Drop);
        }
        match step {
            Step::Ready(result) => {
                self.log.started(at, node, Placement::Inline);
                match result {
                    Ok(value) => self.finished(node, value),
                    Err(error) => self.failed(node, Failure::Error(error)),
                }
            }
            Step::Drop => self.drop_node(node),
            Step::Future(future) if policy.step == StepKind::Spawned => {
                self.log.started(at, node, Placement::Spawned);
                self.spawn(node, future, own_due);
            }
            Step::Future(future) => {
                self.log.started(at, node, Placement::Future);
                let ticket = self.take_slot(node, own_due);
                let mail = Arc::clone(self.mail());
                self.slots.put_future(ticket, future, &mail);
                self.poll_slot(ticket.slot);
            }
            Step::Job(job, cost) => match self.place(policy, cost) {
                Placement::Inline => {
                    self.log.started(at, node, Placement::Inline);
                    self.run_inline(node, job, policy, (timeout, deadline));
                }
                place => {
                    self.log.started(at, node, place);
                    self.offload(node, job, (place, cost), own_due);
                }
            },
        }
    }

    fn place(&self, policy: &Policy, cost: Cost) -> Placement {
        match (policy.step, cost) {
            (StepKind::Inline, _) => Placement::Inline,
            (StepKind::Blocking, _) | (_, Cost::Blocks) => Placement::Blocking,
            (StepKind::Auto | StepKind::Spawned, Cost::About(cost))
                if cost <= self.terms.inline_threshold =>
            {
                Placement::Inline
            }
            (StepKind::Auto | StepKind::Spawned | StepKind::Pool, _) => Placement::Pool,
        }
    }

    fn run_inline(
        &mut self,
        node: NodeId,
        job: W::Job,
        policy: &Policy,
        (timeout, deadline): (Option<Instant>, Option<Instant>),
    ) {
        static NEVER: AtomicBool = AtomicBool::new(false);
        let clock = Arc::clone(&self.engine.seams.clock);
        let check = Check::new(&NEVER, timeout, deadline, &*clock);
        // A job may take much longer than a plain step, so the clock is read right after it.
        self.slice.until_check = 1;
        match trip::run_job(job, None, &check, policy.timeout) {
            Ok(value) => self.finished(node, value),
            Err(failure) => self.failed(node, failure),
        }
    }

    /// Sends a job to a pool, together with the jobs that can only run after it.
    fn offload(&mut self, node: NodeId, job: W::Job, (place, cost): (Placement, Cost), due: Option<Instant>) {
        let timeout = self.policies.of(node).timeout;
        let mut links = vec![Link { node, job, timeout }];
        if place == Placement::Pool {
            self.extend_chain(&mut links);
        }
        let trip = Arc::new(Trip::new(self.slice.now));
        let nodes = links.iter().map(|link| (link.node, link.timeout)).collect();
        let on_trip = OnTrip { trip: Arc::clone(&trip), nodes };
        let ticket = self.take_slot(node, earlier(due, on_trip.look_at(self.slice.now)));
        self.slots.hold(ticket, Hold::Trip(on_trip));
        let runner = TripRunner {
            trip,
            reply: Reply::new(Arc::clone(self.mail()), ticket),
            clock: Arc::clone(&self.engine.seams.clock),
            deadline: self.terms.deadline,
            least: match cost {
                Cost::About(cost) => cost / 2,
                Cost::Unknown | Cost::Blocks => Duration::ZERO,
            },
            keep_marks: self.log.is_heard(),
        };
        let seams = &self.engine.seams;
        let pool = match (place, self.terms.class) {
            (Placement::Blocking, _) => &seams.blocking,
            (_, Class::Latency) => &seams.latency,
            (_, Class::Batch) => &seams.batch,
        };
        pool.submit(Box::new(move || runner.run(links)));
    }

    /// Adds the dependent of the last link to the trip, as long as that is its only dependent, waits for nothing else and
    /// is CPU work. A node with a fallback or a retry is not added: it would need its input's value a second time.
    fn extend_chain(&mut self, links: &mut Vec<Link<W::Job>>) {
        let graph = self.frontier.graph();
        while links.len() < MAX_LINKS {
            let input = links[links.len() - 1].node;
            if graph.dependent_count(input) != 1 {
                return;
            }
            let mut follower = None;
            graph.dependents(input, |node, edge| follower = (edge == Edge::Needs).then_some(node));
            let Some(node) = follower.filter(|node| self.frontier.waiting_on(*node) == 1) else { return };
            let policy = self.policies.of(node);
            let is_cpu = matches!(policy.step, StepKind::Auto | StepKind::Inline | StepKind::Pool);
            let waits = policy.limit.is_some() || policy.serial.is_some() || policy.retry.is_some();
            if !is_cpu || waits || policy.on_error == OnError::Fallback {
                return;
            }
            let Some(job) = self.work.link(node, input) else { return };
            links.push(Link { node, job, timeout: policy.timeout });
        }
    }

    fn spawn(&mut self, node: NodeId, future: W::Future, due: Option<Instant>) {
        let ticket = self.take_slot(node, due);
        let reply = Reply::new(Arc::clone(self.mail()), ticket);
        let task = self.engine.seams.tasks.spawn(Box::pin(async move {
            let mut future = std::pin::pin!(future);
            let result = std::future::poll_fn(|cx| {
                match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
                    Ok(polled) => polled.map_err(Failure::Error),
                    Err(payload) => Poll::Ready(Err(Failure::Panic(panics::message(&*payload)))),
                }
            })
            .await;
            reply.send(Outcome { reached: 0, result });
        }));
        self.slots.hold(ticket, Hold::Task(task));
    }

    fn take_slot(&mut self, node: NodeId, due: Option<Instant>) -> Ticket {
        let ticket = self.slots.take(node, self.permit.take());
        self.frontier.set_ticket(node, ticket.slot);
        self.set_timer(due, Due::Slot(ticket));
        ticket
    }

    pub(super) fn set_timer(&mut self, at: Option<Instant>, due: Due) {
        let Some(at) = at else { return };
        let Run { timer, slots, frontier, .. } = self;
        timer.set(at, due, |due| match due {
            Due::Slot(ticket) => slots.live(ticket).is_some(),
            Due::Node(node) => frontier.phase(node) == Phase::InFlight,
        });
    }

    pub(super) fn poll_slot(&mut self, slot: u32) {
        self.doing = CurrentCall::Polling(slot);
        if let Poll::Ready(result) = self.slots.poll_future(slot) {
            let node = self.slots.node(slot);
            self.permit = self.slots.release(slot);
            match result {
                Ok(value) => self.finished(node, value),
                Err(error) => self.failed(node, Failure::Error(error)),
            }
        }
    }

    /// Takes the result of a trip or task. The result of work that has been cancelled is ignored.
    pub(super) fn returned(&mut self, ticket: Ticket, outcome: Outcome<W::Value, W::Error>) {
        if self.slots.live(ticket).is_none() {
            return;
        }
        let Outcome { reached, result } = outcome;
        let Some(node) = self.leave_slot(ticket, reached) else { return };
        match result {
            Ok(value) => self.finished(node, value),
            Err(failure) => self.failed(node, failure),
        }
    }

    /// Frees a slot whose work has reached link `reached`. The links before it have finished. Returns the node of
    /// `reached`, unless it has been dropped.
    fn leave_slot(&mut self, ticket: Ticket, reached: usize) -> Option<NodeId> {
        let slot = self.slots.live(ticket).expect("asked for a live slot");
        let Hold::Trip(on_trip) = &slot.hold else {
            let node = slot.node;
            self.permit = self.slots.release(ticket.slot);
            return Some(node);
        };
        let nodes: Vec<NodeId> = on_trip.nodes[..=reached].iter().map(|(node, _)| *node).collect();
        let marks = if self.log.is_heard() { on_trip.trip.take_marks() } else { Vec::new() };
        self.permit = self.slots.release(ticket.slot);
        if let Some(began) = marks.first() {
            self.log.at(*began, EventKind::Running(nodes[0]));
        }
        for link in 0..reached {
            // Without marks, the first listener came after the trip began.
            let mark = marks.get(link + 1).copied().unwrap_or(self.slice.now);
            self.log.at(mark, EventKind::Finished(nodes[link]));
            self.end_finished(nodes[link]);
            if !self.frontier.start(nodes[link + 1]) {
                return None;
            }
            self.log.at(mark, EventKind::Started(nodes[link + 1], Placement::Pool));
        }
        Some(nodes[reached])
    }

    /// Fails the nodes whose time is over.
    pub(super) fn expire(&mut self) {
        while self.over.is_none()
            && let Some(due) = self.timer.pop_due(self.slice.now)
        {
            match due {
                Due::Slot(ticket) => self.expire_slot(ticket),
                Due::Node(node) => self.expire_node(node),
            }
        }
        self.check_deadline();
    }

    fn expire_slot(&mut self, ticket: Ticket) {
        let now = self.slice.now;
        let Some(slot) = self.slots.live(ticket) else { return };
        let (mut node, mut reached) = (slot.node, 0);
        let mut look_at = None;
        if let Hold::Trip(on_trip) = &slot.hold {
            let (link, _) = on_trip.trip.progress();
            (node, reached, look_at) = (on_trip.nodes[link].0, link, on_trip.look_at(now));
        }
        let policy = *self.policies.of(node);
        let cutoff = self.cutoff(node, &policy);
        let failure = match policy.timeout {
            _ if cutoff.is_some_and(|cutoff| now >= cutoff) => Failure::Deadline,
            Some(timeout) if look_at.is_none_or(|at| at <= now) => Failure::Timeout(timeout),
            // The timer was set for an earlier link, which has finished.
            _ => return self.set_timer(earlier(look_at, cutoff), Due::Slot(ticket)),
        };
        if let Some(node) = self.leave_slot(ticket, reached) {
            self.failed(node, failure);
        }
    }
}
