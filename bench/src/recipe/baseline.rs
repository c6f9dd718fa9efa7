//! An executor as one writes it first: recursion, one boxed future for each recipe.
//!
//! Polled from the root down at each wake-up, it takes stack and time that grow with the depth; and whoever drops one
//! of its futures leaves the table of computations under way as it is. That is how the design has it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use anabranch_recipe::{Address, Functions, Recipe, call};
use bytes::Bytes;
use futures_util::future::{BoxFuture, try_join_all};
use tokio::sync::{Mutex, RwLock, Semaphore, broadcast};

/// Clones are handles to the same executor.
#[derive(Clone)]
pub(super) struct Baseline {
    shared: Arc<Shared>,
}

struct Shared {
    functions: Functions,
    leaves: Leaves,
    recipes: HashMap<Address, Recipe>,
    cache: RwLock<HashMap<Address, CachedValue>>,
    under_way: Mutex<HashMap<Address, broadcast::Sender<Outcome>>>,
    /// Functions at work.
    permits: Semaphore,
}

/// Where the leaves are.
pub(super) enum Leaves {
    Memory(HashMap<Address, Bytes>),
    /// A file each, read on the thread that polls, as the design has it.
    Files(PathBuf),
}

impl Leaves {
    /// Writes each into a file of the folder.
    pub(super) fn in_files(
        folder: &Path,
        leaves: impl Iterator<Item = (Address, Bytes)>,
    ) -> io::Result<Leaves> {
        fs::create_dir_all(folder)?;
        for (address, bytes) in leaves {
            fs::write(folder.join(address.to_string()), bytes)?;
        }
        Ok(Leaves::Files(folder.to_owned()))
    }

    fn get(&self, address: &Address) -> Option<Bytes> {
        match self {
            Leaves::Memory(leaves) => leaves.get(address).cloned(),
            Leaves::Files(folder) => fs::read(folder.join(address.to_string())).ok().map(Bytes::from),
        }
    }
}

struct CachedValue {
    bytes: Bytes,
    hits: u64,
}

type Outcome = Result<Bytes, String>;

/// So many outcomes wait for a listener; there is only ever one.
const CAPACITY: usize = 16;

impl Baseline {
    pub(super) fn new(functions: Functions, leaves: Leaves, recipes: HashMap<Address, Recipe>) -> Baseline {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let (cache, under_way) = Default::default();
        let permits = Semaphore::new(2 * cores);
        Baseline { shared: Arc::new(Shared { functions, leaves, recipes, cache, under_way, permits }) }
    }

    /// The value of a leaf or a recipe.
    pub(super) fn materialise(&self, address: Address) -> BoxFuture<'_, Outcome> {
        Box::pin(async move {
            // A hit is counted, so the lock is one to write.
            if let Some(cached) = self.shared.cache.write().await.get_mut(&address) {
                cached.hits += 1;
                return Ok(cached.bytes.clone());
            }
            if let Some(leaf) = self.shared.leaves.get(&address) {
                return Ok(leaf);
            }
            let told = match self.shared.under_way.lock().await.entry(address) {
                Entry::Occupied(sender) => Some(sender.get().subscribe()),
                Entry::Vacant(open) => {
                    open.insert(broadcast::Sender::new(CAPACITY));
                    None
                }
            };
            if let Some(mut told) = told {
                return told.recv().await.map_err(|error| error.to_string())?;
            }
            let outcome = self.compute(&address).await;
            if let Some(sender) = self.shared.under_way.lock().await.remove(&address) {
                // Mostly nobody listens.
                let _ = sender.send(outcome.clone());
            }
            if let Ok(bytes) = &outcome {
                let cached = CachedValue { bytes: bytes.clone(), hits: 0 };
                self.shared.cache.write().await.insert(address, cached);
            }
            outcome
        })
    }

    async fn compute(&self, address: &Address) -> Outcome {
        let recipe =
            self.shared.recipes.get(address).cloned().ok_or_else(|| format!("{address} is unknown"))?;
        let inputs = try_join_all(recipe.inputs.iter().map(|input| self.materialise(*input))).await?;
        let _permit = self.shared.permits.acquire().await.map_err(|error| error.to_string())?;
        let function = self.shared.functions.get(&recipe.function).cloned();
        let function = function.ok_or_else(|| format!("{} is unknown", recipe.function))?;
        let work = tokio::task::spawn_blocking(move || {
            let inputs: Vec<Vec<Bytes>> = inputs.into_iter().map(|input| vec![input]).collect();
            call(&function, &inputs, &recipe.params).map(join).map_err(|fault| fault.to_string())
        });
        work.await.map_err(|error| error.to_string())?
    }
}

/// Chunks as one; a single one is not copied.
fn join(mut chunks: Vec<Bytes>) -> Bytes {
    match chunks.len() {
        1 => chunks.remove(0),
        _ => chunks.concat().into(),
    }
}
