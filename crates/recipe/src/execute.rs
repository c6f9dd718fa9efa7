//! Single flight: callers that need the same recipe share one computation. Remembered values are not computed again.

use std::sync::Arc;
use std::time::Duration;

use anabranch_content::{Address, Class, Cost, Memo, NewMemo, RemovalReason, Time};
use anabranch_engine::flight::Panicked;
use smallvec::SmallVec;

use crate::closure;
use crate::compute::{CALL_MEMORY, compute};
use crate::error::Error;
use crate::events::Event;
use crate::executor::{Inner, RecipeWaiter};
use crate::function::{Fault, Function};
use crate::recipe::{self, CONTEXT, FunctionId, Params};
use crate::registry;
use crate::sink::SMALL;
use crate::value::{ComputedValue, Origin, StoredValue, ValueBody};

/// The maximum number of functions that are fused.
pub(crate) const CHAIN_MOST: usize = 64;

/// A recipe to compute.
pub(crate) struct Stage {
    pub address: Address,
    pub function: Arc<dyn Function>,
    pub params: Option<Arc<Params>>,
    pub input_count: usize,
    /// Whether an input is the value of another recipe.
    pub reads_recipes: bool,
}

/// One recipe, or several to fuse.
pub(crate) type Stages = SmallVec<[Stage; 1]>;

/// The consumer of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Another recipe.
    Recipe,
    /// The caller of a get.
    Caller,
}

impl Stage {
    /// An error of this stage.
    pub(crate) fn failed(&self, fault: Fault) -> Error {
        Error::Function { address: self.address, function: self.id(), fault }
    }

    /// The error of a panic in this stage.
    pub(crate) fn panicked(&self, message: String) -> Error {
        Error::Panicked { address: self.address, function: self.id(), message }
    }

    fn id(&self) -> Box<FunctionId> {
        Box::new(self.function.signature().id.clone())
    }

    /// The address of the same recipe with other inputs.
    fn on<'a>(&self, inputs: impl ExactSizeIterator<Item = &'a Address>) -> Option<Address> {
        let none = Params::new();
        let params = self.params.as_deref().unwrap_or(&none);
        let encoding = recipe::encode_checked(&self.function.signature().id, inputs, params).ok()?;
        Some(Address::derive(CONTEXT, &encoding))
    }
}

/// The address of each stage with the first one's inputs replaced by their values; empty if that changes nothing.
/// Stages that compute the same from equal values share these addresses.
fn calls(stages: &[Stage], inputs: &[StoredValue]) -> SmallVec<[Address; 1]> {
    let mut calls = SmallVec::new();
    for stage in stages.iter().filter(|_| stages[0].reads_recipes) {
        let call = match calls.last() {
            None => stage.on(inputs.iter().map(|input| &input.output)),
            Some(before) => stage.on(std::iter::once(before)),
        };
        match call {
            Some(call) => calls.push(call),
            None => return SmallVec::new(),
        }
    }
    calls
}

/// Joins the flight of the last stage's address, or opens one with these inputs.
pub(crate) fn join(
    inner: &Arc<Inner>,
    stages: Stages,
    purpose: Purpose,
    inputs: Vec<StoredValue>,
) -> RecipeWaiter {
    let address = stages.last().expect("there is a stage").address;
    let working = Arc::clone(inner);
    inner.flights.join(address, || None, move || execute(working, stages, purpose, inputs))
}

/// Computes as many of the first stages as can be fused, in one call. Returns the value and the index of the last
/// computed stage.
pub(crate) async fn chain(
    inner: Arc<Inner>,
    mut stages: Vec<Stage>,
    purposes: Vec<Purpose>,
    inputs: Vec<StoredValue>,
) -> Result<(ComputedValue, usize), Error> {
    let together = match remembered_part(&inner, &stages, &inputs).await? {
        Some(together) => together,
        None => fusible_part(&inner, &stages).await?,
    };
    stages.truncate(together);
    match join(&inner, stages.into(), purposes[together - 1], inputs).await {
        Ok(landed) => Ok((landed?, together - 1)),
        Err(Panicked(message)) => std::panic::resume_unwind(Box::new(message)),
    }
}

