//! One request whose nodes may be late or fail: how far they are, what stands in for them, and the ledger of it.

use std::time::{Duration, Instant};

use anabranch_engine::Failure;
use anabranch_rows::{Batch, Column, Key, Kind, Rows};

use crate::compiled::{Compiled, Stage, What};
use crate::document::Range;
use crate::error::OpError;
use crate::ledger::{LedgerEntry, Reason};
use crate::ops::constant;
use crate::run::Fault;
use crate::source;
use crate::value::Scalar;

/// How far the stages of a request are, and what was put in their place.
pub(crate) struct Watch {
    fates: Box<[Fate]>,
    /// By region: who did not make it there, until something stands in for them.
    late: Box<[Vec<Late>]>,
    /// By node.
    ledger: Vec<(usize, LedgerEntry)>,
}

/// How far a stage is.
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

/// Rows that stand in for others.
pub(crate) struct Instead {
    pub(crate) rows: Rows,
    /// What people call it.
    pub(crate) name: String,
    /// How old they are, if they are old.
    pub(crate) age: Option<Duration>,
}

impl Watch {
    pub(crate) fn new(plan: &Compiled) -> Watch {
        Watch {
            fates: vec![Fate::Idle; plan.stages.len()].into(),
            late: vec![Vec::new(); plan.regions.len()].into(),
            ledger: Vec::new(),
        }
    }

    pub(crate) fn begin(&mut self, stage: usize, now: Instant) {
        self.fates[stage] = Fate::Begun(now);
    }

    pub(crate) fn end(&mut self, stage: usize) {
        self.fates[stage] = Fate::Done;
    }

    /// When a stage was begun, if it is under way.
    pub(crate) fn begun(&self, stage: usize) -> Option<Instant> {
        match self.fates[stage] {
            Fate::Begun(at) => Some(at),
            Fate::Idle | Fate::Done => None,
        }
    }

    /// A stage that failed, as the ledger tells it.
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
            _ => plan.first_node(stage),
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

    /// A region's time is over: whoever is under way, or could be, did not make it.
    pub(crate) fn expire(&mut self, plan: &Compiled, region: usize, now: Instant) {
        let is_node = |stage: &&usize| matches!(plan.stages[**stage].what, What::Wait(_) | What::Chain(_));
        let members = plan.regions[region].members.iter().filter(is_node);
        let mut late: Vec<Late> = members.filter_map(|stage| self.overdue(plan, *stage, now)).collect();
        if late.is_empty() {
            let node = plan.regions[region].node;
            late.push(Late { node, reason: Reason::Shed, detail: None, waited: Duration::ZERO });
        }
        self.late[region].append(&mut late);
    }

    fn overdue(&self, plan: &Compiled, number: usize, now: Instant) -> Option<Late> {
        let (stage, node) = (&plan.stages[number], plan.first_node(number));
        match self.fates[number] {
            Fate::Begun(at) => {
                let waited = now.saturating_duration_since(at);
                Some(Late { node, reason: Reason::Timeout, detail: None, waited })
            }
            Fate::Idle if self.could_start(stage) => {
                Some(Late { node, reason: Reason::Shed, detail: None, waited: Duration::ZERO })
            }
            Fate::Idle | Fate::Done => None,
        }
    }

    fn could_start(&self, stage: &Stage) -> bool {
        stage.inputs.iter().all(|input| self.fates[*input] == Fate::Done)
    }

    /// Who did not make it in a region.
    pub(crate) fn late_in(&self, region: usize) -> &[Late] {
        &self.late[region]
    }

    /// Takes over those whose loss has to be made up for by somebody else now.
    pub(crate) fn take_late(&mut self, region: usize) -> Vec<Late> {
        std::mem::take(&mut self.late[region])
    }

    /// Notes that `instead` stands in for a node, or for what is late in a region.
    pub(crate) fn note(&mut self, plan: &Compiled, region: Option<usize>, late: Late, instead: &Instead) {
        let entry = LedgerEntry {
            node: plan.nodes[late.node].id.clone(),
            region: region.map(|region| plan.nodes[region].id.clone()),
            reason: late.reason,
            detail: late.detail,
            fallback: instead.name.clone(),
            waited: late.waited,
            age: instead.age,
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

/// `rows` with constants for these columns.
pub(crate) fn fill(rows: &Rows, columns: &[(Key, Kind, Option<Scalar>)]) -> Rows {
    let batch = rows.batch();
    let kept = |(key, _): &&(Key, Column)| !columns.iter().any(|(other, ..)| other == key);
    let mut all: Vec<(Key, Column)> = batch.columns().iter().filter(kept).cloned().collect();
    all.extend(columns.iter().map(|(key, kind, value)| (*key, constant(*kind, value.as_ref(), batch.len()))));
    rows.with_batch(Batch::with_columns(batch.ids().clone(), all))
}

/// Whether the values of `rows` lie in these ranges; a null lies in none.
pub(crate) fn in_range(rows: &Rows, ranges: &[Range]) -> bool {
    ranges.iter().all(|range| match rows.batch().column(range.key) {
        // Nobody reads it, so it was not made.
        None => true,
        Some(column @ Column::Int(values)) => {
            rows.iter().all(|row| !column.is_null(row) && range.holds(values.value(row) as f64))
        }
        Some(column @ Column::Float(values)) => {
            rows.iter().all(|row| !column.is_null(row) && range.holds(values.value(row)))
        }
        Some(Column::Bool(_) | Column::Text(_)) => false,
    })
}
