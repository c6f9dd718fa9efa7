//! The executor: the API of this crate.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anabranch_content::{Address, BuildAddress, Class, Import, ImportReport, NewDerivation, Put, Store};
use anabranch_engine::Engine;
use anabranch_engine::flight::{Flights, Waiter};
use bytes::Bytes;
use futures_util::Stream;
use tokio::sync::Semaphore;

use crate::closure;
use crate::deriva::deriva_address;
use crate::error::Error;
use crate::events::{Event, Events, Listener};
use crate::memory::CallMemory;
use crate::pace::Pace;
use crate::recipe::{CONTEXT, FunctionId, MalformedRecipe, Params, Recipe};
use crate::refusals::Refusals;
use crate::registry::{Functions, check};
use crate::status::{Counters, Status};
use crate::value::ComputedValue;

/// The settings of an executor.
#[derive(Clone, Debug)]
pub struct Config {
    /// Memory for running functions, all together, in bytes. One call can use up to three quarters of it. Default 256
    /// MiB.
    pub memory_bytes: u32,
    /// The maximum duration of one call, without its waits for memory and for a thread. Default 10 minutes.
    pub call_time: Duration,
    /// Memory for larger values that are returned from memory right after their computation, for all gets together, in
    /// bytes. A value stays there until it is read. Default 64 MiB.
    pub kept_bytes: u32,
    /// Memory for small values that one get keeps for the recipes that read them, in bytes. Default 64 MiB.
    pub value_bytes: usize,
    /// The maximum number of recipes that one get may compute. Default 4 million; each takes about 200 bytes.
    pub recipes_most: usize,
    /// Memory for the recipes that all gets together compute, with their parameters, in bytes. A get that finds no room
    /// for more than a megabyte fails. Default 1 GiB.
    pub recipe_bytes: u64,
    /// The number of times a get starts over because the same value was removed again. Default 3.
    pub rounds: u32,
    /// The maximum number of functions of one get that run or wait for a thread. Default 256.
    pub in_flight: usize,
    /// The minimum input size in bytes from which a chain of streaming functions is fused. Default 1 MiB.
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
            recipe_bytes: 1 << 30,
            rounds: 3,
            in_flight: 256,
            fuse_from: 1 << 20,
        }
    }
}

/// Stores recipes and computes each of them once. Clones are handles to the same executor.
#[derive(Clone)]
pub struct Executor {
    pub(crate) inner: Arc<Inner>,
}

/// The computations in flight, by the address of the recipe.
pub(crate) type RecipeFlights = Flights<Address, Result<ComputedValue, Error>, BuildAddress>;

/// The part of a caller in one of them.
pub(crate) type RecipeWaiter = Waiter<Address, Result<ComputedValue, Error>, BuildAddress>;

pub(crate) struct Inner {
    pub store: Store,
    pub functions: Functions,
    pub engine: Engine,
    pub config: Config,
    pub flights: RecipeFlights,
    /// Memory for running calls.
    pub memory: CallMemory,
    /// The threads that long work may occupy at the same time.
    pub long_places: Arc<Semaphore>,
    /// Memory for the recipes of running gets, in the units of [`closure::units`].
    pub closures: Arc<Semaphore>,
    /// Recipes that failed for lack of resources.
    pub refusals: Refusals,
    /// Memory for values that are returned from memory. It has its own budget, because a slow reader holds it for long.
    pub kept: Arc<Semaphore>,
    pub events: Events,
    pub counters: Counters,
}

/// The minimum number of hex digits by which [`Executor::find`] finds an address.
pub const SHORT_ADDRESS_LEAST: usize = 6;

/// The maximum number of addresses listed in an error.
pub(crate) const MATCHES_MOST: usize = 10;

/// Whether a text looks like the beginning of an address. As a name, it takes precedence over one.
pub fn is_short_address(text: &str) -> bool {
    (SHORT_ADDRESS_LEAST..64).contains(&text.len()) && text.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// The handling of a recipe whose function is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownFunction {
    /// It is an error.
    #[default]
    Refuse,
    /// It is accepted. Computing it fails until the function exists.
    Accept,
}

/// A recipe that was added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddedRecipe {
    /// Its address.
    pub address: Address,
    /// Whether it is new.
    pub new: bool,
    /// Those of its inputs that are neither blobs nor recipes so far.
    pub dangling: Vec<Address>,
}

