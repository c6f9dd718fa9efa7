//! The rows of a fallback, which stand in for those of a region.

use std::sync::Arc;

use anabranch_rows::{Batch, Column, Key, Kind, Rows};

use crate::call::Call;
use crate::compiled::{Compiled, Region, StandIn};
use crate::document::{Range, StaleTerms};
use crate::op::{Form, Inputs, StartedWork};
use crate::ops::constant;
use crate::schema::Schema;
use crate::source::StaleUse;
use crate::value::Scalar;

/// Rows that stand in for others.
pub(crate) struct Instead {
    pub(crate) rows: Rows,
    /// Its name for people.
    pub(crate) name: String,
    /// The use of earlier replies, for a stale fallback.
    pub(crate) stale: Option<StaleUse>,
}

/// The first fallback of a region that fits. `given` are the rows that the region was given, `inputs` those of its
/// one stage.
pub(crate) fn stand_in(
    plan: &Compiled,
    region: usize,
    call: &Call,
    given: Option<&Rows>,
    inputs: &Inputs,
) -> Option<Instead> {
    let Region { node: number, stand_ins, .. } = &plan.regions[region];
    let node = &plan.nodes[*number];
    let made = |stand_in: &StandIn| match stand_in {
        StandIn::Empty(rows) => Some((rows.clone(), None)),
        StandIn::Fill { columns, .. } => {
            let bare = node.bare.map(|bare| bare(call));
            Some((fill(bare.as_ref().or(given)?, columns, &node.about.schema), None))
        }
        StandIn::Stale(terms) => stale(plan, *number, *terms, call, inputs.clone()),
        StandIn::Node(_) => None,
    };
    stand_ins.iter().find_map(|stand_in| {
        let (rows, stale) = made(stand_in)?;
        let fits = in_range(&rows, &node.ranges);
        fits.then(|| Instead { rows, name: stand_in.name(), stale })
    })
}

/// The rows of a node from earlier replies of its source.
fn stale(
    plan: &Compiled,
    number: usize,
    terms: StaleTerms,
    call: &Call,
    inputs: Inputs,
) -> Option<(Rows, Option<StaleUse>)> {
    let Form::Wait(form) = &plan.nodes[number].form else { return None };
    let call = Arc::new(call.stale(terms));
    match Arc::clone(form).start(inputs, &call) {
        StartedWork::Ready(Ok(rows)) => Some((rows, call.stale_use())),
        StartedWork::Ready(Err(_)) | StartedWork::Later(_) => None,
    }
}

/// `rows` with constants for these columns, and those of their own columns that the schema has.
fn fill(rows: &Rows, columns: &[(Key, Kind, Option<Scalar>)], schema: &Schema) -> Rows {
    let batch = rows.batch();
    let kept = |(key, _): &&(Key, Column)| {
        schema.kind(*key).is_some() && !columns.iter().any(|(other, ..)| other == key)
    };
    let mut all: Vec<(Key, Column)> = batch.columns().iter().filter(kept).cloned().collect();
    all.extend(columns.iter().map(|(key, kind, value)| (*key, constant(*kind, value.as_ref(), batch.len()))));
    rows.with_batch(Batch::with_columns(batch.ids().clone(), all))
}

/// True if the values of `rows` lie in these ranges. A null is not in any range.
pub(crate) fn in_range(rows: &Rows, ranges: &[Range]) -> bool {
    ranges.iter().all(|range| match rows.batch().column(range.key) {
        // No node reads the column, so it was not produced.
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
