//! A compiled plan: immutable, shared by all its requests.

use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::{Dag, NodeId, Policies};
use anabranch_rows::{Key, Kind, Rows};

use crate::call::Call;
use crate::document::{Range, StaleTerms};
use crate::op::{Choice, Condition, Demand, Form, NamedFile, Op, Rule};
use crate::registry::Registries;
use crate::schema::Schema;
use crate::source::Reader;
use crate::times::Times;
use crate::value::Scalar;

/// A plan, ready to run.
pub struct Compiled {
    pub name: String,
    pub registries: Arc<Registries>,
    /// The stages of the engine's graph, inputs first.
    pub nodes: Vec<PlanNode>,
    /// The nodes of the engine's graph.
    pub stages: Vec<Stage>,
    pub graph: Dag,
    pub policies: Policies,
    /// The stages whose rows are the response, in order.
    pub outputs: Vec<usize>,
    /// The names of the outputs.
    pub output_names: Arc<[String]>,
    /// The number of tables of shared reads that a request needs.
    pub shared_reads: usize,
    /// The conditions that may use a pattern or a list of the request. They are evaluated in place, so the pattern or
    /// list is prepared before the run.
    pub slow_conditions: Vec<Condition>,
    /// The empty rows that a stage without its own rows passes on.
    pub nothing: Rows,
    /// Nodes that no output needs, and their ops.
    pub dead: Vec<(String, String)>,
    /// The regions: stages that succeed or fall back as a whole.
    pub regions: Vec<Region>,
    /// Whether any node has a fallback.
    pub degrades: bool,
    /// The time limit of a request without a deadline.
    pub deadline: Option<Duration>,
    /// The recent durations of its stages.
    pub(crate) times: Times,
    /// The sources of the plan, besides the registries.
    pub origin: Origin,
}

/// The sources of a plan. They are kept for captures, because the files may have changed since.
#[derive(Default)]
pub struct Origin {
    /// The plan file.
    pub text: Arc<str>,
    /// Files that it names.
    pub files: Vec<NamedFile>,
}

/// A node that runs.
#[derive(Clone)]
pub struct PlanNode {
    /// Its id in the plan.
    pub id: String,
    /// The op.
    pub op: Arc<dyn Op>,
    /// The nodes whose rows it takes, by number.
    pub inputs: Vec<usize>,
    /// The columns and rows of it that other nodes need.
    pub demand: Demand,
    /// The choice between its inputs, if it makes one.
    pub choice: Option<Choice>,
    /// The index of the endpoint whose limit its trips count against.
    pub endpoint: Option<usize>,
    /// The code that produces its rows.
    pub form: Form,
    /// Its timeout.
    pub timeout: Option<Duration>,
    /// The valid ranges of its columns, regardless of what produces them.
    pub ranges: Vec<Range>,
    /// Its rows without the columns that it reads, if they are known in advance.
    pub bare: Option<fn(&Call) -> Rows>,
    /// Whether its rows are those of its first input.
    pub passes: bool,
    /// The columns that it adds or replaces.
    pub made: Vec<MadeColumn>,
    /// Whether it is a region that the planner added for one node.
    pub alone: bool,
    /// Whether it reads early for the node of the same id: its rows are available before those of that node.
    pub early: bool,
    /// The facts that are not needed to run a request.
    pub about: About,
}

/// The facts about a node that only those ask for who inspect a plan.
#[derive(Clone)]
pub struct About {
    /// The equal nodes that it stands for.
    pub also: Vec<String>,
    /// Its `trace` in the plan.
    pub trace: Option<String>,
    /// Its parameters, for people.
    pub settings: Vec<(String, String)>,
    /// The columns of its rows.
    pub schema: Schema,
    /// The rule that decides which rows come out.
    pub rule: Option<Rule>,
    /// By input: whether its rows come out, if they are not dropped.
    pub carries: Vec<bool>,
    /// Its reads.
    pub reads: Vec<Reader>,
    /// Its timeout, fallbacks and ranges, for people.
    pub guard: Vec<(String, String)>,
}

