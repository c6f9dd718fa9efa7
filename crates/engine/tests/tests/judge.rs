//! Holds what happened in a simulated run against the rules, independently of how the engine keeps its books.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use anabranch_engine::event::{EventKind, FailureReason, Listener, ListenerItem, Placement, WaitReason};
use anabranch_engine::{Budget, Edge, Failure, Graph, NodeId, OnError, Report, Stopped};

use crate::sim::{Case, NodeError};

/// The most of a deadline that a run keeps for the nodes behind a late one.
const LONGEST_RESERVE: Duration = Duration::from_millis(10);

pub(crate) struct Judge<'a> {
    case: &'a Case,
    nodes: Vec<NodeCalls>,
    pub(crate) drops_asked: HashSet<NodeId>,
    first_failure: Option<NodeId>,
    /// When the run's drain began.
    pub(crate) drain_begun: Option<Instant>,
    events: Vec<(Instant, EventKind)>,
}

#[derive(Clone, Default)]
struct NodeCalls {
    stepped: u32,
    linked: bool,
    handed_on: bool,
    finished: bool,
    failed: bool,
    fell_back: bool,
    released: bool,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Fate {
    Open,
    Pausing,
    InFlight(Instant, Placement),
    Finished,
    Failed,
    Dropped,
}

impl<'a> Judge<'a> {
    pub(crate) fn new(case: &'a Case) -> Judge<'a> {
        let nodes = vec![NodeCalls::default(); case.dag.node_count() as usize];
        Judge {
            case,
            nodes,
            drops_asked: HashSet::new(),
            first_failure: None,
            drain_begun: None,
            events: Vec::new(),
        }
    }

    pub(crate) fn stepped(&mut self, node: NodeId, budget: Budget) {
        let seen = &mut self.nodes[node.index()];
        assert!(
            seen.stepped == 0 || self.case.policies[node.index()].retry.is_some(),
            "{node} started twice"
        );
        seen.stepped += 1;
        if let (Some(due), Some(deadline)) = (budget.due(), self.case.options.deadline) {
            assert!(due <= deadline, "{node} was given more than the run has");
        }
        self.case.dag.inputs(node, |input, edge| {
            let input = &self.nodes[input.index()];
            assert!(
                edge == Edge::After || input.finished || input.handed_on,
                "{node} needs a node that has not finished"
            );
        });
    }

    /// How often `node` was begun.
    pub(crate) fn tries(&self, node: NodeId) -> u32 {
        self.nodes[node.index()].stepped
    }

    pub(crate) fn linked(&mut self, node: NodeId, input: NodeId) {
        self.nodes[node.index()].linked = true;
        self.nodes[input.index()].handed_on = true;
    }

    pub(crate) fn finished(&mut self, node: NodeId) {
        let seen = &mut self.nodes[node.index()];
        assert!(seen.stepped > 0 || seen.linked || seen.fell_back, "{node} finished out of nowhere");
        assert!(!seen.finished && !seen.failed, "{node} ended twice");
        seen.finished = true;
    }

    pub(crate) fn failed(&mut self, node: NodeId, failure: &Failure<NodeError>) {
        let seen = &mut self.nodes[node.index()];
        assert!(!seen.finished && !seen.failed, "{node} ended twice");
        seen.failed = true;
        self.name_matches(node, failure);
    }

    pub(crate) fn fell_back(&mut self, node: NodeId, failure: &Failure<NodeError>) {
        assert_eq!(self.case.policies[node.index()].on_error, OnError::Fallback);
        self.nodes[node.index()].fell_back = true;
        self.name_matches(node, failure);
    }

    fn name_matches(&self, node: NodeId, failure: &Failure<NodeError>) {
        if let Failure::Error(error) = failure {
            assert_eq!(error.0, node, "a node is given its own error");
        }
        if let Failure::Timeout(timeout) = failure {
            assert_eq!(Some(*timeout), self.case.policies[node.index()].timeout);
        }
    }

    pub(crate) fn released(&mut self, node: NodeId) {
        let seen = &mut self.nodes[node.index()];
        assert!(seen.finished || seen.handed_on, "{node} was released without a value");
        assert!(!seen.released, "{node} was released twice");
        seen.released = true;
    }

    pub(crate) fn hear(&mut self, listener: &mut Listener) {
        while let Some(heard) = listener.try_next() {
            let ListenerItem::Event(event) = heard else { panic!("the listener was given enough room") };
            self.events.push((event.at, event.kind));
        }
    }

    /// Replays the events with a model of its own, then looks at how the run ended.
    pub(crate) fn verdict(&mut self, result: Option<Result<Report, Stopped<NodeError>>>, ended_at: Instant) {
        let fates = self.replay();
        if let Some(deadline) = self.case.options.deadline {
            assert!(ended_at <= deadline, "ended {:?} past the deadline", ended_at - deadline);
        }
        match result {
            None => {}
            Some(Ok(report)) => self.complete(&fates, report),
            Some(Err(Stopped::Node { node, failure })) => {
                assert_eq!(Some(node), self.first_failure, "the first failure is the one reported");
                assert!(!self.goes_on_without(node));
                self.name_matches(node, &failure);
            }
            Some(Err(Stopped::Deadline { late })) => {
                assert!(!late.is_empty());
                assert_eq!(Some(ended_at), self.case.options.deadline);
            }
            Some(Err(Stopped::Cut { .. })) => panic!("nobody cut the run"),
            Some(Err(Stopped::Drained)) => self.drained(&fates, ended_at),
        }
    }

    /// Nothing is in flight, something is left, and the run did not wait for anything else.
    fn drained(&self, fates: &[Fate], ended_at: Instant) {
        let begun = self.drain_begun.expect("a drain has begun");
        assert!(!fates.iter().any(|fate| matches!(fate, Fate::InFlight(..))), "work in flight has ended");
        assert!(fates.iter().any(|fate| matches!(fate, Fate::Open | Fate::Pausing)), "every node has ended");
        let node_events = self.events.iter().filter(|(_, kind)| kind.node().is_some());
        let last = node_events.map(|(at, _)| *at).max().map_or(begun, |last| last.max(begun));
        assert_eq!(ended_at, last, "a drained run ends with the last work in flight");
    }

    /// What was heard, by the time since the first event.
    pub(crate) fn into_events(self) -> Vec<(Duration, EventKind)> {
        let first = self.events.first().map(|(at, _)| *at);
        self.events.iter().map(|(at, kind)| (*at - first.expect("there is one"), *kind)).collect()
    }

    fn complete(&self, fates: &[Fate], report: Report) {
        let count = |fate: Fate| fates.iter().filter(|known| **known == fate).count() as u32;
        assert_eq!(report.finished, count(Fate::Finished));
        assert_eq!(report.failed, count(Fate::Failed));
        assert_eq!(report.dropped, count(Fate::Dropped));
        assert_eq!(report.finished + report.failed + report.dropped, fates.len() as u32, "every node ends");
        assert_eq!(report.fell_back as usize, self.nodes.iter().filter(|seen| seen.fell_back).count());
        for (number, fate) in fates.iter().enumerate() {
            let node = NodeId(number as u32);
            let read = self.case.dag.dependent_count(node) > 0;
            assert_eq!(self.nodes[number].released, *fate == Fate::Finished && read, "release of {node}");
        }
    }

    fn replay(&mut self) -> Vec<Fate> {
        let mut fates = vec![Fate::Open; self.nodes.len()];
        let events = self.events.clone();
        for (at, kind) in &events {
            match *kind {
                EventKind::RunStarted(count) => assert_eq!(count as usize, fates.len()),
                EventKind::RunEnded(_) | EventKind::Running(_) | EventKind::Limit(..) => {}
                EventKind::Waiting(node, WaitReason::Retry) => {
                    assert!(matches!(fates[node.index()], Fate::InFlight(..)));
                    assert!(self.case.policies[node.index()].retry.is_some());
                    fates[node.index()] = Fate::Pausing;
                }
                EventKind::Waiting(node, WaitReason::Limit) => {
                    assert!(self.case.policies[node.index()].limit.is_some());
                    assert!(
                        self.case.needs_limit[node.index()],
                        "{node} waits for a limit that it does not need"
                    );
                    assert!(matches!(fates[node.index()], Fate::Open | Fate::Pausing));
                }
                EventKind::Started(node, place) => self.replay_start(&mut fates, node, *at, place),
                EventKind::Finished(node) => self.replay_end(&mut fates, node, *at, Fate::Finished),
                EventKind::FellBack(node, reason) => {
                    self.is_late_as_told(&fates, node, *at, reason);
                    if fates[node.index()] == Fate::Open {
                        self.may_start(&fates, node);
                    }
                    fates[node.index()] = Fate::Finished;
                }
                EventKind::Failed(node, reason) => {
                    self.is_late_as_told(&fates, node, *at, reason);
                    if !self.goes_on_without(node) {
                        self.first_failure.get_or_insert(node);
                    } else if matches!(fates[node.index()], Fate::Open | Fate::Pausing) {
                        assert!(self.may_start(&fates, node), "only a node that could start can be too late");
                        fates[node.index()] = Fate::Failed;
                        continue;
                    }
                    self.replay_end(&mut fates, node, *at, Fate::Failed);
                }
                EventKind::Dropped(node) => self.replay_drop(&mut fates, node),
            }
        }
        fates
    }

    /// Whether the run goes on without the node when it fails.
    fn goes_on_without(&self, node: NodeId) -> bool {
        self.case.policies[node.index()].on_error == OnError::Isolate || self.case.gives_nothing[node.index()]
    }

    fn may_start(&self, fates: &[Fate], node: NodeId) -> bool {
        let mut may = matches!(fates[node.index()], Fate::Open | Fate::Pausing);
        self.case.dag.inputs(node, |input, edge| {
            may &= matches!(
                (edge, fates[input.index()]),
                (_, Fate::Finished) | (Edge::After, Fate::Failed | Fate::Dropped)
            );
        });
        may
    }

    fn replay_start(&self, fates: &mut [Fate], node: NodeId, at: Instant, place: Placement) {
        assert!(self.may_start(fates, node), "{node} started before its inputs ended as its edges ask");
        let drained = self.drain_begun.is_some_and(|begun| at > begun);
        assert!(!drained || self.nodes[node.index()].linked, "{node} started in a run that is drained");
        let gated = |node: NodeId| {
            let policy = &self.case.policies[node.index()];
            policy.limit.is_some() || policy.serial.is_some() || policy.retry.is_some()
        };
        if !self.nodes[node.index()].linked && !gated(node) {
            let passed_over =
                (0..node.0).map(NodeId).find(|lower| !gated(*lower) && self.may_start(fates, *lower));
            assert_eq!(passed_over, None, "a lower number was ready when {node} started");
        }
        self.respects_turn(fates, node);
        fates[node.index()] = Fate::InFlight(at, place);
        self.respects_limits(fates);
        let in_flight =
            |fate: &&Fate| matches!(fate, Fate::InFlight(_, place) if *place != Placement::Inline);
        assert!(fates.iter().filter(in_flight).count() <= self.case.options.in_flight, "too many in flight");
    }

    fn respects_turn(&self, fates: &[Fate], node: NodeId) {
        let Some(key) = self.case.policies[node.index()].serial else { return };
        let holds = |(number, fate): (usize, &Fate)| {
            self.case.policies[number].serial == Some(key)
                && number != node.index()
                && matches!(fate, Fate::InFlight(..) | Fate::Pausing)
        };
        assert!(!fates.iter().enumerate().any(holds), "{node} took a turn that was not its own");
    }

    fn respects_limits(&self, fates: &[Fate]) {
        for (key, limit) in &self.case.limits {
            let holds = |(number, fate): &(usize, &Fate)| {
                self.case.policies[*number].limit == Some(*key)
                    && self.case.needs_limit[*number]
                    && matches!(fate, Fate::InFlight(..))
            };
            let holding = fates.iter().enumerate().filter(holds).count();
            assert!(holding <= *limit as usize, "{holding} calls where {limit} are allowed");
        }
    }

    fn replay_end(&self, fates: &mut [Fate], node: NodeId, at: Instant, fate: Fate) {
        match fates[node.index()] {
            Fate::InFlight(began, place) => {
                let timeout = self.case.policies[node.index()].timeout;
                let late = timeout.is_some_and(|timeout| at > began + timeout);
                assert!(!late || place == Placement::Inline, "{node} ended after its timeout");
            }
            other => panic!("{node} ended as {fate:?} but was {other:?}"),
        }
        fates[node.index()] = fate;
    }

    /// A timeout is told when the node's own time is over, and a deadline when the run's is: never one for the other.
    fn is_late_as_told(&self, fates: &[Fate], node: NodeId, at: Instant, reason: FailureReason) {
        let policy = &self.case.policies[node.index()];
        match reason {
            FailureReason::Timeout => {
                let Fate::InFlight(began, _) = fates[node.index()] else {
                    panic!("{node} was not in flight")
                };
                assert!(at >= began + policy.timeout.unwrap(), "{node} timed out before its timeout");
            }
            FailureReason::Deadline => {
                let deadline = self.case.options.deadline.expect("the run has a deadline");
                assert!(
                    policy.on_error == OnError::Fallback,
                    "{node} has no fallback: the deadline ends the run, not the node"
                );
                assert!(at + LONGEST_RESERVE >= deadline, "{node} met the deadline long before it");
                let waited = !matches!(fates[node.index()], Fate::InFlight(..));
                let drained = self.drain_begun.is_some_and(|begun| at > begun);
                assert!(!waited || !drained, "{node} waited in a drained run and was not left alone");
            }
            FailureReason::Error | FailureReason::Panic | FailureReason::Abandoned => {}
        }
    }

    fn replay_drop(&self, fates: &mut [Fate], node: NodeId) {
        let mut lost_input = false;
        self.case.dag.inputs(node, |input, edge| {
            lost_input |= edge == Edge::Needs && matches!(fates[input.index()], Fate::Failed | Fate::Dropped);
        });
        assert!(lost_input || self.drops_asked.contains(&node), "{node} was dropped without a reason");
        assert!(
            matches!(fates[node.index()], Fate::Open | Fate::Pausing | Fate::InFlight(..)),
            "{node} was dropped after it ended"
        );
        fates[node.index()] = Fate::Dropped;
    }
}
