//! The frontier against a naive model, and what gates and after-edges can express.

use anabranch_engine::frontier::{Change, Frontier, Phase};
use anabranch_engine::{Dag, Edge, Graph, NodeId};
use expect_test::{Expect, expect};
use proptest::prelude::*;

use crate::script::play;

/// The rules, applied by looking at everything again and again until nothing changes.
struct Naive {
    edges: Vec<(NodeId, NodeId, Edge)>,
    phases: Vec<Phase>,
    released: Vec<bool>,
}

fn ended(phase: Phase) -> bool {
    matches!(phase, Phase::Finished | Phase::Failed | Phase::Dropped)
}

impl Naive {
    fn new(node_count: u32, edges: &[(NodeId, NodeId, Edge)]) -> Naive {
        let node_count = node_count as usize;
        let mut naive = Naive {
            edges: edges.to_vec(),
            phases: vec![Phase::Waiting; node_count],
            released: vec![false; node_count],
        };
        naive.settle();
        naive
    }

    fn phase(&self, node: NodeId) -> Phase {
        self.phases[node.index()]
    }

    fn settle(&mut self) {
        loop {
            let before = self.phases.clone();
            for number in 0..self.phases.len() {
                let inputs = || self.edges.iter().filter(|edge| edge.1.index() == number);
                let lost = |&(input, _, kind): &(NodeId, NodeId, Edge)| {
                    kind == Edge::Needs && matches!(self.phase(input), Phase::Failed | Phase::Dropped)
                };
                let open = |edge: &(NodeId, NodeId, Edge)| !ended(self.phase(edge.0));
                if matches!(self.phases[number], Phase::Waiting | Phase::Ready) {
                    self.phases[number] = match (inputs().any(lost), inputs().any(open)) {
                        (true, _) => Phase::Dropped,
                        (_, true) => Phase::Waiting,
                        (_, false) => Phase::Ready,
                    };
                }
            }
            if before == self.phases {
                return;
            }
        }
    }

    fn set(&mut self, node: NodeId, phase: Phase) {
        self.phases[node.index()] = phase;
        self.settle();
    }

    fn start_next(&mut self) -> Option<NodeId> {
        let number = self.phases.iter().position(|phase| *phase == Phase::Ready)?;
        self.phases[number] = Phase::InFlight;
        Some(NodeId(number as u32))
    }

    /// Finished nodes whose dependents have all ended since the last call.
    fn newly_released(&mut self) -> Vec<NodeId> {
        let nodes = (0..self.phases.len() as u32).map(NodeId);
        let released: Vec<NodeId> = nodes
            .filter(|node| {
                let mut dependents = self.edges.iter().filter(|edge| edge.0 == *node).peekable();
                self.phase(*node) == Phase::Finished
                    && !self.released[node.index()]
                    && dependents.peek().is_some()
                    && dependents.all(|edge| ended(self.phase(edge.1)))
            })
            .collect();
        released.iter().for_each(|node| self.released[node.index()] = true);
        released
    }
}

#[derive(Clone, Debug)]
enum Op {
    StartNext,
    Finish(prop::sample::Index),
    Fail(prop::sample::Index),
    Drop(prop::sample::Index),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        6 => Just(Op::StartNext),
        4 => any::<prop::sample::Index>().prop_map(Op::Finish),
        1 => any::<prop::sample::Index>().prop_map(Op::Fail),
        1 => any::<prop::sample::Index>().prop_map(Op::Drop),
    ];
    prop::collection::vec(op, 0..120)
}

/// Numbers are shuffled against the edges' direction, so that order of number and of dependence differ.
fn graphs() -> impl Strategy<Value = (u32, Vec<(NodeId, NodeId, Edge)>)> {
    (1u32..150).prop_flat_map(|node_count| {
        let pairs = prop::collection::btree_set((0..node_count, 0..node_count), 0..300);
        let order = Just((0..node_count).collect::<Vec<u32>>()).prop_shuffle();
        (pairs, order, any::<u64>()).prop_map(move |(pairs, order, kinds)| {
            let edges = pairs.into_iter().filter(|(a, b)| a < b).enumerate().map(|(place, (a, b))| {
                let kind = if kinds >> (place % 64) & 3 == 0 { Edge::After } else { Edge::Needs };
                (NodeId(order[a as usize]), NodeId(order[b as usize]), kind)
            });
            (node_count, edges.collect())
        })
    })
}

