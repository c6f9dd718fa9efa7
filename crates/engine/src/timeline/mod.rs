//! Where a run's time went, told from its events: what each node waited for and worked on, the chain of nodes that
//! made the run take as long as it did, and both as a picture or a trace.
//!
//! A node's time is cut into [`Category`]s without gap, from the moment its last input ended to its own end. So the
//! times along the critical path, plus what lies outside of any node, add up to the run's.

mod build;
mod path;
mod escape;
mod scale;
mod lanes;
mod trace;
mod density;
mod bars;
mod summary;
mod svg;
mod html;

use std::ops::{AddAssign, Index, IndexMut};
use std::time::Duration;

use crate::event::{Ending, Heard, Place, Reason, RunId};
use crate::graph::{Graph, NodeId};

/// What became of a run and its nodes; times count from the run's start.
pub struct Timeline {
    run: RunId,
    ending: Option<Ending>,
    lost: u64,
    wall: Duration,
    tracks: Vec<Track>,
    /// By node, then by time.
    spans: Vec<Span>,
    path: Vec<NodeId>,
    on_path: Spent,
    over_all: Spent,
}

/// What became of a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Track {
    /// When its last input ended, if that was heard.
    pub ready: Option<Duration>,
    /// When its first attempt started.
    pub started: Option<Duration>,
    /// When it ended.
    pub ended: Option<Duration>,
    /// How often it started.
    pub attempts: u32,
    /// Where its last attempt was carried out.
    pub place: Option<Place>,
    /// How it ended.
    pub outcome: Outcome,
    /// Its time, from the run's start to its own end.
    pub spent: Spent,
}

/// How a node ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It finished.
    Finished,
    /// A stand-in took its place.
    FellBack(Reason),
    /// It failed.
    Failed(Reason),
    /// It was dropped: because of this input, or because the workload asked for it.
    Dropped(Option<NodeId>),
    /// It was under way when the run, or the listening, ended.
    Open,
    /// Nothing was heard of it.
    Unheard,
}

/// What time is spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// Waiting for inputs.
    Inputs,
    /// Ready, with no reason heard why it did not start: the run's slots or its task were busy.
    Slot,
    /// Waiting for a slot of a limit.
    Limit,
    /// The pause before another attempt.
    Retry,
    /// Standing in a pool's queue.
    Queue,
    /// Carried out as a future, a task or a blocking call.
    Io,
    /// Carried out in place or by a CPU pool.
    Cpu,
    /// Events that would say are missing.
    Unknown,
    /// Outside of any node.
    Outside,
}

/// Time by category.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent([Duration; Category::ALL.len()]);

/// Why there is no timeline.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No event of the run is among those given.
    #[error("nothing was heard of run {}", .0.0)]
    Unheard(RunId),
    /// The events tell of another graph.
    #[error("the events are of a graph of at least {told} nodes, not of this one of {node_count}")]
    OtherGraph {
        /// The fewest nodes the run's graph has.
        told: u32,
        /// The nodes of the graph given.
        node_count: u32,
    },
}

/// A stretch of a node's time.
#[derive(Clone, Copy, Debug)]
struct Span {
    node: NodeId,
    category: Category,
    from: Duration,
    to: Duration,
}

impl Timeline {
    /// The timeline of `run`, a run of `graph`, from what was heard; events of other runs may be among it.
    pub fn new<G: Graph>(run: RunId, graph: &G, heard: &[Heard]) -> Result<Timeline, Error> {
        build::build(run, graph, heard)
    }

    /// The run.
    pub fn run(&self) -> RunId {
        self.run
    }

    /// How the run ended; `None` while it goes on, or if that was lost.
    pub fn ending(&self) -> Option<Ending> {
        self.ending
    }

    /// How many events were lost, of this run or others.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// From the run's start to its end, or to the last event heard.
    pub fn wall(&self) -> Duration {
        self.wall
    }

    /// What became of each node, by its number.
    pub fn tracks(&self) -> &[Track] {
        &self.tracks
    }

    /// The nodes that made the run take this long, in order: each is the input that its successor waited for last.
    pub fn critical_path(&self) -> &[NodeId] {
        &self.path
    }

    /// The time along the critical path; adds up to [`Timeline::wall`].
    pub fn on_path(&self) -> Spent {
        self.on_path
    }

