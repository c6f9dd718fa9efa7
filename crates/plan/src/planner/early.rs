//! Lets independent reads run in parallel, although the plan writes them one after another.
//!
//! A node that adds columns to its rows, such as a lookup, needs only the columns of its keys. If these are available
//! some nodes earlier, and the nodes between keep the rows unchanged, it is split in two: an *early* node reads with
//! the earlier rows, and the node itself adds the columns that were read to its own rows.

use std::sync::Arc;

use anabranch_rows::{Batch, Column, Key, Rows};

use super::{Draft, Part};
use crate::document::{Document, DocumentNode, Fallback, Guard};
use crate::error::OpError;
use crate::op::{Contract, Demand, Form, Inputs, NodePlan, RowsNeeded, Sources, Takes};
use crate::ops::{input, scattered};
use crate::schema::Schema;

/// The nodes of a document on their way through the planner, inputs first.
pub(super) struct Plan<'a> {
    pub(super) document: &'a mut Document,
    pub(super) order: &'a mut Vec<usize>,
    pub(super) drafts: &'a mut Vec<Draft>,
    /// By place, the equal node that stands for it.
    pub(super) same: &'a mut Vec<usize>,
}

/// Splits each read that need not wait for all nodes before it.
pub(super) fn split(mut plan: Plan<'_>) {
    let mut order = Vec::with_capacity(plan.order.len());
    for place in std::mem::take(plan.order) {
        if let Some(from) = plan.earliest(place) {
            order.push(plan.split(place, from));
        }
        order.push(place);
    }
    *plan.order = order;
}

impl Plan<'_> {
    /// The earliest node whose rows a read can use, if it is before the node's own input.
    fn earliest(&self, place: usize) -> Option<usize> {
        let draft = &self.drafts[place];
        let reads = draft.planned.endpoint.is_some() && self.same[place] == place;
        let [takes] = &draft.planned.takes[..] else { return None };
        if !reads || !self.keeps_rows(place) {
            return None;
        }
        let input = draft.inputs[0];
        let (mut at, mut waits) = (input, false);
        // Each turn goes on to a node before it.
        while self.keeps_rows(at) && self.passes(at, takes) {
            waits |= self.drafts[at].planned.endpoint.is_some();
            at = self.drafts[at].inputs[0];
        }
        waits.then_some(at)
    }

    /// True if a node's rows are those of its one input, also if it falls back.
    fn keeps_rows(&self, place: usize) -> bool {
        let Draft { op, planned, inputs, .. } = &self.drafts[place];
        let keeps = |fallback: &Fallback| !matches!(fallback, Fallback::Empty | Fallback::Node(_));
        op.spec().contract == Contract::SameRows
            && inputs.len() == 1
            && planned.takes[0].passes
            && planned.choice.is_none()
            && self.document.nodes[place].guard.fallbacks.iter().all(keeps)
    }

    /// True if a node passes on, unchanged, the columns of its input that a read needs.
    fn passes(&self, place: usize, read: &Takes) -> bool {
        let NodePlan { takes, .. } = &self.drafts[place].planned;
        let before = &self.drafts[self.drafts[place].inputs[0]].planned.schema;
        let passed = |key: Key| {
            let made = takes[0].makes.has(key) || takes[0].withholds.has(key);
            key == Key::ID || (!made && before.kind(key).is_some())
        };
        read.reads.iter().all(passed)
    }

    /// Splits a node. Returns the index of the early one.
    fn split(&mut self, place: usize, from: usize) -> usize {
        let node = &mut self.document.nodes[place];
        // Only the early node can be late or fail.
        let guard = Guard { ranges: node.guard.ranges.clone(), ..Guard::default() };
        let guard = std::mem::replace(&mut node.guard, guard);
        let read = DocumentNode { inputs: vec![from], guard, ..node.clone() };
        self.document.nodes.push(read);
        let early = self.drafts.len();
        let before = self.drafts[from].planned.schema.clone();
        let Draft { op, planned, inputs, .. } = &mut self.drafts[place];
        let attached = attached(planned);
        let mut planned = std::mem::replace(planned, attached);
        // It has none of the columns that the nodes between make.
        let made = planned.takes[0].makes.iter().filter_map(|key| Some((key, planned.schema.kind(key)?)));
        planned.schema = before.union(&Schema::new(made));
        inputs.push(early);
        let draft = Draft { op: Arc::clone(op), planned, inputs: vec![from], part: Part::Early };
        self.drafts[place].part = Part::Attached;
        self.drafts.push(draft);
        self.same.push(early);
        early
    }
}

/// The node that puts the columns of its second input, which an early node read, on the rows of its first.
fn attached(read: &NodePlan) -> NodePlan {
    let made: Vec<Key> = read.takes[0].makes.iter().collect();
    let others = read.schema.iter().map(|(key, _)| key).filter(|key| !made.contains(key));
    let takes = [
        Takes::passing([]).withholding(made.iter().copied()).rows(RowsNeeded::AsAsked),
        Takes::passing([]).withholding(others).rows(RowsNeeded::AsAsked),
    ];
    let build = move |demand: &Demand, _: &mut Sources<'_>| {
        let columns: Vec<Key> = made.into_iter().filter(|key| demand.keys.has(*key)).collect();
        Form::compute(NANOS_PER_ROW, move |inputs, _, _| attach(&columns, inputs))
    };
    NodePlan::new(read.schema.clone(), takes, build)
}

/// About the cost of putting a column on rows: most often it is shared.
const NANOS_PER_ROW: f64 = 0.5;

fn attach(columns: &[Key], inputs: &Inputs) -> Result<Rows, OpError> {
    let (rows, read) = (input(inputs, 0), input(inputs, 1));
    if !rows.ids().eq(read.ids()) {
        return Err(OpError::Value("the rows that were read early are others now".to_owned()));
    }
    let aligned = rows.batch().len() == read.batch().len() && rows.iter().eq(read.iter());
    let indices: Option<Vec<u32>> = (!aligned).then(|| read.iter().map(|row| row as u32).collect());
    let mut all: Vec<(Key, Column)> = rows.batch().columns().to_vec();
    all.retain(|(key, _)| !columns.contains(key));
    for key in columns {
        let Some(column) = read.batch().column(*key) else { continue };
        let column = match &indices {
            None => column.clone(),
            Some(indices) => scattered(column.gather(indices), rows),
        };
        all.push((*key, column));
    }
    Ok(rows.with_batch(Batch::with_columns(rows.batch().ids().clone(), all)))
}