/// A recipe to add together with others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// The function.
    pub function: FunctionId,
    /// Its inputs.
    pub inputs: Vec<DraftInput>,
    /// Its parameters.
    pub params: Params,
}

/// An input of such a recipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DraftInput {
    /// A blob or a recipe.
    Address(Address),
    /// The recipe at this index in the same list; it must come earlier.
    Earlier(usize),
}

impl Executor {
    /// An executor on a store and an engine, which may be shared with others.
    pub fn new(store: Store, functions: Functions, engine: Engine, config: Config) -> Executor {
        let memory = CallMemory::new(config.memory_bytes);
        let kept = Arc::new(Semaphore::new(config.kept_bytes as usize));
        let closures = closure::units(config.recipe_bytes);
        let long_places = engine.batch_threads().saturating_sub(1).max(1);
        let long_places = Arc::new(Semaphore::new(long_places.min(Semaphore::MAX_PERMITS)));
        let (events, counters, refusals) = Default::default();
        let inner = Inner {
            store,
            functions,
            engine,
            config,
            flights: Flights::with_hasher(),
            memory,
            long_places,
            closures,
            refusals,
            kept,
            events,
            counters,
        };
        Executor { inner: Arc::new(inner) }
    }

    /// An executor in memory. Its data is lost with the last handle.
    pub fn in_memory(functions: Functions) -> Result<Executor, Error> {
        let store = Store::in_memory(anabranch_content::Config::default())?;
        Ok(Executor::new(store, functions, engine(), Config::default()))
    }

    /// An executor on the store in a folder, which is created if it does not exist.
    pub async fn open(folder: impl AsRef<Path>, functions: Functions) -> Result<Executor, Error> {
        Executor::open_with(folder, functions, anabranch_content::Config::default()).await
    }

    /// Opens an executor with settings for the store, such as its quota and cache size. A store in an older format is
    /// upgraded first.
    pub async fn open_with(
        folder: impl AsRef<Path>,
        functions: Functions,
        config: anabranch_content::Config,
    ) -> Result<Executor, Error> {
        Executor::open_on(Store::open(folder, config)?, functions, engine(), Config::default()).await
    }

    /// An executor on an open store, with the given engine and configuration. A store in an older format is upgraded
    /// first.
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

    /// The store, for blobs, pins, names, leases and collection.
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

    /// Stores bytes. They are durable when this returns.
    pub async fn put(&self, bytes: impl Into<Bytes>) -> Result<Put, Error> {
        Ok(self.inner.store.put(bytes, Class::Acknowledged).await?)
    }

