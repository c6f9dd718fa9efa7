//! The graph of a recipe as a picture, for `explain`.

use std::collections::{HashMap, HashSet, VecDeque};

use anabranch_content::Address;
use anabranch_engine::diagram::{self, Diagram, Edge, Line, Look, Sign, Table, Tone};
use anabranch_recipe::Functions;
use anabranch_text::count;

use super::backend::Backend;
use super::inside::short;
use super::node::Node;
use crate::failure::Failure;

/// The meaning of boxes and lines.
const LEGEND: [(Sign, &str); 5] = [
    (Sign::Box(Tone::Compute), "a get computes it"),
    (Sign::Box(Tone::Quiet), "the value is stored, or not needed"),
    (Sign::Box(Tone::Wait), "blob"),
    (Sign::Box(Tone::Fault), "the get would fail here"),
    (Sign::DashedLine, "not read by this get"),
];

/// The most parameters in a box.
const PARAMS_MOST: usize = 4;

/// A graph, or the drawn part of it.
pub(super) struct Picture {
    title: String,
    nodes: Vec<DrawnNode>,
    /// The number of inputs that are not drawn.
    pub(super) left_out: usize,
    names: HashMap<Address, String>,
    /// A server has its own functions, so they are checked only for a local store.
    is_remote: bool,
}

struct DrawnNode {
    address: Address,
    node: Node,
    /// The indexes of its inputs in the list.
    inputs: Vec<usize>,
    has_left_out: bool,
    is_needed: bool,
    level: usize,
}

impl Picture {
    /// Reads the `most` nodes of a graph that are nearest to its root.
    pub(super) async fn read(
        backend: &Backend,
        target: &str,
        root: Address,
        most: usize,
    ) -> Result<Picture, Failure> {
        let mut names = HashMap::new();
        for (name, address) in backend.refs().await? {
            names.entry(address).or_insert(name);
        }
        let (mut nodes, mut places): (Vec<DrawnNode>, _) = (Vec::new(), HashMap::from([(root, 0)]));
        let mut waiting = VecDeque::from([root]);
        let mut left_out = HashSet::new();
        while let Some(address) = waiting.pop_front() {
            let node = Node::find(backend, address).await?;
            let (mut inputs, mut has_left_out) = (Vec::new(), false);
            for input in node.inputs() {
                let next = places.len();
                match places.get(input) {
                    Some(place) if inputs.contains(place) => {}
                    Some(place) => inputs.push(*place),
                    None if next < most => {
                        places.insert(*input, next);
                        waiting.push_back(*input);
                        inputs.push(next);
                    }
                    None => {
                        left_out.insert(*input);
                        has_left_out = true;
                    }
                }
            }
            nodes.push(DrawnNode { address, node, inputs, has_left_out, is_needed: false, level: 0 });
        }
        let mut picture = Picture {
            title: format!("recipe {target}"),
            nodes,
            left_out: left_out.len(),
            names,
            is_remote: backend.is_remote(),
        };
        picture.set_needs();
        picture.set_levels();
        Ok(picture)
    }

    /// Marks the nodes that a get reads: its target, and the inputs of every recipe that it computes.
    fn set_needs(&mut self) {
        let mut stack = vec![0];
        while let Some(place) = stack.pop() {
            let drawn = &mut self.nodes[place];
            if !std::mem::replace(&mut drawn.is_needed, true) && drawn.node.must_be_computed() {
                stack.extend(&drawn.inputs);
            }
        }
    }

    /// Places each node after its inputs. A node that was found later may read one that was found earlier, so this
    /// repeats until nothing changes. It ends, because a recipe graph has no cycles.
    fn set_levels(&mut self) {
        let mut changed = true;
        while changed {
            changed = false;
            for place in (0..self.nodes.len()).rev() {
                let drawn = &self.nodes[place];
                let inputs = drawn.inputs.iter().map(|input| self.nodes[*input].level + 1).max();
                let level = inputs.unwrap_or(0).max(usize::from(drawn.has_left_out));
                changed |= level != drawn.level;
                self.nodes[place].level = level;
            }
        }
    }

