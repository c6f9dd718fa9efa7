//! A compiled plan: immutable, shared by all its requests.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anabranch_engine::{Dag, NodeId, Policies};
use anabranch_rows::{Key, Kind, Rows};

use crate::call::Call;
use crate::capture::Fixed;
use crate::document::Range;
use crate::op::{Choice, Condition, Demand, Form, NamedFile, Op, Rule};
use crate::registry::Registries;
use crate::schema::Schema;
use crate::source::Reader;
use crate::times::Times;
use crate::value::Scalar;

/// A plan, ready to run.
pub(crate) struct Compiled {
    pub(crate) name: String,
    pub(crate) registries: Arc<Registries>,
    /// What runs, inputs first.
    pub(crate) nodes: Vec<PlanNode>,
    /// How it runs: the nodes of the engine's graph.
    pub(crate) stages: Vec<Stage>,
    pub(crate) graph: Dag,
    pub(crate) policies: Policies,
    /// The stages whose rows are the answer, in order.
    pub(crate) outputs: Vec<usize>,
    /// The names of the outputs.
    pub(crate) output_names: Arc<[String]>,
    /// How many tables of shared reads a request needs.
    pub(crate) shared_reads: usize,
    /// What a stage without rows of its own hands over.
    pub(crate) nothing: Rows,
    /// Nodes that no output needs, and their ops.
    pub(crate) dead: Vec<(String, String)>,
    /// What must be done in time as a whole.
    pub(crate) regions: Vec<Region>,
    /// Whether anything can stand in for some node.
    pub(crate) degrades: bool,
    /// How long a request that brings no deadline may take.
    pub(crate) deadline: Option<Duration>,
    /// How long its stages took lately.
    pub(crate) times: Times,
    /// What it was made from, besides the registries.
    pub(crate) origin: Origin,
}

/// What a plan was made from. Kept for captures: the files may have changed since.
#[derive(Default)]
pub(crate) struct Origin {
    /// The plan file.
    pub(crate) text: Arc<str>,
    /// Files that it names.
    pub(crate) files: Vec<NamedFile>,
    /// What captures call all this, once there is one.
    pub(crate) fixed: OnceLock<Fixed>,
}

/// A node that runs.
pub(crate) struct PlanNode {
    pub(crate) id: String,
    /// The equal nodes that it stands for.
    pub(crate) also: Vec<String>,
    pub(crate) trace: Option<String>,
    /// What its parameters say, for people.
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) op: Arc<dyn Op>,
    /// By number.
    pub(crate) inputs: Vec<usize>,
    pub(crate) schema: Schema,
    pub(crate) demand: Demand,
    pub(crate) choice: Option<Choice>,
    pub(crate) rule: Option<Rule>,
    /// By input: whether its rows come out, if they are not dropped.
    pub(crate) carries: Vec<bool>,
    /// The endpoint whose limit its trips count against, by place.
    pub(crate) endpoint: Option<usize>,
    /// What it reads: the endpoint's place, and how.
    pub(crate) reads: Vec<(usize, Reader)>,
    pub(crate) form: Form,
    /// The longest it may take.
    pub(crate) timeout: Option<Duration>,
    /// What stands in for it, in turn.
    pub(crate) stand_ins: Vec<StandIn>,
    /// Between what the columns of its rows lie, whoever makes them.
    pub(crate) ranges: Vec<Range>,
    /// What its guard says, for people.
    pub(crate) guard: Vec<(String, String)>,
    /// Its rows without the columns that it reads, if they are known beforehand.
    pub(crate) bare: Option<fn(&Call) -> Rows>,
    /// Whether its rows are those of its first input.
    pub(crate) passes: bool,
    /// The columns that these do not have, or not so.
    pub(crate) made: Vec<Made>,
    /// Whether it was added behind the one node that it is the region of.
    pub(crate) alone: bool,
}

/// A column that a node makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Made {
    pub(crate) key: Key,
    pub(crate) kind: Kind,
    /// Whether it is made of the one of the same key that the rows had.
    pub(crate) of_itself: bool,
}

/// What stands in for the rows of a node.
pub(crate) enum StandIn {
    /// These, which are none.
    Empty(Rows),
    /// Those that it was given, with these constants or nulls as columns.
    Fill {
        /// What people call it.
        word: &'static str,
        columns: Vec<(Key, Kind, Option<Scalar>)>,
    },
    /// What its source said before, at most so long ago.
    Stale(Duration),
    /// Those of this node.
    Node(String),
}

impl StandIn {
    /// What people call it.
    pub(crate) fn name(&self) -> String {
        match self {
            StandIn::Empty(_) => "empty".to_owned(),
            StandIn::Fill { word, .. } => (*word).to_owned(),
            StandIn::Stale(_) => "stale".to_owned(),
            StandIn::Node(id) => format!("node {id}"),
        }
    }
}

