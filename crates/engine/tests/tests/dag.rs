//! Graphs that cannot run are refused, with the place.

use std::time::Duration;

use anabranch_engine::{Dag, Edge, Graph, NodeId};
use expect_test::{Expect, expect};

fn build(node_count: u32, edges: &[(u32, u32)]) -> Result<Dag, anabranch_engine::dag::Error> {
    let edges: Vec<_> = edges.iter().map(|&(a, b)| (NodeId(a), NodeId(b), Edge::Needs)).collect();
    Dag::new(node_count, &edges)
}

fn check_error(node_count: u32, edges: &[(u32, u32)], expected: Expect) {
    expected.assert_eq(&build(node_count, edges).unwrap_err().to_string());
}

#[test]
fn a_cycle_is_named() {
    check_error(1, &[(0, 0)], expect!["these nodes wait for each other in a cycle: #0 -> #0"]);
    check_error(
        5,
        &[(0, 1), (1, 2), (2, 3), (3, 1), (3, 4)],
        expect!["these nodes wait for each other in a cycle: #1 -> #2 -> #3 -> #1"],
    );
}

#[test]
fn a_long_cycle_is_shortened() {
    let edges: Vec<_> = (0..1000).map(|node| (node, (node + 1) % 1000)).collect();
    check_error(
        1000,
        &edges,
        expect![
            "these nodes wait for each other in a cycle: #0 -> #1 -> #2 -> #3 -> #4 -> #5 -> #6 -> #7 -> #8 -> #9 -> #10 -> #11 -> (988 more) -> #0"
        ],
    );
}

fn sort(inputs: &[Vec<usize>]) -> (Vec<usize>, Vec<Vec<usize>>) {
    let mut circles = Vec::new();
    let order = Dag::sort(inputs, |circle| circles.push(circle.to_owned()));
    (order, circles)
}

#[test]
fn nodes_stand_behind_their_inputs_and_otherwise_by_number() {
    assert_eq!(sort(&[vec![3, 3], vec![], vec![1, 0], vec![]]), (vec![1, 3, 0, 2], vec![]));
}

#[test]
fn circles_are_found_one_by_one() {
    // Node 2 is in a circle of its own, behind the one of 0 and 1.
    assert_eq!(
        sort(&[vec![1], vec![0], vec![0, 3], vec![2], vec![]]),
        (vec![4], vec![vec![0, 1], vec![2, 3]])
    );
    let selves: Vec<Vec<usize>> = (0..100).map(|node| vec![node]).collect();
    assert_eq!(
        sort(&selves),
        (vec![], (0..10).map(|node| vec![node]).collect()),
        "ten are enough to be told"
    );
}

#[test]
fn an_edge_to_a_missing_node_is_refused() {
    check_error(2, &[(0, 2)], expect!["edge #0 -> #2: the graph has only 2 nodes, numbered from 0"]);
    check_error(2, &[(5, 1)], expect!["edge #5 -> #1: the graph has only 2 nodes, numbered from 0"]);
}

#[test]
fn a_double_edge_is_refused_whatever_its_kinds() {
    check_error(
        2,
        &[(0, 1), (0, 1)],
        expect!["edge #0 -> #1 is there twice; give each pair of nodes one edge"],
    );
    let mixed = [(NodeId(0), NodeId(1), Edge::Needs), (NodeId(0), NodeId(1), Edge::After)];
    assert!(Dag::new(2, &mixed).is_err());
}

#[test]
fn more_nodes_than_numbers_are_refused_before_anything_is_allocated() {
    check_error(u32::MAX, &[], expect!["4294967295 nodes are too many; a graph holds at most 536870910"]);
}

#[test]
fn edges_are_seen_from_both_ends() {
    let edges = [(NodeId(2), NodeId(0), Edge::After), (NodeId(1), NodeId(0), Edge::Needs)];
    let dag = Dag::new(3, &edges).unwrap();
    let mut inputs = Vec::new();
    dag.inputs(NodeId(0), |node, edge| inputs.push((node, edge)));
    assert_eq!(inputs, [(NodeId(2), Edge::After), (NodeId(1), Edge::Needs)]);
    let mut dependents = Vec::new();
    dag.dependents(NodeId(2), |node, edge| dependents.push((node, edge)));
    assert_eq!(dependents, [(NodeId(0), Edge::After)]);
    assert_eq!((dag.input_count(NodeId(0)), dag.dependent_count(NodeId(0))), (2, 0));
}

#[test]
fn time_after_a_node_is_the_longest_way_to_the_end() {
    // 0 -> 1 -> 3, 0 -> 2 -> 3, with node n taking n ms.
    let dag = build(4, &[(0, 1), (0, 2), (1, 3), (2, 3)]).unwrap();
    let after = dag.time_after(|node| Duration::from_millis(u64::from(node.0)));
    assert_eq!(after, [5, 3, 3, 0].map(Duration::from_millis));
}

#[test]
fn an_empty_graph_is_a_graph() {
    assert_eq!(build(0, &[]).unwrap().node_count(), 0);
}
