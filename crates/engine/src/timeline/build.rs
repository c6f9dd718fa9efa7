//! From events to tracks: a small state machine a node, then ready times from the graph.

use std::time::{Duration, Instant};

use super::{Category, Error, NodeOutcome, NodeTrack, Span, TimeSpent, Timeline, path};
use crate::event::{Event, EventKind, ListenerItem, Placement, RunEnding, RunId, WaitReason};
use crate::graph::{Edge, Graph, NodeId};

/// A node's track while events come in, and what the critical path is found by.
#[derive(Clone)]
pub(super) struct Draft {
    pub(super) track: NodeTrack,
    /// Its first event: until then it was not ready, or waited for its turn.
    first: Option<Duration>,
    /// What it has been at since when.
    open: Option<(Category, Duration)>,
    /// Where its last event stood among all: tells apart ends at the same time.
    pub(super) order: usize,
    /// The input that ended last before its first event.
    pub(super) input: Option<NodeId>,
}

/// The run as a whole.
struct Frame {
    start: Instant,
    end: Instant,
    ending: Option<RunEnding>,
}

struct Builder {
    start: Instant,
    drafts: Vec<Draft>,
    spans: Vec<Span>,
}

pub(super) fn build<G: Graph>(run: RunId, graph: &G, heard: &[ListenerItem]) -> Result<Timeline, Error> {
    let of_run = |heard: &ListenerItem| match heard {
        ListenerItem::Event(event) if event.run == run => Some(*event),
        ListenerItem::Event(_) | ListenerItem::Lost(_) => None,
    };
    let events = || heard.iter().filter_map(of_run);
    let frame = Frame::of(events()).ok_or(Error::NoEvents(run))?;
    refuse_other_graph(graph, events())?;
    let wall = frame.end - frame.start;
    let drafts = vec![Draft::NEW; graph.node_count() as usize];
    let mut builder = Builder { start: frame.start, drafts, spans: Vec::with_capacity(heard.len()) };
    for (order, event) in events().enumerate() {
        builder.record(order, event);
    }
    for node in (0..graph.node_count()).map(NodeId) {
        builder.cut(node, wall);
        builder.look_at_inputs(node, graph);
    }
    let Builder { drafts, mut spans, .. } = builder;
    spans.sort_by_key(|span| (span.node, span.from));
    let (path, on_path) = path::find(&drafts, wall);
    let mut over_all = TimeSpent::default();
    drafts.iter().for_each(|draft| over_all += draft.track.spent);
    let lost = heard.iter().map(|heard| if let ListenerItem::Lost(count) = heard { *count } else { 0 }).sum();
    let tracks = drafts.into_iter().map(|draft| draft.track).collect();
    Ok(Timeline { run, ending: frame.ending, lost, wall, tracks, spans, path, on_path, over_all })
}

impl Frame {
    fn of(events: impl Iterator<Item = Event>) -> Option<Frame> {
        let mut frame: Option<Frame> = None;
        let mut told_start = None;
        for event in events {
            let frame = frame.get_or_insert(Frame { start: event.at, end: event.at, ending: None });
            frame.start = frame.start.min(event.at);
            frame.end = frame.end.max(event.at);
            match event.kind {
                EventKind::RunStarted(_) => told_start = Some(event.at),
                EventKind::RunEnded(ending) => frame.ending = Some(ending),
                _ => {}
            }
        }
        frame.map(|frame| Frame { start: told_start.unwrap_or(frame.start), ..frame })
    }
}

fn refuse_other_graph<G: Graph>(graph: &G, events: impl Iterator<Item = Event>) -> Result<(), Error> {
    let node_count = graph.node_count();
    for event in events {
        let told = match event.kind {
            EventKind::RunStarted(count) if count != node_count => count,
            kind => match kind.node() {
                Some(node) if node.0 >= node_count => node.0 + 1,
                _ => continue,
            },
        };
        return Err(Error::OtherGraph { told, node_count });
    }
    Ok(())
}

impl Draft {
    const NEW: Draft = Draft {
        track: NodeTrack {
            ready: None,
            started: None,
            ended: None,
            attempts: 0,
            place: None,
            outcome: NodeOutcome::NotStarted,
            spent: TimeSpent::ZERO,
        },
        first: None,
        open: None,
        order: 0,
        input: None,
    };
}

