//! The values that the rows of a batch have for one key.

use arrow_array::{Array, BooleanArray, Float64Array, Int32Array, Int64Array};
use arrow_buffer::NullBuffer;

use crate::dictionary::{Dictionary, Interner};
use crate::key::Kind;

/// One value or null per row of a batch. A clone shares the memory.
#[derive(Clone, Debug)]
pub enum Column {
    Int(Int64Array),
    Float(Float64Array),
    Bool(BooleanArray),
    Text(Text),
}

/// A dictionary-encoded column of strings: one code per row, and the dictionary that the codes index.
#[derive(Clone, Debug)]
pub struct Text {
    codes: Int32Array,
    dictionary: Dictionary,
}

impl Text {
    /// Every code of a row that is not null must be an index into `dictionary`. The codes of null rows are ignored.
    pub fn new(codes: Int32Array, dictionary: Dictionary) -> Text {
        debug_assert!(codes.iter().flatten().all(|code| (code as usize) < dictionary.len()));
        Text { codes, dictionary }
    }

    pub(crate) fn into_parts(self) -> (Int32Array, Dictionary) {
        (self.codes, self.dictionary)
    }

    /// The codes; null for rows without a value.
    pub fn codes(&self) -> &Int32Array {
        &self.codes
    }

    /// The strings that the codes index.
    pub fn dictionary(&self) -> &Dictionary {
        &self.dictionary
    }

    /// The string of `row`; `None` if it is null.
    pub fn get(&self, row: usize) -> Option<&str> {
        self.codes.is_valid(row).then(|| self.dictionary.get(self.codes.value(row)))
    }
}

impl Column {
    /// The type of its values.
    pub fn kind(&self) -> Kind {
        match self {
            Column::Int(_) => Kind::Int,
            Column::Float(_) => Kind::Float,
            Column::Bool(_) => Kind::Bool,
            Column::Text(_) => Kind::Text,
        }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.array().len()
    }

    /// True if the column has no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Which rows are null. A column without this buffer has no nulls.
    pub fn nulls(&self) -> Option<&NullBuffer> {
        self.array().nulls()
    }

    /// True if `row` is null.
    pub fn is_null(&self, row: usize) -> bool {
        self.nulls().is_some_and(|nulls| nulls.is_null(row))
    }

    /// The integers; `None` if the column is not of [`Kind::Int`].
    pub fn as_int(&self) -> Option<&Int64Array> {
        match self {
            Column::Int(array) => Some(array),
            _ => None,
        }
    }

    /// The floats; `None` if the column is not of [`Kind::Float`].
    pub fn as_float(&self) -> Option<&Float64Array> {
        match self {
            Column::Float(array) => Some(array),
            _ => None,
        }
    }

    /// The booleans; `None` if the column is not of [`Kind::Bool`].
    pub fn as_bool(&self) -> Option<&BooleanArray> {
        match self {
            Column::Bool(array) => Some(array),
            _ => None,
        }
    }

    /// The strings; `None` if the column is not of [`Kind::Text`].
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

    /// A column of booleans.
    pub fn bools(values: impl IntoIterator<Item = Option<bool>>) -> Column {
        Column::Bool(values.into_iter().collect())
    }

    /// A column of strings. Its dictionary lists each string once, in the order of first appearance.
    pub fn texts<S: AsRef<str>>(values: impl IntoIterator<Item = Option<S>>) -> Column {
        let mut interner = Interner::default();
        let code = |value: Option<S>| value.map(|value| interner.intern(value.as_ref()));
        let codes: Int32Array = values.into_iter().map(code).collect();
        Column::Text(Text::new(codes, interner.finish()))
    }
}
