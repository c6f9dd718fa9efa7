//! The work of each node on a chunk: numbers, and choosing one of two.

use anabranch_rows::Kind;

use super::ast::{Binary, Unary};
use super::frame::{Buffer, Frame, Leaf, State, Valid, Window};
use super::graph::{At, Node};
use super::kernels::{self, View};
use super::truth::step_truth;
use super::views::{Before, Own};
use super::{hash, scalar};

impl Frame<'_> {
    /// Computes the chunk at the window.
    pub(super) fn step_all(&mut self) {
        for at in 0..self.states.len() {
            self.valids[at] = match self.states[at] {
                State::Leaf(leaf, slot) => self.load(at, leaf, slot),
                State::Step(slot) => self.step(at, slot),
                _ => continue,
            };
        }
    }

    /// All that was computed.
    pub(super) fn views(&self) -> Before<'_> {
        Before {
            code: self.code,
            params: self.params,
            states: &self.states,
            valids: &self.valids,
            gathered: self.list.is_some(),
            window: self.window,
            texts: &self.texts,
            floats: &self.floats,
            ints: &self.ints,
            codes: &self.codes,
            masks: &self.masks,
        }
    }

    /// Fetches a column's chunk, unless it can be read where it is.
    fn load(&mut self, at: At, leaf: Leaf<'_>, slot: usize) -> Valid {
        let Window { start, len, stride, .. } = self.window;
        let list = self.list.map(|list| &list[start..start + len]);
        let (_, own) = self.window.split_masks(&mut self.masks, at);
        let room = slot * stride..slot * stride + len;
        match (leaf.values, list) {
            (Buffer::Ints(values), Some(list)) => kernels::gather(values, list, &mut self.ints[room]),
            (Buffer::Floats(values), Some(list)) => kernels::gather(values, list, &mut self.floats[room]),
            (Buffer::Codes(values, _), Some(list)) => kernels::gather(values, list, &mut self.codes[room]),
            (Buffer::Bools(values), Some(list)) => kernels::gather_bits(values, list, own.truth),
            (Buffer::Bools(values), None) => kernels::copy_bits(values, start, len, own.truth),
            (_, None) => {}
        }
        match (leaf.nulls, list) {
            (None, _) => return Valid::All,
            (Some(nulls), Some(list)) => kernels::gather_bits(nulls.inner(), list, own.valid),
            (Some(nulls), None) => kernels::copy_bits(nulls.inner(), start, len, own.valid),
        }
        if kernels::all_set(own.valid, len) { Valid::All } else { Valid::Mask(at) }
    }

    fn step(&mut self, at: At, slot: usize) -> Valid {
        let (node, window) = (&self.code.nodes[at], self.window);
        let (masks, own) = window.split_masks(&mut self.masks, at);
        let mut before = Before {
            code: self.code,
            params: self.params,
            states: &self.states,
            valids: &self.valids,
            gathered: self.list.is_some(),
            window,
            texts: &self.texts,
            floats: &[],
            ints: &[],
            codes: &[],
            masks,
        };
        match self.code.kinds[at] {
            Some(Kind::Float) => {
                let (floats, out) = window.split(&mut self.floats, slot);
                (before.floats, before.ints) = (floats, &self.ints);
                step_float(node, &before, own, out)
            }
            Some(Kind::Int) => {
                let (ints, out) = window.split(&mut self.ints, slot);
                (before.ints, before.floats, before.codes) = (ints, &self.floats, &self.codes);
                step_int(node, &before, own, out)
            }
            Some(Kind::Text) => {
                let (codes, out) = window.split(&mut self.codes, slot);
                before.codes = codes;
                step_code(node, &before, own, out)
            }
            Some(Kind::Bool) | None => {
                (before.floats, before.ints, before.codes) = (&self.floats, &self.ints, &self.codes);
                step_truth(node, &before, own)
            }
        }
    }
}

fn step_float(node: &Node, before: &Before<'_>, mut own: Own<'_>, out: &mut [f64]) -> Valid {
    match node {
        Node::ToFloat(a) => {
            kernels::map(each(before.ints(*a)), out, |int| int as f64);
            before.valid(*a)
        }
        Node::Unary(op, a) => {
            let values = each(before.floats(*a));
            let valid = before.valid(*a);
            match op {
                Unary::Neg => kernels::map(values, out, |x| -x),
                Unary::Abs => kernels::map(values, out, f64::abs),
                Unary::Exp => kernels::map(values, out, f64::exp),
                Unary::Log => {
                    kernels::map(values, out, f64::ln);
                    kernels::test(values, own.truth, |x| x > 0.0);
                    return own.restrict(before, valid);
                }
                Unary::Floor => kernels::map(values, out, f64::floor),
                Unary::Ceil => kernels::map(values, out, f64::ceil),
                Unary::Round => kernels::map(values, out, f64::round),
                Unary::Length | Unary::Lower | Unary::Upper => unreachable!("functions of strings"),
            }
            valid
        }
        Node::Binary(op, a, b) => {
            let (left, right) = (before.floats(*a), before.floats(*b));
            binary(*op, left, right, out);
            let valid = own.both(before, before.valid(*a), before.valid(*b));
            match (op, right) {
                (Binary::Div, View::Each(right)) => kernels::test(right, own.truth, |b| b != 0.0),
                (Binary::Pow | Binary::Mod, _) => kernels::test(out, own.truth, |value| !value.is_nan()),
                _ => return valid,
            }
            own.restrict(before, valid)
        }
        node => pick(node, before, own, Before::floats, out),
    }
}

