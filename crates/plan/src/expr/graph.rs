//! Checked expressions as nodes: equal ones only once, constants computed at load.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use anabranch_rows::{Key, Kind};
use hashbrown::HashMap;

use super::ast::{Binary, Compare, Unary};
use super::fold::{KnownValue, Outcome, simplify};
use super::pattern::Matcher;
use super::set::Set;
use crate::value::Scalar;

/// The index of a node. Nodes come after the nodes that they use.
pub(super) type At = usize;

/// One value per row, computed from those of other nodes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Node {
    /// Null.
    Null,
    /// The same for all rows and requests.
    Const(Literal),
    /// The parameter at this place.
    Param(usize, Kind),
    /// A column.
    Column(Key, Kind),
    /// An integer as a float.
    ToFloat(At),
    /// A function of a float, or of a string for the functions of strings.
    Unary(Unary, At),
    /// A function of two floats.
    Binary(Binary, At, At),
    /// The first of two of the same kind that is not null.
    Coalesce(At, At),
    /// By the first, the second or the third, both of the same kind.
    If(At, At, At),
    /// Of two predicates, which are never null.
    And(At, At),
    /// Of two predicates.
    Or(At, At),
    /// Of a predicate.
    Not(At),
    /// A predicate about a value of any kind.
    IsNull(At),
    /// False if either is null. Both of the same kind, or both numbers.
    Compare(Compare, At, At),
    /// True if the value is in the set at this index; false if null.
    In(At, usize),
    /// True if the value, of this kind, is in the list of the parameter at this index; false if either is null.
    InParam(At, usize, Kind),
    /// True if the regex at this index matches the value; false if null.
    Regex(At, usize),
    /// The time of the request.
    Now,
    /// The hash, with this seed, of a number or a string.
    Hash(i64, At),
}

/// A constant; the same only if its bits are.
#[derive(Clone, Debug)]
pub(super) struct Literal(pub(super) Scalar);

impl PartialEq for Literal {
    fn eq(&self, other: &Literal) -> bool {
        match (&self.0, &other.0) {
            (Scalar::Float(a), Scalar::Float(b)) => a.to_bits() == b.to_bits(),
            (a, b) => a == b,
        }
    }
}

impl Eq for Literal {}

impl Hash for Literal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match &self.0 {
            Scalar::Int(int) => int.hash(state),
            Scalar::Float(float) => float.to_bits().hash(state),
            Scalar::Bool(bool) => bool.hash(state),
            Scalar::Text(text) => text.hash(state),
        }
    }
}

impl Node {
    /// The nodes it uses.
    pub(super) fn uses(&self) -> impl Iterator<Item = At> + use<> {
        let uses = match *self {
            Node::Null | Node::Const(_) | Node::Param(..) | Node::Column(..) | Node::Now => {
                [None, None, None]
            }
            Node::ToFloat(a) | Node::Unary(_, a) | Node::Not(a) | Node::IsNull(a) => [Some(a), None, None],
            Node::In(a, _) | Node::InParam(a, ..) | Node::Regex(a, _) | Node::Hash(_, a) => {
                [Some(a), None, None]
            }
            Node::Binary(_, a, b) | Node::Coalesce(a, b) | Node::And(a, b) | Node::Or(a, b) => {
                [Some(a), Some(b), None]
            }
            Node::Compare(_, a, b) => [Some(a), Some(b), None],
            Node::If(cond, a, b) => [Some(cond), Some(a), Some(b)],
        };
        uses.into_iter().flatten()
    }

    fn renumber(&mut self, new: &[At]) {
        match self {
            Node::Null | Node::Const(_) | Node::Param(..) | Node::Column(..) | Node::Now => {}
            Node::ToFloat(a) | Node::Unary(_, a) | Node::Not(a) | Node::IsNull(a) => *a = new[*a],
            Node::In(a, _) | Node::InParam(a, ..) | Node::Regex(a, _) | Node::Hash(_, a) => *a = new[*a],
            Node::Binary(_, a, b) | Node::Coalesce(a, b) | Node::And(a, b) | Node::Or(a, b) => {
                (*a, *b) = (new[*a], new[*b]);
            }
            Node::Compare(_, a, b) => (*a, *b) = (new[*a], new[*b]),
            Node::If(cond, a, b) => (*cond, *a, *b) = (new[*cond], new[*a], new[*b]),
        }
    }
}

/// The sets and patterns that nodes test with.
#[derive(Debug, Default)]
pub(super) struct Tests {
    pub(super) sets: Vec<Set>,
    pub(super) patterns: Vec<Arc<Matcher>>,
}

/// Nodes under construction.
#[derive(Debug, Default)]
pub(super) struct Graph {
    nodes: Vec<Node>,
    kinds: Vec<Option<Kind>>,
    places: HashMap<Node, At>,
    tests: Tests,
}

