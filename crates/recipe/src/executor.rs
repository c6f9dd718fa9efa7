//! The executor: what users of this crate call.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anabranch_content::{Address, Class, Import, Imported, NewDerivation, Put, Store};
use anabranch_engine::Engine;
use anabranch_engine::flight::Flights;
use bytes::Bytes;
use futures_util::Stream;
use tokio::sync::Semaphore;

use crate::deriva::deriva_address;
use crate::error::Error;
use crate::events::{Event, Events, Listener};
use crate::memory::CallMemory;
use crate::pace::Pace;
use crate::recipe::{CONTEXT, FunctionId, Malformed, Params, Recipe};
use crate::refusals::Refusals;
use crate::registry::{Functions, check_known};

use crate::status::{Counters, Status};
use crate::value::Computed;

/// How an executor is set up.
#[derive(Clone, Debug)]
pub struct Config {
    /// Bytes of memory for functions at work, all of them together. One call can take three quarters of it. Default 256 MiB.
    pub memory_bytes: u32,
    /// The most time that one call may take, without waits. Default 10 minutes.
    pub call_time: Duration,
    /// Bytes of larger values that are answered from memory when they were just computed, of all gets together; they
    /// stay until they are read. Default 64 MiB.
    pub kept_bytes: u32,
    /// Bytes of small values that one get keeps in hand for what reads them. Default 64 MiB.
    pub value_bytes: usize,
    /// The most recipes that one get may have to compute. Default 4 million; each takes about 200 bytes.
    pub recipes_most: usize,
    /// How often a get begins anew because the same value went away again. Default 3.
    pub rounds: u32,
    /// How many functions of one get are at work or waiting to be. Default 256.
    pub in_flight: usize,
    /// Streaming functions in a row are fused from so many bytes of input on. Default 1 MiB.
    pub fuse_from: u64,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            memory_bytes: 256 << 20,
            call_time: Duration::from_secs(600),
            kept_bytes: 64 << 20,
            value_bytes: 64 << 20,
            recipes_most: 4_000_000,
            rounds: 3,
            in_flight: 256,
            fuse_from: 1 << 20,
        }
    }
}

/// Keeps recipes and computes them, each once. Clones are handles to the same executor.
#[derive(Clone)]
pub struct Executor {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub store: Store,
    pub functions: Functions,
    pub engine: Engine,
    pub config: Config,
    pub flights: Flights<Address, Result<Computed, Error>>,
    /// Memory for calls at work.
    pub memory: CallMemory,
    /// Recipes that failed for lack of resources.
    pub refusals: Refusals,
    /// Room for values that are answered from memory: not of the same bytes, for a slow reader keeps them.
    pub kept: Arc<Semaphore>,
    pub events: Events,
    pub counters: Counters,
}

/// The fewest hex digits by which [`Executor::find`] finds an address.
pub const SHORT_ADDRESS_LEAST: usize = 6;

/// The most addresses that an error lists.
pub(crate) const MATCHES_MOST: usize = 10;

/// Whether a text looks like the beginning of an address.
pub(crate) fn is_short_address(text: &str) -> bool {
    (SHORT_ADDRESS_LEAST..64).contains(&text.len()) && text.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// What to do with a recipe whose function is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownFunction {
    /// It is an error.
    #[default]
    Refuse,
    /// It is kept; to compute it is an error until the function is there.
    Accept,
}

/// A recipe that was added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Added {
    /// Its address.
    pub address: Address,
    /// It was not known before.
    pub new: bool,
    /// Its inputs that are neither blobs nor recipes so far.
    pub dangling: Vec<Address>,
}

/// A recipe to be added with others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// The function.
    pub function: FunctionId,
    /// What it reads.
    pub inputs: Vec<Ref>,
    /// Its parameters.
    pub params: Params,
}

/// An input of a recipe that is added with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ref {
    /// A blob or a recipe.
    Address(Address),
    /// The recipe at that place of the same list, which is before this one.
    Earlier(usize),
}