/// What must be done in time as a whole, or is stood in for.
pub(crate) struct Region {
    /// The `core::timeout` node.
    pub(crate) node: usize,
    /// The stage that goes on with its rows.
    pub(crate) exit: usize,
    /// The stage that watches the time.
    pub(crate) timer: usize,
    /// The stages that run for it alone, those of regions within it included.
    pub(crate) members: Vec<usize>,
    /// The stages that run only to stand in for it.
    pub(crate) spares: Vec<usize>,
    /// The input of the exit, by place, whose rows the region was given, if there is one.
    pub(crate) given: Option<usize>,
    /// Where the exit itself belongs.
    pub(crate) home: Option<Home>,
}

/// The region that a stage belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Home {
    pub(crate) region: usize,
    /// Whether it runs only to stand in for it.
    pub(crate) spare: bool,
}

/// One node of the engine's graph.
pub(crate) struct Stage {
    pub(crate) what: What,
    /// The stages whose rows it takes, in the order of the node's inputs.
    pub(crate) inputs: Vec<usize>,
    /// Whether its rows are handed over, not shared: one stage takes them, once, and they are no output.
    pub(crate) given_away: bool,
    /// Whether its rows are, or are part of, the answer.
    pub(crate) is_output: bool,
    /// The region it belongs to; the closest.
    pub(crate) home: Option<Home>,
    /// The region whose rows these are.
    pub(crate) completes: Option<usize>,
}

/// What a stage does.
pub(crate) enum What {
    /// Waits: one node.
    Wait(usize),
    /// Computes: these nodes, each taking the rows of the one before it.
    Chain(Vec<usize>),
    /// Lets what hangs on one side of an `if` run, or not.
    Gate {
        /// The `if`.
        node: usize,
        /// What its condition must come out as.
        open: bool,
        /// The condition; the stage whose first row it reads, if it reads one, is the gate's only input.
        when: Condition,
    },
    /// Goes on with the rows of a region, or what stands in for them.
    Exit(usize),
    /// Watches the time of a region.
    Timer(usize),
    /// Lets what stands in for a region run, or not.
    Spare(usize),
    /// Hands over what stands in for a region and runs anyway.
    Relay(usize),
}

impl What {
    /// The nodes that it carries out.
    pub(crate) fn nodes(&self) -> Option<&[usize]> {
        match self {
            What::Wait(node) => Some(std::slice::from_ref(node)),
            What::Chain(nodes) => Some(nodes),
            What::Gate { .. } | What::Exit(_) | What::Timer(_) | What::Spare(_) | What::Relay(_) => None,
        }
    }
}

impl Stage {
    pub(crate) fn new(what: What) -> Stage {
        Stage { what, inputs: Vec::new(), given_away: false, is_output: false, home: None, completes: None }
    }
}

impl Compiled {
    /// How its stages are carried out if no node may take longer than this.
    pub(crate) fn stricter(&self, timeout: Duration) -> Policies {
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
    pub(crate) fn first_node(&self, stage: usize) -> usize {
        match &self.stages[stage].what {
            What::Wait(node) | What::Gate { node, .. } => *node,
            What::Chain(nodes) => nodes[0],
            What::Exit(region) | What::Timer(region) | What::Spare(region) | What::Relay(region) => {
                self.regions[*region].node
            }
        }
    }

    /// The node whose rows are the stage's, if it has any.
    pub(crate) fn last_node(&self, stage: usize) -> Option<usize> {
        match &self.stages[stage].what {
            What::Exit(region) => Some(self.regions[*region].node),
            what => what.nodes()?.last().copied(),
        }
    }

    /// What people call a stage.
    pub(crate) fn stage_name(&self, stage: NodeId) -> String {
        let ids = |nodes: &[usize]| {
            let ids: Vec<&str> = nodes.iter().map(|node| self.nodes[*node].id.as_str()).collect();
            ids.join(" > ")
        };
        let ops = |nodes: &[usize]| {
            let ops: Vec<&str> = nodes.iter().map(|node| short(self.nodes[*node].op.spec().name)).collect();
            ops.join(" > ")
        };
        match &self.stages[stage.index()].what {
            What::Wait(node) => format!("{} ({})", ids(&[*node]), ops(&[*node])),
            What::Chain(nodes) if nodes.len() > 3 => {
                let ends = [nodes[0], nodes[nodes.len() - 1]];
                let [first, last] = ends.map(|node| self.nodes[node].id.as_str());
                format!("{first} > … > {last} ({} nodes)", nodes.len())
            }
            What::Chain(nodes) => format!("{} ({})", ids(nodes), ops(nodes)),
            What::Gate { node, open, .. } => {
                format!("{} of {}", if *open { "then" } else { "else" }, ids(&[*node]))
            }
            What::Exit(region) => {
                let node = self.regions[*region].node;
                format!("{} ({})", ids(&[node]), ops(&[node]))
            }
            What::Timer(region) => format!("time of {}", ids(&[self.regions[*region].node])),
            What::Spare(region) | What::Relay(region) => {
                format!("instead of {}", ids(&[self.regions[*region].node]))
            }
        }
    }
}

/// An op's name without the namespace that most have.
pub(crate) fn short(op: &str) -> &str {
    op.strip_prefix("core::").unwrap_or(op)
}
