//! Expressions and predicates: parsed from plan JSON, checked against the columns of a node's input, compiled to column
//! kernels.
//!
//! [`Expr::parse`] reads JSON into a tree. [`Program::compile`] resolves its names, checks its kinds and turns it into a
//! list of nodes: equal ones only once, constants folded. An evaluation first simplifies the nodes for the request's
//! parameters (a node may be known, equal to another, or not needed), and then computes the rest by chunks of rows: each
//! node in one loop over memory of its kind, with nulls as bits beside it.
//!
//! Values are integers, floats, truth values and strings, each of which may be null.
//! - Arithmetic is done in floats. It is null if an operand is null or the result is undefined (`x / 0`, `log` of a number
//!   that is not above 0, `pow` that is not a real number). Only constants, columns, parameters, `length`, `hash`, and
//!   `coalesce` and `if` of integers are integers.
//! - Comparisons and `in` are exact, also between integers and floats. They are false for null, and `not` turns that
//!   into true. Only a null that is written out asks for null: `x == null`, `x != null`.
//! - Strings compare by their bytes. Functions and tests of strings run once per dictionary entry.
//! - A request's pattern is compiled if there are rows, unless parameters alone decide around it, as in
//!   `is_null($pattern) or regex(title, $pattern)`.

mod ast;
mod parse;
mod display;
mod scalar;
mod set;
mod hash;
mod re2;
mod pattern;
mod graph;
mod fold;
mod check;
mod code;
mod kernels;
mod text;
mod frame;
mod views;
mod step;
mod truth;
mod select;
mod output;
mod program;

use crate::registry::{Keys, Params};
use crate::schema::Schema;

pub use ast::{Binary, Compare, Expr, Name, Pattern, Pred, Unary};
pub(crate) use parse::DEEPEST;
pub use parse::op_names;
pub use pattern::PatternError;
pub use program::{Filter, Program};
pub use scalar::compare;
pub(crate) use set::Set;

/// The names that an expression may refer to.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    /// The registered keys.
    pub keys: &'a Keys,
    /// The registered parameters.
    pub params: &'a Params,
    /// The columns that the rows have here.
    pub schema: &'a Schema,
}

/// A reason why an expression has no value.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// The result at this row (of the batch) is not a finite number.
    #[error("the expression is not a finite number at row {row} (id {id})")]
    NotFinite {
        /// The row.
        row: usize,
        /// Its id.
        id: i64,
    },
    /// A pattern that the request sets is null.
    #[error("the regex pattern, parameter `{param}`, is null or missing; set it in param_overrides")]
    NoPattern {
        /// The parameter.
        param: String,
    },
    /// A pattern that the request sets is not a regex, or beyond a bound.
    #[error("parameter `{param}` is not a regex that can be used: {cause}")]
    BadPattern {
        /// The parameter.
        param: String,
        /// The reason.
        cause: PatternError,
    },
    /// The request that it was computed for has ended.
    #[error("stopped")]
    Stopped,
}
