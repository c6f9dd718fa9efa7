//! The declared type of a column.

/// The declared type of a column: the same in every file of a dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnType {
    Bool,
    Int,
    Float,
    Text,
    /// A value of any shape, stored as JSON text.
    Json,
    List(Box<ColumnType>),
    /// A map with these fields, in order. Any of them may be null.
    Struct(Vec<(String, ColumnType)>),
}
