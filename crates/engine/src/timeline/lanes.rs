//! Lanes: which row of the picture each bar is drawn in.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use super::{Span, Timeline};
use crate::graph::NodeId;

/// All bars of a timeline, in the order of their start.
pub(super) struct Lanes {
    pub(super) bars: Vec<Bar>,
    pub(super) count: usize,
}

/// One attempt of a node, including its time in the queue of a pool.
pub(super) struct Bar {
    pub(super) node: NodeId,
    pub(super) from: Duration,
    pub(super) to: Duration,
    pub(super) lane: usize,
    /// Its spans are a range of the spans of the timeline.
    first_span: usize,
    span_count: usize,
}

impl Lanes {
    /// One lane per node that was in flight at the same time. A bar takes the first free lane.
    pub(super) fn of_slots(timeline: &Timeline) -> Lanes {
        let mut bars = bars(timeline);
        bars.sort_by_key(|bar| (bar.from, bar.to, bar.node));
        let mut free: BinaryHeap<Reverse<usize>> = BinaryHeap::new();
        let mut busy: BinaryHeap<Reverse<(Duration, usize)>> = BinaryHeap::new();
        let mut count = 0;
        for bar in &mut bars {
            while let Some(&Reverse((end, lane))) = busy.peek()
                && end <= bar.from
            {
                busy.pop();
                free.push(Reverse(lane));
            }
            bar.lane = free.pop().map_or(count, |Reverse(lane)| lane);
            count = count.max(bar.lane + 1);
            busy.push(Reverse((bar.to, bar.lane)));
        }
        Lanes { bars, count }
    }

    /// One lane per node, in the order of their first spans; also returns the node of each lane.
    pub(super) fn of_nodes(timeline: &Timeline) -> (Lanes, Vec<NodeId>) {
        let mut nodes: Vec<NodeId> = (0..timeline.tracks.len() as u32).map(NodeId).collect();
        nodes.sort_by_key(|node| {
            let first = timeline.spans_of(*node).first().map(|span| span.from);
            (first.or(timeline.track(*node).ended).unwrap_or(Duration::MAX), *node)
        });
        let mut lane_of = vec![0; nodes.len()];
        for (lane, node) in nodes.iter().enumerate() {
            lane_of[node.index()] = lane;
        }
        let mut bars = bars(timeline);
        bars.iter_mut().for_each(|bar| bar.lane = lane_of[bar.node.index()]);
        bars.sort_by_key(|bar| (bar.from, bar.node));
        (Lanes { bars, count: nodes.len() }, nodes)
    }
}

impl Bar {
    pub(super) fn spans<'a>(&self, timeline: &'a Timeline) -> &'a [Span] {
        &timeline.spans[self.first_span..self.first_span + self.span_count]
    }

    /// The waits of the node directly before this attempt.
    pub(super) fn waits<'a>(&self, timeline: &'a Timeline) -> &'a [Span] {
        let before = &timeline.spans[..self.first_span];
        let is_wait = |span: &&Span| span.node == self.node && !span.category.is_in_flight();
        &before[before.len() - before.iter().rev().take_while(is_wait).count()..]
    }
}

fn bars(timeline: &Timeline) -> Vec<Bar> {
    let mut bars: Vec<Bar> = Vec::new();
    for (at, span) in timeline.spans.iter().enumerate().filter(|(_, span)| span.category.is_in_flight()) {
        match bars.last_mut() {
            Some(bar)
                if bar.node == span.node && bar.to == span.from && bar.first_span + bar.span_count == at =>
            {
                bar.to = span.to;
                bar.span_count += 1;
            }
            _ => bars.push(Bar {
                node: span.node,
                from: span.from,
                to: span.to,
                lane: 0,
                first_span: at,
                span_count: 1,
            }),
        }
    }
    bars
}
