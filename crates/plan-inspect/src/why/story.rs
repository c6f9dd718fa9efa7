//! The paths of a row, from the nodes that brought it to their ends.

use anabranch_rows::{Order, Rows, SortKey};

use super::cause;
use super::ends::{Ending, RowEnd, Spot, Trail};
use super::judge::{self, Judge};
use super::table::Table;
use super::unmatched_origin;
use super::values::{at, cell, column, json};
use super::{End, MOST_WAYS, OnList, Origin, SortColumn, Step, Verdict, Way, Why, WrittenValue};
use anabranch_plan::Answer;
use anabranch_plan::expr::Expr;
use anabranch_plan::op::{Arg, ParamKind, Rule};
use anabranch_plan::source::{Keys, Read};

pub(super) fn tell(table: &Table<'_>, answer: &Answer, row: i64) -> Why {
    let trail = Trail::new(table, row);
    let ends = trail.ends();
    let places = answer.candidates().zip(1..).filter(|(candidate, _)| candidate.id == row);
    let verdict = match ends.first().map(|ended| &ended.end) {
        None => Verdict::Absent,
        Some(Ending::Answered) => Verdict::Answered { places: places.map(|(_, place)| place).collect() },
        Some(Ending::Dropped { node, .. }) => Verdict::Dropped { node: table.id(*node) },
        Some(Ending::Used { by }) => Verdict::Used { by: by.iter().map(|node| table.id(*node)).collect() },
    };
    let idle =
        (0..table.plan.nodes.len()).filter(|node| table.rows(*node).is_none() && !table.node(*node).early);
    Why {
        plan: table.plan.name.clone(),
        row,
        verdict,
        ways: ends.iter().take(MOST_WAYS).map(|ended| way(table, &trail, ended)).collect(),
        more_ways: ends.len().saturating_sub(MOST_WAYS),
        looked: if trail.is_empty() { unmatched_origin::all(table, row) } else { Vec::new() },
        idle: idle.map(|node| table.id(node)).collect(),
        degraded: table.ledger.to_vec(),
    }
}

fn way(table: &Table<'_>, trail: &Trail<'_>, ended: &RowEnd) -> Way {
    let mut spots: Vec<Spot> = std::iter::successors(Some(ended.last), |spot| trail.before(*spot)).collect();
    spots.reverse();
    let first = spots[0];
    let origin = Origin { node: table.id(first.node), list: list_of(table, first) };
    let steps = spots.iter().map(|spot| step(table, trail, *spot)).collect();
    let end = match &ended.end {
        Ending::Answered => End::Answered {
            node: table.id(ended.last.node),
            place: ended.last.position + 1,
            of: table.rows(ended.last.node).map_or(0, Rows::len),
            before: cause::next(table, trail, ended.last),
        },
        Ending::Dropped { node, at } => End::Dropped {
            node: table.id(*node),
            op: table.op(*node),
            cause: cause::of(table, trail, ended.last, *node, *at),
        },
        Ending::Used { by } => End::Used { by: by.iter().map(|node| table.id(*node)).collect() },
    };
    Way { origin, steps, end }
}

/// The list that a row was on which a node brought.
fn list_of(table: &Table<'_>, spot: Spot) -> Option<OnList> {
    on_list(table, spot.node, spot.position)
}

/// The list of the id at a place among all that a node read, one list after the other.
pub(super) fn on_list(table: &Table<'_>, node: usize, position: usize) -> Option<OnList> {
    let lists = table.lists(node)?;
    let mut before = 0;
    let mut lens = lists.lens.iter().map(|len| *len as usize).enumerate();
    let (parent, read) = lens.find(|(_, len)| {
        before += len;
        before > position
    })?;
    let parents = table.input(node, 0)?;
    let row = parents.row(parent);
    let reads = &table.node(node).about.reads;
    let list = |read: &Read| matches!(read, Read::List { .. } | Read::Scored { .. });
    let reader = reads.iter().find(|reader| list(&reader.read))?;
    let key = match reader.pattern.apply(&parents.with_active(vec![row as u32]), &table.call) {
        Keys::Ids(ids) => {
            let (prefix, suffix) = reader.pattern.affixes()?;
            format!("{prefix}{}{suffix}", ids[0])
        }
        Keys::Whole(keys) => keys[0].clone()?.into_string(),
    };
    Some(OnList {
        key,
        of_row: parents.batch().ids()[row],
        of_node: table.id(table.node(node).inputs[0]),
        place: position + read + 1 - before,
        read,
    })
}

