//! The use of space and its holders: totals by kind, and per root (a name, a pin, an import) the items that it
//! leads to and the items that only it holds.
//!
//! The items are those that a collection keeps: the root's value, and everything needed to derive it again.

use std::collections::HashMap;

use super::mark::{Need, ReachedAddresses, reached};
use super::roots::is_reserved;
use super::tables::{Blob, Table};
use super::{Core, Store, imports};
use crate::facts::Class;
use crate::{Address, Error, Wait};

/// Items and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// Blobs, values included.
    pub blobs: u64,
    /// The bytes of these blobs.
    pub bytes: u64,
    /// Descriptions of derivations.
    pub derivations: u64,
}

/// A holder of items.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Root {
    /// A name, for the address that it points to.
    Name(String),
    /// A pin.
    Pin(Address),
    /// The addresses that a name pointed to before.
    History(String),
    /// An import that was not dropped.
    Import {
        /// Its id.
        id: String,
        /// Its label.
        label: String,
    },
}

/// The space of one root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootSpace {
    /// The root.
    pub root: Root,
    /// Everything that it leads to; `None` if that was not counted, because the roots before it lead to too many items.
    pub reached: Option<Space>,
    /// The items that no other root leads to.
    pub alone: Space,
}

/// The holder of an item, in [`Usage::holders`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The first root that leads to it: names come first, then pins, histories and imports.
    pub root: Root,
    /// Whether another root leads to it too.
    pub is_shared: bool,
}

/// The use of space.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Blobs that were put.
    pub put: Space,
    /// Blobs that were computed.
    pub computed: Space,
    /// Descriptions of derivations.
    pub derivations: u64,
    /// Memos.
    pub memos: u64,
    /// Everything that a root leads to.
    pub held: Space,
    /// The number of roots.
    pub roots_count: u64,
    /// The roots that hold the most bytes alone, largest first.
    pub roots: Vec<RootSpace>,
    /// The holders of the addresses in question, in their order.
    pub holders: Vec<Option<Holder>>,
}

/// Items that are counted for the roots of one [`Usage`] at most, so that a call ends.
const COUNTED_MOST: usize = 50_000_000;

impl Store {
    /// The use of space: the totals, the space of up to `most` roots, and the holders of these addresses. Reads the
    /// descriptions of all held derivations.
    pub async fn usage(&self, most: usize, addresses: &[Address]) -> Result<Usage, Error> {
        let addresses = addresses.to_vec();
        self.in_turn(
            |turns| &turns.measuring,
            move |core| {
                core.wait_for_pending()?;
                let graph = Graph::read(core)?;
                let mut usage = totals(core)?;
                graph.fill(&mut usage, most);
                usage.holders = addresses
                    .iter()
                    .map(|address| graph.holder(core, address))
                    .collect::<Result<_, Error>>()?;
                Ok(usage)
            },
        )
        .await
    }
}

fn totals(core: &Core) -> Result<Usage, Error> {
    let mut usage = Usage::default();
    for row in core.catalogue.rows(Table::Blob, None)? {
        let blob: Blob = core.catalogue.decoded(&row?.1)?;
        let space = match blob.class {
            Class::Acknowledged => &mut usage.put,
            Class::Derivable => &mut usage.computed,
        };
        space.add(Space { blobs: 1, bytes: blob.size(), derivations: 0 });
    }
    let tally = core.tally();
    (usage.memos, usage.derivations) = (tally.memos, tally.derivations);
    Ok(usage)
}

impl Space {
    fn add(&mut self, other: Space) {
        self.blobs += other.blobs;
        self.bytes += other.bytes;
        self.derivations += other.derivations;
    }
}

/// The roots that lead to a node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Label {
    One(u32),
    /// The first, and others.
    Several(u32),
}

/// Everything that roots lead to.
#[derive(Default)]
struct Graph {
    roots: Vec<(Root, Vec<u32>)>,
    places: HashMap<(Address, Need), u32>,
    /// The space of each node alone.
    spaces: Vec<Space>,
    /// The nodes that each node leads to.
    edges: Vec<Box<[u32]>>,
    labels: Vec<Label>,
}

impl Graph {
    fn read(core: &Core) -> Result<Graph, Error> {
        let mut roots = find_roots(core)?;
        roots.sort_by(|one, other| one.0.cmp(&other.0));
        let mut graph = Graph::default();
        let mut unread = Vec::new();
        for (root, addresses) in roots {
            let nodes = addresses.into_iter().map(|it| graph.place(it, Need::Value, &mut unread)).collect();
            graph.roots.push((root, nodes));
        }
        let mut edges: Vec<(u32, Box<[u32]>)> = Vec::new();
        while let Some((node, address, need)) = unread.pop() {
            let ReachedAddresses { derivation, next, .. } = reached(core, &address, need)?;
            if need == Need::Means {
                let blob = core.catalogue.stored_blob(&address, Wait::Yes)?;
                let (blobs, bytes) = blob.map_or((0, 0), |blob| (1, blob.size()));
                graph.spaces[node as usize] = Space { blobs, bytes, derivations: u64::from(derivation) };
            }
            // A value is counted as the means of its address, so that it is counted once.
            let own = (need == Need::Value).then_some((address, Need::Means));
            let next = next.into_iter().chain(own);
            let next = next.map(|(address, need)| graph.place(address, need, &mut unread)).collect();
            edges.push((node, next));
        }
        edges.sort_unstable_by_key(|(node, _)| *node);
        graph.edges = edges.into_iter().map(|(_, next)| next).collect();
        graph.label();
        Ok(graph)
    }

