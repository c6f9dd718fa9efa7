//! The edges between the columns of a grid, the same for every row group.

use anabranch_engine::{Edge, Policies, Policy};

use crate::generator::Grain;
use crate::program::Task;

/// The columns of a grid with their edges and policies.
pub(crate) struct Layout {
    /// Nodes of the whole group.
    pub(crate) head: Vec<HeadColumn>,
    /// One node per row each.
    pub(crate) cells: Vec<CellColumn>,
    pub(crate) policies: Policies,
    /// The nodes of each task of the program.
    pub(crate) places: Vec<TaskPlaces>,
}

pub(crate) struct HeadColumn {
    pub(crate) node: HeadNode,
    pub(super) inputs: Edges,
    pub(super) dependents: Edges,
}

pub(crate) struct CellColumn {
    /// The number of its task in the program.
    pub(crate) task: usize,
    pub(crate) part: Part,
    pub(super) inputs: Edges,
    pub(super) dependents: Edges,
}

/// The part of a task that a cell's node does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Whole,
    /// The part of a task with a call that comes before the call.
    Prepare,
    Call,
}

/// The work of a node of the whole group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeadNode {
    /// A batch task of the program, by its number.
    Batch(usize),
    /// Waits until a stateful task is this group's turn.
    Enter(usize),
    /// Gives a stateful task to the next group.
    Leave(usize),
}

/// Edges to other columns: of the whole group, and of the rows.
#[derive(Default)]
pub(super) struct Edges {
    pub(super) head: Vec<(usize, Edge)>,
    pub(super) cells: Vec<(usize, Edge)>,
}

impl Edges {
    pub(super) fn count(&self, rows: u32) -> u32 {
        self.head.len() as u32 + self.cells.len() as u32 * rows
    }
}

/// A node of every row, or of the whole group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskPlace {
    Head(usize),
    Cell(usize),
}

/// The nodes of a task: its first waits for its inputs, its dependents wait for the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaskPlaces {
    pub(crate) first: TaskPlace,
    pub(crate) last: TaskPlace,
}

impl TaskPlaces {
    fn one(place: TaskPlace) -> TaskPlaces {
        TaskPlaces { first: place, last: place }
    }
}

impl Layout {
    /// The layout of these tasks, which are in their order of dependency.
    pub(crate) fn new(tasks: &[Task]) -> Layout {
        let mut layout = Layout {
            head: Vec::new(),
            cells: Vec::new(),
            policies: Policies::default(),
            places: Vec::with_capacity(tasks.len()),
        };
        for (number, task) in tasks.iter().enumerate() {
            let places = match task.grain {
                Grain::Batch => TaskPlaces::one(TaskPlace::Head(layout.add_head(HeadNode::Batch(number)))),
                Grain::Cell => TaskPlaces::one(TaskPlace::Cell(layout.add_cell(number, Part::Whole))),
                Grain::Call => {
                    let first = TaskPlace::Cell(layout.add_cell(number, Part::Prepare));
                    let last = TaskPlace::Cell(layout.add_cell(number, Part::Call));
                    layout.connect(first, last);
                    TaskPlaces { first, last }
                }
            };
            layout.places.push(places);
        }
        for (number, task) in tasks.iter().enumerate() {
            for input in &task.inputs {
                layout.connect(layout.places[*input].last, layout.places[number].first);
            }
            if task.stateful {
                layout.serialise(number);
            }
        }
        layout.set_policies(tasks);
        layout
    }

    fn add_head(&mut self, node: HeadNode) -> usize {
        self.head.push(HeadColumn { node, inputs: Edges::default(), dependents: Edges::default() });
        self.head.len() - 1
    }

    fn add_cell(&mut self, task: usize, part: Part) -> usize {
        self.cells.push(CellColumn { task, part, inputs: Edges::default(), dependents: Edges::default() });
        self.cells.len() - 1
    }

    /// Connects two tasks. A batch task starts when every row has its cell or was dropped; all other tasks need their
    /// inputs.
    fn connect(&mut self, input: TaskPlace, dependent: TaskPlace) {
        match (input, dependent) {
            (TaskPlace::Head(input), TaskPlace::Head(dependent)) => {
                self.connect_heads(input, dependent, Edge::Needs);
            }
            (TaskPlace::Head(input), TaskPlace::Cell(dependent)) => {
                self.head[input].dependents.cells.push((dependent, Edge::Needs));
                self.cells[dependent].inputs.head.push((input, Edge::Needs));
            }
            (TaskPlace::Cell(input), TaskPlace::Head(dependent)) => {
                self.cells[input].dependents.head.push((dependent, Edge::After));
                self.head[dependent].inputs.cells.push((input, Edge::After));
            }
            (TaskPlace::Cell(input), TaskPlace::Cell(dependent)) => {
                self.cells[input].dependents.cells.push((dependent, Edge::Needs));
                self.cells[dependent].inputs.cells.push((input, Edge::Needs));
            }
        }
    }

    fn connect_heads(&mut self, input: usize, dependent: usize, edge: Edge) {
        self.head[input].dependents.head.push((dependent, edge));
        self.head[dependent].inputs.head.push((input, edge));
    }

    /// Puts a stateful task between two nodes that take its turn and pass it on.
    fn serialise(&mut self, task: usize) {
        let enter = self.add_head(HeadNode::Enter(task));
        let leave = self.add_head(HeadNode::Leave(task));
        self.connect(TaskPlace::Head(enter), self.places[task].first);
        // Passing the turn on waits for failures and dropped rows too.
        match self.places[task].last {
            TaskPlace::Head(batch) => self.connect_heads(batch, leave, Edge::After),
            place @ TaskPlace::Cell(_) => self.connect(place, TaskPlace::Head(leave)),
        }
        self.connect_heads(enter, leave, Edge::After);
    }

    fn set_policies(&mut self, tasks: &[Task]) {
        let head = self.head.iter().map(|column| match column.node {
            HeadNode::Batch(task) => tasks[task].policy,
            HeadNode::Enter(_) | HeadNode::Leave(_) => Policy::default(),
        });
        let cells = self.cells.iter().map(|column| {
            let policy = tasks[column.task].policy;
            match column.part {
                Part::Whole | Part::Call => policy,
                Part::Prepare => Policy { limit: None, retry: None, timeout: None, ..policy },
            }
        });
        self.policies = Policies::repeating_after(head.collect(), cells.collect());
    }
}
