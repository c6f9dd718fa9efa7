//! A plan explained before it runs: as data, as text, as a picture.

mod build;
mod text;
mod svg;

pub(crate) use build::shown;

use serde::Serialize;

use anabranch_plan::Plan;

/// The steps of a plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// The plan's name.
    pub plan: String,
    /// The stages of the engine's graph, inputs first.
    pub nodes: Vec<Node>,
    /// The stages. Each is started as one unit.
    pub stages: Vec<Stage>,
    /// The stages by level, the number of stages before them. Stages of one level may run in parallel.
    pub levels: Vec<Vec<usize>>,
    /// The nodes whose rows are the answer, in order.
    pub outputs: Vec<String>,
    /// The most trips to sources that a request makes.
    pub trips: u32,
    /// The most of them that happen one after another.
    pub critical_trips: u32,
    /// The stages of the longest path, counted in trips.
    pub critical_path: Vec<usize>,
    /// Computing that is expected to take at most this long, in microseconds, is done in place.
    pub inline_threshold_us: f64,
    /// The time limit of a request without a deadline, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<f64>,
    /// The nodes that no output needs, with their ops. They do not run.
    pub dead: Vec<Dead>,
}

/// A node that runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Node {
    /// Its id.
    pub id: String,
    /// Its op.
    pub op: String,
    /// Its label for traces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// Its parameters, with expressions in words: name and value.
    pub settings: Vec<(String, String)>,
    /// Its timeout and fallbacks: name and value.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub guard: Vec<(String, String)>,
    /// The equal nodes that it stands for: they are not run again.
    pub stands_for: Vec<String>,
    /// The nodes whose rows it takes, in order.
    pub inputs: Vec<String>,
    /// The node whose rows have the columns of its keys, if these are available before its own input. It reads in
    /// parallel with the nodes between.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reads_with: Option<String>,
    /// The columns of its output, ids aside.
    pub columns: Vec<Column>,
    /// The number of rows, if only the first ones are needed.
    pub first_rows: Option<u32>,
    /// Its reads, in order; one trip each.
    pub reads: Vec<Read>,
}

/// A column of a node's output.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Column {
    /// Its key's name.
    pub name: String,
    /// The kind of its values.
    pub kind: String,
    /// Whether any node reads it. Otherwise it is neither fetched nor computed.
    pub asked: bool,
}

/// The reads of one trip.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Read {
    /// The endpoint's id.
    pub endpoint: String,
    /// The endpoint's name for people.
    pub endpoint_name: String,
    /// The command of each row.
    pub command: String,
    /// The pattern of the keys.
    pub pattern: String,
    /// The fields it fetches, if it fetches fields.
    pub fields: Vec<String>,
    /// The most ids of a list, if it fetches lists.
    pub limit: Option<u32>,
    /// Whether other nodes make the same read, so that they share the reply.
    pub shared: bool,
}

/// Nodes that start together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stage {
    /// Its name for people.
    pub name: String,
    /// Its work.
    pub kind: Kind,
    /// Its nodes; more than one are a chain that is computed in one go.
    pub nodes: Vec<String>,
    /// The stages it waits for.
    pub after: Vec<After>,
    /// Its place in [`Explanation::levels`].
    pub level: usize,
    /// The trips it makes.
    pub trips: u32,
}

/// An edge to a stage.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct After {
    /// The stage waited for.
    pub stage: usize,
    /// True if its rows are needed, or just its end.
    pub needed: bool,
}

/// The work of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Waits for a source or a timer.
    Wait,
    /// Computes.
    Compute,
    /// Lets one side of a choice run, or not.
    Gate,
    /// Ends with an error when the timeout of a region passes.
    Timer,
}

/// A node that does not run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Dead {
    /// Its id.
    pub id: String,
    /// Its op.
    pub op: String,
}

/// The steps of a plan.
pub fn explain(plan: &Plan) -> Explanation {
    build::explain(plan.compiled(), plan.engine().inline_threshold())
}

impl Explanation {
    /// For people, on 100 columns.
    pub fn text(&self) -> String {
        text::write(self)
    }

    /// The plan as an SVG image: stages as boxes, from left to right by level.
    pub fn svg(&self) -> String {
        svg::write(self)
    }

    /// For programs.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("names and numbers are JSON")
    }
}

impl Kind {
    /// In one word.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Wait => "wait",
            Kind::Compute => "compute",
            Kind::Gate => "gate",
            Kind::Timer => "timer",
        }
    }
}
