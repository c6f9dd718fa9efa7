//! Columns from chunks.

use std::sync::Arc;

use anabranch_rows::Kind;
use anabranch_rows::{Column, Dictionary, Rows, Text};
use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{BooleanArray, PrimitiveArray};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, NullBuffer};

use super::Error;
use super::frame::{Frame, Valid, Window};
use super::graph::At;
use super::kernels::{self, View};
use super::scalar;
use crate::value::Scalar;

/// The values of all rows of a batch, collected chunk by chunk.
pub(super) struct Values<'a, T> {
    rows: &'a Rows,
    list: Option<&'a [u32]>,
    values: Vec<T>,
    /// The number of active rows so far.
    done: usize,
}

impl<'a, T: ArrowNativeType> Values<'a, T> {
    pub(super) fn new(rows: &'a Rows) -> Values<'a, T> {
        let list = list(rows);
        let count = rows.batch().len();
        let values = if list.is_some() { vec![T::default(); count] } else { Vec::with_capacity(count) };
        Values { rows, list, values, done: 0 }
    }

    /// The next chunk.
    pub(super) fn add<A: Copy>(&mut self, chunk: View<'_, A>, convert: impl Fn(A) -> T) {
        let View::Each(chunk) = chunk else { unreachable!("what is known is not computed by rows") };
        match self.list {
            None => self.values.extend(chunk.iter().map(|value| convert(*value))),
            Some(list) => {
                for (row, value) in list[self.done..].iter().zip(chunk) {
                    self.values[*row as usize] = convert(*value);
                }
            }
        }
        self.done += chunk.len();
    }

    pub(super) fn finish<P: ArrowPrimitiveType<Native = T>>(mut self, nulls: Nulls<'_>) -> PrimitiveArray<P> {
        self.values.resize(self.rows.batch().len(), T::default());
        PrimitiveArray::new(self.values.into(), nulls.finish())
    }
}

/// The truth values of all rows of a batch, collected chunk by chunk.
pub(super) struct Bits {
    words: Vec<u64>,
    len: usize,
}

impl Bits {
    pub(super) fn new(rows: &Rows) -> Bits {
        let len = rows.batch().len();
        Bits { words: vec![0; len.div_ceil(64)], len }
    }

    /// The chunk at the window, of the rows of `list` or of the first ones.
    pub(super) fn add(&mut self, list: Option<&[u32]>, window: Window, chunk: View<'_, u64>) {
        let Window { start, len, .. } = window;
        let word = |at: usize| match chunk {
            View::All(word) => word,
            View::Each(words) => words[at],
        };
        match list {
            // Chunks start at whole words.
            None => {
                let words = &mut self.words[start / 64..][..len.div_ceil(64)];
                words.iter_mut().enumerate().for_each(|(at, out)| *out = word(at));
                if !len.is_multiple_of(64) {
                    words[len / 64] &= (1 << (len % 64)) - 1;
                }
            }
            Some(list) => {
                for (at, row) in list[start..start + len].iter().enumerate() {
                    let row = *row as usize;
                    self.words[row / 64] |= (word(at / 64) >> (at % 64) & 1) << (row % 64);
                }
            }
        }
    }

    fn buffer(self) -> BooleanBuffer {
        BooleanBuffer::new(Buffer::from_vec(self.words), 0, self.len)
    }

    pub(super) fn finish(self, nulls: Nulls<'_>) -> BooleanArray {
        BooleanArray::new(self.buffer(), nulls.finish())
    }
}

/// The validity of rows. It is stored only once a row has no value.
pub(super) struct Nulls<'a> {
    rows: &'a Rows,
    bits: Option<Bits>,
    /// The number of active rows with values before the first one without.
    valid: usize,
}

impl<'a> Nulls<'a> {
    pub(super) fn new(rows: &'a Rows) -> Nulls<'a> {
        Nulls { rows, bits: None, valid: 0 }
    }

    /// The chunk of `root`.
    pub(super) fn add(&mut self, frame: &Frame<'_>, root: At) {
        let views = frame.views();
        let valid = views.valid(root);
        if self.bits.is_none() {
            if valid == Valid::All {
                self.valid += frame.window.len;
                return;
            }
            self.bits = Some(self.valid_so_far());
        }
        let bits = self.bits.as_mut().expect("just made");
        bits.add(frame.list, frame.window, views.valid_words(valid));
    }

    fn valid_so_far(&self) -> Bits {
        let mut bits = Bits::new(self.rows);
        let window = Window { start: 0, len: self.valid, ..Window::default() };
        bits.add(list(self.rows), window, View::All(u64::MAX));
        bits
    }

    fn finish(mut self) -> Option<NullBuffer> {
        if self.bits.is_none() && self.valid < self.rows.batch().len() {
            self.bits = Some(self.valid_so_far());
        }
        let nulls = NullBuffer::new(self.bits?.buffer());
        (nulls.null_count() > 0).then_some(nulls)
    }
}

/// True if all floats of the chunk that are not null are finite.
pub(super) fn finite(frame: &Frame<'_>, root: At) -> Result<(), Error> {
    let views = frame.views();
    let View::Each(values) = views.floats(root) else {
        unreachable!("what is known is not computed by rows")
    };
    if !kernels::any_not_finite(values) {
        return Ok(());
    }
    let valid = views.valid_words(views.valid(root));
    let is_valid = |at: usize| match valid {
        View::All(word) => word != 0,
        View::Each(words) => words[at / 64] >> (at % 64) & 1 == 1,
    };
    match values.iter().enumerate().find(|(at, value)| is_valid(*at) && !value.is_finite()) {
        None => Ok(()),
        Some((at, _)) => {
            let row = frame.rows.row(frame.window.start + at);
            Err(Error::NotFinite { row, id: frame.rows.batch().ids()[row] })
        }
    }
}

/// A column with the same value, or null, in all active rows.
pub(super) fn same(rows: &Rows, value: Option<&Scalar>, kind: Kind) -> Column {
    let count = rows.batch().len();
    let mut nulls = Nulls::new(rows);
    nulls.valid = if value.is_some() { rows.len() } else { 0 };
    let nulls = nulls.finish();
    match kind {
        Kind::Float => {
            let value = value.map_or(0.0, scalar::float);
            Column::Float(PrimitiveArray::new(vec![value; count].into(), nulls))
        }
        Kind::Int => {
            let value = match value {
                Some(Scalar::Int(int)) => *int,
                _ => 0,
            };
            Column::Int(PrimitiveArray::new(vec![value; count].into(), nulls))
        }
        Kind::Bool => {
            let truth = matches!(value, Some(Scalar::Bool(true)));
            let values = if truth { BooleanBuffer::new_set(count) } else { BooleanBuffer::new_unset(count) };
            Column::Bool(BooleanArray::new(values, nulls))
        }
        Kind::Text => {
            let entry = match value {
                Some(Scalar::Text(text)) => Some(Arc::clone(text)),
                _ => None,
            };
            let codes = PrimitiveArray::new(vec![0; count].into(), nulls);
            Column::Text(Text::new(codes, Dictionary::new(entry)))
        }
    }
}

fn list(rows: &Rows) -> Option<&[u32]> {
    match rows.selection() {
        anabranch_rows::Selection::First(_) => None,
        anabranch_rows::Selection::List(list) => Some(list),
    }
}
