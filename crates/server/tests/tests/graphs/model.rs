//! Random graphs, and what they come to by a model of a few lines.

use std::collections::BTreeMap;

use anabranch_content::Value;
use anabranch_recipe::{Address, DerivaRecipe, FunctionId, Recipe};
use anabranch_testkit::Rng;

/// Which service a node is put through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Through {
    Deriva,
    Ours,
}

/// Which services the nodes of a graph are put through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Services {
    One(Through),
    Both,
}

/// A leaf or a recipe.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) through: Through,
    /// The address that others read it by, which depends on the service.
    pub(super) address: Address,
    /// What it comes to.
    pub(super) value: Vec<u8>,
}

#[derive(Debug)]
pub(super) enum Kind {
    Leaf,
    Recipe(DerivaRecipe),
}

impl Node {
    /// All addresses that the node is known by.
    pub(super) fn addresses(&self) -> Vec<Address> {
        match &self.kind {
            Kind::Recipe(theirs) if self.through == Through::Deriva => vec![self.address, ours(theirs)],
            _ => vec![self.address],
        }
    }
}

/// Our address of a recipe: the same function over the same inputs.
pub(super) fn ours(theirs: &DerivaRecipe) -> Address {
    let params = theirs.params.iter().map(|(name, text)| (name.clone(), Value::Text(text.clone())));
    let (function, inputs) = (theirs.function.clone(), theirs.inputs.clone());
    Recipe { function, inputs, params: params.collect() }.address().unwrap()
}

/// Nodes that read only those before them.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) seed: u64,
    pub(super) services: Services,
    pub(super) nodes: Vec<Node>,
}

/// No value is longer, but for leaves that are and what passes them on.
const VALUE_MOST: usize = 2000;

impl Graph {
    /// A graph of a random shape. Its leaves name the seed, so graphs share nothing.
    pub(super) fn random(seed: u64, services: Services) -> Graph {
        let mut rng = Rng::new(seed);
        let mut graph = Graph { seed, services, nodes: Vec::new() };
        for number in 0..rng.within(1..5) {
            let long = if rng.percent(2) { 70_000 } else { 0 };
            let mut bytes = format!("leaf {number} of graph {seed}; ").into_bytes();
            bytes.resize(bytes.len() + long, b'.');
            graph.leaf(bytes, services.choose(&mut rng));
        }
        let shape = rng.within(0..4);
        for _ in 0..rng.within(2..16) {
            let there = graph.nodes.len() as u64;
            let inputs: Vec<usize> = match shape {
                // A chain, with something else read now and then.
                0 => std::iter::once(there - 1)
                    .chain(rng.percent(20).then(|| rng.within(0..there)))
                    .map(|node| node as usize)
                    .collect(),
                // A fan: many read the same few.
                1 => (0..rng.within(1..4)).map(|_| rng.within(0..there.min(4)) as usize).collect(),
                // Anything, the same input twice included.
                _ => (0..rng.within(1..5)).map(|_| rng.within(0..there) as usize).collect(),
            };
            let through = services.choose(&mut rng);
            graph.recipe(&mut rng, &inputs, through);
        }
        graph
    }

    /// A chain over a leaf.
    pub(super) fn chain(seed: u64, length: usize, services: Services) -> Graph {
        let mut rng = Rng::new(seed);
        let mut graph = Graph { seed, services, nodes: Vec::new() };
        let bytes = format!("the leaf below a chain of {length}, seed {seed}").into_bytes();
        graph.leaf(bytes, services.choose(&mut rng));
        for _ in 0..length {
            let (last, through) = (graph.nodes.len() - 1, services.choose(&mut rng));
            graph.push(("identity", &[]), &[last], through);
        }
        graph
    }

    fn leaf(&mut self, value: Vec<u8>, through: Through) {
        let address = Address::of(&value);
        self.nodes.push(Node { kind: Kind::Leaf, through, address, value });
    }

    fn recipe(&mut self, rng: &mut Rng, inputs: &[usize], through: Through) {
        let bytes: usize = inputs.iter().map(|&input| self.nodes[input].value.len()).sum();
        let count = rng.within(0..200).to_string();
        match (inputs, rng.within(0..6)) {
            _ if bytes > VALUE_MOST => self.push(("identity", &[]), &inputs[..1], through),
            (&[input], 0) => self.push(("uppercase", &[]), &[input], through),
            (&[input], 1) => self.push(("reverse", &[]), &[input], through),
            (&[input], 2) => self.push(("repeat", &[("count", "2")]), &[input], through),
            (&[input], 3) => self.push(("take", &[("bytes", &count)]), &[input], through),
            (&[input], 4) => self.push(("identity", &[]), &[input], through),
            (inputs, _) => self.push(("concat", &[]), inputs, through),
        }
    }

    fn push(&mut self, (function, params): (&str, &[(&str, &str)]), inputs: &[usize], through: Through) {
        let params: BTreeMap<String, String> =
            params.iter().map(|&(name, text)| (name.to_owned(), text.to_owned())).collect();
        let read = |&input: &usize| self.nodes[input].value.as_slice();
        let value = model(function, &params, &inputs.iter().map(read).collect::<Vec<_>>().concat());
        let inputs = inputs.iter().map(|&input| self.nodes[input].address).collect();
        let theirs = DerivaRecipe { function: FunctionId::new(function, "1.0.0"), inputs, params };
        let address = match through {
            Through::Deriva => theirs.address(),
            Through::Ours => ours(&theirs),
        };
        self.nodes.push(Node { kind: Kind::Recipe(theirs), through, address, value });
    }

    /// The order in which callers set out to put the nodes: as they are read, the other way round, any, or nearly as they
    /// are read, so that a node and its inputs are under way together.
    pub(super) fn order(&self, rng: &mut Rng) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        match rng.within(0..4) {
            0 => {}
            1 => order.reverse(),
            2 => shuffle(&mut order, rng),
            _ => order.chunks_mut(8).for_each(|part| shuffle(part, rng)),
        }
        order
    }
}

impl Services {
    pub(super) fn choose(self, rng: &mut Rng) -> Through {
        match self {
            Services::One(through) => through,
            Services::Both => *rng.choose(&[Through::Deriva, Through::Ours]),
        }
    }
}

fn shuffle(list: &mut [usize], rng: &mut Rng) {
    for last in (1..list.len()).rev() {
        list.swap(last, rng.within(0..last as u64 + 1) as usize);
    }
}

/// What a function gives of its inputs, end to end.
fn model(function: &str, params: &BTreeMap<String, String>, read: &[u8]) -> Vec<u8> {
    let number = |name: &str| params[name].parse::<usize>().unwrap();
    match function {
        "identity" | "concat" => read.to_vec(),
        "uppercase" => read.to_ascii_uppercase(),
        "reverse" => read.iter().rev().copied().collect(),
        "repeat" => read.repeat(number("count")),
        "take" => read[..number("bytes").min(read.len())].to_vec(),
        other => panic!("no model of {other}"),
    }
}
