//! Why a row is in an answer, or is not: as data, and as text.
//!
//! The request runs as ever, but for one thing: what its nodes make is kept. Then the nodes that compute are asked
//! again, for all their rows instead of as many as somebody wants, so that one sees where the others stood; what was
//! read stays what it was. In what all nodes have made then, the row is followed from where it comes up to where it
//! ends.

mod node_records;
mod table;
mod origins;
mod ends;
mod values;
mod story;
mod cause;
mod judge;
mod change;
mod unmatched_origin;
mod text;

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use anabranch_plan::Answer;
use anabranch_plan::Error;
use anabranch_plan::LedgerEntry;
use anabranch_plan::Request;
use anabranch_plan::inspect::{Inspection, Observer};
use anabranch_plan::{Plan, RunOptions};

pub(crate) use node_records::NodeRecords;

/// The most ways that are told; the others are counted.
const MOST_WAYS: usize = 8;
/// The most other rows that are named at one place.
const MOST_NAMED: usize = 8;

/// Why a row is in an answer, or is not.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Why {
    /// The plan.
    pub plan: String,
    /// The row's id.
    pub row: i64,
    /// Its fate, in short.
    pub verdict: Verdict,
    /// The ways that it went, the furthest first.
    pub ways: Vec<Way>,
    /// How many more ways it went.
    pub more_ways: usize,
    /// Where it could have come from, if no node had it.
    pub looked: Vec<UnmatchedOrigin>,
    /// Nodes without rows for this request: an `if` went the other way, they were given up, or are fallbacks that
    /// were not needed.
    pub idle: Vec<String>,
    /// Nodes whose rows are not their own.
    pub degraded: Vec<LedgerEntry>,
}

/// The fate of a row.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Verdict {
    /// In the answer.
    Answered {
        /// At these places of all that is answered, counted from 1.
        places: Vec<usize>,
    },
    /// Dropped.
    Dropped {
        /// By this node: the one of the way that got furthest.
        node: String,
    },
    /// Never meant for the answer: other rows were read through it.
    Used {
        /// By these nodes.
        by: Vec<String>,
    },
    /// Not brought by any node.
    Absent,
}

/// One way of a row, from the node that brought it to its end.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Way {
    /// Where it came from.
    pub origin: Origin,
    /// The nodes that had it, from the one that brought it on.
    pub steps: Vec<Step>,
    /// Where it ended.
    pub end: End,
}

/// Where a row came from.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Origin {
    /// The node that brought it.
    pub node: String,
    /// The list that it was on, if it was on one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list: Option<OnList>,
}

/// A place on a list.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OnList {
    /// The key of the list.
    pub key: String,
    /// The row whose list it is.
    pub of_row: i64,
    /// The node that has that row.
    pub of_node: String,
    /// The place, counted from 1.
    pub place: usize,
    /// How many were read of the list.
    pub read: usize,
}

/// The effect of a node on a row.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// The node.
    pub node: String,
    /// Its op.
    pub op: String,
    /// The row's place among its rows, counted from 1.
    pub place: usize,
    /// The number of rows it had.
    pub of: usize,
    /// The values it wrote.
    pub wrote: Vec<Wrote>,
    /// The columns it sorted by, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sorted: Option<Sorted>,
}

/// A value that a node wrote.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Wrote {
    /// The column.
    pub column: String,
    /// The value.
    pub value: Value,
    /// The previous value, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was: Option<Value>,
    /// The expression, if it was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub says: Option<String>,
    /// The columns and parameters that the expression reads.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<(String, Value)>,
}

/// The columns that a node sorted by.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sorted {
    /// The column.
    pub by: String,
    /// `asc` or `desc`.
    pub order: String,
    /// The row's value.
    pub value: Value,
    /// The columns that decide between rows which are equal in the ones before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub then: Vec<Sorted>,
}

/// For serde: a number that is left out.
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// Where a way ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum End {
    /// In the answer.
    Answered {
        /// The output, a node.
        node: String,
        /// The place among its rows, counted from 1.
        place: usize,
        /// The number of rows it has.
        of: usize,
        /// The row after it, by what they are sorted by.
        #[serde(skip_serializing_if = "Option::is_none")]
        before: Option<Beside>,
    },
    /// Dropped.
    Dropped {
        /// By this node.
        node: String,
        /// Its op.
        op: String,
        /// Why.
        cause: Cause,
    },
    /// Not passed on: other rows were read through it, or nobody took it.
    Used {
        /// The nodes that read it.
        by: Vec<String>,
    },
}

/// Another row, beside this one in an order.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Beside {
    /// Its id.
    pub row: i64,
    /// The columns that both are sorted by.
    pub by: String,
    /// `asc` or `desc`.
    pub order: String,
    /// This row's value.
    pub own: Value,
    /// The other's value.
    pub other: Value,
}

