//! The ops that come along, one file each; a new one is its file, its `mod` line and its line in [`all`].

use anabranch_rows::{Key, Kind, Rows};

use crate::op::{Inputs, Node, Ops};
use crate::schema::Schema;
use crate::source::Pattern;

mod columns;
mod fetch;
mod fields;
mod numbers;
mod order;

mod boost;
mod busy_cpu;
mod candidates;
mod concat;
mod dedupe;
mod fanout;
mod fill;
mod filter;
mod fixed_source;
mod follow;
mod group_limit;
mod if_;
mod join;
mod lookup;
mod media;
mod model;
mod recommendation;
mod select;
mod sleep;
mod sort;
mod take;
mod timeout;
mod topk;
mod union;
mod viewer;
mod vm;

pub(crate) use columns::{constant, fitted, scattered};
pub(crate) use timeout::REGION;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

/// All of them, in the order they are listed to people.
pub(crate) fn all() -> Ops {
    let mut ops = Ops::default();
    ops.add(candidates::Candidates);
    ops.add(viewer::Viewer);
    ops.add(follow::Follow);
    ops.add(recommendation::Recommendation);
    ops.add(media::Media);
    ops.add(lookup::Lookup);
    ops.add(fanout::Fanout);
    ops.add(vm::Vm);
    ops.add(filter::Filter);
    ops.add(sort::Sort);
    ops.add(take::Take);
    ops.add(select::Select);
    ops.add(concat::Concat);
    ops.add(topk::TopK);
    ops.add(union::Union);
    ops.add(dedupe::Dedupe);
    ops.add(group_limit::GroupLimit);
    ops.add(join::Join);
    ops.add(model::Model);
    ops.add(boost::Boost);
    ops.add(fill::Fill);
    ops.add(if_::If);
    ops.add(timeout::Timeout);
    ops.add(sleep::Sleep);
    ops.add(fixed_source::FixedSource);
    ops.add(busy_cpu::BusyCpu);
    ops
}

/// Rows between two looks at whether to stop.
const STRIDE: usize = 1024;

/// The rows of the input at this place.
pub(crate) fn input(inputs: &Inputs, at: usize) -> &Rows {
    inputs[at].as_ref().expect("a node runs after the inputs that it takes")
}

/// The column that a parameter names, which rows with these columns have and plans may read.
fn column(node: &mut Node<'_>, param: &str, schema: &Schema) -> Option<(Key, Kind)> {
    let key = node.key(param)?.key;
    readable_column(node, param, key, schema)
}

/// The column of a registered key, if rows with these columns have it and plans may read it.
fn readable_column(node: &mut Node<'_>, param: &str, key: Key, schema: &Schema) -> Option<(Key, Kind)> {
    let entry = node.registries().keys.get(key)?;
    node.readable(param, entry)?;
    let kind = schema.kind(entry.key);
    if kind.is_none() {
        let what = format!("the rows have no column `{}` here", entry.name);
        node.problem_with_help(param, what, "a node before this one has to make it");
    }
    Some((entry.key, kind?))
}

/// The columns of all these inputs; a key that is not of one kind in all of them is noted under `field`.
fn agreed(node: &mut Node<'_>, field: &str, inputs: &[usize]) -> Option<Schema> {
    let mut schema = Schema::default();
    let mut fine = true;
    for (key, kind) in inputs.iter().flat_map(|at| node.input(*at).iter()).collect::<Vec<_>>() {
        match schema.kind(key) {
            Some(other) if other != kind => {
                let name =
                    node.registries().keys.get(key).map_or(key.to_string(), |entry| entry.name.clone());
                node.problem(
                    field,
                    format!("column `{name}` is {other} on one side and {kind} on the other"),
                );
                fine = false;
            }
            _ => schema.add(key, kind),
        }
    }
    fine.then_some(schema)
}

/// The key pattern that a parameter gives, for rows with these columns; what is wrong with it is noted.
fn pattern(node: &mut Node<'_>, param: &str, schema: &Schema) -> Option<Pattern> {
    let text = node.text(param)?;
    let registries = node.registries();
    match Pattern::parse(text, schema, &registries.keys, &registries.params) {
        Ok(pattern) => Some(pattern),
        Err(what) => {
            node.problem(param, what);
            None
        }
    }
}