fn agree(node_count: u32, edges: &[(NodeId, NodeId, Edge)], ops: &[Op]) {
    let dag = Dag::new(node_count, edges).unwrap();
    let mut frontier = Frontier::new(&dag);
    let mut naive = Naive::new(node_count, edges);
    for op in ops {
        let before = naive.phases.clone();
        let in_flight: Vec<NodeId> =
            (0..node_count).map(NodeId).filter(|node| naive.phase(*node) == Phase::InFlight).collect();
        let mut changes = Vec::new();
        let mut failed_or_finished = None;
        match op {
            Op::StartNext => assert_eq!(frontier.start_next(), naive.start_next()),
            Op::Finish(which) | Op::Fail(which) if !in_flight.is_empty() => {
                let node = *which.get(&in_flight);
                failed_or_finished = Some(node);
                if let Op::Finish(_) = op {
                    assert!(frontier.finish(node, |change| changes.push(change)));
                    naive.set(node, Phase::Finished);
                } else {
                    assert!(frontier.fail(node, |change| changes.push(change)));
                    naive.set(node, Phase::Failed);
                }
            }
            Op::Drop(which) => {
                let node = NodeId(which.index(node_count as usize) as u32);
                let open = !ended(naive.phase(node));
                assert_eq!(frontier.drop(node, |change| changes.push(change)), open);
                if open {
                    naive.set(node, Phase::Dropped);
                }
            }
            Op::Finish(_) | Op::Fail(_) => {}
        }
        let mut dropped = Vec::new();
        let mut released = Vec::new();
        for change in changes {
            match change {
                Change::Dropped { node, .. } => dropped.push(node),
                Change::Released(node) => released.push(node),
            }
        }
        dropped.sort();
        released.sort();
        let newly_dropped =
            |node: &NodeId| naive.phase(*node) == Phase::Dropped && before[node.index()] != Phase::Dropped;
        assert_eq!(dropped, (0..node_count).map(NodeId).filter(newly_dropped).collect::<Vec<_>>());
        assert_eq!(released, naive.newly_released());
        for node in (0..node_count).map(NodeId) {
            assert_eq!(
                frontier.phase(node),
                naive.phase(node),
                "{node} after {op:?} ({failed_or_finished:?})"
            );
        }
        assert_eq!(frontier.is_done(), naive.phases.iter().all(|phase| ended(*phase)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1500) })]

    #[test]
    fn agrees_with_the_naive_model((node_count, edges) in graphs(), ops in ops()) {
        agree(node_count, &edges, &ops);
    }

    #[test]
    fn carried_out_to_the_end_every_node_ends((node_count, edges) in graphs(), fails in any::<u128>()) {
        let dag = Dag::new(node_count, &edges).unwrap();
        let mut frontier = Frontier::new(&dag);
        while let Some(node) = frontier.start_next() {
            if fails >> (node.0 % 128) & 7 == 0 {
                frontier.fail(node, |_| {});
            } else {
                frontier.finish(node, |_| {});
            }
        }
        prop_assert!(frontier.is_done());
        let counts = frontier.counts();
        prop_assert_eq!(counts.finished + counts.failed + counts.dropped, dag.node_count());
    }
}

#[test]
fn ready_numbers_come_lowest_first_at_every_size() {
    for node_count in [1, 63, 64, 65, 4095, 4096, 4097, 300_000] {
        let dag = Dag::new(node_count, &[]).unwrap();
        let mut frontier = Frontier::new(&dag);
        for number in 0..node_count {
            assert_eq!(frontier.start_next(), Some(NodeId(number)));
        }
        assert_eq!(frontier.start_next(), None);
    }
}

#[test]
fn a_node_ends_once_and_late_news_changes_nothing() {
    let dag = Dag::new(2, &[(NodeId(0), NodeId(1), Edge::Needs)]).unwrap();
    let mut frontier = Frontier::new(&dag);
    let node = frontier.start_next().unwrap();
    frontier.set_ticket(node, 5);
    let mut changes = Vec::new();
    assert!(frontier.drop(node, |change| changes.push(change)));
    assert_eq!(
        changes,
        [Change::Dropped { node, ticket: Some(5) }, Change::Dropped { node: NodeId(1), ticket: None }]
    );
    assert!(!frontier.finish(node, |_| panic!("nothing may change")));
    assert!(!frontier.fail(node, |_| panic!("nothing may change")));
    assert!(!frontier.drop(node, |_| panic!("nothing may change")));
    assert_eq!(frontier.phase(node), Phase::Dropped);
}

fn check(script: &str, expected: Expect) {
    let played = play(script);
    played.result.unwrap();
    expected.assert_eq(&played.timeline);
}

#[test]
fn a_gate_expresses_a_branch() {
    // The closed side's gate skips itself: what needs it is dropped, and the join is after both sides.
    check(
        "cond; then_gate <- cond; else_gate: skip <- cond; a: io 3 <- then_gate; b: io 5 <- else_gate; \
         join <- ~a ~b",
        expect!["0..0 cond | 0..0 then_gate | 0 else_gate dropped | 0..3 a | 0 b dropped | 3..3 join"],
    );
}

#[test]
fn a_gate_expresses_a_fallback_sub_graph_that_runs_only_when_needed() {
    let sub_graph = "cheap1: io 2 <- gate; cheap2: io 2 <- cheap1; join <- ~main ~cheap2";
    // The gate is after the main node; it opens when that failed and skips itself when it did not.
    check(
        &format!("main: io 5 fail isolate; gate <- ~main; {sub_graph}"),
        expect!["0..5 main failed | 5..5 gate | 5..7 cheap1 | 7..9 cheap2 | 9..9 join"],
    );
    check(
        &format!("main: io 5; gate: skip <- ~main; {sub_graph}"),
        expect!["0..5 main | 5 gate dropped | 5 cheap1 dropped | 5 cheap2 dropped | 5..5 join"],
    );
}

#[test]
fn a_gate_expresses_a_dropped_row() {
    // Two rows of three cells: the first row's judge drops its remaining cell, which is in flight.
    check(
        "judge1: io 2 drops slow1; slow1: io 50; out1 <- slow1 judge1; judge2: io 2; slow2: io 9; \
         out2 <- slow2 judge2",
        expect!["0..2 judge1 | 0..2 slow1 dropped | 0..2 judge2 | 0..9 slow2 | 2 out1 dropped | 9..9 out2"],
    );
}
