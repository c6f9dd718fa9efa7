//! Simplification of nodes with known operands: constants at load, parameters in a request.

use anabranch_rows::Kind;

use super::Error;
use super::ast::{Binary, Unary};
use super::graph::{At, Literal, Node, Tests};
use super::{hash, scalar};
use crate::value::{Scalar, Values};

/// The knowledge about a node.
#[derive(Clone, Copy)]
pub(super) enum KnownValue<'a> {
    /// Null for all rows.
    Null,
    /// This value for all rows.
    Value(&'a Scalar),
    /// It has no value, because a request's pattern is invalid.
    Broken,
    /// It depends on the row.
    Varies {
        /// True if no row has null.
        never_null: bool,
    },
}

/// The simplified form of a node.
pub(super) enum Outcome {
    /// A value for all rows, or null.
    Value(Option<Scalar>),
    /// Another node.
    Same(At),
    /// No value, because a request's pattern is invalid: that of an operand, or its own with this error.
    Broken(Option<Box<Error>>),
    /// No simplification.
    Keep,
}

/// The simplified form of `node`. A result that does not depend on an operand stays valid if that operand is broken.
pub(super) fn simplify<'a>(
    node: &Node,
    known: impl Fn(At) -> KnownValue<'a>,
    tests: &Tests,
    params: Option<&Values>,
) -> Outcome {
    if let Some(outcome) = choose(node, &known) {
        return outcome;
    }
    if node.uses().any(|used| matches!(known(used), KnownValue::Broken)) {
        return Outcome::Broken(None);
    }
    match node {
        Node::Null => Outcome::Value(None),
        Node::Const(Literal(value)) => Outcome::Value(Some(value.clone())),
        Node::Param(index, kind) => match params {
            Some(params) => Outcome::Value(param(&params[*index], *kind)),
            None => Outcome::Keep,
        },
        Node::Column(..) => Outcome::Keep,
        Node::Now => match params {
            Some(params) => Outcome::Value(Some(Scalar::Float(params.now()))),
            None => Outcome::Keep,
        },
        Node::ToFloat(a) | Node::Unary(_, a) | Node::Hash(_, a) => function(node, known(*a)),
        Node::Binary(op, a, b) => arithmetic(*op, known(*a), known(*b)),
        Node::IsNull(a) => match known(*a) {
            KnownValue::Null => truth(true),
            KnownValue::Value(_) | KnownValue::Varies { never_null: true } => truth(false),
            _ => Outcome::Keep,
        },
        Node::Not(a) => match known(*a) {
            KnownValue::Value(Scalar::Bool(value)) => truth(!value),
            _ => Outcome::Keep,
        },
        Node::Compare(op, a, b) => match (known(*a), known(*b)) {
            (KnownValue::Null, _) | (_, KnownValue::Null) => truth(false),
            (KnownValue::Value(a), KnownValue::Value(b)) => truth(scalar::compare(*op, a, b)),
            _ => Outcome::Keep,
        },
        Node::In(a, set) => match known(*a) {
            KnownValue::Null => truth(false),
            _ if tests.sets[*set].is_empty() => truth(false),
            KnownValue::Value(value) => truth(tests.sets[*set].has(value)),
            _ => Outcome::Keep,
        },
        Node::InParam(a, place, kind) => match (known(*a), params.map(|params| params.list(*place))) {
            (KnownValue::Null, _) | (_, Some(None)) => truth(false),
            (_, Some(Some(list))) if list.is_empty() => truth(false),
            (KnownValue::Value(value), Some(Some(list))) => truth(list.set(*kind).has(value)),
            _ => Outcome::Keep,
        },
        Node::Regex(a, pattern) => match known(*a) {
            KnownValue::Null => truth(false),
            KnownValue::Value(Scalar::Text(text)) => match tests.patterns[*pattern].regex(params) {
                Some(Ok(regex)) => truth(regex.is_match(text.as_bytes())),
                Some(Err(error)) => Outcome::Broken(Some(Box::new(error))),
                None => Outcome::Keep,
            },
            _ => Outcome::Keep,
        },
        Node::Coalesce(..) | Node::If(..) | Node::And(..) | Node::Or(..) => Outcome::Keep,
    }
}

