//! Access while a node's chunk is computed: the chunks of the nodes before it, and memory for its own masks.

use anabranch_rows::Dictionary;

use super::code::Code;
use super::frame::{Buffer, Leaf, State, Texts, Valid, Window, find};
use super::graph::At;
use super::kernels::{self, View};
use super::scalar;
use crate::value::{Scalar, Values};

/// The chunks of the nodes before this one.
pub(super) struct Before<'v> {
    pub(super) code: &'v Code,
    pub(super) params: &'v Values,
    pub(super) states: &'v [State<'v>],
    pub(super) valids: &'v [Valid],
    /// True if columns were gathered into slots.
    pub(super) gathered: bool,
    pub(super) window: Window,
    pub(super) texts: &'v Texts,
    pub(super) floats: &'v [f64],
    pub(super) ints: &'v [i64],
    pub(super) codes: &'v [i32],
    pub(super) masks: &'v [u64],
}

/// A node's own masks.
pub(super) struct Own<'v> {
    pub(super) at: At,
    /// The rows that have a value.
    pub(super) valid: &'v mut [u64],
    /// The values themselves, for truth values.
    pub(super) truth: &'v mut [u64],
}

impl Window {
    /// The words that hold the rows of this chunk.
    pub(super) fn used_words(self) -> usize {
        self.len.div_ceil(64)
    }

    /// The chunk of a slot, and all slots before it.
    pub(super) fn split<T>(self, slots: &mut [T], slot: usize) -> (&[T], &mut [T]) {
        let (before, from) = slots.split_at_mut(slot * self.stride);
        (before, &mut from[..self.len])
    }

    /// The masks of the nodes before `at`, and its own.
    pub(super) fn split_masks(self, masks: &mut [u64], at: At) -> (&[u64], Own<'_>) {
        let (before, from) = masks.split_at_mut(2 * at * self.words);
        let (valid, truth) = from.split_at_mut(self.words);
        let used = self.used_words();
        (before, Own { at, valid: &mut valid[..used], truth: &mut truth[..used] })
    }

    fn valid(self, masks: &[u64], at: At) -> &[u64] {
        &masks[2 * at * self.words..][..self.used_words()]
    }

    fn truth(self, masks: &[u64], at: At) -> &[u64] {
        &masks[(2 * at + 1) * self.words..][..self.used_words()]
    }

    fn slot<T>(self, slots: &[T], slot: usize) -> &[T] {
        &slots[slot * self.stride..][..self.len]
    }

    fn rows<T>(self, values: &[T]) -> &[T] {
        &values[self.start..][..self.len]
    }
}

impl<'v> Before<'v> {
    /// The values of a float node; of an all-null one, anything.
    pub(super) fn floats(&self, at: At) -> View<'v, f64> {
        match &self.states[find(self.states, at)] {
            State::Known(value) => View::All(value.as_ref().map_or(0.0, scalar::float)),
            State::Leaf(Leaf { values: Buffer::Floats(values), .. }, _) if !self.gathered => {
                View::Each(self.window.rows(values))
            }
            State::Leaf(_, slot) | State::Step(slot) => View::Each(self.window.slot(self.floats, *slot)),
            _ => unreachable!("computed before it is used"),
        }
    }

    /// The values of an integer node.
    pub(super) fn ints(&self, at: At) -> View<'v, i64> {
        match &self.states[find(self.states, at)] {
            State::Known(Some(Scalar::Int(int))) => View::All(*int),
            State::Known(_) => View::All(0),
            State::Leaf(Leaf { values: Buffer::Ints(values), .. }, _) if !self.gathered => {
                View::Each(self.window.rows(values))
            }
            State::Leaf(_, slot) | State::Step(slot) => View::Each(self.window.slot(self.ints, *slot)),
            _ => unreachable!("computed before it is used"),
        }
    }

    /// The codes of a text node; a known string is the one entry of its dictionary.
    pub(super) fn codes(&self, at: At) -> View<'v, i32> {
        match &self.states[find(self.states, at)] {
            State::Known(_) => View::All(0),
            State::Leaf(Leaf { values: Buffer::Codes(values, _), .. }, _) if !self.gathered => {
                View::Each(self.window.rows(values))
            }
            State::Leaf(_, slot) | State::Step(slot) => View::Each(self.window.slot(self.codes, *slot)),
            _ => unreachable!("computed before it is used"),
        }
    }

    /// The truth values of a node, 64 rows per word.
    pub(super) fn truth(&self, at: At) -> View<'v, u64> {
        let at = find(self.states, at);
        match &self.states[at] {
            State::Known(Some(Scalar::Bool(true))) => View::All(u64::MAX),
            State::Known(_) => View::All(0),
            _ => View::Each(self.window.truth(self.masks, at)),
        }
    }

    /// The rows that have a value at a node.
    pub(super) fn valid(&self, at: At) -> Valid {
        let at = find(self.states, at);
        match &self.states[at] {
            State::Known(Some(_)) => Valid::All,
            State::Known(None) => Valid::None,
            _ => self.valids[at],
        }
    }

    /// The rows that have a value at a node, 64 per word.
    pub(super) fn valid_words(&self, valid: Valid) -> View<'v, u64> {
        match valid {
            Valid::All => View::All(u64::MAX),
            Valid::None => View::All(0),
            Valid::Mask(at) => View::Each(self.window.valid(self.masks, at)),
        }
    }

    /// The dictionary of a text node that varies.
    pub(super) fn dictionary(&self, at: At) -> &'v Dictionary {
        &self.texts.dictionaries[at].as_ref().expect("strings that vary have dictionaries").dictionary
    }
}

impl Own<'_> {
    /// Valid where both operands are.
    pub(super) fn both(&mut self, before: &Before<'_>, a: Valid, b: Valid) -> Valid {
        match (a, b) {
            (Valid::None, _) | (_, Valid::None) => Valid::None,
            (Valid::All, other) | (other, Valid::All) => other,
            (a, b) if a == b => a,
            (a, b) => {
                kernels::zip(before.valid_words(a), before.valid_words(b), self.valid, |a, b| a & b);
                Valid::Mask(self.at)
            }
        }
    }

    /// Valid where it is already, and where `truth`, used as room for that, has a bit.
    pub(super) fn restrict(&mut self, before: &Before<'_>, valid: Valid) -> Valid {
        if kernels::all_set(self.truth, before.window.len) {
            return valid;
        }
        match valid {
            Valid::None => return Valid::None,
            Valid::All => self.valid.copy_from_slice(self.truth),
            Valid::Mask(at) if at == self.at => kernels::keep(self.valid, self.truth),
            mask => kernels::zip(before.valid_words(mask), View::Each(self.truth), self.valid, |a, b| a & b),
        }
        Valid::Mask(self.at)
    }

    /// False where an operand is null.
    pub(super) fn false_unless(&mut self, before: &Before<'_>, valid: Valid) {
        match before.valid_words(valid) {
            View::All(u64::MAX) => {}
            View::All(_) => self.truth.fill(0),
            View::Each(words) => kernels::keep(self.truth, words),
        }
    }
}