/// The largest number of first stages that have already run, fused, on equal inputs, and whose value can be had.
async fn remembered_part(
    inner: &Inner,
    stages: &[Stage],
    inputs: &[StoredValue],
) -> Result<Option<usize>, Error> {
    for (place, call) in calls(stages, inputs).iter().enumerate().rev() {
        if let Some((_, memo)) = recalled(inner, call).await?
            && !are_invalidated_since(inner, &stages[..=place], memo.at).await?
        {
            return Ok(Some(place + 1));
        }
    }
    Ok(None)
}

/// The number of first stages that can be fused.
async fn fusible_part(inner: &Inner, stages: &[Stage]) -> Result<usize, Error> {
    for (place, pair) in stages.windows(2).enumerate() {
        let (before, next) = (&pair[0], &pair[1]);
        let none = Params::new();
        let params = next.params.as_deref().unwrap_or(&none);
        // Errors in the next stage are reported when that stage is computed.
        let fits = registry::check_declared(next.function.signature(), next.input_count, params).is_ok();
        // A value that another caller is computing, or has just computed, is shared instead of being computed again.
        if !fits
            || inner.flights.is_open(&before.address)
            || inner.store.recall(&before.address).await?.is_some()
            || inner.store.dependents(&before.address, None, 2).await?.len() > 1
        {
            return Ok(place + 1);
        }
    }
    Ok(stages.len())
}

async fn execute(
    inner: Arc<Inner>,
    stages: Stages,
    purpose: Purpose,
    inputs: Vec<StoredValue>,
) -> Result<ComputedValue, Error> {
    let (count, address) = (stages.len() as u64, stages[stages.len() - 1].address);
    // Another flight may have finished since this one was requested.
    if let Some((value, _)) = recalled(&inner, &address).await? {
        return Ok(ComputedValue { value, how: Origin::Memo });
    }
    let calls = calls(&stages, &inputs);
    let call = calls.last().copied().filter(|call| *call != address);
    if let Some(call) = &call
        && let Some((value, call)) = recalled(&inner, call).await?
        && !are_invalidated_since(&inner, &stages, call.at).await?
    {
        remember(&inner, address, &value, call.cost).await?;
        return Ok(ComputedValue { value, how: Origin::SameInputs });
    }
    if let Some(refusal) = refused(&inner, &stages, &calls) {
        return Err(refusal);
    }
    let addresses: SmallVec<[Address; 1]> = stages.iter().map(|stage| stage.address).collect();
    let counters = &inner.counters;
    let computed = match passed_input(&stages, &inputs) {
        Some(value) => {
            let value = value.clone();
            let remembered = async {
                for derivation in [address].into_iter().chain(call) {
                    remember(&inner, derivation, &value, Cost::default()).await?;
                }
                Ok(())
            };
            remembered.await.map(|()| (value, Duration::ZERO))
        }
        None => Box::pin(compute(&inner, stages, purpose, inputs, call)).await,
    };
    match computed {
        Ok((value, spent)) => {
            inner.count(&counters.computed, count);
            let (StoredValue { output, size, .. }, micros) = (&value, spent.as_micros() as u64);
            inner.events.tell(|| Event::Computed { address, output: *output, size: *size, micros });
            Ok(ComputedValue { value, how: Origin::Ran })
        }
        Err(error) => {
            refuse(&inner, &addresses, &calls, &error);
            inner.count(&counters.failed, 1);
            inner.events.tell(|| Event::Failed { address, error: error.to_string() });
            Err(error)
        }
    }
}

