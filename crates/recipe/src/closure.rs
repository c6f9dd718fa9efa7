//! The recipes that a get must compute, down to the values that exist.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Instant;

use anabranch_content::{Address, BuildAddress, Derivation, Lease, Lookup, Memo};
use anabranch_engine::{Dag, Edge, Graph, NodeId};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::Error;
use crate::executor::Inner;
use crate::function::Function;
use crate::pace::Pace;
use crate::recipe::{CONTEXT, FunctionId, MalformedRecipe, Params, memory_of, skim};
use crate::signature::Holds;
use crate::value::StoredValue;

/// The approximate memory of a node and of one of its inputs, without parameters, in bytes.
const NODE_BYTES: u64 = 200;
const INPUT_BYTES: u64 = 50;

/// Memory is charged in steps of this many bytes. A closure that takes less is not charged.
const CHARGED: u64 = 1 << 20;

/// The unit of memory for recipes, in bytes.
const UNIT: u64 = 1 << 10;

/// The memory for the recipes of all gets, in its units.
pub(crate) fn units(bytes: u64) -> Arc<Semaphore> {
    let units = usize::try_from(bytes / UNIT).unwrap_or(usize::MAX);
    Arc::new(Semaphore::new(units.min(Semaphore::MAX_PERMITS)))
}

/// The result of looking up a requested address.
pub(crate) enum LookupOutcome {
    Blob(StoredValue),
    Memo(StoredValue),
    Closure(Box<Closure>),
}

/// The recipes to compute. Each has a higher number than those it reads.
pub(crate) struct Closure {
    pub nodes: Vec<Node>,
    /// The inputs of all nodes, one node after another.
    pub inputs: Vec<Input>,
    /// The existing blobs that the nodes read, with their sizes.
    pub given: Vec<(Address, u64)>,
    /// The entries of `given` that are remembered values of recipes, each with the address of its recipe.
    pub memos: Vec<(u32, Address)>,
    /// Protects the values in `given` from collection.
    pub lease: Arc<Lease>,
    pub functions: Vec<Arc<dyn Function>>,
    pub dag: Dag,
    /// Its share of the memory for the recipes of all gets.
    _room: Option<OwnedSemaphorePermit>,
}

