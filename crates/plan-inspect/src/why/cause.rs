//! The reason why a node dropped a row, and the changes that would have kept it.

use anabranch_rows::{Key, Order, Rows, SortKey};

use super::change;
use super::ends::{Spot, Trail};
use super::judge::Judge;
use super::story::word;
use super::table::Table;
use super::values::{at, column, json, name};
use super::{Beside, Cause, Change, MOST_NAMED};
use anabranch_plan::Scalar;
use anabranch_plan::expr::Compare;
use anabranch_plan::op::{Arg, Contract, Join, Keep, Matching, Repeats, Rule, Window};

/// The reason why `node` does not have the row that its input `input` has at `last`.
pub(super) fn of(table: &Table<'_>, trail: &Trail<'_>, last: Spot, node: usize, input: usize) -> Cause {
    if let Some(entry) = table.degraded(node) {
        return Cause::Degraded { reason: entry.reason.to_string(), fallback: entry.fallback.clone() };
    }
    let wanted = table.rows(node).map_or(0, Rows::len);
    let whole = table.node(node).op.spec().contract == Contract::SameRows;
    if whole && table.is_partial(node) && last.position >= wanted {
        let by = table.wanted_by(node).map(|by| table.id(by));
        return Cause::Unasked { place: last.position + 1, first: wanted, by };
    }
    if let Some(taken) = table.taken_side(node) {
        return Cause::OtherSide { taken: table.id(table.node(node).inputs[taken]) };
    }
    let position = last.position;
    let rows = table.input(node, input).filter(|rows| position < rows.len());
    let Some(rows) = rows else { return Cause::Unknown };
    match &table.node(node).about.rule {
        Some(Rule::Where(param)) => predicate(table, node, param, rows, position),
        Some(Rule::Slice(window)) => slice(table, trail, last, *window),
        Some(Rule::Top(by, window)) => top(table, by, *window, rows, position),
        Some(Rule::PerValue(key, count)) => per_value(table, *key, *count as usize, rows, position),
        Some(Rule::Once(key, keep)) => once(table, node, (*key, *keep), rows, position),
        Some(Rule::Parts(inputs, Repeats::Go)) => repeated(table, node, inputs, rows, position),
        Some(Rule::Joined(join)) => unmatched(table, node, *join, rows, position),
        _ => Cause::Unknown,
    }
}

fn predicate(table: &Table<'_>, node: usize, param: &str, rows: &Rows, position: usize) -> Cause {
    let spec = table.node(node).op.spec();
    let place = spec.params.iter().position(|own| own.name == param);
    let arg = place.and_then(|at| table.written(node)?.args[at].as_ref());
    let Some(Arg::Table(id)) = arg else { return Cause::Unknown };
    let Some(pred) = table.document().preds.get(id) else { return Cause::Unknown };
    let judge = Judge::new(table, rows, position);
    let registries = &table.plan.registries;
    Cause::Predicate {
        says: pred.display(&registries.keys, &registries.params).to_string(),
        leaves: judge.leaves(pred),
        keeps: change::least(&judge, pred),
    }
}

fn slice(table: &Table<'_>, trail: &Trail<'_>, last: Spot, window: Window) -> Cause {
    let Some(place) = place_behind(last.position, window.offset) else {
        return Cause::Skipped { place: last.position + 1, offset: window.offset as usize };
    };
    let kept = Spot { position: (window.end() as usize).saturating_sub(1), ..last };
    let orders = sorted_at(table, trail, last).zip(sorted_at(table, trail, kept));
    let behind = orders.filter(|((_, own), (_, other))| window.count > 0 && own.node == other.node);
    let behind = behind.and_then(|((by, own), (_, other))| {
        let rows = table.rows(own.node)?;
        Some(beside(table, by, rows, (own.position, other.position)))
    });
    let (behind, needs) = behind.map_or((None, None), |(behind, needs)| (Some(behind), needs));
    limit(window, place, behind, needs)
}

