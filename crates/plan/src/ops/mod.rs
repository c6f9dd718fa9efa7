//! The built-in ops, one file per op. A new op needs its file, its `mod` line and its line in [`all`]. The ops `test::*`
//! are in [`testing`].

use anabranch_rows::{Key, Kind, Rows};

use crate::op::{Inputs, Node, Ops};
use crate::schema::Schema;
use crate::source::Pattern;

mod columns;
mod fetch;
mod fields;
mod order;

mod boost;
mod candidates;
mod concat;
mod dedupe;
mod fanout;
mod fill;
mod filter;
mod follow;
mod group_limit;
mod if_;
mod join;
mod lookup;
mod media;
mod model;
mod recommendation;
mod select;
mod sort;
mod take;
mod timeout;
mod topk;
mod union;
mod viewer;
mod vm;

mod testing;

pub(crate) use columns::{constant, fitted, scattered};
pub(crate) use timeout::REGION;

#[cfg(test)]
mod tests;

/// The built-in ops, in the order in which they are listed for users.
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
    ops.add(testing::Sleep);
    ops.add(testing::FixedSource);
    ops.add(testing::BusyCpu);
    ops
}

/// The number of rows that an op handles between two checks for cancellation.
const STRIDE: usize = 1024;

/// The rows of the input at this place.
pub(crate) fn input(inputs: &Inputs, at: usize) -> &Rows {
    inputs[at].as_ref().expect("a node runs after the inputs that it takes")
}

/// The column that a parameter names. It is a problem if the rows lack it or plans may not read it.
fn column(node: &mut Node<'_>, param: &str, schema: &Schema) -> Option<(Key, Kind)> {
    let key = node.key(param)?.key;
    readable_column(node, param, key, schema)
}

/// The column of a registered key, if rows with this schema have it and plans may read it.
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

/// The columns of all these inputs. A key with different kinds in two inputs is a problem of `field`.
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

/// The key pattern in a parameter, for rows with this schema. A pattern that is not valid is a problem of `param`.
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
