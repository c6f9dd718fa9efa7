//! Single values: constants, defaults, what a request sets.

use std::fmt;
use std::sync::Arc;

use anabranch_rows::Kind;

/// One value that is not null.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar {
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// True or false.
    Bool(bool),
    /// A string.
    Text(Arc<str>),
}

impl Scalar {
    /// What kind of value it is.
    pub fn kind(&self) -> Kind {
        match self {
            Scalar::Int(_) => Kind::Int,
            Scalar::Float(_) => Kind::Float,
            Scalar::Bool(_) => Kind::Bool,
            Scalar::Text(_) => Kind::Text,
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Int(value) => value.fmt(f),
            Scalar::Float(value) => value.fmt(f),
            Scalar::Bool(value) => value.fmt(f),
            Scalar::Text(value) => f.write_str(value),
        }
    }
}

/// The parameters of one request, by their place in the registry; `None` is null.
pub type Values = Box<[Option<Scalar>]>;
