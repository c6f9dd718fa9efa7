//! Builds a timeline from events: a small state machine per node, then the ready times from the graph.

use std::time::{Duration, Instant};

use super::{Category, Error, NodeOutcome, NodeTrack, Span, TimeSpent, Timeline, path};
use crate::event::{Event, EventKind, ListenerItem, Placement, RunEnding, RunId, WaitReason};
use crate::graph::{Edge, Graph, NodeId};

/// The track of a node while events are read, with the data from which the critical path is found.
#[derive(Clone)]
pub(super) struct Draft {
    pub(super) track: NodeTrack,
    /// The time of its first event. Before, it was not ready or waited for its turn.
    first: Option<Duration>,
    /// The present category and since when.
    open: Option<(Category, Duration)>,
    /// The position of its last event among all events, to order ends at the same time.
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

pub(super) fn build<G: Graph>(run: RunId, graph: &G, items: &[ListenerItem]) -> Result<Timeline, Error> {
    let of_run = |item: &ListenerItem| match item {
        ListenerItem::Event(event) if event.run == run => Some(*event),
        ListenerItem::Event(_) | ListenerItem::Lost(_) => None,
    };
    let events = || items.iter().filter_map(of_run);
    let frame = Frame::of(events()).ok_or(Error::NoEvents(run))?;
    refuse_other_graph(graph, events())?;
    let wall = frame.end - frame.start;
    let drafts = vec![Draft::NEW; graph.node_count() as usize];
    let mut builder = Builder { start: frame.start, drafts, spans: Vec::with_capacity(items.len()) };
    for (order, event) in events().enumerate() {
        builder.record(order, event);
    }
    for node in (0..graph.node_count()).map(NodeId) {
        builder.cut(node, wall);
        builder.find_ready_time(node, graph);
    }
    let Builder { drafts, mut spans, .. } = builder;
    spans.sort_by_key(|span| (span.node, span.from));
    let (path, on_path) = path::find(&drafts, wall);
    let mut all_nodes = TimeSpent::default();
    drafts.iter().for_each(|draft| all_nodes += draft.track.spent);
    let lost = items.iter().map(|item| if let ListenerItem::Lost(count) = item { *count } else { 0 }).sum();
    let tracks = drafts.into_iter().map(|draft| draft.track).collect();
    Ok(Timeline {
        run,
        ending: frame.ending,
        lost,
        wall,
        tracks,
        spans,
        path,
        on_path,
        all_nodes,
        deadline: None,
        timeouts: Vec::new(),
    })
}

impl Frame {
    fn of(events: impl Iterator<Item = Event>) -> Option<Frame> {
        let mut frame: Option<Frame> = None;
        let mut run_start = None;
        for event in events {
            let frame = frame.get_or_insert(Frame { start: event.at, end: event.at, ending: None });
            frame.start = frame.start.min(event.at);
            frame.end = frame.end.max(event.at);
            match event.kind {
                EventKind::RunStarted(_) => run_start = Some(event.at),
                EventKind::RunEnded(ending) => frame.ending = Some(ending),
                _ => {}
            }
        }
        frame.map(|frame| Frame { start: run_start.unwrap_or(frame.start), ..frame })
    }
}

fn refuse_other_graph<G: Graph>(graph: &G, events: impl Iterator<Item = Event>) -> Result<(), Error> {
    let node_count = graph.node_count();
    for event in events {
        let at_least = match event.kind {
            EventKind::RunStarted(count) if count != node_count => count,
            kind => match kind.node() {
                Some(node) if node.0 >= node_count => node.0 + 1,
                _ => continue,
            },
        };
        return Err(Error::OtherGraph { at_least, node_count });
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
        // The events of one node are in order, even if the clock of another thread says otherwise.
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

    /// A pool thread took the node: its time since the start was spent in the queue, not at work.
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

    /// Closes the open span of a node at the end of the run.
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

    /// Adds a span. Work that took no time is still shown; a wait that took no time is not.
    fn add(&mut self, span: Span) {
        let is_work = matches!(span.category, Category::Io | Category::Cpu);
        if span.from < span.to || is_work {
            self.drafts[span.node.index()].track.spent[span.category] += span.to - span.from;
            self.spans.push(span);
        }
    }

    /// Finds when `node` was ready, how it spent the time until its first event, and which input caused its drop.
    fn find_ready_time<G: Graph>(&mut self, node: NodeId, graph: &G) {
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

/// The category of a node that has started. Without an event from a pool thread the whole time counts as work: jobs
/// after the first of a trip do not wait in a queue, and a job that was cut sends no event.
fn work_at(place: Placement) -> Category {
    match place {
        Placement::Inline | Placement::Pool => Category::Cpu,
        Placement::Future | Placement::Spawned | Placement::Blocking => Category::Io,
    }
}