/// A column that a node makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MadeColumn {
    pub key: Key,
    pub kind: Kind,
    /// True if it is computed from the input's column of the same key.
    pub of_itself: bool,
}

/// A fallback: the rows that replace those of a node.
#[derive(Clone)]
pub enum StandIn {
    /// An empty set of rows.
    Empty(Rows),
    /// The rows of its input, with these constants or nulls as columns.
    Fill {
        /// Its name in plans.
        word: &'static str,
        columns: Vec<(Key, Kind, Option<Scalar>)>,
    },
    /// The earlier replies of its source.
    Stale(StaleTerms),
    /// The rows of this node.
    Node(String),
}

impl StandIn {
    /// Its name for people.
    pub fn name(&self) -> String {
        match self {
            StandIn::Empty(_) => "empty".to_owned(),
            StandIn::Fill { word, .. } => (*word).to_owned(),
            StandIn::Stale(_) => "stale".to_owned(),
            StandIn::Node(id) => format!("node {id}"),
        }
    }
}

/// Stages whose rows come in time as a whole, or are replaced as a whole. Every fallback belongs to one: a
/// `core::timeout` is a region with an exit of its own, and a node with a fallback is a region of one stage.
pub struct Region {
    /// The node whose rows these are: the `core::timeout`, or the one node.
    pub node: usize,
    /// The stage that passes on its rows. For a region of one stage, that stage itself.
    pub exit: usize,
    /// The stage that watches the time. The time of a region of one stage is the stage's own timeout.
    pub timer: Option<usize>,
    /// Its fallbacks, in order.
    pub stand_ins: Vec<StandIn>,
    /// The stages that run only for it, including those of regions within it.
    pub members: Vec<usize>,
    /// The stages that run only as its fallback.
    pub fallback_stages: Vec<usize>,
    /// The index of the exit's input whose rows the region was given, if there is one.
    pub given: Option<usize>,
    /// The region around it.
    pub membership: Option<RegionMembership>,
}

impl Region {
    /// True for a region of one stage, which has no exit of its own.
    pub fn is_one_stage(&self) -> bool {
        self.timer.is_none()
    }
}

/// The region of a stage, and the stage's part in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionMembership {
    pub region: usize,
    /// True if the stage runs only as a fallback of the region.
    pub is_fallback: bool,
}

/// One node of the engine's graph.
pub struct Stage {
    pub what: StageWork,
    /// The stages whose rows it takes, in the order of the node's inputs.
    pub inputs: Vec<usize>,
    /// True if its rows are moved, not shared: one stage takes them, once, and they are not an output.
    pub given_away: bool,
    /// True if its rows are part of the answer.
    pub is_output: bool,
    /// The region it belongs to; the closest.
    pub membership: Option<RegionMembership>,
    /// The region whose rows these are.
    pub completes: Option<usize>,
}

/// The work of a stage.
pub enum StageWork {
    /// Waits: one node.
    Wait(usize),
    /// Computes: these nodes, each taking the rows of the one before it.
    Chain(Vec<usize>),
    /// Runs or skips the stages of one branch of an `if`.
    Gate {
        /// The `if`.
        node: usize,
        /// The value of the condition that opens it.
        open: bool,
        /// The condition; the stage whose first row it reads, if it reads one, is the gate's only input.
        when: Condition,
    },
    /// Hands over the rows of a region, or those of its fallback.
    Exit(usize),
    /// Ends with an error when the timeout of a region passes.
    Timer(usize),
    /// Runs or skips the stages of a region's fallback.
    RunFallback(usize),
    /// Hands over the rows of a fallback node that runs in any case.
    PassFallback(usize),
}

impl StageWork {
    /// The nodes that the stage runs.
    pub fn nodes(&self) -> Option<&[usize]> {
        match self {
            StageWork::Wait(node) => Some(std::slice::from_ref(node)),
            StageWork::Chain(nodes) => Some(nodes),
            StageWork::Gate { .. }
            | StageWork::Exit(_)
            | StageWork::Timer(_)
            | StageWork::RunFallback(_)
            | StageWork::PassFallback(_) => None,
        }
    }
}