/// The nodes that may come down to one operand without a look at the other.
fn choose<'a>(node: &Node, known: &impl Fn(At) -> KnownValue<'a>) -> Option<Outcome> {
    let is =
        |at: At, value: bool| matches!(known(at), KnownValue::Value(Scalar::Bool(found)) if *found == value);
    match *node {
        Node::Coalesce(a, b) => match (known(a), known(b)) {
            (KnownValue::Null, _) => Some(Outcome::Same(b)),
            (KnownValue::Value(_) | KnownValue::Varies { never_null: true }, _) => Some(Outcome::Same(a)),
            (KnownValue::Varies { .. }, KnownValue::Null) => Some(Outcome::Same(a)),
            _ if a == b => Some(Outcome::Same(a)),
            _ => None,
        },
        Node::If(cond, a, _) if is(cond, true) => Some(Outcome::Same(a)),
        Node::If(cond, _, b) if is(cond, false) => Some(Outcome::Same(b)),
        Node::If(_, a, b) if a == b => Some(Outcome::Same(a)),
        Node::If(cond, a, b) if !matches!(known(cond), KnownValue::Broken) => match (known(a), known(b)) {
            (KnownValue::Null, KnownValue::Null) => Some(Outcome::Value(None)),
            _ => None,
        },
        Node::And(a, b) if is(a, true) => Some(Outcome::Same(b)),
        Node::And(a, _) if is(a, false) => Some(truth(false)),
        Node::Or(a, b) if is(a, false) => Some(Outcome::Same(b)),
        Node::Or(a, _) if is(a, true) => Some(truth(true)),
        Node::And(a, b) | Node::Or(a, b) if a == b => Some(Outcome::Same(a)),
        Node::And(a, b) if !matches!(known(a), KnownValue::Broken) => match () {
            () if is(b, true) => Some(Outcome::Same(a)),
            () if is(b, false) => Some(truth(false)),
            () => None,
        },
        Node::Or(a, b) if !matches!(known(a), KnownValue::Broken) => match () {
            () if is(b, false) => Some(Outcome::Same(a)),
            () if is(b, true) => Some(truth(true)),
            () => None,
        },
        _ => None,
    }
}

fn function(node: &Node, operand: KnownValue<'_>) -> Outcome {
    let value = match operand {
        KnownValue::Null => return Outcome::Value(None),
        KnownValue::Value(value) => value,
        _ => return Outcome::Keep,
    };
    Outcome::Value(match (node, value) {
        (Node::Unary(Unary::Length, _), Scalar::Text(text)) => Some(Scalar::Int(scalar::length(text))),
        (Node::Hash(seed, _), value) => Some(Scalar::Int(match value {
            Scalar::Text(text) => hash::text(*seed, text),
            Scalar::Int(int) => hash::int(*seed, *int),
            value => hash::float(*seed, scalar::float(value)),
        })),
        (Node::Unary(op, _), Scalar::Text(text)) => Some(Scalar::Text(scalar::case(*op, text))),
        (Node::Unary(op, _), value) => scalar::unary(*op, scalar::float(value)).map(Scalar::Float),
        (_, value) => Some(Scalar::Float(scalar::float(value))),
    })
}

fn arithmetic(op: Binary, a: KnownValue<'_>, b: KnownValue<'_>) -> Outcome {
    match (a, b) {
        (KnownValue::Null, _) | (_, KnownValue::Null) => Outcome::Value(None),
        (KnownValue::Value(a), KnownValue::Value(b)) => {
            Outcome::Value(scalar::binary(op, scalar::float(a), scalar::float(b)).map(Scalar::Float))
        }
        (_, KnownValue::Value(b)) if matches!(op, Binary::Div | Binary::Mod) && scalar::float(b) == 0.0 => {
            Outcome::Value(None)
        }
        _ => Outcome::Keep,
    }
}

/// A parameter's value as its kind, which requests are held to.
fn param(value: &Option<Scalar>, kind: Kind) -> Option<Scalar> {
    match (value, kind) {
        (Some(Scalar::Int(int)), Kind::Float) => Some(Scalar::Float(*int as f64)),
        (Some(value), kind) => {
            assert_eq!(value.kind(), kind, "a request's parameters are of their registered kinds");
            Some(value.clone())
        }
        (None, _) => None,
    }
}

fn truth(value: bool) -> Outcome {
    Outcome::Value(Some(Scalar::Bool(value)))
}
