//! Pictures of graphs before they run: boxes from left to right by level, with curves between them. They have the fonts
//! and colours of timelines, light and dark.
//!
//! ```
//! use anabranch_engine::diagram::{Diagram, Edge, Line, Node, Tone};
//! let node = |name: &str, level, after| Node {
//!     tone: Tone::Compute, lines: vec![Line::strong(name)], tooltip: name.to_owned(), level, after,
//! };
//! let nodes = vec![node("read", 0, vec![]), node("rank", 1, vec![Edge::from_node(0)])];
//! let diagram = Diagram { title: "feed".to_owned(), nodes, ..Diagram::default() };
//! assert!(diagram.svg().starts_with("<svg"));
//! ```

mod html;
mod layout;
mod svg;

/// A graph to draw.
#[derive(Clone, Debug, Default)]
pub struct Diagram {
    /// Its title.
    pub title: String,
    /// The line below the title.
    pub summary: String,
    /// The meaning of boxes and lines.
    pub legend: Vec<(Sign, &'static str)>,
    /// Its nodes. Those of one level stand below each other, in this order.
    pub nodes: Vec<Node>,
}

/// A node of the graph.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its colour.
    pub tone: Tone,
    /// The lines of its box; long ones are cut.
    pub lines: Vec<Line>,
    /// The text that appears under the pointer.
    pub tooltip: String,
    /// Its column, from 0.
    pub level: usize,
    /// Its edges, from nodes of lower levels.
    pub after: Vec<Edge>,
}

/// A line of a box.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its look.
    pub look: Look,
    /// Its text.
    pub text: String,
}

/// The look of a line of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Bold.
    Strong,
    /// Pale.
    Muted,
    /// Blue, as a read.
    Read,
    /// Orange, as a guard or a warning.
    Warn,
}

/// The colour of a box: that of the same thing in timelines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Blue: waits or reads.
    Wait,
    /// Green: computes.
    Compute,
    /// Violet: decides.
    Gate,
    /// Amber and dashed: watches the time.
    Timer,
    /// Grey: nothing to do.
    Quiet,
    /// Red: fails.
    Fault,
}

/// An edge.
#[derive(Clone, Copy, Debug)]
pub struct Edge {
    /// The place of the node that it comes from.
    pub from: usize,
    /// Drawn strong.
    pub is_strong: bool,
    /// Drawn dashed.
    pub is_dashed: bool,
}

/// An entry of the legend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// A box.
    Box(Tone),
    /// A strong line.
    StrongLine,
    /// A dashed line.
    DashedLine,
}

/// A table below the picture of a page: a header, and rows with the same number of cells.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// The names of the columns.
    pub head: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<String>>,
}

impl Diagram {
    /// The diagram as an SVG image.
    pub fn svg(&self) -> String {
        svg::write(self)
    }

    /// The diagram as a self-contained HTML page: the picture, and a table below it.
    pub fn html(&self, table: &Table) -> String {
        html::write(self, table)
    }
}

impl Line {
    /// A bold line.
    pub fn strong(text: impl Into<String>) -> Line {
        Line { look: Look::Strong, text: text.into() }
    }

    /// A pale line.
    pub fn muted(text: impl Into<String>) -> Line {
        Line { look: Look::Muted, text: text.into() }
    }
}

impl Edge {
    /// A plain edge.
    pub fn from_node(from: usize) -> Edge {
        Edge { from, is_strong: false, is_dashed: false }
    }
}
