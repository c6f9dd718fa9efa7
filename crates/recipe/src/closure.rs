//! What a get has to compute: recipes, down to values that are there.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use anabranch_content::{Address, Lease, Memo};
use anabranch_engine::{Dag, Edge, Graph, NodeId};

use crate::deriva;
use crate::error::Error;
use crate::executor::Inner;
use crate::function::{Function, Holds};
use crate::recipe::{FunctionId, Malformed, Params, Recipe};
use crate::run::Given;

/// What is known about an address that is asked for.
pub(crate) enum Found {
    Blob(Given),
    Memo(Given),
    Closure(Box<Closure>),
}

/// Recipes to be computed, numbered so that whatever one reads comes before it.
pub(crate) struct Closure {
    pub nodes: Vec<Node>,
    /// What the nodes read, one behind the other.
    pub inputs: Vec<Input>,
    /// Blobs that are there, with their sizes.
    pub given: Vec<(Address, u64)>,
    /// Holds them.
    pub lease: Arc<Lease>,
    pub functions: Vec<Arc<dyn Function>>,
    pub dag: Dag,
}

pub(crate) struct Node {
    pub address: Address,
    pub function: u32,
    /// Nothing where there are none.
    pub params: Option<Arc<Params>>,
    /// Where its inputs begin; they end where the next node's begin.
    first: u32,
    end: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Input {
    Node(u32),
    Given(u32),
}

impl Closure {
    /// Looks an address up, and what it takes to compute it. What is found is held.
    pub(crate) async fn find(inner: &Inner, address: &Address) -> Result<Found, Error> {
        let mut lease = inner.store.lease();
        // Held, it holds all that it takes to derive it.
        lease.hold(*address).await?;
        let given = |(output, size), lease| Given { output, size, bytes: None, lease: Some(Arc::new(lease)) };
        match look(inner, address, None, &mut lease).await? {
            Look::Blob(found) => Ok(Found::Blob(given(found, lease))),
            Look::Memo(found) => Ok(Found::Memo(given(found, lease))),
            Look::Recipe(recipe) => {
                let mut search = Search::new(inner, lease);
                search.enter(*address, recipe)?;
                search.finish().await.map(|closure| Found::Closure(Box::new(closure)))
            }
        }
    }

    pub(crate) fn inputs_of(&self, node: NodeId) -> &[Input] {
        let node = &self.nodes[node.index()];
        &self.inputs[node.first as usize..node.end as usize]
    }

    pub(crate) fn function_of(&self, node: NodeId) -> &Arc<dyn Function> {
        &self.functions[self.nodes[node.index()].function as usize]
    }

    /// The one node that reads this one, if it reads nothing else and both stream.
    pub(crate) fn next_in_row(&self, node: NodeId) -> Option<NodeId> {
        if self.dag.dependent_count(node) != 1 || !self.streams(node) {
            return None;
        }
        let mut next = None;
        self.dag.dependents(node, |dependent, _| next = Some(dependent));
        next.filter(|next| self.inputs_of(*next).len() == 1 && self.streams(*next))
    }

    fn streams(&self, node: NodeId) -> bool {
        self.function_of(node).signature().holds == Holds::Chunks
    }
}

/// What one address is.
enum Look {
    Blob((Address, u64)),
    Memo((Address, u64)),
    Recipe(Recipe),
}

/// The value that a recipe came to before, held by the lease; nothing if it has to be computed.
pub(crate) async fn remembered(
    inner: &Inner,
    address: &Address,
    lease: &mut Lease,
) -> Result<Option<(Address, u64)>, Error> {
    let store = &inner.store;
    let Some(Memo { output, size, .. }) = store.recall(address).await? else { return Ok(None) };
    if lease.hold(output).await? && store.size(&output).await?.is_some() {
        return Ok(Some((output, size)));
    }
    // A memo whose value is gone is as good as none.
    lease.release(&output);
    store.invalidate(&[*address]).await?;
    Ok(None)
}

async fn look(
    inner: &Inner,
    address: &Address,
    needed_by: Option<Address>,
    lease: &mut Lease,
) -> Result<Look, Error> {
    let store = &inner.store;
    if let Some(given) = remembered(inner, address, lease).await? {
        return Ok(Look::Memo(given));
    }
    if let Some(found) = store.derivation(address).await? {
        let recipe = deriva::described(store, &found).await?;
        return recipe.map(Look::Recipe).ok_or(Error::NotARecipe { address: *address });
    }
    match store.size(address).await? {
        Some(size) => Ok(Look::Blob((*address, size))),
        None => {
            let gone = store.why(address).await?.gone;
            Err(Error::NotFound { address: *address, needed_by, gone })
        }
    }
}

/// A search for all that it takes to compute one recipe: depth first, in flat stack.
struct Search<'a> {
    inner: &'a Inner,
    lease: Lease,
    /// Nodes as they are met; their inputs are addresses' places in `met`.
    nodes: Vec<Node>,
    inputs: Vec<Input>,
    given: Vec<(Address, u64)>,
    /// The addresses that inputs were met under, by place in `inputs`, until they are looked at.
    wanted: Vec<Address>,
    met: HashMap<Address, Input>,
    functions: Vec<Arc<dyn Function>>,
    known: HashMap<FunctionId, u32>,
    /// Nodes on the way down, and which of their inputs comes next.
    path: Vec<(u32, u32)>,
    /// A node's final number, given when all it reads has one.
    order: Vec<u32>,
}

