//! The critical path: from the node that ended last, back through the input that ended last, and so on.

use std::time::Duration;

use super::build::Draft;
use super::{Category, NodeOutcome, TimeSpent};
use crate::graph::NodeId;

/// The path in order, and the time along it.
pub(super) fn find(drafts: &[Draft], wall: Duration) -> (Vec<NodeId>, TimeSpent) {
    let mut spent = TimeSpent::default();
    let mut path = Vec::new();
    let numbered = (0..).map(NodeId).zip(drafts);
    let last = numbered.filter(|(_, draft)| draft.track.outcome != NodeOutcome::NotStarted);
    let last = last.max_by_key(|(_, draft)| (end(draft, wall), weight(draft), draft.order));
    spent[Category::Outside] = last.map_or(wall, |(_, draft)| wall - end(draft, wall));
    let mut next = last.map(|(node, _)| node);
    while let Some(node) = next {
        let draft = &drafts[node.index()];
        path.push(node);
        next = draft.input;
        let since = next.map_or(Duration::ZERO, |input| end(&drafts[input.index()], wall));
        let mut own = draft.track.spent;
        // The wait for the inputs is already counted as the inputs' own time. Only a node that was dropped before they
        // ended keeps a rest of it.
        own[Category::Inputs] -= since;
        spent += own;
    }
    path.reverse();
    (path, spent)
}

fn end(draft: &Draft, wall: Duration) -> Duration {
    draft.track.ended.unwrap_or(wall)
}

/// Orders nodes that ended at the same time: first one that worked and ended, then one that was cut, then one that did
/// not start.
fn weight(draft: &Draft) -> u8 {
    match draft.track.outcome {
        NodeOutcome::Dropped(_) if draft.track.started.is_none() => 0,
        NodeOutcome::Open | NodeOutcome::NotStarted => 1,
        NodeOutcome::Dropped(_)
        | NodeOutcome::Finished
        | NodeOutcome::FellBack(_)
        | NodeOutcome::Failed(_) => 2,
    }
}