fn top(table: &Table<'_>, by: &[SortKey], window: Window, rows: &Rows, position: usize) -> Cause {
    let row = rows.row(position);
    let sorted = rows.sorted(by, None, &mut || false);
    let place = sorted.as_ref().and_then(|sorted| sorted.iter().position(|other| other == row));
    let (Some(sorted), Some(place)) = (sorted, place) else { return Cause::Unknown };
    let Some(counted) = place_behind(place, window.offset) else {
        return Cause::Skipped { place: place + 1, offset: window.offset as usize };
    };
    let kept = window.end() as usize;
    if !(1..=place).contains(&kept) {
        return Cause::Unknown;
    }
    let (behind, needs) = beside(table, by, &sorted, (place, kept - 1));
    limit(window, counted, Some(behind), needs)
}

/// The position of a row after the skipped ones, counted from 1.
fn place_behind(position: usize, offset: u32) -> Option<usize> {
    (position + 1).checked_sub(offset as usize).filter(|place| *place > 0)
}

fn limit(window: Window, place: usize, behind: Option<Beside>, needs: Option<Change>) -> Cause {
    let Window { offset, count } = window;
    // A smaller value could also move the row among the skipped ones.
    let needs = needs.filter(|_| offset == 0);
    Cause::Limit { place, limit: count as usize, offset: offset as usize, behind, needs }
}

/// The row after this one, if both are in the order of a column.
pub(super) fn next(table: &Table<'_>, trail: &Trail<'_>, spot: Spot) -> Option<Beside> {
    let after = Spot { position: spot.position + 1, ..spot };
    if after.position >= table.rows(spot.node)?.len() {
        return None;
    }
    let (by, own) = sorted_at(table, trail, spot)?;
    let (_, other) = sorted_at(table, trail, after).filter(|(_, other)| other.node == own.node)?;
    Some(beside(table, by, table.rows(own.node)?, (own.position, other.position)).0)
}

/// The other row, with the column that decides between them, which is the first in which they differ. Also the change
/// that would have put the row before it.
fn beside(
    table: &Table<'_>,
    by: &[SortKey],
    rows: &Rows,
    (own, other): (usize, usize),
) -> (Beside, Option<Change>) {
    let named = |key: Key, position: usize| at(rows, key, position).map(|value| name(&value));
    let differs = |by: &&SortKey| named(by.key, own) != named(by.key, other);
    let by = *by.iter().find(differs).unwrap_or(&by[0]);
    let beside = Beside {
        row: rows.batch().ids()[rows.row(other)],
        by: column(&table.plan.registries.keys, by.key),
        order: word(by.order).to_owned(),
        own: json(at(rows, by.key, own).as_ref()),
        other: json(at(rows, by.key, other).as_ref()),
    };
    let needs = needs(by, &beside, at(rows, by.key, other).as_ref());
    (beside, needs)
}

/// A value that would come before the other row: any value if that row has none, and none for ids.
fn needs(by: SortKey, behind: &Beside, other: Option<&Scalar>) -> Option<Change> {
    if by.key == Key::ID {
        return None;
    }
    let op = if by.order == Order::Descending { Compare::Gt } else { Compare::Lt };
    let (needs, to) = match other {
        None => ("not null".to_owned(), None),
        Some(other) => {
            let to = change::beyond(op, other, other.kind()).filter(|to| change::compares(op, to, other))?;
            (format!("{} {}", op.symbol(), behind.other), Some(json(Some(&to))))
        }
    };
    Some(Change { what: behind.by.clone(), from: behind.own.clone(), needs, to, param: None })
}

