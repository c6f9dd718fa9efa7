//! The ends of nodes: values, failures and drops, and their effect on other nodes.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::log::Log;
use super::{CurrentCall, Run, Stopped};
use crate::event::{EventKind, FailureReason, Placement};
use crate::frontier::{Change, Phase};
use crate::graph::{Graph, NodeId};
use crate::limit::{CallEnd, CallOutcome, Permit};
use crate::panics;
use crate::policy::OnError;
use crate::workload::{Failure, Instead, Workload};

impl<G: Graph, W: Workload> Run<'_, G, W> {
    pub(super) fn finished(&mut self, node: NodeId, value: W::Value) {
        self.doing = CurrentCall::Node(node);
        if self.permit.is_some() {
            self.report(CallEnd::with(CallOutcome::Answered));
        }
        self.work.finish(node, value, &mut self.drops);
        self.log.now(EventKind::Finished(node));
        self.end_finished(node);
    }

    pub(super) fn end_finished(&mut self, node: NodeId) {
        self.doing = CurrentCall::Bookkeeping(node);
        let Run { frontier, work, log, cancelled, .. } = self;
        frontier.finish(node, |change| note(change, &mut **work, log, cancelled));
        self.after_end(node);
    }

    pub(super) fn failed(&mut self, node: NodeId, failure: Failure<W::Error>) {
        if self.frontier.phase(node) != Phase::InFlight {
            return;
        }
        self.doing = CurrentCall::Bookkeeping(node);
        let limit = self.permit.as_ref().map(Permit::key);
        if limit.is_some() {
            self.report_failure(&failure);
        }
        if self.try_again(node, &failure, limit) {
            return;
        }
        match self.policies.of(node).on_error {
            // A job can notice the deadline before the run's timer does.
            OnError::FailRun | OnError::Isolate if matches!(failure, Failure::Deadline) => {
                self.met_deadline(node);
            }
            OnError::FailRun => self.stop_with(node, failure),
            OnError::Fallback => match self.work.fallback(node, &failure) {
                Instead::Value(value) => {
                    self.fell_back += 1;
                    self.log.now(EventKind::FellBack(node, reason(&failure)));
                    self.work.finish(node, value, &mut self.drops);
                    self.end_finished(node);
                }
                Instead::Nothing => self.isolate(node, failure),
                Instead::Fail => self.stop_with(node, failure),
            },
            OnError::Isolate => self.isolate(node, failure),
        }
    }

    /// Drops the nodes that need a failed one, and continues the run.
    fn isolate(&mut self, node: NodeId, failure: Failure<W::Error>) {
        self.log.now(EventKind::Failed(node, reason(&failure)));
        self.work.fail(node, failure, &mut self.drops);
        let Run { frontier, work, log, cancelled, .. } = self;
        frontier.fail(node, |change| note(change, &mut **work, log, cancelled));
        self.after_end(node);
    }

    fn stop_with(&mut self, node: NodeId, failure: Failure<W::Error>) {
        self.log.now(EventKind::Failed(node, reason(&failure)));
        self.over = Some(Err(Stopped::Node { node, failure }));
    }

    pub(super) fn drop_node(&mut self, node: NodeId) {
        self.doing = CurrentCall::Bookkeeping(node);
        let Run { frontier, work, log, cancelled, .. } = self;
        frontier.drop(node, |change| note(change, &mut **work, log, cancelled));
        self.after_end(node);
    }

    /// Drops the nodes that the workload asked to drop, cancels their work and frees serial keys.
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

    /// Handles a panic in workload code. It fails its node, or the run if it came while a node's end was recorded: the
    /// run's state may then be incomplete.
    pub(super) fn panicked(&mut self, payload: &(dyn Any + Send)) {
        let failure = Failure::Panic(panics::message(payload));
        let node = match self.doing {
            CurrentCall::Bookkeeping(node) => return self.stop_with(node, failure),
            CurrentCall::Step(node, at) => {
                self.log.started(at, node, Placement::Inline);
                node
            }
            CurrentCall::Node(node) => node,
            CurrentCall::Polling(slot) => {
                let node = self.slots.node(slot);
                self.permit = self.slots.release(slot);
                node
            }
        };
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| self.failed(node, failure))) {
            self.stop_with(node, Failure::Panic(panics::message(&*payload)));
        }
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
            log.now(EventKind::Dropped(node));
            cancelled.push((node, ticket));
        }
    }
}

fn reason<E>(failure: &Failure<E>) -> FailureReason {
    match failure {
        Failure::Error(_) => FailureReason::Error,
        Failure::Panic(_) => FailureReason::Panic,
        Failure::Timeout(_) => FailureReason::Timeout,
        Failure::Deadline => FailureReason::Deadline,
        Failure::Abandoned => FailureReason::Abandoned,
    }
}
