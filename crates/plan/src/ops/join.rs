//! `core::join`: rows matched with those of another node.

use anabranch_engine::Check;
use anabranch_rows::{Batch, Column, Interner, Key, Kind, Numbers, Rows};
use hashbrown::{HashMap, HashSet};
use serde_json::Value;

use super::fields::key_entry;
use super::{STRIDE, column, input};
use crate::error::OpError;
use crate::op::{
    self, Contract, Demand, Effect, Form, Mark, Matching, Node, NodePlan, Op, ParamKind, ParamSpec,
    RowsNeeded, Rule, Spec, Takes,
};
use crate::schema::{KeySet, Schema};

pub(super) struct Join;

static SPEC: Spec = Spec {
    name: "core::join",
    doc: "Matches the rows of its input, in their order, with those of `with` that have the same value; null matches \
          nothing.",
    inputs: 1,
    params: &[
        ParamSpec::required("with", ParamKind::Node, "the node whose rows are matched"),
        ParamSpec::required(
            "kind",
            ParamKind::Choice(&["inner", "left", "semi", "anti"]),
            "a row for each match; the same and rows that match nothing; rows that match; rows that do not",
        ),
        ParamSpec::optional("on", ParamKind::Key, "the input's column to match by; the ids if not given"),
        ParamSpec::optional("on_right", ParamKind::Key, "the column of `with`; that of `on` if not given"),
        ParamSpec::optional(
            "columns",
            ParamKind::Json,
            "keys, by name or number, to bring from `with`; all it has if not given",
        ),
        ParamSpec::optional(
            "overwrite",
            ParamKind::Bool,
            "whether they may replace columns; no if not given",
        ),
    ],
    writes: Effect::Switch(
        "kind",
        &[
            ("inner", Effect::Unknown),
            ("left", Effect::Unknown),
            ("semi", Effect::Keys(&[])),
            ("anti", Effect::Keys(&[])),
        ],
    ),
    contract: Contract::Any,
    mark: Mark::Auto,
    distinct: false,
};

/// The estimated time to match a row.
const NANOS: f64 = 25.0;
/// The estimated time per column of a matched row.
const NANOS_COLUMN: f64 = 2.0;

/// The columns that a join matches.
#[derive(Clone, Copy)]
struct On {
    left: Key,
    right: Key,
}

impl Op for Join {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn plan(&self, node: &mut Node<'_>) -> Option<NodePlan> {
        let with = *node.nodes("with").first()?;
        let kind = match node.text("kind")? {
            "inner" => Matching::Inner,
            "left" => Matching::Left,
            "semi" => Matching::Semi,
            _ => Matching::Anti,
        };
        let (left, right) = (node.input(0), node.input(with));
        let on = on(node, left, right);
        let rule = |on: On| Rule::Joined(op::Join { with, left: on.left, right: on.right, matching: kind });
        match kind {
            Matching::Inner | Matching::Left => {
                let brought = brought(node, on, left, right)?;
                Some(matching(node, with, kind, on?, brought).by(rule(on?)))
            }
            Matching::Semi | Matching::Anti => {
                for param in ["columns", "overwrite"] {
                    if node.arg(param).is_some() {
                        let help = "kind `inner` or `left` does";
                        node.problem_with_help(param, "kinds `semi` and `anti` bring no columns", help);
                    }
                }
                Some(choosing(node, with, kind, on?).by(rule(on?)))
            }
        }
    }
}

/// The columns to match by, of the same kind.
fn on(node: &mut Node<'_>, left: &Schema, right: &Schema) -> Option<On> {
    let left_on = match node.arg("on") {
        Some(_) => column(node, "on", left),
        None => Some((Key::ID, Kind::Int)),
    };
    let right_on = match (node.arg("on_right"), node.arg("on")) {
        (Some(_), _) => column(node, "on_right", right),
        (None, Some(_)) => left_on.and_then(|(key, _)| {
            let kind = right.kind(key);
            if kind.is_none() {
                let what = "the rows of `with` do not have this column";
                node.problem_with_help("on", what, "`on_right` names the one to match with");
            }
            Some((key, kind?))
        }),
        (None, None) => Some((Key::ID, Kind::Int)),
    };
    let ((left, left_kind), (right, right_kind)) = (left_on?, right_on?);
    if left_kind != right_kind {
        let what = format!("the input's column is {left_kind} and that of `with` is {right_kind}");
        node.problem_with_help("on_right", what, "both sides must be of the same kind");
        return None;
    }
    Some(On { left, right })
}

