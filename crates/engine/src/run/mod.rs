//! One execution of a graph: a future that owns all its state.

mod carry;
mod log;
mod slots;
mod timer;
mod trip;
mod waits;

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crate::admission::{Admitted, Cut, Refused};
use crate::engine::{Class, Engine, Options, Reserve};
use crate::event::{Ending, Place, Reason, What};
use crate::frontier::{Change, Frontier, Phase};
use crate::graph::{Graph, NodeId};
use crate::limit::{self, Ended, LimitKey, Permit, Verdict};
use crate::panics;
use crate::policy::{OnError, Policies, Policy};
use crate::workload::{Drops, Failure, Workload};
use log::Log;
use slots::{Mail, Slots};
use timer::{Ticket, Timer};
use trip::Outcome;
use waits::Waits;

/// A run: a future that carries out every node of a graph and then says how it went.
///
/// Dropping it at any point stops what it started: futures are dropped, tasks aborted, jobs told to stop, and late
/// results thrown away where they arise.
#[must_use = "a run does nothing until it is polled"]
pub struct Run<'a, G, W: Workload> {
    engine: &'a Engine,
    frontier: Frontier<'a, G>,
    policies: &'a Policies,
    work: &'a mut W,
    limits: Limits,
    slots: Slots<W>,
    timer: Timer,
    mail: Option<Arc<Mail<W::Value, W::Error>>>,
    inbox: VecDeque<Message<W::Value, W::Error>>,
    drops: Drops,
    /// Nodes just dropped, with their slots if in flight, to be stopped.
    cancelled: Vec<(NodeId, Option<u32>)>,
    fell_back: u32,
    waits: Option<Box<Waits>>,
    /// The limit's slot of the node at hand, on its way into or out of the run's own slots.
    permit: Option<Permit>,
    slice: Slice,
    doing: Doing,
    over: Option<Result<(), Stopped<W::Error>>>,
    log: Log,
    /// `None` once the run has ended.
    admitted: Option<Admitted>,
}

/// How a run that ended by itself went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// Nodes that finished, those with a stand-in value included.
    pub finished: u32,
    /// Nodes that failed and were isolated.
    pub failed: u32,
    /// Nodes that were dropped.
    pub dropped: u32,
    /// Nodes whose value is a stand-in.
    pub fell_back: u32,
}

/// Why a run ended early. Whatever was in flight has been told to stop.
#[derive(Debug, thiserror::Error)]
pub enum Stopped<E> {
    /// A node failed: the first to do so.
    #[error("node {node} failed: {failure}")]
    Node {
        /// The node.
        node: NodeId,
        /// How.
        failure: Failure<E>,
    },
    /// The deadline passed.
    #[error("the deadline passed with {late:?} still to finish")]
    Deadline {
        /// The nodes being worked on when it did, in order.
        late: Vec<NodeId>,
    },
    /// The engine came to rest and the run's time of grace was over.
    #[error("the engine shut down with {late:?} still to finish")]
    Cut {
        /// The nodes being worked on, in order.
        late: Vec<NodeId>,
    },
}

enum Message<V, E> {
    /// A future in place wants to be polled.
    Poll(u32),
    /// A trip or task is back.
    Done(Ticket, Outcome<V, E>),
    /// A limit has a slot for the run.
    Granted(Permit),
    /// A limit's queue wants to be looked after at that time.
    LookAt(LimitKey, Instant),
    /// The engine wants the run to stop.
    Cut,
}

impl<V: Send, E: Send> Cut for Mail<V, E> {
    fn cut(&self) {
        self.push(Message::Cut);
    }
}

struct Limits {
    deadline: Option<Instant>,
    reserve: TailReserve,
    class: Class,
    in_flight: usize,
    inline_threshold: Duration,
    table: Option<limit::Limits>,
    seed: u64,
}

enum TailReserve {
    Fixed(Duration),
    PerNode(Arc<[Duration]>),
}

/// The workload code being called, so that a panic finds its node.
#[derive(Clone, Copy)]
enum Doing {
    /// Its step, begun at the given time if anybody wants to know.
    Step(NodeId, Option<Instant>),
    /// Something else of a node that has started.
    Node(NodeId),
    Polling(u32),
    Bookkeeping(NodeId),
}

enum Turn {
    Idle,
    Yield,
    Over,
}

/// Inline work since the last yield. The clock is read every few nodes, as few as their pace asks for.
struct Slice {
    now: Instant,
    began: Instant,
    stride: u32,
    until_check: u32,
}

/// A run that works inline lets others on its thread go first after this long.
const SLICE: Duration = Duration::from_micros(100);
/// Aim of the time between two looks at the clock.
const LOOK_EVERY: Duration = Duration::from_micros(20);
const MAX_STRIDE: u32 = 64;

