//! The timeline of a flow, with the names of its nodes.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use super::Name;
use crate::dag::Dag;
use crate::event::{Events, Listener, ListenerItem, RunId};
use crate::graph::NodeId;
use crate::timeline::Timeline;

/// The recorded timeline of a flow; see [`Flow::trace`](super::Flow::trace). `None` is returned until the flow has ended.
#[derive(Clone, Default)]
pub struct Trace {
    recorded: Arc<Mutex<Option<RecordedTimeline>>>,
}

struct RecordedTimeline {
    timeline: Timeline,
    names: Arc<[Name]>,
    label: Name,
}

impl Trace {
    /// The timeline as an HTML page that zooms and pans, with the critical path as a table. Its title is the flow's label.
    pub fn html(&self) -> Option<String> {
        self.with(|recorded, name| recorded.timeline.html(&recorded.label, name))
    }

    /// The timeline as an SVG image.
    pub fn svg(&self) -> Option<String> {
        self.with(|recorded, name| recorded.timeline.svg(&recorded.label, name))
    }

    /// The timeline as JSON for Perfetto and Chrome's trace viewer.
    pub fn json(&self) -> Option<String> {
        self.with(|recorded, name| recorded.timeline.trace(name))
    }

    /// Looks at the timeline itself.
    pub fn timeline<R>(&self, look: impl FnOnce(&Timeline) -> R) -> Option<R> {
        self.with(|recorded, _| look(&recorded.timeline))
    }

    fn with<R>(&self, look: impl FnOnce(&RecordedTimeline, &dyn Fn(NodeId) -> String) -> R) -> Option<R> {
        let recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        let recorded = recorded.as_ref()?;
        Some(look(recorded, &|node| recorded.names[node.index()].to_string()))
    }
}

/// Events between two polls of a run, those of other runs included, that a recorder keeps.
const EVENTS: NonZeroUsize = NonZeroUsize::new(1 << 14).expect("is not 0");

/// Keeps the events of one run, and leaves its timeline in the trace when dropped.
pub(super) struct Recorder<'a> {
    trace: Trace,
    listener: Listener,
    dag: &'a Dag,
    names: &'a Arc<[Name]>,
    label: Name,
    run: Option<RunId>,
    heard: Vec<ListenerItem>,
}

impl<'a> Recorder<'a> {
    pub(super) fn new(
        trace: Trace,
        events: &Events,
        dag: &'a Dag,
        names: &'a Arc<[Name]>,
        label: &Name,
    ) -> Recorder<'a> {
        let listener = events.listen(EVENTS);
        Recorder { trace, listener, dag, names, label: label.clone(), run: None, heard: Vec::new() }
    }

    /// Takes the events of `run` that have come.
    pub(super) fn hear(&mut self, run: RunId) {
        self.run = Some(run);
        while let Some(heard) = self.listener.try_next() {
            if !matches!(heard, ListenerItem::Event(event) if event.run != run) {
                self.heard.push(heard);
            }
        }
    }
}

impl Drop for Recorder<'_> {
    fn drop(&mut self) {
        let Some(run) = self.run else { return };
        self.hear(run);
        if let Ok(timeline) = Timeline::new(run, self.dag, &self.heard) {
            let recorded =
                RecordedTimeline { timeline, names: Arc::clone(self.names), label: self.label.clone() };
            *self.trace.recorded.lock().unwrap_or_else(PoisonError::into_inner) = Some(recorded);
        }
    }
}