pub(crate) struct Node {
    pub address: Address,
    pub function: u32,
    /// `None` if the recipe has no parameters.
    pub params: Option<Arc<Params>>,
    /// Whether an input is the value of another recipe.
    pub reads_recipes: bool,
    /// The range of its inputs in [`Closure::inputs`].
    first: u32,
    end: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Input {
    Node(u32),
    Given(u32),
}

impl Closure {
    /// Looks up an address and, if its value must be computed, everything that this takes. The results are protected
    /// from collection.
    pub(crate) async fn find(
        inner: &Inner,
        address: &Address,
        deadline: Option<Instant>,
    ) -> Result<LookupOutcome, Error> {
        let mut lease = inner.store.lease();
        // A held address protects everything that it is derived from.
        lease.hold(*address).await?;
        let given = |(output, size), lease| StoredValue::stored(output, size, Some(Arc::new(lease)));
        match look(inner, address, None, &mut lease).await? {
            FoundItem::Blob(found) => Ok(LookupOutcome::Blob(given(found, lease))),
            FoundItem::Memo(found) => Ok(LookupOutcome::Memo(given(found, lease))),
            FoundItem::Recipe(found) => {
                let mut search = Search::new(inner, lease);
                search.enter(&found)?;
                search.finish(deadline).await.map(|closure| LookupOutcome::Closure(Box::new(closure)))
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

    /// The only node that reads this one, if this one is its only input and both stream.
    pub(crate) fn next_in_chain(&self, node: NodeId) -> Option<NodeId> {
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

/// The kind of an address.
enum FoundItem {
    Blob((Address, u64)),
    Memo((Address, u64)),
    Recipe(Derivation),
}

/// The remembered value of a recipe, protected by the lease; `None` if it must be computed.
pub(crate) async fn remembered(
    inner: &Inner,
    memo: &Memo,
    lease: &mut Lease,
) -> Result<Option<(Address, u64)>, Error> {
    let store = &inner.store;
    let Memo { derivation, output, size, .. } = *memo;
    if lease.hold(output).await? && store.size(&output).await?.is_some() {
        return Ok(Some((output, size)));
    }
    // A memo without its value is useless.
    lease.release(&output);
    store.invalidate(&[derivation]).await?;
    Ok(None)
}

async fn look(
    inner: &Inner,
    address: &Address,
    needed_by: Option<Address>,
    lease: &mut Lease,
) -> Result<FoundItem, Error> {
    let store = &inner.store;
    let mut known = store.known(address).await?;
    if let Lookup::Memo(memo) = known {
        if let Some(given) = remembered(inner, &memo, lease).await? {
            return Ok(FoundItem::Memo(given));
        }
        known = store.known(address).await?;
    }
    match known {
        // The memo was stored just now. The recipe's description is still valid.
        Lookup::Memo(_) => match store.derivation(address).await? {
            Some(found) => Ok(FoundItem::Recipe(found)),
            None => Err(Error::NotARecipe { address: *address }),
        },
        Lookup::Derivation(found) => Ok(FoundItem::Recipe(found)),
        Lookup::Blob(size) => Ok(FoundItem::Blob((*address, size))),
        Lookup::Nothing => {
            let gone = store.status(address).await?.gone;
            Err(Error::NotFound { address: *address, needed_by, gone })
        }
    }
}

/// A depth-first search, without recursion, for everything that the computation of one recipe takes.
struct Search<'a> {
    inner: &'a Inner,
    lease: Lease,
    /// The nodes in the order of discovery. Their inputs refer to nodes by this order.
    nodes: Vec<Node>,
    inputs: Vec<Input>,
    given: Vec<(Address, u64)>,
    memos: Vec<(u32, Address)>,
    /// The address of each entry of `inputs`, until it is looked up.
    wanted: Vec<Address>,
    met: HashMap<Address, Input, BuildAddress>,
    functions: Vec<Arc<dyn Function>>,
    /// The nodes from the root to the current one, each with the index of its next input.
    path: Vec<(u32, u32)>,
    /// The nodes in their final order. A node is added once all nodes that it reads are.
    order: Vec<u32>,
    /// Bytes that are not charged yet.
    uncharged: u64,
    room: Option<OwnedSemaphorePermit>,
}

impl<'a> Search<'a> {
    fn new(inner: &'a Inner, lease: Lease) -> Search<'a> {
        Search {
            inner,
            lease,
            nodes: Vec::new(),
            inputs: Vec::new(),
            given: Vec::new(),
            memos: Vec::new(),
            wanted: Vec::new(),
            met: HashMap::default(),
            functions: Vec::new(),
            path: Vec::new(),
            order: Vec::new(),
            uncharged: 0,
            room: None,
        }
    }

    /// Counts memory, and takes it from the memory for the recipes of all gets once it is enough. It never waits: gets
    /// that wait for each other would not end.
    fn charge(&mut self, bytes: u64) -> Result<(), Error> {
        self.uncharged += bytes;
        if self.uncharged < CHARGED {
            return Ok(());
        }
        let units = u32::try_from(self.uncharged / UNIT).unwrap_or(u32::MAX);
        self.uncharged %= UNIT;
        let most = self.inner.config.recipe_bytes;
        let more = Arc::clone(&self.inner.closures).try_acquire_many_owned(units).map_err(|_| {
            let way_out = "get the recipes it reads first, try again later, or raise `recipe_bytes`";
            Error::TooMany { what: "bytes of recipes to be computed by all gets", most, way_out }
        })?;
        match &mut self.room {
            Some(room) => room.merge(more),
            none => *none = Some(more),
        }
        Ok(())
    }

    /// Adds a recipe as a new node, at the end of the path.
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
        self.charge(NODE_BYTES + INPUT_BYTES * inputs.len() as u64)?;
        let skimmed = skim(&found.bytes, inputs.len()).ok_or(Error::NotARecipe { address })?;
        let function = self.function(skimmed.name, skimmed.version)?;
        self.charge(memory_of(&skimmed.params))?;
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

    /// Records an existing value.
    fn give(&mut self, address: Address, given: (Address, u64)) -> Input {
        let input = Input::Given(self.given.len() as u32);
        self.given.push(given);
        self.met.insert(address, input);
        input
    }

    fn function(&mut self, name: &str, version: &str) -> Result<u32, Error> {
        let is_it = |function: &Arc<dyn Function>| {
            let id = &function.signature().id;
            id.name == name && id.version == version
        };
        // A linear search is enough, because a graph has few different functions.
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
                    FoundItem::Recipe(found) => {
                        // A recipe may be read both by its address and by its alias.
                        let met = self.met.get(&found.address).copied();
                        let input = met.map_or_else(|| self.enter(&found), Ok)?;
                        self.met.insert(address, input);
                        input
                    }
                    FoundItem::Blob(given) => self.give(address, given),
                    FoundItem::Memo(given) => {
                        self.memos.push((self.given.len() as u32, address));
                        self.give(address, given)
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

    /// Renumbers the nodes in their final order.
    fn number(self) -> Result<Closure, Error> {
        let Search { nodes, inputs, given, memos, lease, functions, order, room, .. } = self;
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
        // An address is a hash that covers the inputs, so a cycle is impossible in valid recipes.
        let dag =
            Dag::new(ordered.len() as u32, &edges).map_err(|error| MalformedRecipe(error.to_string()))?;
        let lease = Arc::new(lease);
        Ok(Closure { nodes: ordered, inputs: flat, given, memos, lease, functions, dag, _room: room })
    }
}
