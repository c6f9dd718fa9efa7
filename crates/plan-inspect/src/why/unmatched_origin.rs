//! The possible origins of a row that no node had.

use super::story::on_list;
use super::table::Table;
use super::{ReadLists, UnmatchedOrigin};
use anabranch_plan::op::Rule;
use anabranch_plan::source::Read;

/// The nodes that bring rows.
pub(super) fn all(table: &Table<'_>, row: i64) -> Vec<UnmatchedOrigin> {
    let brings = |node: &usize| {
        let node = table.node(*node);
        !node.early && !node.about.carries.contains(&true)
    };
    (0..table.plan.nodes.len()).filter(brings).filter_map(|node| looked(table, node, row)).collect()
}

fn looked(table: &Table<'_>, node: usize, row: i64) -> Option<UnmatchedOrigin> {
    let rows = table.rows(node)?.len();
    let partial = table.is_partial(node);
    Some(UnmatchedOrigin {
        node: table.id(node),
        op: table.op(node),
        rows,
        lists: lists(table, node, row),
        first: table.node(node).demand.rows.filter(|_| partial).map(|rows| rows as usize),
        wanted_by: table.wanted_by(node).filter(|_| partial).map(|by| table.id(by)),
    })
}

fn lists(table: &Table<'_>, node: usize, row: i64) -> Option<ReadLists> {
    let lists = table.lists(node)?;
    let Some(Rule::Listed(allowed)) = table.node(node).about.rule else { return None };
    let mut reads = table.node(node).about.reads.iter();
    let (limit, pattern) = reads.find_map(|reader| match reader.read {
        Read::List { limit } | Read::Scored { limit } => Some((limit, &reader.pattern)),
        Read::Fields(_) => None,
    })?;
    // It was read, but its rows were not needed.
    let unwanted = lists.ids.iter().position(|id| *id == row);
    Some(ReadLists {
        keys: crate::explain::shown(pattern, &table.plan.registries),
        count: lists.lens.len(),
        limit: limit as usize,
        allowed: allowed as usize,
        full: lists.lens.iter().filter(|len| **len >= limit).count(),
        unwanted: unwanted.and_then(|position| on_list(table, node, position)),
    })
}
