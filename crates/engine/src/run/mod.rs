//! One execution of a graph: a future that owns all of its state.

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
use crate::drain::{Drain, DrainedRun};
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

/// One execution of a graph, as a future.
///
/// Dropping the run at any point cancels its work: futures are dropped, tasks are aborted, jobs are stopped through
/// their [`Check`](crate::Check), and later results are discarded.
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
    /// Nodes that were just dropped, each with its slot if it is in flight, whose work must still be cancelled.
    cancelled: Vec<(NodeId, Option<u32>)>,
    fell_back: u32,
    waits: Option<Box<Waits>>,
    /// The limit's slot of the current node, while it moves into or out of the run's own slots.
    permit: Option<Permit>,
    slice: Slice,
    doing: CurrentCall,
    over: Option<Result<(), Stopped<W::Error>>>,
    /// The end of the grace period, once the deadline has passed.
    grace_until: Option<Instant>,
    log: Log,
    /// `None` once the run has ended.
    admitted: Option<AdmittedRun>,
    /// The run's place in the list of its drain, once it has a mailbox.
    drained: Option<DrainedRun>,
}

/// The node counts of a run that was not stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// Nodes that finished, including those with a fallback value.
    pub finished: u32,
    /// Nodes that failed and were isolated.
    pub failed: u32,
    pub dropped: u32,
    /// Nodes with a fallback value.
    pub fell_back: u32,
}

/// The reason why a run was stopped. Its work in flight has been cancelled, except with [`Stopped::Drained`].
#[derive(Debug, thiserror::Error)]
pub enum Stopped<E> {
    /// The first failure of a node whose policy is [`OnError::FailRun`].
    #[error("node {node} failed: {failure}")]
    Node { node: NodeId, failure: Failure<E> },
    /// The deadline passed.
    #[error("the deadline passed with {late:?} still to finish")]
    Deadline {
        /// The nodes in flight at that time, in order.
        late: Vec<NodeId>,
    },
    /// The engine was shut down, and the grace period of [`Engine::drain`] was over.
    #[error("the engine shut down with {late:?} still to finish")]
    Cut {
        /// The nodes in flight at that time, in order.
        late: Vec<NodeId>,
    },
    /// The run was drained ([`Options::drain`]) before every node had ended. Unlike with the other variants, its work in
    /// flight has ended and has reached the workload; the other nodes were not started, failed or dropped.
    #[error("the run was drained before all of its nodes had ended")]
    Drained,
}

enum Message<V, E> {
    /// The future in this slot was woken.
    Poll(u32),
    /// The result of a trip or task.
    Done(Ticket, Outcome<V, E>),
    /// A limit's slot for the run.
    Granted(Permit),
    /// The time at which a limit's queue must be served.
    LookAt(LimitKey, Instant),
    /// The engine stops the run.
    Cut,
    /// The run's drain has begun: wakes a run that would wait for something else.
    Drain,
}

impl<V: Send, E: Send> StopHandle for Mail<V, E> {
    fn cut(&self) {
        self.push(Message::Cut);
    }

    fn drain(&self) {
        self.push(Message::Drain);
    }
}

/// The workload code that is being called: a panic in it is charged to its node.
#[derive(Clone, Copy)]
enum CurrentCall {
    /// The node's step, with its start time if there is a listener.
    Step(NodeId, Option<Instant>),
    /// Another call for a node that has started.
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
            doing: CurrentCall::Bookkeeping(NodeId(0)),
            over: None,
            grace_until: None,
            log,
            admitted: Some(admitted),
            drained: None,
        })
    }

    /// The id of this run in events.
    pub fn id(&self) -> RunId {
        self.log.run()
    }

    /// Does all work that is possible now. Results come before timers: they free slots, and a result that has arrived
    /// counts even if its node's timer has just fired.
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
        if self.waits.is_some() && !self.is_draining() {
            self.wake_waits();
            self.serve_limits();
        }
        while self.over.is_none() {
            if self.is_draining() {
                return self.wind_down();
            }
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

    #[inline]
    fn is_draining(&self) -> bool {
        self.terms.drain.as_ref().is_some_and(Drain::is_begun)
    }

    /// Ends the run once nothing is in flight. Nodes that wait are left alone, and so are the queues of limits.
    fn wind_down(&mut self) -> Turn {
        if let Some(waits) = &mut self.waits {
            waits.leave_queues();
        }
        if self.slots.in_flight() > 0 {
            return Turn::Idle;
        }
        if !self.frontier.is_done() {
            self.over = Some(Err(Stopped::Drained));
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
            Message::Drain => {}
        }
    }

    /// The nodes in flight, or the next node if none is.
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

    /// Ends the run at its deadline, with `node` still to finish.
    fn met_deadline(&mut self, node: NodeId) {
        let mut late = self.slots.nodes_in_flight();
        if let Err(place) = late.binary_search(&node) {
            late.insert(place, node);
        }
        self.over = Some(Err(Stopped::Deadline { late }));
    }

    /// The time at which a node makes way for its fallback: the deadline, less the reserve for its dependents.
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

    /// Whether to yield to other tasks of this thread. Inline work notices the deadline here, too.
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

    /// Ends the run when its deadline has passed. Work that can be done in place goes on for the grace period: a timer
    /// that fires late should not cost a result that is almost complete. A drained run without work in flight is over
    /// already.
    fn check_deadline(&mut self) {
        let now = self.slice.now;
        if self.over.is_some()
            || self.frontier.is_done()
            || (self.is_draining() && self.slots.in_flight() == 0)
            || self.terms.deadline.is_none_or(|deadline| now < deadline)
        {
            return;
        }
        let waits = self.slots.in_flight() > 0
            || self.waits.as_ref().is_some_and(|waits| waits.some_node().is_some());
        if !waits && !self.terms.grace.is_zero() {
            // A grace period that an `Instant` cannot hold never ends.
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

    /// Registers for the next timer and the next message. Returns `false` when one is already there.
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
            let drain = self.terms.drain.as_ref();
            self.drained = drain.map(|drain| drain.enter(Arc::clone(&mail) as Arc<dyn StopHandle>));
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
            Err(Stopped::Drained) => RunEnding::Drained,
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
        self.drained = None;
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

/// Futures are pinned in their slots. Nothing else in a run needs pinning.
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