/// The recent failure of one of these stages, or of a call that is the same as one of theirs.
fn refused(inner: &Inner, stages: &[Stage], calls: &[Address]) -> Option<Error> {
    let clock = &**inner.engine.clock();
    stages.iter().enumerate().find_map(|(place, stage)| {
        let of_call = || match inner.refusals.recent(calls.get(place)?, clock)? {
            Error::Function { fault, .. } => Some(stage.failed(fault)),
            other => Some(other),
        };
        inner.refusals.recent(&stage.address, clock).or_else(of_call)
    })
}

/// Remembers a failure for lack of resources: of the stage that failed, and of its call. What all stages of a chain took
/// together is a failure of the last one, because each of them may succeed alone.
fn refuse(inner: &Inner, addresses: &[Address], calls: &[Address], error: &Error) {
    let Error::Function { address, function, fault } = error else { return };
    let is_own =
        addresses.len() == 1 || matches!(fault, Fault::TooLarge { what, .. } if *what != CALL_MEMORY);
    let now = inner.engine.clock().now();
    match addresses.iter().position(|it| it == address).filter(|_| is_own) {
        Some(place) => {
            let call = calls.get(place).filter(|call| *call != address);
            for address in [Some(address), call].into_iter().flatten().copied() {
                // The call may be a recipe of its own.
                let (function, fault) = (function.clone(), fault.clone());
                inner.refusals.add(address, &Error::Function { address, function, fault }, now);
            }
        }
        None => inner.refusals.add(addresses[addresses.len() - 1], error, now),
    }
}

/// The value of a function that returns a large input unchanged. It is already stored, so nothing is read or written. A
/// small value is not passed on this way, because copying it is faster than writing a memo alone.
fn passed_input<'a>(stages: &Stages, inputs: &'a [StoredValue]) -> Option<&'a StoredValue> {
    match (&stages[..], inputs) {
        ([stage], [input]) if stage.function.signature().passes_input => {
            Some(input).filter(|input| input.size > SMALL as u64)
        }
        _ => None,
    }
}

/// The remembered value of a recipe or a call, and its memo; `None` if it must be computed. A value in memory needs no
/// protection from collection.
async fn recalled(inner: &Inner, address: &Address) -> Result<Option<(StoredValue, Memo)>, Error> {
    let Some(memo) = inner.store.recall(address).await? else { return Ok(None) };
    if memo.size <= SMALL as u64
        && let Some(bytes) = inner.store.get_now(&memo.output)
    {
        let body = ValueBody::Bytes(bytes);
        return Ok(Some((StoredValue { output: memo.output, size: memo.size, body, lease: None }, memo)));
    }
    // Boxed, as are other steps that small values do not take: a small future costs less to make.
    let mut lease = inner.store.lease();
    let found = Box::pin(closure::remembered(inner, &memo, &mut lease)).await?;
    Ok(found.map(|(output, size)| (StoredValue::stored(output, size, Some(Arc::new(lease))), memo)))
}

/// Whether a stage was invalidated at this time or later, and not computed since. [`Executor::invalidate`] finds the
/// call of a recipe only while the values of its inputs are remembered.
///
/// [`Executor::invalidate`]: crate::executor::Executor::invalidate
async fn are_invalidated_since(inner: &Inner, stages: &[Stage], time: Time) -> Result<bool, Error> {
    for stage in stages {
        let gone = inner.store.removal(&stage.address).await?;
        if gone.is_some_and(|gone| gone.why == RemovalReason::Invalidated && gone.at >= time) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Remembers the value of another recipe. The memo of a value in memory is written in the background.
async fn remember(inner: &Inner, derivation: Address, value: &StoredValue, cost: Cost) -> Result<(), Error> {
    let memo = NewMemo { derivation, output: value.output, size: value.size, cost, inputs: &[] };
    let is_small = value.size <= SMALL as u64;
    let in_memory = || inner.store.get_now(&value.output).filter(|_| is_small);
    match value.bytes().cloned().or_else(in_memory) {
        Some(bytes) => inner.store.derived(memo, None, bytes).await?,
        None => Box::pin(inner.store.remember(memo, Class::Derivable)).await?,
    };
    Ok(())
}
