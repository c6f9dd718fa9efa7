//! Text from a store, read strictly as values of a kind.

use std::borrow::Cow;

use anabranch_rows::{Column, Interner, Kind, Text};
use arrow_array::{BooleanArray, Float64Array, Int32Array, Int64Array};
use arrow_buffer::{BooleanBuffer, NullBuffer};

/// Builds a column of one kind, a row at a time.
pub(super) struct Values {
    slots: Slots,
    /// The rows that are not null; empty while no row is null.
    valid: Vec<bool>,
    len: usize,
}

enum Slots {
    Int(Vec<i64>),
    Float(Vec<f64>),
    Bool(Vec<bool>),
    Text(Vec<i32>, Interner),
}

impl Values {
    /// For about `capacity` rows.
    pub(super) fn new(kind: Kind, capacity: usize) -> Values {
        let slots = match kind {
            Kind::Int => Slots::Int(Vec::with_capacity(capacity)),
            Kind::Float => Slots::Float(Vec::with_capacity(capacity)),
            Kind::Bool => Slots::Bool(Vec::with_capacity(capacity)),
            Kind::Text => Slots::Text(Vec::with_capacity(capacity), Interner::default()),
        };
        Values { slots, valid: Vec::new(), len: 0 }
    }

    /// Adds a row without a value.
    pub(super) fn push_null(&mut self) {
        match &mut self.slots {
            Slots::Int(values) => values.push(0),
            Slots::Float(values) => values.push(0.0),
            Slots::Bool(values) => values.push(false),
            Slots::Text(codes, _) => codes.push(0),
        }
        self.valid.resize(self.len, true);
        self.valid.push(false);
        self.len += 1;
    }

    /// Adds a row. Returns `false`, and adds nothing, if `text` is not a value of the kind.
    #[must_use]
    pub(super) fn push(&mut self, text: &str) -> bool {
        self.push_bytes(text.as_bytes())
    }

    /// The same for bytes, which must be UTF-8.
    #[must_use]
    pub(super) fn push_bytes(&mut self, text: &[u8]) -> bool {
        let pushed = match &mut self.slots {
            Slots::Int(values) => int_of(text).map(|value| values.push(value)),
            Slots::Float(values) => float_of(text).map(|value| values.push(value)),
            Slots::Bool(values) => bool(text).map(|value| values.push(value)),
            Slots::Text(codes, interner) => {
                str::from_utf8(text).ok().map(|text| codes.push(interner.intern(text)))
            }
        };
        self.len += usize::from(pushed.is_some());
        pushed.is_some()
    }

    /// The column.
    pub(super) fn finish(mut self) -> Column {
        let nulls = (!self.valid.is_empty()).then(|| {
            self.valid.resize(self.len, true);
            NullBuffer::from(self.valid)
        });
        match self.slots {
            Slots::Int(values) => Column::Int(Int64Array::new(values.into(), nulls)),
            Slots::Float(values) => Column::Float(Float64Array::new(values.into(), nulls)),
            Slots::Bool(values) => Column::Bool(BooleanArray::new(BooleanBuffer::from(values), nulls)),
            Slots::Text(codes, interner) => {
                Column::Text(Text::new(Int32Array::new(codes.into(), nulls), interner.finish()))
            }
        }
    }
}

/// A whole number in decimal, all of the text.
pub(super) fn int(text: &str) -> Option<i64> {
    int_of(text.as_bytes())
}

/// The same for bytes.
pub(super) fn int_of(text: &[u8]) -> Option<i64> {
    match text {
        [b'-', digits @ ..] if digits.len() < 19 => plain_digits(digits).map(|value| -value),
        [b'+', ..] => None,
        _ if text.len() < 19 => plain_digits(text),
        _ => str::from_utf8(text).ok()?.parse().ok(),
    }
}

/// The number that 1 to 18 digits make.
#[inline]
pub(super) fn plain_digits(digits: &[u8]) -> Option<i64> {
    let mut value: i64 = 0;
    let mut others = 0;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        others |= u8::from(digit > 9);
        value = i64::wrapping_add(value.wrapping_mul(10), i64::from(digit));
    }
    (others == 0 && !digits.is_empty()).then_some(value)
}

/// A finite number, all of the text.
pub(super) fn float(text: &str) -> Option<f64> {
    float_of(text.as_bytes())
}

/// The same for bytes.
pub(super) fn float_of(text: &[u8]) -> Option<f64> {
    let value: f64 = str::from_utf8(text).ok()?.parse().ok()?;
    value.is_finite().then_some(value)
}

fn bool(text: &[u8]) -> Option<bool> {
    match text {
        b"true" | b"1" => Some(true),
        b"false" | b"0" => Some(false),
        _ => None,
    }
}

/// The form of the items of lists, for messages.
pub(super) const AN_ID: &str = "an id (a 64-bit integer)";

/// The form of a value of `kind`, for messages.
pub(super) fn expected(kind: Kind) -> &'static str {
    match kind {
        Kind::Int => "a 64-bit integer",
        Kind::Float => "a finite number",
        Kind::Bool => "true, false, 1 or 0",
        Kind::Text => "UTF-8 text",
    }
}

/// A JSON value, in the form of stores.
pub(super) enum Json<'a> {
    Null,
    /// The characters of a string, or the text of a number or a truth value.
    Text(Cow<'a, str>),
    /// A list or an object.
    Nested,
}

/// Reads one JSON value as a store keeps it: numbers stay digit for digit as they are written.
pub(super) fn json(raw: &str) -> Json<'_> {
    match raw.as_bytes().first() {
        Some(b'"') => {
            let plain = &raw[1..raw.len() - 1];
            if plain.contains('\\') {
                Json::Text(Cow::Owned(serde_json::from_str(raw).expect("it was read as JSON before")))
            } else {
                Json::Text(Cow::Borrowed(plain))
            }
        }
        Some(b'n') => Json::Null,
        Some(b'[' | b'{') | None => Json::Nested,
        Some(_) => Json::Text(Cow::Borrowed(raw)),
    }
}

/// A text of a store for a message, shortened where it is long.
pub(super) fn quoted(text: &str) -> String {
    const SHOWN: usize = 60;
    match text.char_indices().nth(SHOWN) {
        Some((cut, _)) => format!("{:?}...", &text[..cut]),
        None => format!("{text:?}"),
    }
}