impl Executor {
    /// An executor on a store and an engine, which others may use too.
    pub fn new(store: Store, functions: Functions, engine: Engine, config: Config) -> Executor {
        let memory = CallMemory::new(config.memory_bytes);
        let kept = Arc::new(Semaphore::new(config.kept_bytes as usize));
        let (flights, events, counters, refusals) = Default::default();
        let inner =
            Inner { store, functions, engine, config, flights, memory, refusals, kept, events, counters };
        Executor { inner: Arc::new(inner) }
    }

    /// An executor in memory, gone with its last handle.
    pub fn in_memory(functions: Functions) -> Result<Executor, Error> {
        let store = Store::in_memory(anabranch_content::Config::default())?;
        Ok(Executor::new(store, functions, engine(), Config::default()))
    }

    /// An executor on the store in a folder, which is made if it is not there.
    pub async fn open(folder: impl AsRef<Path>, functions: Functions) -> Result<Executor, Error> {
        Executor::open_with(folder, functions, anabranch_content::Config::default()).await
    }

    /// The same, with settings for the store, such as its quota and the size of its cache. A store of an older format is
    /// upgraded first.
    pub async fn open_with(
        folder: impl AsRef<Path>,
        functions: Functions,
        config: anabranch_content::Config,
    ) -> Result<Executor, Error> {
        Executor::open_on(Store::open(folder, config)?, functions, engine(), Config::default()).await
    }

    /// An executor over an open store, with an engine and a setup of its own. A store of an older format is upgraded.
    pub async fn open_on(
        store: Store,
        functions: Functions,
        engine: Engine,
        config: Config,
    ) -> Result<Executor, Error> {
        let executor = Executor::new(store, functions, engine, config);
        executor.upgrade().await?;
        Ok(executor)
    }

    /// The store: blobs, pins, names, leases, collection.
    pub fn store(&self) -> &Store {
        &self.inner.store
    }

    /// The engine that runs the graphs.
    pub fn engine(&self) -> &Engine {
        &self.inner.engine
    }

    /// The functions that recipes may name.
    pub fn functions(&self) -> &Functions {
        &self.inner.functions
    }

    /// Keeps bytes; durable when answered.
    pub async fn put(&self, bytes: impl Into<Bytes>) -> Result<Put, Error> {
        Ok(self.inner.store.put(bytes, Class::Acknowledged).await?)
    }

