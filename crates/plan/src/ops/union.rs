//! `core::union`: rows of several nodes, each id once.

use anabranch_engine::Check;
use anabranch_rows::Rows;
use hashbrown::HashSet;

use super::columns::only;
use super::{STRIDE, agreed, input};
use crate::error::OpError;
use crate::op::{
    Contract, Demand, Effect, Form, Mark, Node, NodePlan, Op, ParamKind, ParamSpec, Repeats, RowsNeeded,
    Rule, Spec, Takes,
};

pub(super) struct Union;

static SPEC: Spec = Spec {
    name: "core::union",
    doc: "The rows of its input and then those of the nodes `with`, with the columns of all; of rows with the same \
          id the first.",
    inputs: 1,
    params: &[
        ParamSpec::required("with", ParamKind::Nodes, "the nodes whose rows come after, in this order"),
        ParamSpec::optional("dedupe", ParamKind::Bool, "whether each id comes once; yes if not given"),
    ],
    writes: Effect::Keys(&[]),
    contract: Contract::Dense,
    mark: Mark::Auto,
    distinct: false,
};

/// About how long a row's id, and each of its columns, takes.
const NANOS: f64 = 2.0;
/// About how long it takes to see whether an id is new.
const NANOS_SEEN: f64 = 15.0;

impl Op for Union {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn plan(&self, node: &mut Node<'_>) -> Option<NodePlan> {
        let with = node.nodes("with");
        if with.is_empty() {
            node.problem("with", "it names no node, so there is nothing to add");
            return None;
        }
        let parts: Vec<usize> = [0].iter().chain(with).copied().collect();
        let schema = agreed(node, "with", &parts)?;
        let dedupe = node.bool("dedupe").unwrap_or(true);
        // Any number of the first rows may be dropped for an id that was there already.
        let needed = if dedupe { RowsNeeded::All } else { RowsNeeded::AsAsked };
        let takes = vec![Takes::passing([]).rows(needed); node.input_count()];
        let width = schema.iter().len() + 1;
        let nanos = NANOS * width as f64 + if dedupe { NANOS_SEEN } else { 0.0 };
        let rule = Rule::Parts(parts.clone(), if dedupe { Repeats::Go } else { Repeats::Stay });
        let planned = NodePlan::new(schema, takes, move |demand: &Demand, _| {
            let keys = demand.keys.clone();
            Form::compute(nanos, move |inputs, call, check| {
                let rows = parts.iter().map(|at| only(input(inputs, *at), &keys));
                let rows = if dedupe { once(rows, check)? } else { rows.collect() };
                let count: usize = rows.iter().map(Rows::len).sum();
                let columns = rows.iter().map(|part| part.batch().columns().len()).max().unwrap_or(0);
                call.budget.take_rows(count as u64, columns as u64)?;
                Ok(Rows::concat(&rows.iter().collect::<Vec<_>>()))
            })
        });
        Some(planned.by(rule))
    }
}

/// Each part without the rows whose id came before.
fn once(parts: impl Iterator<Item = Rows>, check: &Check<'_>) -> Result<Vec<Rows>, OpError> {
    let mut seen = HashSet::new();
    let mut thinned = Vec::new();
    for part in parts {
        let mut kept: Vec<u32> = Vec::with_capacity(part.len());
        for (position, (row, id)) in part.iter().zip(part.ids()).enumerate() {
            if position % STRIDE == 0 && check.should_stop() {
                return Err(OpError::Stopped);
            }
            if seen.insert(id) {
                kept.push(row as u32);
            }
        }
        thinned.push(if kept.len() == part.len() { part } else { part.with_active(kept) });
    }
    Ok(thinned)
}