/// The node that a row's order comes from, and the row's place there.
fn sorted_at<'t>(table: &'t Table<'_>, trail: &Trail<'_>, mut spot: Spot) -> Option<(&'t [SortKey], Spot)> {
    // Each turn goes back to a node before it.
    loop {
        let node = table.node(spot.node);
        let keeps_order = match &node.about.rule {
            Some(Rule::Sorted(by) | Rule::Top(by, _)) => return Some((by, spot)),
            Some(Rule::Parts(..) | Rule::Listed(_)) => false,
            Some(Rule::Joined(_)) => true,
            _ => match node.op.spec().contract {
                Contract::SameRows | Contract::Subsequence | Contract::Prefix => true,
                Contract::Permutation | Contract::Dense | Contract::Any => node.choice.is_some(),
            },
        };
        if !keeps_order {
            return None;
        }
        spot = trail.before(spot)?;
    }
}

/// The positions of rows that have the value of the row at `position`.
fn alike(rows: &Rows, key: Key, position: usize) -> Option<Vec<usize>> {
    let own = name(&at(rows, key, position)?);
    let same = |other: &usize| at(rows, key, *other).is_some_and(|value| name(&value) == own);
    Some((0..rows.len()).filter(same).collect())
}

fn per_value(table: &Table<'_>, key: Key, limit: usize, rows: &Rows, position: usize) -> Cause {
    let Some(alike) = alike(rows, key, position) else { return Cause::Unknown };
    let stayed = alike.iter().take(limit.min(MOST_NAMED));
    Cause::Group {
        column: column(&table.plan.registries.keys, key),
        value: json(at(rows, key, position).as_ref()),
        place: alike.iter().filter(|other| **other <= position).count(),
        limit,
        stayed: stayed.map(|other| rows.batch().ids()[rows.row(*other)]).collect(),
    }
}

fn once(table: &Table<'_>, node: usize, (key, keep): (Key, Keep), rows: &Rows, position: usize) -> Cause {
    let alike = alike(rows, key, position);
    let stayed = alike.as_ref().and_then(|alike| match keep {
        Keep::First => alike.first(),
        Keep::Last => alike.last(),
    });
    let Some(&stayed) = stayed else { return Cause::Unknown };
    Cause::Repeat {
        column: column(&table.plan.registries.keys, key),
        value: json(at(rows, key, position).as_ref()),
        stayed: rows.batch().ids()[rows.row(stayed)],
        from: table.id(table.node(node).inputs[0]),
        place: stayed + 1,
    }
}

/// The id that came before, at an input or before it.
fn repeated(table: &Table<'_>, node: usize, inputs: &[usize], rows: &Rows, position: usize) -> Cause {
    let id = rows.batch().ids()[rows.row(position)];
    let found = inputs.iter().find_map(|at| {
        let place = table.input(node, *at)?.ids().position(|other| other == id)?;
        Some((*at, place))
    });
    let Some((at, place)) = found else { return Cause::Unknown };
    Cause::Repeat {
        column: column(&table.plan.registries.keys, Key::ID),
        value: id.into(),
        stayed: id,
        from: table.id(table.node(node).inputs[at]),
        place: place + 1,
    }
}

fn unmatched(table: &Table<'_>, node: usize, join: Join, rows: &Rows, position: usize) -> Cause {
    let Some(others) = table.input(node, join.with) else { return Cause::Unknown };
    let own = at(rows, join.left, position);
    let keys = &table.plan.registries.keys;
    let (with, with_column) = (table.id(table.node(node).inputs[join.with]), column(keys, join.right));
    let (column, value) = (column(keys, join.left), json(own.as_ref()));
    if join.matching != Matching::Anti {
        return Cause::Unmatched { column, value, with, with_column };
    }
    let own = own.map(|own| name(&own));
    let matches = |other: &usize| at(others, join.right, *other).map(|value| name(&value)) == own;
    let rows = (0..others.len()).filter(matches).take(MOST_NAMED);
    let rows = rows.map(|other| others.batch().ids()[others.row(other)]).collect();
    Cause::Matched { column, value, with, with_column, rows }
}
