//! One execution of a graph: a future that owns all its state.

mod terms;
mod slice;
mod carry;
mod ends;
mod queue;
mod waits;
mod slots;
mod trip;
mod timer;
mod log;

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crate::admission::{AdmittedRun, Refused, StopHandle};
use crate::clock::earlier;
use crate::engine::Engine;
use crate::event::{EventKind, RunEnding, RunId};
use crate::frontier::Frontier;
use crate::graph::{Graph, NodeId};
use crate::limit::{LimitKey, Permit};
use crate::options::Options;
use crate::policy::{OnError, Policies, Policy};
use crate::workload::{Drops, Failure, Workload};
use log::Log;
use slice::Slice;
use slots::{Mail, Slots};
use terms::{TailReserve, Terms};
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
    terms: Terms,
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
    /// Until when it goes on after its deadline, once that has passed.
    grace_until: Option<Instant>,
    log: Log,
    /// `None` once the run has ended.
    admitted: Option<AdmittedRun>,
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

impl<V: Send, E: Send> StopHandle for Mail<V, E> {
    fn cut(&self) {
        self.push(Message::Cut);
    }
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

impl<'a, G: Graph, W: Workload> Run<'a, G, W> {
    pub(crate) fn new(
        engine: &'a Engine,
        graph: &'a G,
        policies: &'a Policies,
        work: &'a mut W,
        options: &Options,
    ) -> Result<Self, Refused> {
        let now = engine.seams.clock.now();
        let terms = Terms::new(engine, options, graph.node_count(), now)?;
        if let Some(key) = policies.highest_limit()
            && !options.limits.as_ref().is_some_and(|limits| limits.has(key))
        {
            return Err(Refused::UnknownLimit(key));
        }
        let admitted = engine.active.enter(options.label.clone())?;
        let mut log = Log::new(engine.events.clone(), Arc::clone(&engine.seams.clock), admitted.run);
        log.at(now, EventKind::RunStarted(graph.node_count()));
        Ok(Run {
            engine,
            frontier: Frontier::new(graph),
            policies,
            work,
            terms,
            slots: Slots::new(),
            timer: Timer::default(),
            mail: None,
            inbox: VecDeque::new(),
            drops: Drops::default(),
            cancelled: Vec::new(),
            fell_back: 0,
            waits: None,
            permit: None,
            slice: Slice::new(now),
            doing: Doing::Bookkeeping(NodeId(0)),
            over: None,
            grace_until: None,
            log,
            admitted: Some(admitted),
        })
    }

    /// What it is called in events.
    pub fn id(&self) -> RunId {
        self.log.run()
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
            self.serve_limits();
        }
        while self.over.is_none() {
            if self.slots.in_flight() >= self.terms.in_flight {
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

    /// The deadline has passed with `node` still to finish.
    fn met_deadline(&mut self, node: NodeId) {
        let mut late = self.slots.nodes_in_flight();
        if let Err(place) = late.binary_search(&node) {
            late.insert(place, node);
        }
        self.over = Some(Err(Stopped::Deadline { late }));
    }

    /// When a node that has a fallback must give way to it. Behind a result there is nothing to leave time for.
    fn cutoff(&self, node: NodeId, policy: &Policy) -> Option<Instant> {
        let deadline = self.terms.deadline?;
        let reserve = match (policy.on_error, &self.terms.reserve) {
            (OnError::FailRun | OnError::Isolate, _) => return None,
            _ if self.frontier.graph().dependent_count(node) == 0 => Duration::ZERO,
            (OnError::Fallback, TailReserve::Fixed(reserve)) => *reserve,
            (OnError::Fallback, TailReserve::PerNode(table)) => table[node.index()],
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
        self.slice.is_over()
    }

    /// Ends the run when its time is over. What is left to do in place is still done, within the grace: a timer that
    /// fired late is no reason to throw a result away that is all but there.
    fn check_deadline(&mut self) {
        let now = self.slice.now;
        if self.over.is_some()
            || self.frontier.is_done()
            || self.terms.deadline.is_none_or(|deadline| now < deadline)
        {
            return;
        }
        let waits = self.slots.in_flight() > 0
            || self.waits.as_ref().is_some_and(|waits| waits.some_node().is_some());
        if !waits && !self.terms.grace.is_zero() {
            // A grace past the end of time never ends.
            let Some(until) = self.grace_until.or_else(|| now.checked_add(self.terms.grace)) else { return };
            self.grace_until = Some(until);
            if now < until {
                return;
            }
        }
        self.over = Some(Err(Stopped::Deadline { late: self.late() }));
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
        let due = earlier(self.timer.earliest(), self.terms.deadline);
        if let Some(at) = earlier(due, waits) {
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
                admitted.set_stop_handle(Arc::clone(&mail) as Arc<dyn StopHandle>);
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
            Ok(()) => RunEnding::Complete,
            Err(Stopped::Node { .. }) => RunEnding::Failed,
            Err(Stopped::Deadline { .. }) => RunEnding::Deadline,
            Err(Stopped::Cut { .. }) => RunEnding::Cut,
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
    fn leave(&mut self, ending: RunEnding) {
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
        self.log.now(EventKind::RunEnded(ending));
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
        self.leave(RunEnding::Dropped);
    }
}
