//! The interface of an op: its parameters as data, a check at load, and a form to run.
//!
//! An op is one file here and one line in [`Ops::builtin`]. Users of the library add theirs with [`Ops::add`]; nothing
//! is reserved for the built-in ones.

mod files;
mod spec;
mod node;
mod form;
mod contract;
mod rule;
mod takes;
mod node_plan;
mod table;

pub(crate) use crate::source::Sources;

pub use contract::Contract;
pub use files::NamedFile;
pub(crate) use files::{Files, FilesFrom};
pub use form::{Compute, Form, Inputs, StartedWork, Wait, WaitFuture};
pub use node::Node;
pub use node_plan::{Build, Choice, Condition, NodePlan, When};
pub use rule::{Join, Keep, Matching, Repeats, Rule, Window};
pub use spec::{Arg, Effect, Mark, ParamKind, ParamSpec, Spec};
pub use table::Ops;
pub use takes::{Demand, RowsNeeded, Takes};

/// A kind of node.
pub trait Op: Send + Sync + 'static {
    /// Its name, parameters and promises.
    fn spec(&self) -> &Spec;

    /// Checks one node of this kind and describes its output. All problems are reported on `node`. Returns `None` if
    /// the output cannot be described.
    fn plan(&self, node: &mut Node<'_>) -> Option<NodePlan>;
}