impl<'a> Search<'a> {
    fn new(inner: &'a Inner, lease: Lease) -> Search<'a> {
        Search {
            inner,
            lease,
            nodes: Vec::new(),
            inputs: Vec::new(),
            given: Vec::new(),
            wanted: Vec::new(),
            met: HashMap::new(),
            functions: Vec::new(),
            known: HashMap::new(),
            path: Vec::new(),
            order: Vec::new(),
        }
    }

    /// Meets a recipe: it is a node from now on, and the end of the path.
    fn enter(&mut self, address: Address, recipe: Recipe) -> Result<Input, Error> {
        let most = self.inner.config.recipes_most;
        if self.nodes.len() >= most || self.inputs.len() + recipe.inputs.len() > u32::MAX as usize {
            let way_out = "get the recipes it reads first, or raise `recipes_most`";
            return Err(Error::TooMany { what: "recipes to be computed", most: most as u64, way_out });
        }
        let function = self.function(&recipe.function)?;
        let number = self.nodes.len() as u32;
        let first = self.inputs.len() as u32;
        self.inputs.extend(recipe.inputs.iter().map(|_| Input::Given(u32::MAX)));
        self.wanted.extend(&recipe.inputs);
        let params = (!recipe.params.is_empty()).then(|| Arc::new(recipe.params));
        self.nodes.push(Node { address, function, params, first, end: self.inputs.len() as u32 });
        self.path.push((number, first));
        self.met.insert(address, Input::Node(number));
        Ok(Input::Node(number))
    }

    fn function(&mut self, id: &FunctionId) -> Result<u32, Error> {
        if let Some(&known) = self.known.get(id) {
            return Ok(known);
        }
        let function = self.inner.functions.get(id).ok_or_else(|| self.inner.no_such_function(id))?;
        let number = self.functions.len() as u32;
        self.functions.push(Arc::clone(function));
        self.known.insert(id.clone(), number);
        Ok(number)
    }

    async fn finish(mut self) -> Result<Closure, Error> {
        while let Some((node, place)) = self.path.last_mut() {
            let (node, at) = (*node, *place);
            if at == self.nodes[node as usize].end {
                self.path.pop();
                self.order.push(node);
                continue;
            }
            *place += 1;
            let address = self.wanted[at as usize];
            let by = self.nodes[node as usize].address;
            let input = match self.met.entry(address) {
                Entry::Occupied(met) => *met.get(),
                Entry::Vacant(_) => match look(self.inner, &address, Some(by), &mut self.lease).await? {
                    Look::Recipe(recipe) => self.enter(address, recipe)?,
                    Look::Blob(given) | Look::Memo(given) => {
                        let input = Input::Given(self.given.len() as u32);
                        self.given.push(given);
                        self.met.insert(address, input);
                        input
                    }
                },
            };
            self.inputs[at as usize] = input;
        }
        self.number()
    }

    /// Gives the nodes their final numbers.
    fn number(self) -> Result<Closure, Error> {
        let Search { nodes, inputs, given, lease, functions, order, .. } = self;
        let mut number_of = vec![0; nodes.len()];
        order.iter().zip(0..).for_each(|(&node, number)| number_of[node as usize] = number);
        let mut edges = Vec::new();
        let mut seen_by = vec![u32::MAX; nodes.len()];
        let mut slots: Vec<Option<Node>> = nodes.into_iter().map(Some).collect();
        let (mut ordered, mut flat) = (Vec::with_capacity(slots.len()), Vec::with_capacity(inputs.len()));
        for (&old, number) in order.iter().zip(0u32..) {
            let node = slots[old as usize].take().expect("each node has one place in the order");
            let first = flat.len() as u32;
            for input in &inputs[node.first as usize..node.end as usize] {
                flat.push(match *input {
                    Input::Given(given) => Input::Given(given),
                    Input::Node(old) => {
                        let read = number_of[old as usize];
                        if std::mem::replace(&mut seen_by[read as usize], number) != number {
                            edges.push((NodeId(read), NodeId(number), Edge::Needs));
                        }
                        Input::Node(read)
                    }
                });
            }
            ordered.push(Node { first, end: flat.len() as u32, ..node });
        }
        // Addresses are hashes of what is read, so nothing can read itself; were it so, it is no recipe.
        let dag = Dag::new(ordered.len() as u32, &edges).map_err(|error| Malformed(error.to_string()))?;
        Ok(Closure { nodes: ordered, inputs: flat, given, lease: Arc::new(lease), functions, dag })
    }
}
