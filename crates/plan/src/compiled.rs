//! A compiled plan: immutable, shared by all its requests.

use std::sync::{Arc, OnceLock};

use anabranch_engine::{Dag, NodeId, Policies};
use anabranch_rows::Rows;

use crate::capture::Fixed;
use crate::expr::Filter;
use crate::op::{Choice, Demand, Form, NamedFile, Op};
use crate::registry::Registries;
use crate::schema::Schema;
use crate::source::Reader;

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
    /// How many tables of shared reads a request needs.
    pub(crate) shared_reads: usize,
    /// What a stage without rows of its own hands over.
    pub(crate) nothing: Rows,
    /// Nodes that no output needs, and their ops.
    pub(crate) dead: Vec<(String, String)>,
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
    /// The endpoint whose limit its trips count against, by place.
    pub(crate) endpoint: Option<usize>,
    /// What it reads: the endpoint's place, and how.
    pub(crate) reads: Vec<(usize, Reader)>,
    pub(crate) form: Form,
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
        /// The condition.
        when: Arc<Filter>,
    },
}

impl Compiled {
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
        }
    }
}

/// An op's name without the namespace that most have.
pub(crate) fn short(op: &str) -> &str {
    op.strip_prefix("core::").unwrap_or(op)
}