/// Why a node dropped a row.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Cause {
    /// A predicate does not hold.
    Predicate {
        /// The predicate.
        says: String,
        /// Its parts.
        leaves: Vec<Leaf>,
        /// The least that would have to be otherwise, if something would help.
        #[serde(skip_serializing_if = "Option::is_none")]
        keeps: Option<Vec<Change>>,
    },
    /// Too many came before it.
    Limit {
        /// Its place behind the rows that are skipped, counted from 1; as a limit it would have kept it.
        place: usize,
        /// How many stay.
        limit: usize,
        /// The number of rows that are skipped.
        #[serde(skip_serializing_if = "is_zero")]
        offset: usize,
        /// The last row that stayed, by what they are sorted by.
        #[serde(skip_serializing_if = "Option::is_none")]
        behind: Option<Beside>,
        /// Which value would have kept it, as in `> 0.5`, all else being equal.
        #[serde(skip_serializing_if = "Option::is_none")]
        needs: Option<Change>,
    },
    /// It is one of the first rows, which are skipped.
    Skipped {
        /// Its place, counted from 1.
        place: usize,
        /// The number of rows that are skipped.
        offset: usize,
    },
    /// Too many of the same value came before it.
    Group {
        /// The column.
        column: String,
        /// The value.
        value: Value,
        /// Its place among the rows of this value; as a limit it would have kept it.
        place: usize,
        /// How many of a value stay.
        limit: usize,
        /// The rows of this value that stayed, the first few.
        stayed: Vec<i64>,
    },
    /// Another row of the same value stays.
    Repeat {
        /// The column.
        column: String,
        /// The value.
        value: Value,
        /// The row that stays.
        stayed: i64,
        /// The node that it comes from.
        from: String,
        /// Its place there, counted from 1.
        place: usize,
    },
    /// It has no match.
    Unmatched {
        /// The column to match by.
        column: String,
        /// Its value.
        value: Value,
        /// The node that was looked at.
        with: String,
        /// The column there.
        with_column: String,
    },
    /// It has a match, and those without one stay.
    Matched {
        /// The column to match by.
        column: String,
        /// Its value.
        value: Value,
        /// The node that was looked at.
        with: String,
        /// The column there.
        with_column: String,
        /// The rows that match, the first few.
        rows: Vec<i64>,
    },
    /// An `if` went the other way.
    OtherSide {
        /// The node whose rows it gave.
        taken: String,
    },
    /// Nobody wants rows this far behind.
    Unasked {
        /// Its place, counted from 1.
        place: usize,
        /// How many are wanted.
        first: usize,
        /// The node that wants no more, if one is to blame.
        #[serde(skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// The node's rows are not its own.
    Degraded {
        /// Why.
        reason: String,
        /// The text that stands for them.
        fallback: String,
    },
    /// The op does not say.
    Unknown,
}

/// A part of a predicate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Leaf {
    /// The part.
    pub says: String,
    /// True if it held.
    pub holds: bool,
    /// True if it should have.
    pub wanted: bool,
    /// True if it is one of those that decided.
    pub decides: bool,
    /// The columns and parameters that it reads.
    pub with: Vec<(String, Value)>,
    /// How far off it is, for numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub off_by: Option<f64>,
}

/// Something that would have to be otherwise.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// A column, or an expression.
    pub what: String,
    /// Its value.
    pub from: Value,
    /// The value it should have, as in `< 60`.
    pub needs: String,
    /// A value that is, if `what` is a column and one can be given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Value>,
    /// The request parameter that could be otherwise instead, as in `$max_price >= 152.69`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub param: Option<String>,
}

/// A node that adds rows to the plan, and did not add this one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UnmatchedOrigin {
    /// The node.
    pub node: String,
    /// Its op.
    pub op: String,
    /// The number of rows that it added.
    pub rows: usize,
    /// The lists that it read, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lists: Option<ReadLists>,
    /// If only its first rows are wanted: how many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<usize>,
    /// The node that wants no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wanted_by: Option<String>,
}

/// Lists that were read.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReadLists {
    /// The pattern of their keys.
    pub keys: String,
    /// How many.
    pub count: usize,
    /// The most ids of each that were read.
    pub limit: usize,
    /// The most ids of each that the plan allows.
    pub allowed: usize,
    /// How many had that many: there may be more on them.
    pub full: usize,
    /// The row's place on a list whose rows nobody wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unwanted: Option<OnList>,
}

/// Says why a row is in the answer to a request, or is not.
pub async fn why(plan: &Plan, request: Request, options: &RunOptions, row: i64) -> Result<Why, Error> {
    let seen = NodeRecords::new(plan.compiled().nodes.len());
    let asked = request.clone();
    let observer: Arc<dyn Observer> = Arc::clone(&seen) as _;
    let inspection = Inspection { observer: Some(observer), ..Inspection::default() };
    let answer = plan.run_inspected(request, options, inspection).await.answer?;
    of(plan, asked, &answer, &seen, row)
}

/// The same for a request that was answered while its nodes were observed.
pub(crate) fn of(
    plan: &Plan,
    asked: Request,
    answer: &Answer,
    seen: &NodeRecords,
    row: i64,
) -> Result<Why, Error> {
    let table = table::Table::new(plan, asked, answer, seen)?;
    Ok(story::tell(&table, answer, row))
}

impl Why {
    /// For people, on 100 columns.
    pub fn text(&self) -> String {
        text::write(self)
    }

    /// For programs.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("names and numbers are JSON")
    }
}
