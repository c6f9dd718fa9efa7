//! Timelines too large to draw node by node.

use std::time::Duration;

use anabranch_engine::event::{Event, EventKind, ListenerItem, Placement, RunId, WaitReason};
use anabranch_engine::timeline::Timeline;
use anabranch_engine::{Dag, Edge, Graph, NodeId};
use anabranch_testkit::Rng;

use super::hold::assert_markup;
use super::number;
use crate::tape::zero;

/// `node_count` nodes in layers of a hundred on `slots` slots, with waits of all kinds.
fn busy(node_count: u32, slots: usize) -> (Dag, Vec<ListenerItem>) {
    let mut rng = Rng::new(7);
    let layer = |node: u32| node / 100;
    let edges: Vec<_> = (100..node_count)
        .flat_map(|node| {
            let before = (layer(node) - 1) * 100;
            [(node * 7) % 100, (node * 13 + 1) % 100]
                .map(|place| (NodeId(before + place), NodeId(node), Edge::Needs))
        })
        .collect();
    let graph = Dag::new(node_count, &edges).unwrap();
    let mut free: Vec<u64> = vec![0; slots];
    let mut ends = vec![0; node_count as usize];
    let mut heard = vec![event(0, EventKind::RunStarted(node_count))];
    for node in (0..node_count).map(NodeId) {
        let mut ready = 0;
        graph.inputs(node, |input, _| ready = ready.max(ends[input.index()]));
        let slot = (0..slots).min_by_key(|slot| free[*slot]).unwrap();
        let mut start = ready.max(free[slot]);
        if rng.percent(5) {
            heard.push(event(start, EventKind::Waiting(node, WaitReason::Limit)));
            start += rng.within(0..30_000);
        }
        let is_pool = rng.percent(40);
        heard.push(event(
            start,
            EventKind::Started(node, if is_pool { Placement::Pool } else { Placement::Future }),
        ));
        if is_pool {
            start += rng.within(0..4_000);
            heard.push(event(start, EventKind::Running(node)));
        }
        ends[node.index()] = start + rng.within(100..20_000);
        free[slot] = ends[node.index()];
        heard.push(event(ends[node.index()], EventKind::Finished(node)));
    }
    (graph, heard)
}

fn event(micros: u64, kind: EventKind) -> ListenerItem {
    ListenerItem::Event(Event { run: RunId(0), at: zero() + Duration::from_micros(micros), kind })
}

#[test]
fn a_hundred_thousand_nodes_fit_into_two_megabytes() {
    for slots in [1, 64, 5_000] {
        let (graph, heard) = busy(100_000, slots);
        let timeline = Timeline::new(RunId(0), &graph, &heard).unwrap();
        assert_eq!(timeline.on_path().total(), timeline.wall());
        let (svg, html) = (timeline.svg("large", &number), timeline.html("large", &number));
        assert_markup(&svg);
        assert!(html.len() < 2_000_000, "{slots} slots: {}", html.len());
    }
}

#[test]
fn a_chain_of_a_hundred_thousand_is_drawn_in_part_and_merged_for_the_rest() {
    let count = 100_000;
    let edges: Vec<_> = (1..count).map(|node| (NodeId(node - 1), NodeId(node), Edge::Needs)).collect();
    let graph = Dag::new(count, &edges).unwrap();
    let mut heard = Vec::new();
    for node in 0..count {
        let at = u64::from(node) * 10;
        heard.push(event(at, EventKind::Started(NodeId(node), Placement::Inline)));
        heard.push(event(at + 3 + u64::from(node % 7), EventKind::Finished(NodeId(node))));
    }
    let timeline = Timeline::new(RunId(0), &graph, &heard).unwrap();
    assert_eq!(timeline.critical_path().len(), count as usize);
    let html = timeline.html("chain", &number);
    assert!(html.len() < 2_000_000, "{}", html.len());
    assert!(html.contains("99,950 shorter nodes are not shown"));
}