    pub(super) fn svg(&self) -> String {
        self.diagram().svg()
    }

    pub(super) fn html(&self) -> String {
        let head = ["", "function or kind", "address", "name", "size", "value"].map(str::to_owned).to_vec();
        let row = |(at, drawn): (usize, &DrawnNode)| {
            let [what, size, value] = drawn.node.words();
            let name = self.names.get(&drawn.address).cloned().unwrap_or_default();
            vec![(at + 1).to_string(), what, drawn.address.to_string(), name, size, value]
        };
        let rows = self.nodes.iter().enumerate().map(row).collect();
        self.diagram().html(&Table { head, rows })
    }

    fn diagram(&self) -> Diagram {
        let functions = Functions::builtin();
        let mut nodes: Vec<diagram::Node> =
            self.nodes.iter().map(|drawn| self.drawn(drawn, &functions)).collect();
        if self.left_out > 0 {
            let text = self.left_out_text();
            let lines = vec![Line::strong(&text), Line::muted("and everything that they read")];
            nodes.push(diagram::Node {
                tone: Tone::Quiet,
                lines,
                tooltip: text,
                level: 0,
                after: Vec::new(),
            });
        }
        Diagram { title: self.title.clone(), summary: self.summary(), legend: LEGEND.to_vec(), nodes }
    }

    pub(super) fn left_out_text(&self) -> String {
        format!("{} not drawn", count(self.left_out, "more input"))
    }

    fn summary(&self) -> String {
        let computed = self.nodes.iter().filter(|it| it.is_needed && it.node.must_be_computed()).count();
        let recipes = self.nodes.iter().filter(|it| matches!(it.node, Node::Recipe { .. })).count();
        let (recipes, blobs) = (count(recipes, "recipe"), count(self.nodes.len() - recipes, "blob"));
        let computed = count(computed, "recipe");
        match self.left_out {
            0 => format!("{recipes} and {blobs}; a get would compute {computed}"),
            _ => format!("{recipes} and {blobs} drawn; a get would compute {computed} of them"),
        }
    }

    fn drawn(&self, drawn: &DrawnNode, functions: &Functions) -> diagram::Node {
        let [what, size, value] = drawn.node.words();
        let is_unknown = match &drawn.node {
            Node::Recipe { recipe, .. } => !self.is_remote && functions.get(&recipe.function).is_none(),
            _ => false,
        };
        let tone = match &drawn.node {
            Node::Missing if drawn.is_needed => Tone::Fault,
            Node::Blob { .. } => Tone::Wait,
            node if drawn.is_needed && node.must_be_computed() => match is_unknown {
                true => Tone::Fault,
                false => Tone::Compute,
            },
            _ => Tone::Quiet,
        };
        let mut lines = vec![Line::strong(match self.names.get(&drawn.address) {
            Some(name) => format!("{name}: {what}"),
            None => what.clone(),
        })];
        lines.push(Line::muted(match size.is_empty() {
            true => short(&drawn.address),
            false => format!("{}, {size}", short(&drawn.address)),
        }));
        lines.extend(Some(&value).filter(|value| !value.is_empty()).map(Line::muted));
        let params = drawn.node.params();
        lines.extend(params.iter().take(PARAMS_MOST).map(Line::muted));
        if params.len() > PARAMS_MOST {
            lines.push(Line::muted(format!("and {}", count(params.len() - PARAMS_MOST, "more parameter"))));
        }
        if is_unknown {
            lines.push(Line { look: Look::Warn, text: "this function is not known here".to_owned() });
        }
        let is_dashed = !(drawn.is_needed && drawn.node.must_be_computed());
        let edge = |from| Edge { from, is_strong: false, is_dashed };
        let left_out = drawn.has_left_out.then_some(self.nodes.len());
        let after = drawn.inputs.iter().copied().chain(left_out).map(edge).collect();
        let tooltip = [vec![what, drawn.address.to_string(), value], params].concat().join("\n");
        diagram::Node { tone, lines, tooltip, level: drawn.level, after }
    }
}
