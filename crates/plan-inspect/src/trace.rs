//! A request with its timeline: the times of its nodes, and the waits of the answer.

use std::num::NonZeroUsize;
use std::time::Duration;

use anabranch_engine::event::{Event, EventKind, ListenerItem};
use anabranch_engine::timeline::{NodeTrack, Timeline};
use anabranch_engine::{Dag, Graph as _, NodeId};

use anabranch_plan::Answer;
use anabranch_plan::Error;
use anabranch_plan::Request;
use anabranch_plan::inspect::{Compiled, Inspection, InspectionOutcome, StageWork};
use anabranch_plan::{Plan, RunOptions};

/// The number of events that are kept per stage. A stage that waits for a limit and moves to a pool has five.
const EVENTS_PER_STAGE: usize = 8;

/// Room for the events of requests that run at the same time.
const OTHER_EVENTS: usize = 4096;

/// The timeline of one request.
pub struct Trace {
    timeline: Timeline,
    title: String,
    names: Vec<String>,
}

/// Answers a request with these options, and records where its time went. There is no trace if the request never began.
pub async fn run_traced(
    plan: &Plan,
    request: Request,
    options: &RunOptions,
) -> (Result<Answer, Error>, Option<Trace>) {
    let (inspected, trace) = inspect_traced(plan, request, options).await;
    (inspected.answer, trace)
}

/// Like [`run_traced`], with the ledger of a failed request.
pub async fn inspect_traced(
    plan: &Plan,
    request: Request,
    options: &RunOptions,
) -> (InspectionOutcome, Option<Trace>) {
    let compiled = plan.compiled();
    let bound = NonZeroUsize::MIN.saturating_add(compiled.stages.len() * EVENTS_PER_STAGE + OTHER_EVENTS);
    let mut listener = plan.engine().runs().events().listen(bound);
    let now = plan.engine().runs().clock().now();
    let deadline = options.deadline.map(|at| at.saturating_duration_since(now)).or(compiled.deadline);
    let inspected = plan.run_inspected(request, options, Inspection::default()).await;
    let items = std::iter::from_fn(|| listener.try_next());
    let (graph, items) = without_timers(compiled, items);
    let timeline = inspected.run.and_then(|run| Timeline::new(run, &graph, &items).ok());
    let timeout = |stage: NodeId| {
        let own = compiled.policies.of(stage).timeout;
        own.into_iter().chain(options.node_timeout).min()
    };
    let timeline = timeline.map(|timeline| timeline.with_timeouts(timeout));
    let timeline = timeline.map(|timeline| match deadline {
        Some(deadline) => timeline.with_deadline(deadline),
        None => timeline,
    });
    let trace = timeline.map(|timeline| Trace {
        timeline,
        title: format!("plan {}", plan.name()),
        names: (0..graph.node_count()).map(NodeId).map(|stage| compiled.stage_name(stage)).collect(),
    });
    (inspected, trace)
}

/// The plan's graph and the events of its run, without the timers of regions, which end with their regions and delay
/// nothing.
fn without_timers(plan: &Compiled, items: impl Iterator<Item = ListenerItem>) -> (Dag, Vec<ListenerItem>) {
    // Timers have the highest numbers of all stages.
    let timer = plan.stages.iter().position(|stage| matches!(stage.what, StageWork::Timer(_)));
    let count = timer.unwrap_or(plan.stages.len()) as u32;
    let mut edges = Vec::new();
    for node in (0..count).map(NodeId) {
        plan.graph.inputs(node, |input, edge| edges.extend((input.0 < count).then_some((input, node, edge))));
    }
    let graph = Dag::new(count, &edges).expect("a part of a graph is a graph");
    let shown = |item: ListenerItem| match item {
        ListenerItem::Event(event) => match event.kind {
            EventKind::RunStarted(_) => {
                Some(ListenerItem::Event(Event { kind: EventKind::RunStarted(count), ..event }))
            }
            kind => kind.node().is_none_or(|node| node.0 < count).then_some(item),
        },
        ListenerItem::Lost(_) => Some(item),
    };
    (graph, items.filter_map(shown).collect())
}

impl Trace {
    /// The timeline itself; its nodes are the plan's stages.
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// The name of a stage in messages.
    pub fn name(&self, stage: NodeId) -> String {
        self.names[stage.index()].clone()
    }

    /// The stages with their tracks, in the order of their starts. Stages that did not start come last.
    pub fn stages(&self) -> Vec<(&str, &NodeTrack)> {
        let mut stages: Vec<_> = self.names.iter().map(String::as_str).zip(self.timeline.tracks()).collect();
        stages.sort_by_key(|(_, track)| track.started.unwrap_or(Duration::MAX));
        stages
    }

    /// One HTML file that zooms and pans.
    pub fn html(&self) -> String {
        self.timeline.html(&self.title, &|stage| self.name(stage))
    }

    /// One SVG file.
    pub fn svg(&self) -> String {
        self.timeline.svg(&self.title, &|stage| self.name(stage))
    }

    /// A trace that Perfetto and Chrome open, in JSON.
    pub fn json(&self) -> String {
        self.timeline.trace(&|stage| self.name(stage))
    }
}