impl Builder {
    fn record(&mut self, order: usize, event: Event) {
        let Some(node) = event.kind.node() else { return };
        let at = event.at.saturating_duration_since(self.start);
        let draft = &mut self.drafts[node.index()];
        if draft.track.ended.is_some() {
            return;
        }
        // A node's own events come in order; the clock of another thread changes nothing about that.
        let at = draft.open.map_or(at, |(_, since)| at.max(since));
        draft.first.get_or_insert(at);
        draft.order = order;
        match event.kind {
            EventKind::RunStarted(_) | EventKind::RunEnded(_) | EventKind::Limit(..) => {}
            EventKind::Waiting(_, WaitReason::Limit) => self.turn_to(node, at, Category::Limit),
            EventKind::Waiting(_, WaitReason::Retry) => self.turn_to(node, at, Category::Retry),
            EventKind::Started(_, place) => self.start(node, at, place),
            EventKind::Running(_) => self.run(node, at),
            EventKind::Finished(_) => self.end(node, at, NodeOutcome::Finished),
            EventKind::FellBack(_, reason) => self.end(node, at, NodeOutcome::FellBack(reason)),
            EventKind::Failed(_, reason) => self.end(node, at, NodeOutcome::Failed(reason)),
            EventKind::Dropped(_) => self.end(node, at, NodeOutcome::Dropped(None)),
        }
    }

    fn start(&mut self, node: NodeId, at: Duration, place: Placement) {
        self.turn_to(node, at, work_at(place));
        let track = &mut self.drafts[node.index()].track;
        track.attempts += 1;
        track.place = Some(place);
        track.started.get_or_insert(at);
    }

    /// What was taken for work so far was the pool's queue.
    fn run(&mut self, node: NodeId, at: Duration) {
        let draft = &mut self.drafts[node.index()];
        let work = match &mut draft.open {
            Some((category, _)) if category.is_in_flight() => std::mem::replace(category, Category::Queue),
            _ => {
                draft.track.attempts += 1;
                draft.track.started.get_or_insert(at);
                Category::Unknown
            }
        };
        self.turn_to(node, at, work);
    }

    fn end(&mut self, node: NodeId, at: Duration, outcome: NodeOutcome) {
        self.close(node, at);
        let track = &mut self.drafts[node.index()].track;
        track.ended = Some(at);
        track.outcome = outcome;
    }

    /// Ends what is open when the run does.
    fn cut(&mut self, node: NodeId, wall: Duration) {
        if self.drafts[node.index()].open.is_some() {
            self.close(node, wall);
            self.drafts[node.index()].track.outcome = NodeOutcome::Open;
        }
    }

    fn turn_to(&mut self, node: NodeId, at: Duration, category: Category) {
        self.close(node, at);
        self.drafts[node.index()].open = Some((category, at));
    }

    fn close(&mut self, node: NodeId, at: Duration) {
        if let Some((category, since)) = self.drafts[node.index()].open.take() {
            self.add(Span { node, category, from: since, to: at });
        }
    }

    /// Work that took no time is still to be seen; a wait is not.
    fn add(&mut self, span: Span) {
        let is_work = matches!(span.category, Category::Io | Category::Cpu);
        if span.from < span.to || is_work {
            self.drafts[span.node.index()].track.spent[span.category] += span.to - span.from;
            self.spans.push(span);
        }
    }

    /// Finds when `node` was ready, what it did until its first event, and which input had it dropped.
    fn look_at_inputs<G: Graph>(&mut self, node: NodeId, graph: &G) {
        let Some(first) = self.drafts[node.index()].first else { return };
        let (mut last, mut all_ended, mut dropped_by) = (None, true, None);
        graph.inputs(node, |input, edge| {
            let Draft { track, order, .. } = &self.drafts[input.index()];
            match track.ended {
                Some(ended) if ended <= first => {
                    last = last.max(Some((ended, *order, input)));
                    let is_loss = matches!(track.outcome, NodeOutcome::Failed(_) | NodeOutcome::Dropped(_));
                    if edge == Edge::Needs && is_loss {
                        dropped_by = Some(input);
                    }
                }
                _ => all_ended = false,
            }
        });
        let draft = &mut self.drafts[node.index()];
        let from = last.map_or(Duration::ZERO, |(ended, _, _)| ended);
        draft.input = last.map(|(_, _, input)| input);
        draft.track.ready = all_ended.then_some(from);
        draft.track.spent[Category::Inputs] += from;
        let is_dropped = matches!(draft.track.outcome, NodeOutcome::Dropped(_));
        if is_dropped {
            draft.track.outcome = NodeOutcome::Dropped(dropped_by);
        }
        let ended_unstarted = draft.track.outcome == NodeOutcome::Finished && draft.track.started.is_none();
        let category = match all_ended {
            true if ended_unstarted => Category::Unknown,
            true => Category::Slot,
            false if is_dropped => Category::Inputs,
            false => Category::Unknown,
        };
        self.add(Span { node, category, from, to: first });
    }
}

/// Without word of a pool's thread (the links of a trip go from one to the next, and a job cut short never says)
/// the whole time counts as work.
fn work_at(place: Placement) -> Category {
    match place {
        Placement::Inline | Placement::Pool => Category::Cpu,
        Placement::Future | Placement::Spawned | Placement::Blocking => Category::Io,
    }
}