impl<'a, G: Graph, W: Workload> Run<'a, G, W> {
    pub(crate) fn new(
        engine: &'a Engine,
        graph: &'a G,
        policies: &'a Policies,
        work: &'a mut W,
        options: &Options,
    ) -> Result<Self, Refused> {
        let now = engine.seams.clock.now();
        let limits = Limits::new(engine, options, graph.node_count(), now)?;
        if let Some(key) = policies.highest_limit()
            && !options.limits.as_ref().is_some_and(|limits| limits.has(key))
        {
            return Err(Refused::UnknownLimit(key));
        }
        let admitted = engine.active.enter(options.label)?;
        let mut log = Log::new(engine.events.clone(), Arc::clone(&engine.seams.clock), admitted.run);
        log.at(now, What::RunStarted(graph.node_count()));
        Ok(Run {
            engine,
            frontier: Frontier::new(graph),
            policies,
            work,
            limits,
            slots: Slots::new(),
            timer: Timer::default(),
            mail: None,
            inbox: VecDeque::new(),
            drops: Drops::default(),
            cancelled: Vec::new(),
            fell_back: 0,
            waits: None,
            permit: None,
            slice: Slice { now, began: now, stride: 1, until_check: 1 },
            doing: Doing::Bookkeeping(NodeId(0)),
            over: None,
            log,
            admitted: Some(admitted),
        })
    }

    /// Does what can be done now. Results come first: they free slots, and one in hand beats a timer just fired.
    fn drive(&mut self) -> Turn {
        while let Some(message) = self.inbox.pop_front() {
            self.receive(message);
            if self.over.is_some() {
                return Turn::Over;
            }
            if self.must_yield() {
                return Turn::Yield;
            }
        }
        self.expire();
        if self.waits.is_some() {
            self.wake_waits();
            self.serve_starved();
        }
        while self.over.is_none() {
            if self.slots.in_flight() >= self.limits.in_flight {
                return Turn::Idle;
            }
            let Some(node) = self.next_node() else { break };
            self.admit(node);
            if self.over.is_none() && self.must_yield() {
                return Turn::Yield;
            }
        }
        if self.over.is_none() && !self.frontier.is_done() {
            return Turn::Idle;
        }
        Turn::Over
    }

    fn receive(&mut self, message: Message<W::Value, W::Error>) {
        match message {
            Message::Poll(slot) => self.poll_slot(slot),
            Message::Done(ticket, outcome) => self.returned(ticket, outcome),
            Message::Granted(permit) => self.granted(permit),
            Message::LookAt(key, at) => self.look_at(key, at),
            Message::Cut => self.over = Some(Err(Stopped::Cut { late: self.late() })),
        }
    }

    fn finished(&mut self, node: NodeId, value: W::Value) {
        self.doing = Doing::Node(node);
        if self.permit.is_some() {
            self.report(Ended::with(Verdict::Done));
        }
        self.work.finish(node, value, &mut self.drops);
        self.log.now(What::Finished(node));
        self.end_finished(node);
    }

    fn end_finished(&mut self, node: NodeId) {
        self.doing = Doing::Bookkeeping(node);
        let Run { frontier, work, log, cancelled, .. } = self;
        frontier.finish(node, |change| note(change, &mut **work, log, cancelled));
        self.after_end(node);
    }

    fn failed(&mut self, node: NodeId, failure: Failure<W::Error>) {
        if self.frontier.phase(node) != Phase::InFlight {
            return;
        }
        self.doing = Doing::Bookkeeping(node);
        if self.permit.is_some() {
            self.report_failure(&failure);
        }
        if self.try_again(node, &failure) {
            return;
        }
        match self.policies.of(node).on_error {
            OnError::FailRun => self.stop_with(node, failure),
            OnError::Fallback(_) => match self.work.fallback(node, &failure) {
                Some(value) => {
                    self.fell_back += 1;
                    self.log.now(What::FellBack(node, reason(&failure)));
                    self.work.finish(node, value, &mut self.drops);
                    self.end_finished(node);
                }
                None => self.stop_with(node, failure),
            },
            OnError::Isolate => {
                self.log.now(What::Failed(node, reason(&failure)));
                self.work.fail(node, failure, &mut self.drops);
                let Run { frontier, work, log, cancelled, .. } = self;
                frontier.fail(node, |change| note(change, &mut **work, log, cancelled));
                self.after_end(node);
            }
        }
    }

    fn stop_with(&mut self, node: NodeId, failure: Failure<W::Error>) {
        self.log.now(What::Failed(node, reason(&failure)));
        self.over = Some(Err(Stopped::Node { node, failure }));
    }

    fn drop_node(&mut self, node: NodeId) {
        self.doing = Doing::Bookkeeping(node);
        let Run { frontier, work, log, cancelled, .. } = self;
        frontier.drop(node, |change| note(change, &mut **work, log, cancelled));
        self.after_end(node);
    }