fn step(table: &Table<'_>, trail: &Trail<'_>, spot: Spot) -> Step {
    let node = table.node(spot.node);
    let sorted = match &node.about.rule {
        Some(Rule::Sorted(by) | Rule::Top(by, _)) => {
            table.rows(spot.node).and_then(|rows| sorted(table, by, rows, spot.position))
        }
        _ => None,
    };
    Step {
        node: table.id(spot.node),
        op: table.op(spot.node),
        place: spot.position + 1,
        of: table.rows(spot.node).map_or(0, Rows::len),
        wrote: wrote(table, trail, spot),
        sorted,
    }
}

/// The columns that rows are sorted by, and the values of the one at this position.
fn sorted(table: &Table<'_>, by: &[SortKey], rows: &Rows, position: usize) -> Option<SortColumn> {
    let column = |by: &SortKey| SortColumn {
        by: column(&table.plan.registries.keys, by.key),
        order: word(by.order).to_owned(),
        value: json(at(rows, by.key, position).as_ref()),
        then: Vec::new(),
    };
    let (first, rest) = by.split_first()?;
    Some(SortColumn { then: rest.iter().map(column).collect(), ..column(first) })
}

pub(super) fn word(order: Order) -> &'static str {
    match order {
        Order::Ascending => "asc",
        Order::Descending => "desc",
    }
}

/// The columns that are not as they were before.
fn wrote(table: &Table<'_>, trail: &Trail<'_>, spot: Spot) -> Vec<WrittenValue> {
    let Some(rows) = table.rows(spot.node) else { return Vec::new() };
    let before = trail.before(spot);
    let input = before.and_then(|before| Some((table.rows(before.node)?, before.position)));
    let node = table.node(spot.node);
    // Nodes that put rows together have nulls for columns that only the others bring.
    let gathers = node.choice.is_some() || matches!(node.about.rule, Some(Rule::Parts(..)));
    let expr = expr_of(table, spot.node);
    let keys = &table.plan.registries.keys;
    let mut wrote = Vec::new();
    for (key, _) in rows.batch().columns() {
        let value = cell(rows, *key, rows.row(spot.position));
        let had = input.filter(|(input, _)| input.batch().column(*key).is_some());
        let was = had.map(|(input, position)| at(input, *key, position));
        if was.as_ref() == Some(&value) || (was.is_none() && value.is_none() && (gathers || input.is_none()))
        {
            continue;
        }
        let with = match (expr, input) {
            (Some(expr), Some((input, position))) => {
                Judge::new(table, input, position).named(&judge::reads_of_expr(expr))
            }
            _ => Vec::new(),
        };
        wrote.push(WrittenValue {
            column: column(keys, *key),
            value: json(value.as_ref()),
            was: was.map(|was| json(was.as_ref())),
            says: expr.map(|expr| expr.display(keys, &table.plan.registries.params).to_string()),
            with,
        });
    }
    wrote
}

/// The expression of a node that has one.
fn expr_of<'t>(table: &'t Table<'_>, node: usize) -> Option<&'t Expr> {
    let params = table.node(node).op.spec().params.iter().zip(&table.written(node)?.args);
    let mut ids = params.filter_map(|(param, arg)| match arg {
        Some(Arg::Table(id)) if param.kind == ParamKind::Expr => Some(id),
        _ => None,
    });
    table.document().exprs.get(ids.next()?)
}
