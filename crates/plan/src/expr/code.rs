//! A compiled expression or predicate: nodes in the order they are computed.

use std::time::Duration;

use anabranch_rows::{Key, Kind};

use super::ast::{Binary, Unary};
use super::graph::{At, FinishedGraph, Graph, Node, Tests};
use super::kernels::{PASS, fetch_cost};
use super::set::{SCANNED, Set};
use crate::value::Values;

/// The code that [`Frame`](super::frame::Frame) evaluates.
#[derive(Debug)]
pub(super) struct Code {
    /// Nodes after those they use; the last is the result.
    pub(super) nodes: Box<[Node]>,
    /// The kinds of their values; null is of any kind.
    pub(super) kinds: Box<[Option<Kind>]>,
    pub(super) tests: Tests,
    /// The columns it reads, ascending.
    pub(super) keys: Box<[Key]>,
    /// Nanoseconds per row.
    pub(super) cost: f64,
    pub(super) has_text: bool,
    /// True if a request may bring a value, such as a regex, that takes time before the first row.
    pub(super) has_setup: bool,
}

impl Code {
    pub(super) fn new(graph: Graph, root: At) -> Code {
        let FinishedGraph { nodes, kinds, tests } = graph.finish(root);
        let mut keys: Vec<Key> = nodes.iter().filter_map(column).collect();
        keys.sort_unstable();
        let has_text = kinds.contains(&Some(Kind::Text));
        let has_setup =
            !tests.patterns.is_empty() || nodes.iter().any(|node| matches!(node, Node::InParam(..)));
        let mut code = Code { nodes, kinds, tests, keys: keys.into(), cost: 0.0, has_text, has_setup };
        code.cost = code.estimate();
        code
    }

    /// The result's place.
    pub(super) fn root(&self) -> At {
        self.nodes.len() - 1
    }

    /// About how long it takes before the first row: patterns to compile and lists to index that this request brings.
    pub(super) fn setup(&self, params: &Values) -> Duration {
        let patterns: Duration = self.tests.patterns.iter().map(|pattern| pattern.compile_time(params)).sum();
        let lists = self.nodes.iter().filter_map(|node| match node {
            Node::InParam(_, place, kind) => Some(params.list(*place)?.index_time(*kind)),
            _ => None,
        });
        patterns + lists.sum::<Duration>()
    }

    /// Does this beforehand: a bad pattern is reported by the evaluation.
    pub(super) fn set_up(&self, params: &Values) {
        self.tests.patterns.iter().for_each(|pattern| _ = pattern.regex(Some(params)));
        for node in &self.nodes {
            if let Node::InParam(_, place, kind) = node
                && let Some(list) = params.list(*place)
            {
                list.set(*kind);
            }
        }
    }

    fn estimate(&self) -> f64 {
        let mut by_row = vec![false; self.nodes.len()];
        let mut cost = 0.0;
        for (at, node) in self.nodes.iter().enumerate() {
            by_row[at] = matches!(node, Node::Column(..)) || node.uses().any(|used| by_row[used]);
            if by_row[at] {
                cost += self.node_cost(at, node);
            }
        }
        cost
    }

    fn node_cost(&self, at: At, node: &Node) -> f64 {
        match node {
            Node::Null | Node::Const(_) | Node::Param(..) | Node::Now => 0.0,
            Node::Column(_, kind) => fetch_cost(*kind),
            Node::Unary(op, _) => match op {
                Unary::Neg | Unary::Abs => PASS,
                Unary::Log | Unary::Exp => 5.0,
                Unary::Floor | Unary::Ceil | Unary::Round => 2.0,
                Unary::Length | Unary::Lower | Unary::Upper => 2.0,
            },
            Node::Binary(op, ..) => match op {
                Binary::Pow => 14.0,
                Binary::Div => 4.0 * PASS,
                Binary::Mod => 10.0,
                _ => PASS,
            },
            Node::ToFloat(_) => PASS,
            Node::Coalesce(..) | Node::If(..) if self.kinds[at] == Some(Kind::Bool) => 0.02,
            Node::Coalesce(..) | Node::If(..) => 3.0 * PASS,
            Node::And(..) | Node::Or(..) | Node::Not(_) | Node::IsNull(_) => 0.02,
            Node::Compare(_, a, b) => match (self.kinds[*a], self.kinds[*b]) {
                (Some(Kind::Text), _) => 4.0,
                (Some(Kind::Bool), _) => 0.02,
                (left, right) if left == right => PASS,
                // A comparison with one float is converted to one with an integer.
                _ if matches!(self.nodes[*b], Node::Const(_) | Node::Param(..)) => PASS,
                _ => 4.0,
            },
            Node::In(_, set) => match &self.tests.sets[*set] {
                Set::Texts(_) => 2.0,
                set if set.len() <= SCANNED => 3.0 * PASS,
                _ => 4.0,
            },
            Node::InParam(..) => 4.0,
            Node::Hash(..) => 3.0,
            // Once per dictionary entry: rows share entries, how many is not known here.
            Node::Regex(..) => 4.0,
        }
    }
}

fn column(node: &Node) -> Option<Key> {
    match node {
        Node::Column(key, _) => Some(*key),
        _ => None,
    }
}