    /// Drops what the workload asked for, stops what was in flight of it, and lets go of turns.
    fn after_end(&mut self, node: NodeId) {
        if self.waits.is_some() {
            self.pass_turn(node);
        }
        while let Some(node) = self.drops.0.pop() {
            let Run { frontier, work, log, cancelled, .. } = self;
            frontier.drop(node, |change| note(change, &mut **work, log, cancelled));
        }
        while let Some((node, ticket)) = self.cancelled.pop() {
            if let Some(slot) = ticket {
                drop(self.slots.release(slot));
            }
            if self.waits.is_some() {
                self.pass_turn(node);
            }
        }
    }

    /// The nodes being worked on; failing these, the one that would be next.
    fn late(&mut self) -> Vec<NodeId> {
        let mut late = self.slots.nodes_in_flight();
        if late.is_empty() {
            late.extend(self.waits.as_ref().and_then(|waits| waits.some_node()));
        }
        if late.is_empty() {
            late.extend(self.frontier.start_next());
        }
        late
    }

    /// When a node that has a fallback must give way to it. Behind a result there is nothing to leave time for.
    fn cutoff(&self, node: NodeId, policy: &Policy) -> Option<Instant> {
        let deadline = self.limits.deadline?;
        let reserve = match (policy.on_error, &self.limits.reserve) {
            (OnError::FailRun | OnError::Isolate, _) => return None,
            _ if self.frontier.graph().dependent_count(node) == 0 => Duration::ZERO,
            (OnError::Fallback(_), TailReserve::Fixed(reserve)) => *reserve,
            (OnError::Fallback(_), TailReserve::PerNode(table)) => table[node.index()],
        };
        Some(deadline.checked_sub(reserve).unwrap_or(deadline))
    }

    /// Whether others on this thread should have a turn. Also where inline work notices its deadline.
    #[inline]
    fn must_yield(&mut self) -> bool {
        self.slice.until_check -= 1;
        self.slice.until_check == 0 && self.look_at_clock()
    }

    #[cold]
    fn look_at_clock(&mut self) -> bool {
        self.slice.look(self.engine.seams.clock.now());
        if self.engine.active.is_cutting() {
            self.over = Some(Err(Stopped::Cut { late: self.late() }));
        } else {
            self.check_deadline();
        }
        self.slice.now - self.slice.began >= SLICE
    }

    fn check_deadline(&mut self) {
        if self.over.is_none()
            && !self.frontier.is_done()
            && self.limits.deadline.is_some_and(|deadline| self.slice.now >= deadline)
        {
            self.over = Some(Err(Stopped::Deadline { late: self.late() }));
        }
    }

    /// A panic in workload code is its node's failure; in the calls that follow an end it ends the run, whose books
    /// may be half written.
    fn panicked(&mut self, payload: &(dyn Any + Send)) {
        let failure = Failure::Panic(panics::message(payload));
        let node = match self.doing {
            Doing::Bookkeeping(node) => return self.stop_with(node, failure),
            Doing::Step(node, at) => {
                self.log.started(at, node, Place::Inline);
                node
            }
            Doing::Node(node) => node,
            Doing::Polling(slot) => {
                let node = self.slots.node(slot);
                self.permit = self.slots.release(slot);
                node
            }
        };
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| self.failed(node, failure))) {
            self.stop_with(node, Failure::Panic(panics::message(&*payload)));
        }
    }

    fn turn(&mut self) -> Turn {
        loop {
            match catch_unwind(AssertUnwindSafe(|| self.drive())) {
                Ok(turn) => return turn,
                Err(payload) => self.panicked(&*payload),
            }
        }
    }

    /// Asks to be woken by time or mail; `false` when there is more to do at once.
    fn wait(&mut self, cx: &mut Context<'_>) -> bool {
        let waits = self.waits.as_ref().and_then(|waits| waits.earliest());
        let due = trip::earlier(self.timer.earliest(), self.limits.deadline);
        if let Some(at) = trip::earlier(due, waits) {
            let clock = &self.engine.seams.clock;
            if self.timer.poll(at, &**clock, cx).is_ready() {
                self.slice.now = clock.now();
                return false;
            }
        }
        let mail = Arc::clone(self.mail());
        if mail.wait(cx.waker()) {
            return true;
        }
        mail.take(&mut self.inbox);
        false
    }

    fn mail(&mut self) -> &Arc<Mail<W::Value, W::Error>> {
        if self.mail.is_none() {
            let mail = Arc::new(Mail::new());
            if let Some(admitted) = &self.admitted {
                admitted.reached_by(Arc::clone(&mail) as Arc<dyn Cut>);
            }
            self.mail = Some(mail);
        }
        self.mail.as_ref().expect("was just set")
    }

    fn resume(&mut self) {
        self.log.resume();
        self.slice.begin(self.engine.seams.clock.now());
        if let Some(mail) = &self.mail
            && self.inbox.is_empty()
        {
            mail.take(&mut self.inbox);
        }
    }

    fn conclude(&mut self) -> Result<Report, Stopped<W::Error>> {
        let ended = self.over.take().unwrap_or(Ok(()));
        self.leave(match &ended {
            Ok(()) => Ending::Complete,
            Err(Stopped::Node { .. }) => Ending::Failed,
            Err(Stopped::Deadline { .. }) => Ending::Deadline,
            Err(Stopped::Cut { .. }) => Ending::Cut,
        });
        let counts = self.frontier.counts();
        ended.map(|()| Report {
            finished: counts.finished,
            failed: counts.failed,
            dropped: counts.dropped,
            fell_back: self.fell_back,
        })
    }
}