    /// The time of all nodes together.
    pub fn over_all(&self) -> Spent {
        self.over_all
    }

    /// A trace that Perfetto and Chrome open, in JSON: every attempt of every node, and the critical path.
    pub fn trace(&self, name: &dyn Fn(NodeId) -> String) -> String {
        trace::write(self, name)
    }

    /// The timeline as one SVG file; above two thousand bars neighbours are merged into blocks.
    pub fn svg(&self, title: &str, name: &dyn Fn(NodeId) -> String) -> String {
        svg::write(self, title, name)
    }

    /// The timeline as one HTML file that zooms and pans, with the critical path as a table.
    pub fn html(&self, title: &str, name: &dyn Fn(NodeId) -> String) -> String {
        html::write(self, title, name)
    }

    fn track(&self, node: NodeId) -> &Track {
        &self.tracks[node.index()]
    }

    fn spans_of(&self, node: NodeId) -> &[Span] {
        let from = self.spans.partition_point(|span| span.node < node);
        let count = self.spans[from..].partition_point(|span| span.node == node);
        &self.spans[from..from + count]
    }
}

impl Category {
    /// All of them: waits, then work, then what is neither.
    pub const ALL: [Category; 9] = [
        Category::Inputs,
        Category::Slot,
        Category::Limit,
        Category::Retry,
        Category::Queue,
        Category::Io,
        Category::Cpu,
        Category::Unknown,
        Category::Outside,
    ];

    /// In words.
    pub fn label(self) -> &'static str {
        match self {
            Category::Inputs => "waiting for inputs",
            Category::Slot => "waiting for a turn",
            Category::Limit => "waiting for a limit",
            Category::Retry => "waiting to retry",
            Category::Queue => "in a pool's queue",
            Category::Io => "I/O",
            Category::Cpu => "CPU",
            Category::Unknown => "unknown (events missing)",
            Category::Outside => "outside of any node",
        }
    }

    /// The class in style sheets, the key in traces.
    fn key(self) -> &'static str {
        match self {
            Category::Inputs => "inputs",
            Category::Slot => "slot",
            Category::Limit => "limit",
            Category::Retry => "retry",
            Category::Queue => "queue",
            Category::Io => "io",
            Category::Cpu => "cpu",
            Category::Unknown => "unknown",
            Category::Outside => "outside",
        }
    }

    /// Whether a node in this state takes up a place among those in flight.
    fn is_in_flight(self) -> bool {
        matches!(self, Category::Queue | Category::Io | Category::Cpu)
    }
}

impl Spent {
    /// The sum.
    pub fn total(&self) -> Duration {
        self.0.iter().sum()
    }

    /// Each category that took any time.
    pub fn parts(&self) -> impl Iterator<Item = (Category, Duration)> + '_ {
        Category::ALL.into_iter().map(|category| (category, self[category])).filter(|part| !part.1.is_zero())
    }
}

impl Index<Category> for Spent {
    type Output = Duration;

    fn index(&self, category: Category) -> &Duration {
        &self.0[category as usize]
    }
}

impl IndexMut<Category> for Spent {
    fn index_mut(&mut self, category: Category) -> &mut Duration {
        &mut self.0[category as usize]
    }
}

impl AddAssign for Spent {
    fn add_assign(&mut self, other: Spent) {
        for (sum, more) in self.0.iter_mut().zip(other.0) {
            *sum += more;
        }
    }
}

impl Outcome {
    /// In words, given how to name a node.
    fn words(self, name: &dyn Fn(NodeId) -> String) -> String {
        match self {
            Outcome::Finished => "finished".to_owned(),
            Outcome::FellBack(reason) => format!("fell back after {}", cause(reason)),
            Outcome::Failed(reason) => format!("failed: {}", cause(reason)),
            Outcome::Dropped(None) => "dropped".to_owned(),
            Outcome::Dropped(Some(input)) => format!("dropped because of {}", name(input)),
            Outcome::Open => "under way".to_owned(),
            Outcome::Unheard => "never heard of".to_owned(),
        }
    }
}

fn cause(reason: Reason) -> &'static str {
    match reason {
        Reason::Error => "its own error",
        Reason::Panic => "a panic",
        Reason::Timeout => "its timeout",
        Reason::Deadline => "the run's deadline",
        Reason::Abandoned => "a pool that shut down",
    }
}
