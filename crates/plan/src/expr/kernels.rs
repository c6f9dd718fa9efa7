//! Loops over the rows of a chunk. Bits of masks beyond the rows mean nothing.

use anabranch_rows::{Kind, with_wide_vectors};
use arrow_buffer::BooleanBuffer;
use arrow_buffer::bit_chunk_iterator::BitChunks;

use super::ast::Compare;

/// An operand: one value for all rows, or one each.
#[derive(Clone, Copy)]
pub(super) enum View<'v, T> {
    All(T),
    Each(&'v [T]),
}

/// A function of each value.
#[inline(always)]
pub(super) fn map<A: Copy, B>(values: &[A], out: &mut [B], function: impl Fn(A) -> B) {
    for (out, value) in out.iter_mut().zip(values) {
        *out = function(*value);
    }
}

/// A function of two operands.
#[inline(always)]
pub(super) fn zip<T: Copy, R>(a: View<'_, T>, b: View<'_, T>, out: &mut [R], function: impl Fn(T, T) -> R) {
    match (a, b) {
        (View::Each(a), View::Each(b)) => {
            for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
                *out = function(*a, *b);
            }
        }
        (View::Each(a), View::All(b)) => map(a, out, |a| function(a, b)),
        (View::All(a), View::Each(b)) => map(b, out, |b| function(a, b)),
        (View::All(a), View::All(b)) => out.iter_mut().for_each(|out| *out = function(a, b)),
    }
}

/// One bit per row: set if its value passes.
#[inline(always)]
pub(super) fn test<T: Copy>(values: &[T], out: &mut [u64], passes: impl Fn(T) -> bool) {
    let (words, rest) = values.as_chunks::<WORD>();
    with_wide_vectors(
        #[inline(always)]
        || {
            for (word, values) in out.iter_mut().zip(words) {
                *word = bits(values.iter().map(|value| passes(*value)));
            }
        },
    );
    if let Some(last) = out.get_mut(words.len()) {
        *last = bits(rest.iter().map(|value| passes(*value)));
    }
}

/// One bit per row: set if its two values pass.
#[inline(always)]
pub(super) fn test_two<A: Copy, B: Copy>(a: &[A], b: &[B], out: &mut [u64], passes: impl Fn(A, B) -> bool) {
    let ((words_a, rest_a), (words_b, rest_b)) = (a.as_chunks::<WORD>(), b.as_chunks::<WORD>());
    with_wide_vectors(
        #[inline(always)]
        || {
            for ((word, a), b) in out.iter_mut().zip(words_a).zip(words_b) {
                *word = bits(a.iter().zip(b).map(|(a, b)| passes(*a, *b)));
            }
        },
    );
    if let Some(last) = out.get_mut(words_a.len()) {
        *last = bits(rest_a.iter().zip(rest_b).map(|(a, b)| passes(*a, *b)));
    }
}

/// Rows of a word.
const WORD: usize = 64;

/// Truth values as the bits of a word, the first one the lowest. Shifts by constants become vectors.
#[inline(always)]
fn bits(truth: impl Iterator<Item = bool>) -> u64 {
    let mut word = 0;
    for (bit, truth) in truth.enumerate() {
        word |= u64::from(truth) << bit;
    }
    word
}

/// Compares two operands of one kind.
pub(super) fn compare<T: Copy + PartialOrd>(op: Compare, a: View<'_, T>, b: View<'_, T>, out: &mut [u64]) {
    match (a, b) {
        (View::Each(a), View::All(b)) => match op {
            Compare::Eq => test(a, out, |a| a == b),
            Compare::Ne => test(a, out, |a| a != b),
            Compare::Lt => test(a, out, |a| a < b),
            Compare::Le => test(a, out, |a| a <= b),
            Compare::Gt => test(a, out, |a| a > b),
            Compare::Ge => test(a, out, |a| a >= b),
        },
        (View::All(_), View::Each(_)) => compare(op.swapped(), b, a, out),
        (View::Each(a), View::Each(b)) => match op {
            Compare::Eq => test_two(a, b, out, |a, b| a == b),
            Compare::Ne => test_two(a, b, out, |a, b| a != b),
            Compare::Lt => test_two(a, b, out, |a, b| a < b),
            Compare::Le => test_two(a, b, out, |a, b| a <= b),
            Compare::Gt => test_two(b, a, out, |b, a| b < a),
            Compare::Ge => test_two(b, a, out, |b, a| b <= a),
        },
        (View::All(_), View::All(_)) => unreachable!("what is known is not computed by rows"),
    }
}