    /// Keeps the bytes of a stream of any length.
    pub async fn put_stream<E>(&self, stream: impl Stream<Item = Result<Bytes, E>>) -> Result<Put, Error>
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        Ok(self.inner.store.put_stream(stream, Class::Acknowledged).await?)
    }

    /// Adds the content of an archive, durably. If it fails half-way, the records before the failure stay. Deriva's
    /// addresses are checked here, so `alias_of` of the terms is not used.
    pub async fn import(&self, from: impl Read + Send + 'static, terms: Import) -> Result<Imported, Error> {
        let terms = Import { alias_of: Some(deriva_address), ..terms };
        Ok(self.inner.store.import(from, terms).await?)
    }

    /// Keeps a recipe; durable when answered. Its inputs may come later.
    pub async fn add(&self, recipe: &Recipe, unknown: UnknownFunction) -> Result<Added, Error> {
        self.check_function(&recipe.function, &recipe.params, unknown)?;
        let described = NewDerivation::from(recipe.encode()?);
        let mut added = self.keep(&[described], &[&recipe.inputs]).await?;
        Ok(added.pop().expect("one answer for one recipe"))
    }

    /// Keeps several recipes that may read each other, in one go.
    pub async fn add_all(&self, drafts: &[Draft], unknown: UnknownFunction) -> Result<Vec<Added>, Error> {
        let mut addresses: Vec<Address> = Vec::with_capacity(drafts.len());
        let mut described = Vec::with_capacity(drafts.len());
        let mut inputs_of = Vec::with_capacity(drafts.len());
        let mut pace = Pace::default();
        for (place, draft) in drafts.iter().enumerate() {
            pace.step().await;
            self.check_function(&draft.function, &draft.params, unknown)?;
            let resolve = |input: &Ref| match *input {
                Ref::Address(address) => Ok(address),
                Ref::Earlier(earlier) => addresses.get(earlier).copied().ok_or_else(|| {
                    Malformed(format!(
                        "recipe {place} reads recipe {earlier}, which is not before it in the list"
                    ))
                }),
            };
            let inputs = draft.inputs.iter().map(resolve).collect::<Result<Vec<_>, _>>()?;
            let recipe = Recipe { function: draft.function.clone(), inputs, params: draft.params.clone() };
            let encoding: Bytes = recipe.encode()?.into();
            addresses.push(Address::derive(CONTEXT, &encoding));
            described.push(NewDerivation::from(encoding));
            inputs_of.push(recipe.inputs);
        }
        let inputs_of: Vec<&[Address]> = inputs_of.iter().map(Vec::as_slice).collect();
        self.keep(&described, &inputs_of).await
    }

    /// Keeps recipes that read these inputs.
    async fn keep(&self, described: &[NewDerivation], inputs_of: &[&[Address]]) -> Result<Vec<Added>, Error> {
        let puts = self.inner.store.put_derivations(CONTEXT, described).await?;
        let mut known: HashMap<Address, bool> = puts.iter().map(|put| (put.address, true)).collect();
        let mut added = Vec::with_capacity(puts.len());
        let mut pace = Pace::default();
        for (put, inputs) in puts.iter().zip(inputs_of) {
            let mut dangling = Vec::new();
            for input in *inputs {
                pace.step().await;
                let is_known = match known.entry(*input) {
                    Entry::Occupied(known) => *known.get(),
                    Entry::Vacant(open) => *open.insert(self.is_known(input).await?),
                };
                if !is_known {
                    dangling.push(*input);
                }
            }
            if put.new {
                self.inner.events.tell(|| Event::Added { address: put.address });
            }
            added.push(Added { address: put.address, new: put.new, dangling });
        }
        Ok(added)
    }

    /// The recipe at an address; nothing if there is none.
    pub async fn resolve(&self, address: &Address) -> Result<Option<Recipe>, Error> {
        match self.inner.store.derivation(address).await? {
            Some(found) if found.context == CONTEXT.0 => Ok(Some(Recipe::decode(&found.bytes)?)),
            _ => Ok(None),
        }
    }

    /// How much there is and what was done, at the cost of reading a few counters.
    pub fn status(&self) -> Status {
        Status::of(&self.inner)
    }

    /// Hears from now on what happens.
    pub fn listen(&self) -> Listener {
        self.inner.events.listen()
    }

    fn check_function(
        &self,
        function: &FunctionId,
        params: &Params,
        unknown: UnknownFunction,
    ) -> Result<(), Error> {
        match self.inner.functions.get(function) {
            Some(known) => check_known(known.signature(), params)
                .map_err(|fault| Malformed(format!("`{function}`: {fault}")).into()),
            None if unknown == UnknownFunction::Refuse => Err(self.inner.no_such_function(function)),
            None => Ok(()),
        }
    }

    async fn is_known(&self, address: &Address) -> Result<bool, Error> {
        let store = &self.inner.store;
        Ok(store.size(address).await?.is_some() || store.derivation(address).await?.is_some())
    }
}

impl Inner {
    pub(crate) fn no_such_function(&self, function: &FunctionId) -> Error {
        Error::NoSuchFunction { function: function.clone(), near: self.functions.near(function) }
    }

    pub(crate) fn count(&self, counter: &AtomicU64, by: u64) {
        counter.fetch_add(by, Ordering::Relaxed);
    }
}

fn engine() -> Engine {
    Engine::new(&anabranch_engine::Config::default()).expect("the default settings are none of them 0")
}

impl std::fmt::Debug for Executor {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Executor").field("store", &self.inner.store).finish_non_exhaustive()
    }
}
