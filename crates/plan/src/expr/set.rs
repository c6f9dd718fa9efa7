//! The list of an `in`, indexed for lookups.

use std::sync::Arc;

use anabranch_rows::Kind;
use hashbrown::HashSet;

use super::scalar::{exact_float, exact_int};
use crate::value::Scalar;

/// Lists up to this long are scanned: all comparisons together take less than a hash.
pub(super) const SCANNED: usize = 8;

/// Distinct items, of the kind of the values that are looked up.
#[derive(Debug, PartialEq)]
pub(crate) enum Set {
    /// Integers, sorted.
    Ints(Box<[i64]>, Index),
    /// Floats, sorted; no negative zero.
    Floats(Box<[f64]>, Index),
    /// Strings, sorted.
    Texts(Box<[Arc<str>]>),
}

/// The items by their bits, if they are too many to scan.
type Index = Option<HashSet<u64>>;

impl Set {
    /// The items that a value of `kind` can be equal to. The items are of one kind, text or numbers.
    pub(crate) fn new(items: &[Scalar], kind: Kind) -> Set {
        match kind {
            Kind::Int => Set::ints(items.iter().filter_map(as_int).collect()),
            Kind::Float => Set::floats(items.iter().filter_map(as_float).collect()),
            Kind::Text | Kind::Bool => Set::texts(items.iter().filter_map(as_text).collect()),
        }
    }

    /// Integers.
    pub(crate) fn ints(mut ints: Vec<i64>) -> Set {
        ints.sort_unstable();
        ints.dedup();
        let index = index(ints.iter().map(|int| *int as u64));
        Set::Ints(ints.into(), index)
    }

    /// Strings.
    pub(crate) fn texts(mut texts: Vec<Arc<str>>) -> Set {
        texts.sort_unstable();
        texts.dedup();
        Set::Texts(texts.into())
    }

    /// The set of integers for lookups of floats. Integers that a float cannot represent are left out.
    pub(crate) fn floats_of_ints(ints: &[i64]) -> Set {
        Set::floats(ints.iter().filter_map(|int| exact_float(*int)).collect())
    }

    fn floats(mut floats: Vec<f64>) -> Set {
        floats.sort_unstable_by(f64::total_cmp);
        floats.dedup();
        let index = index(floats.iter().map(|float| float.to_bits()));
        Set::Floats(floats.into(), index)
    }

    /// True if nothing is in it.
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of items it has.
    pub(super) fn len(&self) -> usize {
        match self {
            Set::Ints(items, _) => items.len(),
            Set::Floats(items, _) => items.len(),
            Set::Texts(items) => items.len(),
        }
    }

    /// True if a value of its kind is in it.
    pub(super) fn has(&self, value: &Scalar) -> bool {
        match (self, value) {
            (Set::Ints(items, _), Scalar::Int(int)) => items.binary_search(int).is_ok(),
            (Set::Floats(items, _), Scalar::Float(float)) => items.contains(float),
            (Set::Texts(_), Scalar::Text(text)) => self.has_text(text),
            _ => unreachable!("made for values of this kind"),
        }
    }

    /// True if a string is in it.
    pub(super) fn has_text(&self, text: &str) -> bool {
        let Set::Texts(items) = self else { unreachable!("made for strings") };
        items.binary_search_by(|item| (**item).cmp(text)).is_ok()
    }
}

fn index(items: impl ExactSizeIterator<Item = u64>) -> Index {
    (items.len() > SCANNED).then(|| items.collect())
}

fn as_int(item: &Scalar) -> Option<i64> {
    match item {
        Scalar::Int(int) => Some(*int),
        Scalar::Float(float) => exact_int(*float),
        _ => None,
    }
}

fn as_float(item: &Scalar) -> Option<f64> {
    let float = match item {
        Scalar::Int(int) => exact_float(*int),
        Scalar::Float(float) => Some(*float),
        _ => None,
    };
    // So that equal floats have equal bits.
    float.map(|float| float + 0.0)
}

fn as_text(item: &Scalar) -> Option<Arc<str>> {
    match item {
        Scalar::Text(text) => Some(Arc::clone(text)),
        _ => None,
    }
}
