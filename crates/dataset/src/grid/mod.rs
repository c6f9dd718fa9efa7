//! A row group as a graph: one node per (cell task, row), numbered row by row, behind a few nodes of the whole group.
//!
//! No edge is stored per cell: the edges of a node follow from those of its column. Lower numbers start first, so nodes of
//! the whole group come first, then rows, and within a row the columns in their order of dependency.

mod dry;
mod layout;
mod step;
mod values;
mod work;

use anabranch_engine::{Edge, Graph, NodeId};

pub(crate) use layout::{HeadNode, Layout, Part};
pub(crate) use values::{RowValues, ValueMemory};
pub(crate) use work::{GroupRun, text_is_true};

/// The graph of one row group.
pub(crate) struct Grid<'l> {
    pub(crate) layout: &'l Layout,
    pub(crate) rows: u32,
}

/// The place of a node in the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A node of the whole group, by its number in [`Layout::head`].
    Head(usize),
    /// A cell: its row in the group, and its number in [`Layout::cells`].
    Cell { row: usize, cell: usize },
}

impl Grid<'_> {
    pub(crate) fn place(&self, node: NodeId) -> Place {
        let (number, head, width) = (node.index(), self.layout.head.len(), self.layout.cells.len());
        match number.checked_sub(head) {
            None => Place::Head(number),
            Some(number) => Place::Cell { row: number / width, cell: number % width },
        }
    }

    pub(crate) fn cell(&self, row: usize, cell: usize) -> NodeId {
        NodeId((self.layout.head.len() + row * self.layout.cells.len() + cell) as u32)
    }
}

impl Graph for Grid<'_> {
    fn node_count(&self) -> u32 {
        (self.layout.head.len() + self.rows as usize * self.layout.cells.len()) as u32
    }

    fn input_count(&self, node: NodeId) -> u32 {
        match self.place(node) {
            Place::Head(head) => self.layout.head[head].inputs.count(self.rows),
            Place::Cell { cell, .. } => self.layout.cells[cell].inputs.count(1),
        }
    }

    fn dependent_count(&self, node: NodeId) -> u32 {
        match self.place(node) {
            Place::Head(head) => self.layout.head[head].dependents.count(self.rows),
            Place::Cell { cell, .. } => self.layout.cells[cell].dependents.count(1),
        }
    }

    fn inputs(&self, node: NodeId, visit: impl FnMut(NodeId, Edge)) {
        match self.place(node) {
            Place::Head(head) => self.visit_all_rows(&self.layout.head[head].inputs, visit),
            Place::Cell { row, cell } => self.visit_row(&self.layout.cells[cell].inputs, row, visit),
        }
    }

    fn dependents(&self, node: NodeId, visit: impl FnMut(NodeId, Edge)) {
        match self.place(node) {
            Place::Head(head) => self.visit_all_rows(&self.layout.head[head].dependents, visit),
            Place::Cell { row, cell } => self.visit_row(&self.layout.cells[cell].dependents, row, visit),
        }
    }
}

impl Grid<'_> {
    fn visit_row(&self, edges: &layout::Edges, row: usize, mut visit: impl FnMut(NodeId, Edge)) {
        edges.head.iter().for_each(|(head, edge)| visit(NodeId(*head as u32), *edge));
        edges.cells.iter().for_each(|(cell, edge)| visit(self.cell(row, *cell), *edge));
    }

    fn visit_all_rows(&self, edges: &layout::Edges, mut visit: impl FnMut(NodeId, Edge)) {
        edges.head.iter().for_each(|(head, edge)| visit(NodeId(*head as u32), *edge));
        for row in 0..self.rows as usize {
            edges.cells.iter().for_each(|(cell, edge)| visit(self.cell(row, *cell), *edge));
        }
    }
}