fn step_int(node: &Node, before: &Before<'_>, own: Own<'_>, out: &mut [i64]) -> Valid {
    let of = match node {
        Node::Unary(Unary::Length, of) => *of,
        Node::Hash(seed, of) => {
            match before.code.kinds[*of] {
                Some(Kind::Int) => kernels::map(each(before.ints(*of)), out, |int| hash::int(*seed, int)),
                Some(Kind::Float) => {
                    kernels::map(each(before.floats(*of)), out, |float| hash::float(*seed, float));
                }
                _ => {}
            }
            *of
        }
        node => return pick(node, before, own, Before::ints, out),
    };
    if let Some(values) = &before.texts.ints.get(own.at).and_then(Option::as_ref) {
        // Codes of null rows mean nothing.
        let value = |code: i32| values.get(code as usize).copied().unwrap_or_default();
        kernels::map(each(before.codes(of)), out, value);
    }
    before.valid(of)
}

fn binary(op: Binary, a: View<'_, f64>, b: View<'_, f64>, out: &mut [f64]) {
    match op {
        Binary::Add => kernels::zip(a, b, out, |a, b| a + b),
        Binary::Sub => kernels::zip(a, b, out, |a, b| a - b),
        Binary::Mul => kernels::zip(a, b, out, |a, b| a * b),
        Binary::Div => kernels::zip(a, b, out, |a, b| a / b),
        Binary::Mod => kernels::zip(a, b, out, |a, b| a % b),
        Binary::Min => kernels::zip(a, b, out, scalar::min),
        Binary::Max => kernels::zip(a, b, out, scalar::max),
        Binary::Pow => kernels::zip(a, b, out, f64::powf),
        Binary::Coalesce => unreachable!("a node of its own"),
    }
}

/// `coalesce` and `if`: by a mask, values of one operand or the other.
fn pick<'v, T: Copy + 'v>(
    node: &Node,
    before: &Before<'v>,
    mut own: Own<'_>,
    values: impl Fn(&Before<'v>, At) -> View<'v, T>,
    out: &mut [T],
) -> Valid {
    let (mask, a, b, valid) = choice(node, before, &mut own);
    kernels::blend(mask, values(before, a), values(before, b), out);
    valid
}

/// The same for codes; those of the second operand come after the first's.
fn step_code(node: &Node, before: &Before<'_>, mut own: Own<'_>, out: &mut [i32]) -> Valid {
    let merged = before.texts.dictionaries[own.at].as_ref().expect("strings that vary have dictionaries");
    let (mask, a, b, valid) = choice(node, before, &mut own);
    match before.codes(b) {
        View::Each(codes) => kernels::map(codes, out, |code| code.wrapping_add(merged.offset)),
        View::All(code) => out.fill(code + merged.offset),
    }
    kernels::overlay(mask, before.codes(a), out);
    valid
}

/// The mask of rows that take the first operand, both operands, and the validity of the result.
pub(super) fn choice<'v>(
    node: &Node,
    before: &Before<'v>,
    own: &mut Own<'_>,
) -> (View<'v, u64>, At, At, Valid) {
    match *node {
        Node::Coalesce(a, b) => {
            let (first, second) = (before.valid(a), before.valid(b));
            let mask = before.valid_words(first);
            let valid = match (first, second) {
                (Valid::All, _) | (_, Valid::All) => Valid::All,
                (Valid::None, other) | (other, Valid::None) => other,
                _ => {
                    kernels::zip(mask, before.valid_words(second), own.valid, |a, b| a | b);
                    Valid::Mask(own.at)
                }
            };
            (mask, a, b, valid)
        }
        Node::If(cond, a, b) => {
            let (first, second) = (before.valid(a), before.valid(b));
            let mask = before.truth(cond);
            if (first, second) == (Valid::All, Valid::All) {
                return (mask, a, b, Valid::All);
            }
            kernels::zip(mask, before.valid_words(first), own.valid, |mask, a| mask & a);
            own.truth.copy_from_slice(own.valid);
            kernels::zip(mask, before.valid_words(second), own.valid, |mask, b| !mask & b);
            own.valid.iter_mut().zip(&*own.truth).for_each(|(valid, first)| *valid |= first);
            (mask, a, b, Valid::Mask(own.at))
        }
        _ => unreachable!("no other node picks"),
    }
}

/// The values of an operand that is known to vary.
pub(super) fn each<'v, T: Copy>(view: View<'v, T>) -> &'v [T] {
    match view {
        View::Each(values) => values,
        View::All(_) => unreachable!("what is known is not computed by rows"),
    }
}
