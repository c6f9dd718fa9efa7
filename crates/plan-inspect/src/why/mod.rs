//! Explains why a row is in an answer, or is not, as data and as text.
//!
//! The request runs as usual, but the rows of its nodes are recorded. Then the computing nodes run again for all their
//! rows instead of only the needed ones, to find the positions of the others; the reads are not repeated. In the rows
//! of all nodes, the row is followed from its start to its end.

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

/// The most paths that are listed. The others are counted.
const MOST_WAYS: usize = 8;
/// The most other rows that are named at one place.
const MOST_NAMED: usize = 8;

/// The explanation why a row is in an answer, or is not.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Why {
    /// The plan.
    pub plan: String,
    /// The row's id.
    pub row: i64,
    /// A summary of its outcome.
    pub verdict: Verdict,
    /// The paths that it took, the furthest first.
    pub ways: Vec<Way>,
    /// The number of further paths.
    pub more_ways: usize,
    /// The possible origins, if no node had it.
    pub looked: Vec<UnmatchedOrigin>,
    /// The nodes without rows for this request: an `if` took the other branch, they were dropped, or they are fallbacks
    /// that were not needed.
    pub idle: Vec<String>,
    /// The nodes whose rows were replaced by a fallback.
    pub degraded: Vec<LedgerEntry>,
}

/// The outcome of a row.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Verdict {
    /// In the answer.
    Answered {
        /// Its positions in the answer, counted from 1.
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

/// One path of a row, from the node that brought it to its end.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Way {
    /// Its origin.
    pub origin: Origin,
    /// The nodes that had it, in order.
    pub steps: Vec<Step>,
    /// Its end.
    pub end: End,
}

/// The origin of a row.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Origin {
    /// The node that brought it.
    pub node: String,
    /// The list that contained it, if any.
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
    /// The number of ids that were read of the list.
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
    pub wrote: Vec<WrittenValue>,
    /// The columns it sorted by, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sorted: Option<SortColumn>,
}

/// A value that a node wrote.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WrittenValue {
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
pub struct SortColumn {
    /// The column.
    pub by: String,
    /// `asc` or `desc`.
    pub order: String,
    /// The row's value.
    pub value: Value,
    /// The columns that decide between rows which are equal in the ones before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub then: Vec<SortColumn>,
}

/// For serde: a number that is left out.
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// The end of a path.
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
        /// The next row in the sort order.
        #[serde(skip_serializing_if = "Option::is_none")]
        before: Option<Beside>,
    },
    /// Dropped.
    Dropped {
        /// By this node.
        node: String,
        /// Its op.
        op: String,
        /// The reason.
        cause: Cause,
    },
    /// Not passed on: other rows were read through it, or no node took it.
    Used {
        /// The nodes that read it.
        by: Vec<String>,
    },
}

/// A neighbouring row in an order.
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

/// The reason why a node dropped a row.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Cause {
    /// A predicate does not hold.
    Predicate {
        /// The predicate.
        says: String,
        /// Its parts.
        leaves: Vec<Leaf>,
        /// The smallest change that would help, if any.
        #[serde(skip_serializing_if = "Option::is_none")]
        keeps: Option<Vec<Change>>,
    },
    /// Too many rows are before it.
    Limit {
        /// Its position after the skipped rows, counted from 1. A limit of this number would have kept it.
        place: usize,
        /// The number of rows that stay.
        limit: usize,
        /// The number of rows that are skipped.
        #[serde(skip_serializing_if = "is_zero")]
        offset: usize,
        /// The last row that stayed, in the sort order.
        #[serde(skip_serializing_if = "Option::is_none")]
        behind: Option<Beside>,
        /// The value that would have kept it, such as `> 0.5`, all else being equal.
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
    /// Too many rows with the same value are before it.
    Group {
        /// The column.
        column: String,
        /// The value.
        value: Value,
        /// Its place among the rows of this value; as a limit it would have kept it.
        place: usize,
        /// The number of rows per value that stay.
        limit: usize,
        /// The rows of this value that stayed, the first few.
        stayed: Vec<i64>,
    },
    /// Another row with the same value stays.
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
    /// No node needs rows at this position.
    Unasked {
        /// Its place, counted from 1.
        place: usize,
        /// The number of rows that are needed.
        first: usize,
        /// The node that limits the rows, if there is one.
        #[serde(skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// The node's rows were replaced by a fallback.
    Degraded {
        /// The reason.
        reason: String,
        /// The fallback.
        fallback: String,
    },
    /// The op has no rule.
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
    /// Whether it is one of those that decided.
    pub decides: bool,
    /// The columns and parameters that it reads.
    pub with: Vec<(String, Value)>,
    /// The distance to the bound, for numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub off_by: Option<f64>,
}

/// A required change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// A column, or an expression.
    pub what: String,
    /// Its value.
    pub from: Value,
    /// The condition for its value, such as `< 60`.
    pub needs: String,
    /// A value that satisfies it, if `what` is a column and one is known.
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
    /// The number of lists.
    pub count: usize,
    /// The most ids of each that were read.
    pub limit: usize,
    /// The most ids of each that the plan allows.
    pub allowed: usize,
    /// The number of lists that had this many ids, and may have more.
    pub full: usize,
    /// The row's position on a list whose rows were not needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unwanted: Option<OnList>,
}

/// Explains why a row is in the answer to a request, or is not.
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
