//! The progress of a request's stages, the late ones, and the resulting ledger.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anabranch_engine::{Failure, Graph as _};
use smallvec::{SmallVec, smallvec};

use crate::compiled::{Compiled, Region};
use crate::error::OpError;
use crate::ledger::{LedgerEntry, Reason};
use crate::run::{Fault, stage_id};
use crate::source;
use crate::stand_in::Instead;

/// The progress of a request's stages, and their fallbacks.
pub(crate) struct Watch {
    fates: SmallVec<[Fate; 16]>,
    /// By region: the late nodes for which there is no fallback yet.
    late: Box<[Vec<Late>]>,
    /// By node.
    ledger: Vec<(usize, LedgerEntry)>,
    /// The progress of chains on a pool, by stage.
    chains: Vec<(usize, Arc<AtomicU32>)>,
}

/// The state of a stage.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Idle,
    Begun(Instant),
    Done,
}

/// A node that did not make it.
#[derive(Clone, Debug)]
pub(crate) struct Late {
    pub(crate) node: usize,
    pub(crate) reason: Reason,
    pub(crate) detail: Option<String>,
    pub(crate) waited: Duration,
}

impl Watch {
    pub(crate) fn new(plan: &Compiled) -> Watch {
        Watch {
            fates: smallvec![Fate::Idle; plan.stages.len()],
            late: vec![Vec::new(); plan.regions.len()].into(),
            ledger: Vec::new(),
            chains: Vec::new(),
        }
    }

    pub(crate) fn begin(&mut self, stage: usize, now: Instant) {
        self.fates[stage] = Fate::Begun(now);
    }

    pub(crate) fn end(&mut self, stage: usize) {
        self.fates[stage] = Fate::Done;
    }

    /// Registers a chain that moves to a pool. Returns its progress counter.
    pub(crate) fn follow(&mut self, stage: usize) -> Arc<AtomicU32> {
        let progress = Arc::new(AtomicU32::new(0));
        self.chains.push((stage, Arc::clone(&progress)));
        progress
    }

    /// The node of a stage that is being worked on.
    fn at_work(&self, plan: &Compiled, stage: usize) -> usize {
        let chain = self.chains.iter().find(|(followed, _)| *followed == stage);
        match (chain, plan.stages[stage].what.nodes()) {
            (Some((_, progress)), Some(nodes)) => nodes[progress.load(Ordering::Relaxed) as usize],
            _ => plan.first_node(stage),
        }
    }

    /// The start of a stage, if it is in progress.
    pub(crate) fn begun(&self, stage: usize) -> Option<Instant> {
        match self.fates[stage] {
            Fate::Begun(at) => Some(at),
            Fate::Idle | Fate::Done => None,
        }
    }

    /// The ledger's information about a failed stage.
    pub(crate) fn failed(
        &self,
        plan: &Compiled,
        stage: usize,
        failure: &Failure<Fault>,
        now: Instant,
    ) -> Late {
        let begun = self.begun(stage);
        let node = match failure {
            Failure::Error(fault) => fault.node,
            _ => self.at_work(plan, stage),
        };
        let (reason, detail) = match failure {
            Failure::Error(fault) => match &fault.cause {
                OpError::NoTime { .. } => (Reason::Shed, None),
                OpError::Source(source::Error::Timeout { .. }) => {
                    (Reason::Timeout, Some(fault.cause.to_string()))
                }
                cause => (Reason::Error, Some(cause.to_string())),
            },
            Failure::Timeout(_) | Failure::Deadline if begun.is_some() => (Reason::Timeout, None),
            Failure::Timeout(_) | Failure::Deadline => (Reason::Shed, None),
            failure => (Reason::Error, Some(failure.to_string())),
        };
        let waited = match reason {
            Reason::Shed => Duration::ZERO,
            _ => begun.map_or(Duration::ZERO, |begun| now.saturating_duration_since(begun)),
        };
        Late { node, reason, detail, waited }
    }

    /// A region did not make it because of this node.
    pub(crate) fn lose(&mut self, region: usize, late: Late) {
        self.late[region].push(late);
    }

    /// Records that the time of a region, or of its fallback, is over: its stages that are in progress or could be are
    /// late.
    pub(crate) fn expire(&mut self, plan: &Compiled, region: usize, is_fallback: bool, now: Instant) {
        let Region { members, fallback_stages, .. } = &plan.regions[region];
        let stages = if is_fallback { fallback_stages } else { members }.iter();
        let nodes = stages.filter(|stage| plan.stages[**stage].what.nodes().is_some());
        let mut late: Vec<Late> = nodes.filter_map(|stage| self.overdue(plan, *stage, now)).collect();
        if late.is_empty() {
            let node = plan.regions[region].node;
            late.push(Late { node, reason: Reason::Shed, detail: None, waited: Duration::ZERO });
        }
        self.late[region].append(&mut late);
    }

    fn overdue(&self, plan: &Compiled, number: usize, now: Instant) -> Option<Late> {
        let node = self.at_work(plan, number);
        match self.fates[number] {
            Fate::Begun(at) => {
                let waited = now.saturating_duration_since(at);
                Some(Late { node, reason: Reason::Timeout, detail: None, waited })
            }
            Fate::Idle if self.could_start(plan, number) => {
                Some(Late { node, reason: Reason::Shed, detail: None, waited: Duration::ZERO })
            }
            Fate::Idle | Fate::Done => None,
        }
    }

    /// True if all inputs of a stage, and the gate of its branch, have finished.
    fn could_start(&self, plan: &Compiled, stage: usize) -> bool {
        let mut could = true;
        plan.graph.inputs(stage_id(stage), |input, _| could &= self.fates[input.index()] == Fate::Done);
        could
    }

    /// The nodes of a region that were late or failed.
    pub(crate) fn late_in(&self, region: usize) -> &[Late] {
        &self.late[region]
    }

    /// Takes the late nodes of a region, whose rows must be replaced now.
    pub(crate) fn take_late(&mut self, region: usize) -> Vec<Late> {
        std::mem::take(&mut self.late[region])
    }

    /// Records that `instead` replaces a node, or the late part of a region.
    pub(crate) fn note(&mut self, plan: &Compiled, region: Option<usize>, late: Late, instead: &Instead) {
        let entry = LedgerEntry {
            node: plan.nodes[late.node].id.clone(),
            region: region.map(|region| plan.nodes[region].id.clone()),
            reason: late.reason,
            detail: late.detail,
            fallback: instead.name.clone(),
            waited: late.waited,
            age: instead.stale.map(|stale| stale.age),
            known_keys: instead.stale.map(|stale| stale.known),
            asked_keys: instead.stale.map(|stale| stale.asked),
            rows: instead.rows.len(),
        };
        self.ledger.push((late.node, entry));
    }

    /// The ledger, in the order of the nodes.
    pub(crate) fn into_ledger(mut self) -> Vec<LedgerEntry> {
        self.ledger.sort_by_key(|(node, _)| *node);
        self.ledger.into_iter().map(|(_, entry)| entry).collect()
    }
}
