//! `core::if`: one of two nodes, by the parameters of the request. The other does not run.

use std::sync::Arc;

use anabranch_rows::{Key, Kind};

use super::columns::completed;
use super::{agreed, input};
use crate::op::{
    Choice, Contract, Demand, Effect, Form, Mark, Node, Op, ParamKind, ParamSpec, Planned, RowsNeeded,
    Sources, Spec, Takes, When,
};
use crate::registry::KeyKind;
use crate::schema::Schema;

pub(super) struct If;

static SPEC: Spec = Spec {
    name: "core::if",
    doc: "The rows of `then` if a predicate over the request's parameters holds, otherwise those of `else`.",
    inputs: 1,
    params: &[
        ParamSpec::required("pred_id", ParamKind::Pred, "the predicate; it reads parameters only"),
        ParamSpec::required("then", ParamKind::Node, "the node if it holds"),
        ParamSpec::optional("else", ParamKind::Node, "the node if it does not; the input if not given"),
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

    fn plan(&self, node: &mut Node<'_>) -> Option<Planned> {
        let then = *node.nodes("then").first()?;
        let or = node.nodes("else").first().copied().unwrap_or(0);
        let when = node.pred("pred_id", &every_column(node));
        if let Some(key) = when.as_ref().and_then(|when| when.keys().first()) {
            let name = node.registries().keys.get(*key).map_or(key.to_string(), |entry| entry.name.clone());
            let what = format!("it reads the column `{name}`, but there are no rows yet to decide by");
            node.problem_with_help("pred_id", what, "core::filter chooses among rows");
            return None;
        }
        let schema = agreed(node, "then", &[then, or])?;
        let when = Arc::new(when?);
        let choice = Choice { when: When::Holds(Arc::clone(&when)), then, or: Some(or) };
        let takes = (0..node.input_count()).map(|at| match at == then || at == or {
            true => Takes::passing([]).rows(RowsNeeded::AsAsked),
            // With an `else`, the input is not looked at.
            false => Takes::reading([]).rows(RowsNeeded::First(0)),
        });
        let takes: Vec<Takes> = takes.collect();
        let lacks = |at: usize| -> Vec<(Key, Kind)> {
            schema.iter().filter(|(key, _)| node.input(at).kind(*key).is_none()).collect()
        };
        let mut missing = [lacks(then), lacks(or)];
        let build = move |demand: &Demand, _: &mut Sources<'_>| {
            missing.iter_mut().for_each(|side| side.retain(|(key, _)| demand.keys.has(*key)));
            Form::compute(0.0, move |inputs, call, _| {
                let [then_lacks, or_lacks] = &missing;
                Ok(match when.holds(&call.params)? {
                    true => completed(input(inputs, then), then_lacks),
                    false => completed(input(inputs, or), or_lacks),
                })
            })
        };
        Some(Planned::new(schema, takes, build).choosing(choice))
    }
}

/// As if rows had every registered column, so that a predicate over any of them is found out.
fn every_column(node: &Node<'_>) -> Schema {
    Schema::new(node.registries().keys.iter().filter_map(|entry| match entry.kind {
        KeyKind::Column(kind) if entry.key != Key::ID => Some((entry.key, kind)),
        _ => None,
    }))
}
