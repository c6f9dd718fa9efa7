//! The work of each node on a chunk: predicates and truth values, 64 rows per word.

use anabranch_rows::Kind;
use hashbrown::HashSet;

use super::ast::Compare;
use super::frame::Valid;
use super::graph::{At, Node};
use super::kernels::{self, View};
use super::scalar::{self, Bound};
use super::set::{SCANNED, Set};
use super::step::{choice, each};
use super::text::Table;
use super::views::{Before, Own};

pub(super) fn step_truth(node: &Node, before: &Before<'_>, mut own: Own<'_>) -> Valid {
    match node {
        Node::And(a, b) => kernels::zip(before.truth(*a), before.truth(*b), own.truth, |a, b| a & b),
        Node::Or(a, b) => kernels::zip(before.truth(*a), before.truth(*b), own.truth, |a, b| a | b),
        Node::Not(a) => kernels::map(each(before.truth(*a)), own.truth, |word| !word),
        Node::IsNull(a) => {
            let valid = before.valid_words(before.valid(*a));
            kernels::zip(valid, View::All(0), own.truth, |valid, _| !valid);
        }
        Node::Compare(op, a, b) => {
            compare(*op, *a, *b, before, &mut own);
            own.false_unless(before, before.valid(*a));
            own.false_unless(before, before.valid(*b));
        }
        Node::In(a, set) => {
            is_in(before, *a, &before.code.tests.sets[*set], &mut own);
            own.false_unless(before, before.valid(*a));
        }
        Node::InParam(a, place, kind) => {
            let list = before.params.list(*place).expect("a null list decides at once");
            is_in(before, *a, list.set(*kind), &mut own);
            own.false_unless(before, before.valid(*a));
        }
        Node::Regex(a, _) => {
            look_up(before, own.at, *a, own.truth);
            own.false_unless(before, before.valid(*a));
        }
        node => return pick_truth(node, before, own),
    }
    Valid::All
}

/// `coalesce` and `if` of truth values.
fn pick_truth(node: &Node, before: &Before<'_>, mut own: Own<'_>) -> Valid {
    let (mask, a, b, valid) = choice(node, before, &mut own);
    kernels::zip(mask, before.truth(a), own.truth, |mask, a| mask & a);
    let second = before.truth(b);
    for (at, word) in own.truth.iter_mut().enumerate() {
        let of = |view: View<'_, u64>| match view {
            View::All(word) => word,
            View::Each(words) => words[at],
        };
        *word |= !of(mask) & of(second);
    }
    valid
}

fn is_in(before: &Before<'_>, of: At, set: &Set, own: &mut Own<'_>) {
    match set {
        // A request's list may have no item that a value of this kind can be equal to.
        set if set.is_empty() => own.truth.fill(0),
        Set::Ints(items, index) => {
            one_of(each(before.ints(of)), items, index.as_ref(), |int| int as u64, own.truth);
        }
        Set::Floats(items, index) => {
            // Both zeros have the bits of the positive one.
            let bits = |float: f64| (float + 0.0).to_bits();
            one_of(each(before.floats(of)), items, index.as_ref(), bits, own.truth);
        }
        Set::Texts(_) => look_up(before, own.at, of, own.truth),
    }
}

fn table<'v>(before: &Before<'v>, at: At) -> Option<&'v Table> {
    before.texts.tables.get(at)?.as_ref()
}

/// Looks codes up in the table of node `at`.
fn look_up(before: &Before<'_>, at: At, text: At, out: &mut [u64]) {
    let table = table(before, at).expect("made at the start");
    kernels::test(each(before.codes(text)), out, |code| table.has(code));
}

fn one_of<T: Copy + PartialEq>(
    values: &[T],
    items: &[T],
    index: Option<&HashSet<u64>>,
    bits: impl Fn(T) -> u64,
    out: &mut [u64],
) {
    match (items, index) {
        (_, Some(index)) => kernels::test(values, out, |value| index.contains(&bits(value))),
        ([one], _) => kernels::test(values, out, |value| value == *one),
        (items, None) => {
            // A fixed number of comparisons, the last item repeated, is a loop without branches.
            let mut fixed = [items[items.len() - 1]; SCANNED];
            fixed[..items.len()].copy_from_slice(items);
            kernels::test(values, out, |value| fixed.iter().fold(false, |any, item| any | (value == *item)));
        }
    }
}

fn compare(op: Compare, a: At, b: At, before: &Before<'_>, own: &mut Own<'_>) {
    let kinds = &before.code.kinds;
    match (kinds[a].expect("typed"), kinds[b].expect("typed")) {
        (Kind::Int, Kind::Int) => kernels::compare(op, before.ints(a), before.ints(b), own.truth),
        (Kind::Float, Kind::Float) => kernels::compare(op, before.floats(a), before.floats(b), own.truth),
        (Kind::Int, Kind::Float) => compare_exactly(op, before.ints(a), before.floats(b), own.truth),
        (Kind::Float, Kind::Int) => {
            compare_exactly(op.swapped(), before.ints(b), before.floats(a), own.truth);
        }
        (Kind::Bool, _) | (_, Kind::Bool) => {
            let flip = if op == Compare::Eq { u64::MAX } else { 0 };
            kernels::zip(before.truth(a), before.truth(b), own.truth, |a, b| a ^ b ^ flip);
        }
        (Kind::Text, _) | (_, Kind::Text) => match table(before, own.at) {
            Some(table) => {
                let codes = match (before.codes(a), before.codes(b)) {
                    (View::Each(codes), _) | (_, View::Each(codes)) => codes,
                    _ => unreachable!("what is known is not computed by rows"),
                };
                kernels::test(codes, own.truth, |code| table.has(code));
            }
            None => compare_texts(op, a, b, before, own),
        },
    }
}

/// Integers with floats, as numbers rather than as floats.
fn compare_exactly(op: Compare, ints: View<'_, i64>, floats: View<'_, f64>, out: &mut [u64]) {
    match (ints, floats) {
        (View::Each(ints), View::All(float)) => match scalar::bound(op, float) {
            Bound::Always(always) => out.fill(if always { u64::MAX } else { 0 }),
            Bound::Int(op, int) => kernels::compare(op, View::Each(ints), View::All(int), out),
        },
        (View::All(int), View::Each(floats)) => {
            kernels::test(floats, out, |float| scalar::ordered(op, scalar::int_to_float(int, float)));
        }
        (View::Each(ints), View::Each(floats)) => kernels::test_two(ints, floats, out, |int, float| {
            scalar::ordered(op, scalar::int_to_float(int, float))
        }),
        (View::All(_), View::All(_)) => unreachable!("what is known is not computed by rows"),
    }
}

/// Strings with strings, both by row. Codes of null rows mean nothing.
fn compare_texts(op: Compare, a: At, b: At, before: &Before<'_>, own: &mut Own<'_>) {
    let (first, second) = (before.dictionary(a), before.dictionary(b));
    let (left, right) = (each(before.codes(a)), each(before.codes(b)));
    let text = |codes: i32, entries: usize| (codes as usize) < entries;
    kernels::test_two(left, right, own.truth, |a, b| {
        text(a, first.len())
            && text(b, second.len())
            && scalar::ordered(op, Some(first.get(a).cmp(second.get(b))))
    });
}
