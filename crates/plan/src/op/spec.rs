//! An op's name, parameters and promises, as data.

use anabranch_rows::{Key, Order};

use super::Contract;
use crate::registry::EndpointKind;
use crate::value::Scalar;

/// The description of an op, independent of any plan.
#[derive(Debug)]
pub struct Spec {
    /// Its name in plans: `namespace::name`.
    pub name: &'static str,
    /// Its effect, in one sentence.
    pub doc: &'static str,
    /// The number of `inputs`; node parameters are counted separately.
    pub inputs: usize,
    /// Its parameters, except for `trace`, which every op has.
    pub params: &'static [ParamSpec],
    /// The columns that it writes.
    pub writes: Effect,
    /// The relation of its output to its input, checked in debug builds.
    pub contract: Contract,
    /// The thread it runs on.
    pub mark: Mark,
    /// Whether equal nodes must all run, for ops whose purpose is the time that they take.
    pub distinct: bool,
}

/// A parameter of an op.
#[derive(Debug)]
pub struct ParamSpec {
    /// Its name.
    pub name: &'static str,
    /// The values it accepts.
    pub kind: ParamKind,
    /// True if every node must set it.
    pub required: bool,
    /// Its meaning, in a few words.
    pub doc: &'static str,
}

impl ParamSpec {
    /// One that every node gives.
    pub const fn required(name: &'static str, kind: ParamKind, doc: &'static str) -> ParamSpec {
        ParamSpec { name, kind, required: true, doc }
    }

    /// One that a node may leave out.
    pub const fn optional(name: &'static str, kind: ParamKind, doc: &'static str) -> ParamSpec {
        ParamSpec { name, kind, required: false, doc }
    }
}

/// The values that a parameter accepts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParamKind {
    /// A whole number from the first to the second.
    Int(i64, i64),
    /// A finite number.
    Float,
    /// True or false.
    Bool,
    /// A string.
    Text,
    /// One of these strings.
    Choice(&'static [&'static str]),
    /// The name or number of a registered key.
    Key,
    /// A key to sort by, or a list of keys, each with its order if it has one of its own.
    SortKeys,
    /// The id of a node, as an additional input.
    Node,
    /// Ids of nodes, as additional inputs.
    Nodes,
    /// The id or name of an endpoint, of this kind if one is given.
    Endpoint(Option<EndpointKind>),
    /// The id of an entry of `expr_table`.
    Expr,
    /// The id of an entry of `pred_table`.
    Pred,
    /// Anything; the op reads it itself.
    Json,
}

/// A parameter's value in a node, checked against its [`ParamSpec`].
#[derive(Clone, Debug, PartialEq)]
pub enum Arg {
    /// For [`ParamKind::Int`], `Float`, `Bool`, `Text`, `Choice`.
    Value(Scalar),
    /// For [`ParamKind::Key`]: a registered key.
    Key(Key),
    /// For [`ParamKind::SortKeys`]: registered keys, each with its own order if it has one.
    SortKeys(Vec<(Key, Option<Order>)>),
    /// For [`ParamKind::Node`] and `Nodes`: their indexes among the node's inputs.
    Nodes(Vec<usize>),
    /// For [`ParamKind::Endpoint`]: its index among the endpoints.
    Endpoint(usize),
    /// For [`ParamKind::Expr`] and `Pred`: the id in the table.
    Table(String),
    /// For [`ParamKind::Json`].
    Json(serde_json::Value),
}

/// The columns that an op writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Effect {
    /// These keys.
    Keys(&'static [u32]),
    /// The key of this name.
    Named(&'static str),
    /// The key that this parameter names.
    FromParam(&'static str),
    /// Depends on the word in a parameter.
    Switch(&'static str, &'static [(&'static str, Effect)]),
    /// All that these write.
    Union(&'static [Effect]),
    /// Depends on a parameter in ways that only the node knows.
    Unknown,
}

/// The choice of thread for an op.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mark {
    /// Chosen by its estimated cost.
    #[default]
    Auto,
    /// Always in place: trivial.
    Inline,
    /// Always on the pool: may turn out expensive.
    Expensive,
}
