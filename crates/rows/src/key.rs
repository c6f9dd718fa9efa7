//! Keys and kinds: the name and the type of a column.

use std::fmt;

/// The number under which a column is registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub u32);

impl Key {
    /// The key of the ids. Every row has one: the 64-bit id of the item that the row describes.
    pub const ID: Key = Key(1);
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// 64-bit signed integers.
    Int,
    /// 64-bit floats.
    Float,
    Bool,
    /// Dictionary-encoded strings, see [`Text`](crate::Text).
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
