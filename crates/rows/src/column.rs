//! The values of one key.

use arrow_array::{Array, BooleanArray, Float64Array, Int32Array, Int64Array};
use arrow_buffer::NullBuffer;

use crate::dictionary::{Dictionary, Interner};
use crate::key::Kind;

/// A value or null for each row of a batch. Cloning shares the memory.
#[derive(Clone, Debug)]
pub enum Column {
    /// Of kind [`Kind::Int`].
    Int(Int64Array),
    /// Of kind [`Kind::Float`].
    Float(Float64Array),
    /// Of kind [`Kind::Bool`].
    Bool(BooleanArray),
    /// Of kind [`Kind::Text`].
    Text(Text),
}

/// Strings as codes of a dictionary.
#[derive(Clone, Debug)]
pub struct Text {
    codes: Int32Array,
    dictionary: Dictionary,
}

impl Text {
    /// Codes (of rows that are not null) must be below the dictionary's length; the codes of null rows mean nothing.
    pub fn new(codes: Int32Array, dictionary: Dictionary) -> Text {
        debug_assert!(codes.iter().flatten().all(|code| (code as usize) < dictionary.len()));
        Text { codes, dictionary }
    }

    /// The codes, null where the row is.
    pub fn codes(&self) -> &Int32Array {
        &self.codes
    }

    /// What the codes mean.
    pub fn dictionary(&self) -> &Dictionary {
        &self.dictionary
    }

    /// The string of `row`, unless it is null.
    pub fn get(&self, row: usize) -> Option<&str> {
        self.codes.is_valid(row).then(|| self.dictionary.get(self.codes.value(row)))
    }
}

impl Column {
    /// What its values are.
    pub fn kind(&self) -> Kind {
        match self {
            Column::Int(_) => Kind::Int,
            Column::Float(_) => Kind::Float,
            Column::Bool(_) => Kind::Bool,
            Column::Text(_) => Kind::Text,
        }
    }

    /// How many rows it has.
    pub fn len(&self) -> usize {
        self.array().len()
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Which rows are null, if any may be.
    pub fn nulls(&self) -> Option<&NullBuffer> {
        self.array().nulls()
    }

    /// Whether `row` is null.
    pub fn is_null(&self, row: usize) -> bool {
        self.nulls().is_some_and(|nulls| nulls.is_null(row))
    }

    /// Its integers, if it is of that kind.
    pub fn as_int(&self) -> Option<&Int64Array> {
        match self {
            Column::Int(array) => Some(array),
            _ => None,
        }
    }

    /// Its floats, if it is of that kind.
    pub fn as_float(&self) -> Option<&Float64Array> {
        match self {
            Column::Float(array) => Some(array),
            _ => None,
        }
    }

    /// Its truth values, if it is of that kind.
    pub fn as_bool(&self) -> Option<&BooleanArray> {
        match self {
            Column::Bool(array) => Some(array),
            _ => None,
        }
    }

    /// Its strings, if it is of that kind.
    pub fn as_text(&self) -> Option<&Text> {
        match self {
            Column::Text(text) => Some(text),
            _ => None,
        }
    }

    fn array(&self) -> &dyn Array {
        match self {
            Column::Int(array) => array,
            Column::Float(array) => array,
            Column::Bool(array) => array,
            Column::Text(text) => &text.codes,
        }
    }

    /// A column of integers.
    pub fn ints(values: impl IntoIterator<Item = Option<i64>>) -> Column {
        Column::Int(values.into_iter().collect())
    }

    /// A column of floats.
    pub fn floats(values: impl IntoIterator<Item = Option<f64>>) -> Column {
        Column::Float(values.into_iter().collect())
    }

    /// A column of truth values.
    pub fn bools(values: impl IntoIterator<Item = Option<bool>>) -> Column {
        Column::Bool(values.into_iter().collect())
    }

    /// A column of strings, with a dictionary in the order they first appear.
    pub fn texts<S: AsRef<str>>(values: impl IntoIterator<Item = Option<S>>) -> Column {
        let mut interner = Interner::default();
        let code = |value: Option<S>| value.map(|value| interner.code(value.as_ref()));
        let codes: Int32Array = values.into_iter().map(code).collect();
        Column::Text(Text::new(codes, interner.finish()))
    }
}