    /// The node of an address, which is to be read if it is new.
    fn place(&mut self, address: Address, need: Need, unread: &mut Vec<(u32, Address, Need)>) -> u32 {
        let next = self.spaces.len() as u32;
        let node = *self.places.entry((address, need)).or_insert(next);
        if node == next {
            self.spaces.push(Space::default());
            unread.push((node, address, need));
        }
        node
    }

    /// Each node gets a label at most twice, so this takes time in proportion to the graph, not to the roots.
    fn label(&mut self) {
        let mut labels: Vec<Option<Label>> = vec![None; self.spaces.len()];
        for (root, (_, nodes)) in self.roots.iter().enumerate() {
            let mut stack = nodes.clone();
            while let Some(node) = stack.pop() {
                let label = &mut labels[node as usize];
                *label = match *label {
                    None => Some(Label::One(root as u32)),
                    Some(Label::One(first)) if first != root as u32 => Some(Label::Several(first)),
                    Some(_) => continue,
                };
                stack.extend(&self.edges[node as usize]);
            }
        }
        self.labels = labels.into_iter().map(|label| label.expect("every node is reached")).collect();
    }

    /// Adds the space of the roots.
    fn fill(&self, usage: &mut Usage, most: usize) {
        let mut alone = vec![Space::default(); self.roots.len()];
        for (space, label) in self.spaces.iter().zip(&self.labels) {
            usage.held.add(*space);
            if let Label::One(root) = label {
                alone[*root as usize].add(*space);
            }
        }
        usage.roots_count = self.roots.len() as u64;
        let mut order: Vec<usize> = (0..self.roots.len()).collect();
        order.sort_by_key(|root| std::cmp::Reverse(alone[*root].bytes));
        order.truncate(most);
        let (mut seen, mut counted) = (vec![u32::MAX; self.spaces.len()], 0);
        for root in order {
            let mut reached = Space::default();
            let mut stack = self.roots[root].1.clone();
            while let Some(node) = stack.pop() {
                if std::mem::replace(&mut seen[node as usize], root as u32) == root as u32 {
                    continue;
                }
                reached.add(self.spaces[node as usize]);
                counted += 1;
                if counted > COUNTED_MOST {
                    break;
                }
                stack.extend(&self.edges[node as usize]);
            }
            let reached = (counted <= COUNTED_MOST).then_some(reached);
            usage.roots.push(RootSpace { root: self.roots[root].0.clone(), reached, alone: alone[root] });
        }
    }

    fn holder(&self, core: &Core, address: &Address) -> Result<Option<Holder>, Error> {
        let address = core.catalogue.alias(address, Wait::Yes)?.unwrap_or(*address);
        let Some(node) = self.places.get(&(address, Need::Means)) else { return Ok(None) };
        let (root, is_shared) = match self.labels[*node as usize] {
            Label::One(root) => (root, false),
            Label::Several(root) => (root, true),
        };
        Ok(Some(Holder { root: self.roots[root as usize].0.clone(), is_shared }))
    }
}

/// All roots with their addresses. The runs in progress, which hold items for a moment, are none.
fn find_roots(core: &Core) -> Result<Vec<(Root, Vec<Address>)>, Error> {
    let mut roots = Vec::new();
    for pin in core.catalogue.pins(None)? {
        let pin = pin?;
        roots.push((Root::Pin(pin), vec![pin]));
    }
    for row in core.catalogue.names()? {
        let row = row?;
        let mut addresses: Vec<Address> = row.history.iter().filter_map(|change| change.address).collect();
        if let Some(record) = imports::record(&row) {
            imports::each_entry(core, &row, |_, address| {
                addresses.push(address);
                Ok(())
            })?;
            roots.push((Root::Import { id: record.id, label: record.label }, addresses));
        } else if !is_reserved(&row.name) {
            let is_set = row.history.last().is_some_and(|last| last.address.is_some());
            let now = if is_set { addresses.pop() } else { None };
            addresses.retain(|address| Some(*address) != now);
            if !addresses.is_empty() {
                roots.push((Root::History(row.name.clone()), addresses));
            }
            roots.extend(now.map(|now| (Root::Name(row.name), vec![now])));
        }
    }
    Ok(roots)
}
