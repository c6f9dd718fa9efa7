//! `core::if`: one of two nodes, by the parameters of the request or by the values of one row. The other does not run.

use std::sync::Arc;

use anabranch_rows::{Key, Kind};

use super::columns::completed;
use super::{agreed, input};
use crate::op::{
    Choice, Condition, Contract, Demand, Effect, Form, Mark, Node, NodePlan, Op, ParamKind, ParamSpec,
    RowsNeeded, Sources, Spec, Takes, When,
};
use crate::registry::KeyKind;
use crate::schema::Schema;

pub(super) struct If;

static SPEC: Spec = Spec {
    name: "core::if",
    doc: "The rows of `then` if a predicate holds for the request, otherwise those of `else`. The predicate reads \
          parameters and, with `on`, the columns of one row; without such a row it does not hold.",
    inputs: 1,
    params: &[
        ParamSpec::required("pred_id", ParamKind::Pred, "the predicate"),
        ParamSpec::required("then", ParamKind::Node, "the node if it holds"),
        ParamSpec::optional("else", ParamKind::Node, "the node if it does not; the input if not given"),
        ParamSpec::optional("on", ParamKind::Node, "the node whose first row it reads, such as the viewer"),
    ],
    writes: Effect::Keys(&[]),
    contract: Contract::Any,
    mark: Mark::Inline,
    distinct: false,
};

impl Op for If {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn plan(&self, node: &mut Node<'_>) -> Option<NodePlan> {
        let then = *node.nodes("then").first()?;
        let or = node.nodes("else").first().copied().unwrap_or(0);
        let when = condition(node);
        let schema = agreed(node, "then", &[then, or])?;
        let when = when?;
        let takes = (0..node.input_count()).map(|at| match at == then || at == or {
            true => Takes::passing([]).rows(RowsNeeded::AsAsked),
            false if when.on == Some(at) => {
                Takes::reading(when.filter.keys().iter().copied()).rows(RowsNeeded::First(1))
            }
            // With an `else`, the input is not looked at.
            false => Takes::reading([]).rows(RowsNeeded::First(0)),
        });
        let takes: Vec<Takes> = takes.collect();
        let lacks = |at: usize| -> Vec<(Key, Kind)> {
            schema.iter().filter(|(key, _)| node.input(at).kind(*key).is_none()).collect()
        };
        let mut missing = [lacks(then), lacks(or)];
        let choice = Choice { when: When::Holds(when.clone()), then, or: Some(or) };
        let build = move |demand: &Demand, _: &mut Sources<'_>| {
            missing.iter_mut().for_each(|side| side.retain(|(key, _)| demand.keys.has(*key)));
            Form::compute(0.0, move |inputs, call, _| {
                let [then_lacks, or_lacks] = &missing;
                let row = when.on.and_then(|on| inputs[on].as_ref());
                Ok(match when.holds(row, &call.params)? {
                    true => completed(input(inputs, then), then_lacks),
                    false => completed(input(inputs, or), or_lacks),
                })
            })
        };
        Some(NodePlan::new(schema, takes, build).choosing(choice))
    }
}

/// The condition of a node. A predicate over columns needs a row to read them from.
fn condition(node: &mut Node<'_>) -> Option<Condition> {
    let on = node.nodes("on").first().copied();
    if let Some(on) = on {
        let filter = node.pred("pred_id", node.input(on))?;
        return Some(Condition { filter: Arc::new(filter), on: Some(on) });
    }
    let filter = node.pred("pred_id", &every_column(node))?;
    if let Some(key) = filter.keys().first() {
        let name = node.registries().keys.get(*key).map_or(key.to_string(), |entry| entry.name.clone());
        let what = format!("it reads the column `{name}`, and the node does not say of which row");
        let help =
            "`on` names a node whose first row is read, such as the viewer; core::filter chooses among rows";
        node.problem_with_help("pred_id", what, help);
        return None;
    }
    Some(Condition { filter: Arc::new(filter), on: None })
}

/// A schema with every registered column, so that a predicate over any of them is detected.
fn every_column(node: &Node<'_>) -> Schema {
    Schema::new(node.registries().keys.iter().filter_map(|entry| match entry.kind {
        KeyKind::Column(kind) if entry.key != Key::ID => Some((entry.key, kind)),
        _ => None,
    }))
}