/// A list of nodes that are all used. The last one is the result.
#[derive(Debug)]
pub(super) struct FinishedGraph {
    pub(super) nodes: Box<[Node]>,
    /// The kinds of their values. Null has any kind.
    pub(super) kinds: Box<[Option<Kind>]>,
    pub(super) tests: Tests,
}

impl Graph {
    /// Adds a node, and returns the index of it or of its simplified form.
    pub(super) fn add(&mut self, node: Node) -> At {
        let known = |at: At| match &self.nodes[at] {
            Node::Null => KnownValue::Null,
            Node::Const(Literal(value)) => KnownValue::Value(value),
            _ => KnownValue::Varies { never_null: self.never_null(at) },
        };
        match simplify(&node, known, &self.tests, None) {
            Outcome::Same(at) => at,
            Outcome::Value(None) => self.intern(Node::Null),
            Outcome::Value(Some(value)) => self.intern(Node::Const(Literal(value))),
            Outcome::Keep | Outcome::Broken(_) => self.intern(node),
        }
    }

    /// The place of a value.
    pub(super) fn value(&mut self, value: Scalar) -> At {
        self.intern(Node::Const(Literal(value)))
    }

    /// The constant, if the node is one.
    pub(super) fn constant(&self, at: At) -> Option<&Scalar> {
        match &self.nodes[at] {
            Node::Const(Literal(value)) => Some(value),
            _ => None,
        }
    }

    /// A node that looks `at` up in a set.
    pub(super) fn add_in(&mut self, at: At, set: Set) -> At {
        let sets = &mut self.tests.sets;
        let place = sets.iter().position(|other| *other == set).unwrap_or_else(|| {
            sets.push(set);
            sets.len() - 1
        });
        self.add(Node::In(at, place))
    }

    /// A node that looks for a pattern in `at`.
    pub(super) fn add_regex(&mut self, at: At, pattern: Matcher) -> At {
        let same =
            |other: &Arc<Matcher>| other.source == pattern.source && other.ignore_case == pattern.ignore_case;
        let patterns = &mut self.tests.patterns;
        let place = patterns.iter().position(same).unwrap_or_else(|| {
            patterns.push(Arc::new(pattern));
            patterns.len() - 1
        });
        self.add(Node::Regex(at, place))
    }

    fn intern(&mut self, node: Node) -> At {
        if let Some(at) = self.places.get(&node) {
            return *at;
        }
        let at = self.nodes.len();
        self.kinds.push(self.kind(&node));
        self.places.insert(node.clone(), at);
        self.nodes.push(node);
        at
    }

    fn never_null(&self, at: At) -> bool {
        match self.nodes[at] {
            Node::Column(key, _) => key == Key::ID,
            Node::ToFloat(a) => self.never_null(a),
            Node::Coalesce(_, b) => self.never_null(b),
            Node::Const(_) | Node::Now => true,
            _ => false,
        }
    }

    fn kind(&self, node: &Node) -> Option<Kind> {
        match node {
            Node::Null => None,
            Node::Const(Literal(value)) => Some(value.kind()),
            Node::Param(_, kind) | Node::Column(_, kind) => Some(*kind),
            Node::ToFloat(_) | Node::Binary(..) => Some(Kind::Float),
            Node::Unary(Unary::Lower | Unary::Upper, _) => Some(Kind::Text),
            Node::Unary(Unary::Length, _) | Node::Hash(..) => Some(Kind::Int),
            Node::Now => Some(Kind::Float),
            Node::Unary(..) => Some(Kind::Float),
            Node::Coalesce(a, b) | Node::If(_, a, b) => self.kinds[*a].or(self.kinds[*b]),
            Node::And(..) | Node::Or(..) | Node::Not(_) | Node::IsNull(_) => Some(Kind::Bool),
            Node::Compare(..) | Node::In(..) | Node::InParam(..) | Node::Regex(..) => Some(Kind::Bool),
        }
    }

    /// Keeps only the nodes that `root` needs.
    pub(super) fn finish(self, root: At) -> FinishedGraph {
        let mut needed = vec![false; self.nodes.len()];
        needed[root] = true;
        for at in (0..=root).rev() {
            if needed[at] {
                self.nodes[at].uses().for_each(|used| needed[used] = true);
            }
        }
        let (mut nodes, mut kinds, mut new) = (Vec::new(), Vec::new(), vec![0; self.nodes.len()]);
        for (at, mut node) in self.nodes.into_iter().enumerate().filter(|(at, _)| needed[*at]) {
            new[at] = nodes.len();
            node.renumber(&new);
            nodes.push(node);
            kinds.push(self.kinds[at]);
        }
        FinishedGraph { nodes: nodes.into(), kinds: kinds.into(), tests: self.tests }
    }
}