/// The first where the mask's bit is set, else the second.
pub(super) fn blend<T: Copy>(mask: View<'_, u64>, a: View<'_, T>, b: View<'_, T>, out: &mut [T]) {
    match b {
        View::All(value) => out.fill(value),
        View::Each(values) => out.copy_from_slice(values),
    }
    overlay(mask, a, out);
}

/// Overwrites values where the mask's bit is set.
pub(super) fn overlay<T: Copy>(mask: View<'_, u64>, values: View<'_, T>, out: &mut [T]) {
    for (at, out) in out.chunks_mut(64).enumerate() {
        let word = match mask {
            View::All(word) => word,
            View::Each(words) => words[at],
        };
        let bit = |bit: usize| word >> bit & 1 == 1;
        match values {
            _ if word == 0 => {}
            View::Each(values) if word == u64::MAX => out.copy_from_slice(&values[at * 64..][..out.len()]),
            View::Each(values) => {
                for (row, (out, value)) in out.iter_mut().zip(&values[at * 64..]).enumerate() {
                    *out = if bit(row) { *value } else { *out };
                }
            }
            View::All(value) => {
                for (row, out) in out.iter_mut().enumerate() {
                    *out = if bit(row) { value } else { *out };
                }
            }
        }
    }
}

/// The values of these rows.
pub(super) fn gather<T: Copy>(values: &[T], rows: &[u32], out: &mut [T]) {
    map(rows, out, |row| values[row as usize]);
}

/// The bits of these rows.
pub(super) fn gather_bits(values: &BooleanBuffer, rows: &[u32], out: &mut [u64]) {
    test(rows, out, |row| values.value(row as usize));
}

/// The bits of `len` rows from `start`.
pub(super) fn copy_bits(values: &BooleanBuffer, start: usize, len: usize, out: &mut [u64]) {
    let bits = BitChunks::new(values.values(), values.offset() + start, len);
    let words = bits.iter().chain([bits.remainder_bits()]);
    out.iter_mut().zip(words).for_each(|(out, word)| *out = word);
}

/// Keeps the bits that are set in both.
pub(super) fn keep(out: &mut [u64], mask: &[u64]) {
    out.iter_mut().zip(mask).for_each(|(out, mask)| *out &= mask);
}

/// True if all of the first `len` bits are set.
pub(super) fn all_set(mask: &[u64], len: usize) -> bool {
    let tail = len % 64;
    let whole = &mask[..len / 64];
    let rest = if tail == 0 { 0 } else { !mask[len / 64] << (64 - tail) };
    whole.iter().all(|word| *word == u64::MAX) && rest == 0
}

/// True if any float is infinite or not a number; looked at without branches.
pub(super) fn any_not_finite(values: &[f64]) -> bool {
    with_wide_vectors(
        #[inline(always)]
        || values.iter().fold(0, |any, value| any | u64::from(!value.is_finite())) != 0,
    )
}

/// About how long these loops take per row, in nanoseconds.
pub(super) const PASS: f64 = 0.2;

/// About how long it takes to fetch a value of a row that is not the next one, in nanoseconds.
pub(super) fn fetch_cost(kind: Kind) -> f64 {
    match kind {
        Kind::Int | Kind::Float => 0.3,
        Kind::Bool => 0.8,
        Kind::Text => 0.5,
    }
}