impl Stage {
    pub(crate) fn new(what: StageWork) -> Stage {
        Stage {
            what,
            inputs: Vec::new(),
            given_away: false,
            is_output: false,
            membership: None,
            completes: None,
        }
    }
}

impl Compiled {
    /// The policies of its stages if no node may take longer than this.
    pub fn stricter(&self, timeout: Duration) -> Policies {
        let policy = |(number, stage): (usize, &Stage)| {
            let mut policy = *self.policies.of(NodeId(number as u32));
            if let Some(nodes) = stage.what.nodes() {
                let all = timeout.saturating_mul(u32::try_from(nodes.len()).unwrap_or(u32::MAX));
                policy.timeout = Some(policy.timeout.map_or(all, |own| own.min(all)));
            }
            policy
        };
        let policies = self.stages.iter().enumerate().map(policy).collect();
        Policies::repeating(policies)
    }

    /// The node that a stage is, or begins with.
    pub fn first_node(&self, stage: usize) -> usize {
        match &self.stages[stage].what {
            StageWork::Wait(node) | StageWork::Gate { node, .. } => *node,
            StageWork::Chain(nodes) => nodes[0],
            StageWork::Exit(region)
            | StageWork::Timer(region)
            | StageWork::RunFallback(region)
            | StageWork::PassFallback(region) => self.regions[*region].node,
        }
    }

    /// The region that is lost when a stage is: the closest one that has more than this stage.
    pub fn membership(&self, stage: usize) -> Option<RegionMembership> {
        let membership = self.stages[stage].membership?;
        let region = &self.regions[membership.region];
        if region.is_one_stage() { region.membership } else { Some(membership) }
    }

    /// The node whose rows are the stage's, if it has any.
    pub fn last_node(&self, stage: usize) -> Option<usize> {
        match &self.stages[stage].what {
            StageWork::Exit(region) => Some(self.regions[*region].node),
            what => what.nodes()?.last().copied(),
        }
    }

    /// The name of a stage in messages.
    pub fn stage_name(&self, stage: NodeId) -> String {
        let ids = |nodes: &[usize]| {
            let ids: Vec<&str> = nodes.iter().map(|node| self.nodes[*node].id.as_str()).collect();
            ids.join(" > ")
        };
        let ops = |nodes: &[usize]| {
            let ops: Vec<&str> = nodes.iter().map(|node| short(self.nodes[*node].op.spec().name)).collect();
            ops.join(" > ")
        };
        match &self.stages[stage.index()].what {
            StageWork::Wait(node) if self.nodes[*node].early => {
                format!("{}, read early ({})", ids(&[*node]), ops(&[*node]))
            }
            StageWork::Wait(node) => format!("{} ({})", ids(&[*node]), ops(&[*node])),
            StageWork::Chain(nodes) if nodes.len() > 3 => {
                let ends = [nodes[0], nodes[nodes.len() - 1]];
                let [first, last] = ends.map(|node| self.nodes[node].id.as_str());
                format!("{first} > … > {last} ({} nodes)", nodes.len())
            }
            StageWork::Chain(nodes) => format!("{} ({})", ids(nodes), ops(nodes)),
            StageWork::Gate { node, open, .. } => {
                format!("{} of {}", if *open { "then" } else { "else" }, ids(&[*node]))
            }
            StageWork::Exit(region) => {
                let node = self.regions[*region].node;
                format!("{} ({})", ids(&[node]), ops(&[node]))
            }
            StageWork::Timer(region) => format!("time of {}", ids(&[self.regions[*region].node])),
            StageWork::RunFallback(region) => format!("instead of {}", ids(&[self.regions[*region].node])),
            StageWork::PassFallback(region) => {
                format!("rows instead of {}", ids(&[self.regions[*region].node]))
            }
        }
    }
}

/// An op's name without the namespace that most have.
pub fn short(op: &str) -> &str {
    op.strip_prefix("core::").unwrap_or(op)
}
