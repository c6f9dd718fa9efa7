//! Names of columns.

use std::fmt;

/// The registered number of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub u32);

impl Key {
    /// The column that every row has: the 64-bit id of what the row stands for.
    pub const ID: Key = Key(1);
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a column's values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// 64-bit integers.
    Int,
    /// 64-bit floats.
    Float,
    /// True or false.
    Bool,
    /// Strings, kept as codes of a dictionary.
    Text,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Int => "int",
            Kind::Float => "float",
            Kind::Bool => "bool",
            Kind::Text => "string",
        })
    }
}