/// The columns that come from the right.
fn brought(node: &mut Node<'_>, on: Option<On>, left: &Schema, right: &Schema) -> Option<Vec<(Key, Kind)>> {
    let brought = match node.json("columns") {
        Some(list) => listed(node, list, right)?,
        None => {
            // A column matched by itself is the same on both sides.
            let same = on.filter(|on| on.left == on.right).map(|on| on.left);
            right.iter().filter(|(key, _)| Some(*key) != same).collect()
        }
    };
    let mut fine = true;
    if node.bool("overwrite") != Some(true) {
        for (key, _) in brought.iter().filter(|(key, _)| left.kind(*key).is_some()) {
            let name = node.registries().keys.get(*key).map_or(key.to_string(), |entry| entry.name.clone());
            let what = format!("both sides have a column `{name}`");
            let help = "list the `columns` to bring without it, or replace it with `overwrite: true`";
            node.problem_with_help("columns", what, help);
            fine = false;
        }
    }
    fine.then_some(brought)
}

fn listed(node: &mut Node<'_>, list: &Value, right: &Schema) -> Option<Vec<(Key, Kind)>> {
    let Value::Array(list) = list else {
        node.problem("columns", "not a list of keys");
        return None;
    };
    let mut brought: Vec<(Key, Kind)> = Vec::new();
    let mut fine = true;
    for (at, item) in list.iter().enumerate() {
        let place = format!("columns[{at}]");
        let entry = key_entry(node, &place, item);
        let kind = entry.and_then(|entry| node.readable(&place, entry));
        let (Some(entry), Some(kind)) = (entry, kind) else {
            fine = false;
            continue;
        };
        let wrong = if entry.key == Key::ID {
            Some("ids are those of the input; match by another column to use those of `with`".to_owned())
        } else if right.kind(entry.key).is_none() {
            Some(format!("the rows of `with` have no column `{}`", entry.name))
        } else if brought.iter().any(|(key, _)| *key == entry.key) {
            Some(format!("key `{}` is listed twice", entry.name))
        } else {
            None
        };
        match wrong {
            Some(what) => {
                node.problem(&place, what);
                fine = false;
            }
            None => brought.push((entry.key, kind)),
        }
    }
    fine.then_some(brought)
}

/// An inner or left join.
fn matching(node: &Node<'_>, with: usize, kind: Matching, on: On, brought: Vec<(Key, Kind)>) -> NodePlan {
    let (left, right) = (node.input(0), node.input(with));
    let mut schema = left.clone();
    brought.iter().for_each(|(key, kind)| schema.add(*key, *kind));
    let brought: KeySet = brought.into_iter().map(|(key, _)| key).collect();
    // Each row of the left makes at least one row of a left join.
    let needed = if kind == Matching::Left { RowsNeeded::AsAsked } else { RowsNeeded::All };
    let left_takes = Takes::passing([on.left]).rows(needed).withholding(brought.iter());
    let kept = right.iter().map(|(key, _)| key).filter(|key| !brought.has(*key));
    let right_takes = Takes::passing([on.right]).withholding(kept);
    let limit = node.registries().limits.max_fanout as usize;
    NodePlan::new(schema, takes(node, with, left_takes, right_takes), move |demand: &Demand, _| {
        let (from_right, from_left): (Vec<Key>, Vec<Key>) =
            demand.keys.iter().partition(|key| brought.has(*key));
        let most = demand.rows.map_or(usize::MAX, |rows| rows as usize);
        let nanos = NANOS + NANOS_COLUMN * demand.keys.iter().len() as f64;
        Form::compute(nanos, move |inputs, call, check| {
            let (left, right) = (input(inputs, 0), input(inputs, with));
            let allowed = usize::try_from(call.budget.rows_left()).unwrap_or(usize::MAX).min(limit);
            let pairs = Pairs::of(left, right, on, kind, most.min(allowed.saturating_add(1)), check)?;
            if pairs.left.len() > limit {
                let what = format!("it makes more than {limit} rows (`max_fanout`); dedupe `with` first");
                return Err(OpError::Value(what));
            }
            call.budget.take_rows(pairs.left.len() as u64, (from_left.len() + from_right.len()) as u64)?;
            Ok(pairs.rows(left, right, &from_left, &from_right))
        })
    })
}