    /// Stores the bytes of a stream of any length.
    pub async fn put_stream<E>(&self, stream: impl Stream<Item = Result<Bytes, E>>) -> Result<Put, Error>
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        Ok(self.inner.store.put_stream(stream, Class::Acknowledged).await?)
    }

    /// Imports an archive durably. If the import fails half-way, the records before the failure stay. `terms.alias_of`
    /// and `terms.skip_name` are ignored: Deriva's addresses are checked here, and a name that looks like the beginning
    /// of an address, which it would take precedence over, is skipped.
    pub async fn import(
        &self,
        from: impl Read + Send + 'static,
        terms: Import,
    ) -> Result<ImportReport, Error> {
        let terms = Import { alias_of: Some(deriva_address), skip_name: Some(is_short_address), ..terms };
        Ok(self.inner.store.import(from, terms).await?)
    }

    /// Stores a recipe, durably when this returns. Its inputs may be added later, but their number is checked, and
    /// so are the parameters.
    pub async fn add(&self, recipe: &Recipe, unknown: UnknownFunction) -> Result<AddedRecipe, Error> {
        self.check(&recipe.function, recipe.inputs.len(), &recipe.params, unknown)?;
        let described = NewDerivation::from(recipe.encode()?);
        let mut added = self.keep(&[described], &[&recipe.inputs]).await?;
        Ok(added.pop().expect("one answer for one recipe"))
    }

    /// Stores several recipes that may read each other. All are checked before the first one is stored. If the disk
    /// fails half-way, the first recipes of a long list may stay.
    pub async fn add_all(
        &self,
        drafts: &[Draft],
        unknown: UnknownFunction,
    ) -> Result<Vec<AddedRecipe>, Error> {
        let encoded = self.encode_all(drafts, unknown).await?;
        let inputs_of: Vec<&[Address]> = encoded.inputs_of.iter().map(Vec::as_slice).collect();
        self.keep(&encoded.described, &inputs_of).await
    }

    /// Checks recipes as [`Executor::add_all`] does, and returns their addresses. Nothing is stored.
    pub async fn check_all(&self, drafts: &[Draft], unknown: UnknownFunction) -> Result<Vec<Address>, Error> {
        Ok(self.encode_all(drafts, unknown).await?.addresses)
    }

    async fn encode_all(&self, drafts: &[Draft], unknown: UnknownFunction) -> Result<EncodedDrafts, Error> {
        let mut encoded = EncodedDrafts::with_capacity(drafts.len());
        let mut pace = Pace::default();
        for (place, draft) in drafts.iter().enumerate() {
            pace.step().await;
            self.check(&draft.function, draft.inputs.len(), &draft.params, unknown)?;
            let resolve = |input: &DraftInput| match *input {
                DraftInput::Address(address) => Ok(address),
                DraftInput::Earlier(earlier) => encoded.addresses.get(earlier).copied().ok_or_else(|| {
                    MalformedRecipe(format!(
                        "recipe {place} reads recipe {earlier}, which is not before it in the list"
                    ))
                }),
            };
            let inputs = draft.inputs.iter().map(resolve).collect::<Result<Vec<_>, _>>()?;
            let recipe = Recipe { function: draft.function.clone(), inputs, params: draft.params.clone() };
            let encoding: Bytes = recipe.encode()?.into();
            encoded.addresses.push(Address::derive(CONTEXT, &encoding));
            encoded.described.push(NewDerivation::from(encoding));
            encoded.inputs_of.push(recipe.inputs);
        }
        Ok(encoded)
    }

    /// Stores recipes that read these inputs.
    async fn keep(
        &self,
        described: &[NewDerivation],
        inputs_of: &[&[Address]],
    ) -> Result<Vec<AddedRecipe>, Error> {
        let puts = self.inner.store.put_derivations(CONTEXT, described).await?;
        let mut known: HashMap<Address, bool, BuildAddress> =
            puts.iter().map(|put| (put.address, true)).collect();
        let mut added = Vec::with_capacity(puts.len());
        let mut pace = Pace::default();
        for (put, inputs) in puts.iter().zip(inputs_of) {
            let mut dangling = Vec::new();
            for input in *inputs {
                pace.step().await;
                let is_known = match known.entry(*input) {
                    Entry::Occupied(known) => *known.get(),
                    Entry::Vacant(open) => *open.insert(self.inner.store.contains(input).await?),
                };
                if !is_known {
                    dangling.push(*input);
                }
            }
            if put.new {
                self.inner.events.tell(|| Event::Added { address: put.address });
            }
            added.push(AddedRecipe { address: put.address, new: put.new, dangling });
        }
        Ok(added)
    }

    /// The recipe at an address; `None` if there is none.
    pub async fn resolve(&self, address: &Address) -> Result<Option<Recipe>, Error> {
        match self.inner.store.derivation(address).await? {
            Some(found) if found.context == CONTEXT.0 => Ok(Some(Recipe::decode(&found.bytes)?)),
            _ => Ok(None),
        }
    }

    /// The size of the store and the activity so far, at the cost of reading a few counters.
    pub fn status(&self) -> Status {
        Status::of(&self.inner)
    }

    /// Subscribes to the events from now on.
    pub fn listen(&self) -> Listener {
        self.inner.events.listen()
    }

    /// Checks a call against the signature of its function. What a function itself has against a parameter, such as a
    /// pattern that cannot be compiled, is found by [`check_call`](crate::check_call) and by a get.
    fn check(
        &self,
        function: &FunctionId,
        inputs: usize,
        params: &Params,
        unknown: UnknownFunction,
    ) -> Result<(), Error> {
        match self.inner.functions.get(function) {
            Some(known) => check(known.signature(), inputs, params)
                .map_err(|fault| MalformedRecipe(format!("`{function}`: {fault}")).into()),
            None if unknown == UnknownFunction::Refuse => Err(self.inner.no_such_function(function)),
            None => Ok(()),
        }
    }
}

/// Checked recipes, in the order of their drafts.
struct EncodedDrafts {
    addresses: Vec<Address>,
    described: Vec<NewDerivation>,
    inputs_of: Vec<Vec<Address>>,
}

impl EncodedDrafts {
    fn with_capacity(count: usize) -> EncodedDrafts {
        EncodedDrafts {
            addresses: Vec::with_capacity(count),
            described: Vec::with_capacity(count),
            inputs_of: Vec::with_capacity(count),
        }
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
