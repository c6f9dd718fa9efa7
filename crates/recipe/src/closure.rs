//! What a get has to compute: recipes, down to values that are there.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Instant;

use anabranch_content::{Address, BuildAddress, Derivation, Lease, Lookup, Memo};
use anabranch_engine::{Dag, Edge, Graph, NodeId};

use crate::error::Error;
use crate::executor::Inner;
use crate::function::Function;
use crate::pace::Pace;
use crate::recipe::{CONTEXT, FunctionId, Malformed, Params, skim};
use crate::signature::Holds;
use crate::value::StoredValue;

/// What is known about an address that is asked for.
pub(crate) enum Found {
    Blob(StoredValue),
    Memo(StoredValue),
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
    /// True if an input is the value of another recipe.
    pub reads_recipes: bool,
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
    pub(crate) async fn find(
        inner: &Inner,
        address: &Address,
        deadline: Option<Instant>,
    ) -> Result<Found, Error> {
        let mut lease = inner.store.lease();
        // Held, it holds all that it takes to derive it.
        lease.hold(*address).await?;
        let given = |(output, size), lease| StoredValue::stored(output, size, Some(Arc::new(lease)));
        match look(inner, address, None, &mut lease).await? {
            Look::Blob(found) => Ok(Found::Blob(given(found, lease))),
            Look::Memo(found) => Ok(Found::Memo(given(found, lease))),
            Look::Recipe(found) => {
                let mut search = Search::new(inner, lease);
                search.enter(&found)?;
                search.finish(deadline).await.map(|closure| Found::Closure(Box::new(closure)))
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
    Recipe(Derivation),
}

/// The value that a recipe came to before, held by the lease; nothing if it has to be computed.
pub(crate) async fn remembered(
    inner: &Inner,
    memo: Memo,
    lease: &mut Lease,
) -> Result<Option<(Address, u64)>, Error> {
    let store = &inner.store;
    let Memo { derivation, output, size, .. } = memo;
    if lease.hold(output).await? && store.size(&output).await?.is_some() {
        return Ok(Some((output, size)));
    }
    // A memo whose value is gone is as good as none.
    lease.release(&output);
    store.invalidate(&[derivation]).await?;
    Ok(None)
}

async fn look(
    inner: &Inner,
    address: &Address,
    needed_by: Option<Address>,
    lease: &mut Lease,
) -> Result<Look, Error> {
    let store = &inner.store;
    let mut known = store.known(address).await?;
    if let Lookup::Memo(memo) = known {
        if let Some(given) = remembered(inner, memo, lease).await? {
            return Ok(Look::Memo(given));
        }
        known = store.known(address).await?;
    }
    match known {
        // Remembered anew at this moment: its description serves as well.
        Lookup::Memo(_) => match store.derivation(address).await? {
            Some(found) => Ok(Look::Recipe(found)),
            None => Err(Error::NotARecipe { address: *address }),
        },
        Lookup::Derivation(found) => Ok(Look::Recipe(found)),
        Lookup::Blob(size) => Ok(Look::Blob((*address, size))),
        Lookup::Nothing => {
            let gone = store.status(address).await?.gone;
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
    met: HashMap<Address, Input, BuildAddress>,
    functions: Vec<Arc<dyn Function>>,
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
            met: HashMap::default(),
            functions: Vec::new(),
            path: Vec::new(),
            order: Vec::new(),
        }
    }

    /// Meets a recipe: it is a node from now on, and the end of the path.
    fn enter(&mut self, found: &Derivation) -> Result<Input, Error> {
        let Derivation { address, context, inputs, .. } = found;
        let address = *address;
        if *context != CONTEXT.0 {
            return Err(Error::NotARecipe { address });
        }
        let most = self.inner.config.recipes_most;
        if self.nodes.len() >= most || self.inputs.len() + inputs.len() > u32::MAX as usize {
            let way_out = "get the recipes it reads first, or raise `recipes_most`";
            return Err(Error::TooMany { what: "recipes to be computed", most: most as u64, way_out });
        }
        let skimmed = skim(&found.bytes, inputs.len()).ok_or(Error::NotARecipe { address })?;
        let function = self.function(skimmed.name, skimmed.version)?;
        let params = (!skimmed.params.is_empty()).then(|| Arc::new(skimmed.params));
        let number = self.nodes.len() as u32;
        let first = self.inputs.len() as u32;
        self.inputs.extend(inputs.iter().map(|_| Input::Given(u32::MAX)));
        self.wanted.extend(inputs);
        self.nodes.push(Node {
            address,
            function,
            params,
            reads_recipes: false,
            first,
            end: self.inputs.len() as u32,
        });
        self.path.push((number, first));
        self.met.insert(address, Input::Node(number));
        Ok(Input::Node(number))
    }

    fn function(&mut self, name: &str, version: &str) -> Result<u32, Error> {
        let is_it = |function: &Arc<dyn Function>| {
            let id = &function.signature().id;
            id.name == name && id.version == version
        };
        // Few different ones make up a graph.
        if let Some(known) = self.functions.iter().position(is_it) {
            return Ok(known as u32);
        }
        let id = FunctionId::new(name, version);
        let function = self.inner.functions.get(&id).ok_or_else(|| self.inner.no_such_function(&id))?;
        self.functions.push(Arc::clone(function));
        Ok(self.functions.len() as u32 - 1)
    }

    async fn finish(mut self, deadline: Option<Instant>) -> Result<Closure, Error> {
        let mut pace = Pace::default();
        while let Some((node, place)) = self.path.last_mut() {
            let (node, at) = (*node, *place);
            if at == self.nodes[node as usize].end {
                self.path.pop();
                self.order.push(node);
                continue;
            }
            *place += 1;
            if pace.step().await && deadline.is_some_and(|end| self.inner.engine.clock().now() >= end) {
                return Err(Error::Deadline);
            }
            let address = self.wanted[at as usize];
            let by = self.nodes[node as usize].address;
            let input = match self.met.entry(address) {
                Entry::Occupied(met) => *met.get(),
                Entry::Vacant(_) => match look(self.inner, &address, Some(by), &mut self.lease).await? {
                    Look::Recipe(found) => {
                        // The same recipe may be read under its address and under its alias.
                        let met = self.met.get(&found.address).copied();
                        let input = met.map_or_else(|| self.enter(&found), Ok)?;
                        self.met.insert(address, input);
                        input
                    }
                    Look::Blob(given) | Look::Memo(given) => {
                        let input = Input::Given(self.given.len() as u32);
                        self.given.push(given);
                        self.met.insert(address, input);
                        input
                    }
                },
            };
            self.nodes[node as usize].reads_recipes |= match input {
                Input::Node(_) => true,
                Input::Given(given) => self.given[given as usize].0 != address,
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