/// A semi or anti join.
fn choosing(node: &Node<'_>, with: usize, kind: Matching, on: On) -> NodePlan {
    let takes = takes(node, with, Takes::passing([on.left]), Takes::reading([on.right]));
    let wanted = kind == Matching::Semi;
    NodePlan::new(node.input(0).clone(), takes, move |demand: &Demand, _| {
        let most = demand.rows.map_or(usize::MAX, |rows| rows as usize);
        Form::compute(NANOS, move |inputs, _, check| {
            let (left, right) = (input(inputs, 0), input(inputs, with));
            let mut interner = Interner::default();
            let right_numbers = Numbers::matching(right, on.right, &mut interner);
            let there: HashSet<u64> = right.iter().filter_map(|row| right_numbers.get(row)).collect();
            let left_numbers = Numbers::matching(left, on.left, &mut interner);
            let mut kept: Vec<u32> = Vec::new();
            for position in 0..left.len() {
                if kept.len() == most {
                    break;
                }
                if position % STRIDE == 0 && check.should_stop() {
                    return Err(OpError::Stopped);
                }
                let matches =
                    left_numbers.get(left.row(position)).is_some_and(|number| there.contains(&number));
                if matches == wanted {
                    kept.push(left.row(position) as u32);
                }
            }
            Ok(left.with_active(kept))
        })
    })
}

fn takes(node: &Node<'_>, with: usize, left: Takes, right: Takes) -> Vec<Takes> {
    let mut takes = vec![left; node.input_count()];
    takes[with] = right;
    takes
}

/// The pairs of rows of both batches that form the output rows.
struct Pairs {
    left: Vec<u32>,
    right: Vec<Option<u32>>,
}

impl Pairs {
    /// The first `most` pairs: the left's rows in their order, for each its matches in the right's order.
    fn of(
        left: &Rows,
        right: &Rows,
        on: On,
        kind: Matching,
        most: usize,
        check: &Check<'_>,
    ) -> Result<Pairs, OpError> {
        const NONE: u32 = u32::MAX;
        let mut interner = Interner::default();
        let numbers = Numbers::matching(right, on.right, &mut interner);
        let mut first: HashMap<u64, u32> = HashMap::with_capacity(right.len());
        let mut next: Vec<u32> = vec![NONE; right.len()];
        // Backwards, so that the first match is found first.
        for position in (0..right.len()).rev() {
            if position % STRIDE == 0 && check.should_stop() {
                return Err(OpError::Stopped);
            }
            if let Some(number) = numbers.get(right.row(position)) {
                next[position] = first.insert(number, position as u32).unwrap_or(NONE);
            }
        }
        let numbers = Numbers::matching(left, on.left, &mut interner);
        let mut pairs = Pairs { left: Vec::with_capacity(left.len()), right: Vec::with_capacity(left.len()) };
        let mut unasked = STRIDE;
        for position in 0..left.len() {
            if unasked >= STRIDE {
                unasked = 0;
                if check.should_stop() {
                    return Err(OpError::Stopped);
                }
            }
            let row = left.row(position);
            let found = numbers.get(row).and_then(|number| first.get(&number)).copied();
            if found.is_none() && kind == Matching::Left {
                pairs.push(row as u32, None);
            }
            let mut at = found.unwrap_or(NONE);
            while at != NONE && pairs.left.len() < most {
                pairs.push(row as u32, Some(right.row(at as usize) as u32));
                at = next[at as usize];
                unasked += 1;
            }
            unasked += 1;
            if pairs.left.len() >= most {
                break;
            }
        }
        Ok(pairs)
    }

    fn push(&mut self, left: u32, right: Option<u32>) {
        self.left.push(left);
        self.right.push(right);
    }

    /// The rows they make, with these columns of each side.
    fn rows(&self, left: &Rows, right: &Rows, from_left: &[Key], from_right: &[Key]) -> Rows {
        let ids: Vec<i64> = self.left.iter().map(|row| left.batch().ids()[*row as usize]).collect();
        let gather = |key: &Key, column: &Column| (*key, column.gather(&self.left));
        let own = from_left.iter().filter_map(|key| Some(gather(key, left.batch().column(*key)?)));
        let gather = |key: &Key, column: &Column| (*key, column.gather_or_null(self.right.iter().copied()));
        let brought = from_right.iter().filter_map(|key| Some(gather(key, right.batch().column(*key)?)));
        Rows::new(Batch::with_columns(ids, own.chain(brought).collect()))
    }
}