impl<G, W: Workload> Run<'_, G, W> {
    fn leave(&mut self, ending: Ending) {
        if self.admitted.is_none() {
            return;
        }
        self.waits = None;
        self.permit = None;
        self.slots.clear();
        self.inbox.clear();
        if let Some(mail) = &self.mail {
            mail.close();
        }
        self.log.now(What::RunEnded(ending));
        self.log.flush();
        self.admitted = None;
    }
}

/// Values and errors only pass through; the futures have boxes of their own.
impl<G, W: Workload> Unpin for Run<'_, G, W> {}

impl<G: Graph, W: Workload> Future for Run<'_, G, W> {
    type Output = Result<Report, Stopped<W::Error>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let run = self.get_mut();
        assert!(run.admitted.is_some(), "a run was polled after it ended");
        run.resume();
        loop {
            match run.turn() {
                Turn::Over => return Poll::Ready(run.conclude()),
                Turn::Yield => {
                    run.log.flush();
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Turn::Idle => {
                    run.log.flush();
                    if run.wait(cx) {
                        return Poll::Pending;
                    }
                }
            }
        }
    }
}

impl<G, W: Workload> Drop for Run<'_, G, W> {
    fn drop(&mut self) {
        self.leave(Ending::Dropped);
    }
}

impl Limits {
    fn new(engine: &Engine, options: &Options, node_count: u32, now: Instant) -> Result<Limits, Refused> {
        if options.in_flight == 0 {
            return Err(Refused::ZeroInFlight);
        }
        if let Some(deadline) = options.deadline
            && deadline <= now
        {
            return Err(Refused::DeadlinePassed { ago: now - deadline });
        }
        let reserve = match &options.reserve {
            Reserve::Share => {
                let given = options.deadline.map_or(Duration::ZERO, |deadline| deadline - now);
                TailReserve::Fixed((given / 10).clamp(Duration::from_millis(1), Duration::from_millis(10)))
            }
            Reserve::PerNode(table) if table.len() == node_count as usize => {
                TailReserve::PerNode(Arc::clone(table))
            }
            Reserve::PerNode(table) => {
                return Err(Refused::ReserveCount { entries: table.len(), node_count });
            }
        };
        Ok(Limits {
            deadline: options.deadline,
            reserve,
            class: options.class,
            in_flight: options.in_flight,
            inline_threshold: options.inline_threshold.unwrap_or(engine.inline_threshold),
            table: options.limits.clone(),
            seed: options.seed,
        })
    }
}

impl Slice {
    fn begin(&mut self, now: Instant) {
        self.now = now;
        self.began = now;
        self.until_check = self.stride;
    }

    /// Sets the pace so that the next look comes about [`LOOK_EVERY`] from now.
    fn look(&mut self, now: Instant) {
        let took = (now - self.now).max(Duration::from_nanos(1));
        let fitting = self.stride as u128 * LOOK_EVERY.as_nanos() / took.as_nanos();
        self.stride = fitting.clamp(1, (self.stride * 4).min(MAX_STRIDE) as u128) as u32;
        self.until_check = self.stride;
        self.now = now;
    }
}

fn note<W: Workload>(
    change: Change,
    work: &mut W,
    log: &mut Log,
    cancelled: &mut Vec<(NodeId, Option<u32>)>,
) {
    match change {
        Change::Released(node) => work.release(node),
        Change::Dropped { node, ticket } => {
            log.now(What::Dropped(node));
            cancelled.push((node, ticket));
        }
    }
}

fn reason<E>(failure: &Failure<E>) -> Reason {
    match failure {
        Failure::Error(_) => Reason::Error,
        Failure::Panic(_) => Reason::Panic,
        Failure::Timeout(_) => Reason::Timeout,
        Failure::Deadline => Reason::Deadline,
        Failure::Abandoned => Reason::Abandoned,
    }
}
