//! What holds for every timeline.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use anabranch_engine::timeline::{TimeSpent, Timeline};

use super::number;

pub(crate) fn hold(timeline: &Timeline) {
    assert_eq!(timeline.on_path().total(), timeline.wall(), "the path's time is the run's");
    let mut all_nodes = TimeSpent::default();
    for track in timeline.tracks() {
        all_nodes += track.spent;
        let until = track.ended.unwrap_or(timeline.wall());
        assert!(track.spent.total() == until || track.spent.total().is_zero(), "a node's time has no gap");
    }
    assert_eq!(all_nodes, timeline.all_nodes());
    well_nested(&timeline.trace(&number));
    assert_markup(&timeline.svg("title", &number));
}

/// The trace is JSON whose slices nest in each lane, and whose arrows have both ends.
fn well_nested(trace: &str) {
    let trace: serde_json::Value = serde_json::from_str(trace).unwrap();
    let mut lanes = BTreeMap::<u64, Vec<(u64, u64)>>::new();
    let mut arrows = [0, 0];
    for event in trace["traceEvents"].as_array().unwrap() {
        let nanos = |key: &str| (event[key].as_f64().unwrap() * 1e3).round() as u64;
        match event["ph"].as_str().unwrap() {
            "X" => {
                let lane = lanes.entry(event["tid"].as_u64().unwrap()).or_default();
                lane.push((nanos("ts"), nanos("ts") + nanos("dur")));
            }
            "s" => arrows[0] += 1,
            "f" => arrows[1] += 1,
            "M" | "i" => {}
            other => panic!("phase {other}"),
        }
    }
    assert_eq!(arrows[0], arrows[1]);
    for slices in lanes.values_mut() {
        slices.sort_by_key(|(from, to)| (*from, Reverse(*to)));
        let mut around: Vec<(u64, u64)> = Vec::new();
        for slice in slices {
            while around.last().is_some_and(|outer| outer.1 <= slice.0) {
                around.pop();
            }
            assert!(around.last().is_none_or(|outer| slice.1 <= outer.1), "{slice:?} leaves {around:?}");
            around.push(*slice);
        }
    }
}

/// Every element is closed, in order; text holds no bare sign of markup.
pub(crate) fn assert_markup(text: &str) {
    let (mut open, mut rest) = (Vec::new(), text);
    while let Some(from) = rest.find('<') {
        let to = from + rest[from..].find('>').expect("an element has an end");
        let tag = &rest[from + 1..to];
        assert!(!tag.contains('<'), "{tag}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "closes what is open");
        } else if !tag.ends_with('/') && !tag.starts_with(['!', '?']) {
            open.push(tag.split_whitespace().next().unwrap());
        }
        rest = &rest[to + 1..];
    }
    assert!(open.is_empty(), "{open:?}");
}
