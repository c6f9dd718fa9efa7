//! Single flight: callers that need the same recipe share one computation. Remembered values are not computed again.

use std::sync::Arc;
use std::time::Duration;

use anabranch_content::{Address, Class, Cost, NewMemo};
use anabranch_engine::flight::{Panicked, Waiter};
use smallvec::SmallVec;

use crate::closure;
use crate::compute::compute;
use crate::error::Error;
use crate::events::Event;
use crate::executor::Inner;
use crate::function::{Fault, Function};
use crate::recipe::{self, CONTEXT, FunctionId, Params};
use crate::registry;
use crate::sink::SMALL;
use crate::value::{ComputedValue, Origin, StoredValue};

/// The maximum number of functions that are fused.
pub(crate) const ROW_MOST: usize = 64;

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

    /// The address of the same recipe with its inputs replaced by their values. Recipes whose inputs have equal values
    /// share this address.
    fn on_values(&self, inputs: &[StoredValue]) -> Option<Address> {
        let none = Params::new();
        let params = self.params.as_deref().unwrap_or(&none);
        let outputs = inputs.iter().map(|input| &input.output);
        let encoding = recipe::encode(&self.function.signature().id, outputs, params).ok()?;
        Some(Address::derive(CONTEXT, &encoding))
    }
}

/// Joins the flight of the last stage's address, or opens one with these inputs.
pub(crate) fn join(
    inner: &Arc<Inner>,
    stages: Stages,
    purpose: Purpose,
    inputs: Vec<StoredValue>,
) -> Waiter<Address, Result<ComputedValue, Error>> {
    let address = stages.last().expect("there is a stage").address;
    let working = Arc::clone(inner);
    inner.flights.join(address, || None, move || execute(working, stages, purpose, inputs))
}

/// Computes as many of the first stages as can be fused, in one call. Returns the value and the index of the last
/// computed stage.
pub(crate) async fn row(
    inner: Arc<Inner>,
    mut stages: Vec<Stage>,
    purposes: Vec<Purpose>,
    inputs: Vec<StoredValue>,
) -> Result<(ComputedValue, usize), Error> {
    let mut together = 1;
    while together < stages.len() {
        let (before, next) = (&stages[together - 1], &stages[together]);
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
            break;
        }
        together += 1;
    }
    stages.truncate(together);
    match join(&inner, stages.into(), purposes[together - 1], inputs).await {
        Ok(landed) => Ok((landed?, together - 1)),
        Err(Panicked(message)) => std::panic::resume_unwind(Box::new(message)),
    }
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
    let on_values = match &stages[..] {
        [stage] if stage.reads_recipes => stage.on_values(&inputs).filter(|on_values| *on_values != address),
        _ => None,
    };
    if let Some(on_values) = &on_values
        && let Some((value, cost)) = recalled(&inner, on_values).await?
    {
        remember(&inner, address, &value, cost).await?;
        return Ok(ComputedValue { value, how: Origin::SameInputs });
    }
    let clock = inner.engine.clock();
    if let Some(refusal) = inner.refusals.recent(&address, clock.now()) {
        return Err(refusal);
    }
    let counters = &inner.counters;
    let computed = match passed_input(&stages, &inputs) {
        Some(value) => {
            let value = value.clone();
            remember(&inner, address, &value, Cost::default()).await.map(|()| (value, Duration::ZERO))
        }
        None => compute(&inner, stages, purpose, inputs).await,
    };
    match computed {
        Ok((value, spent)) => {
            if let Some(on_values) = on_values {
                remember(&inner, on_values, &value, cost_of(spent)).await?;
            }
            inner.count(&counters.computed, count);
            let (StoredValue { output, size, .. }, micros) = (&value, spent.as_micros() as u64);
            inner.events.tell(|| Event::Computed { address, output: *output, size: *size, micros });
            Ok(ComputedValue { value, how: Origin::Ran })
        }
        Err(error) => {
            inner.refusals.add(address, &error, clock.now());
            inner.count(&counters.failed, 1);
            inner.events.tell(|| Event::Failed { address, error: error.to_string() });
            Err(error)
        }
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

/// The remembered value of a recipe, protected from collection, and its cost; `None` if it must be computed.
async fn recalled(inner: &Inner, address: &Address) -> Result<Option<(StoredValue, Cost)>, Error> {
    let Some(memo) = inner.store.recall(address).await? else { return Ok(None) };
    let cost = memo.cost;
    let mut lease = inner.store.lease();
    let found = closure::remembered(inner, memo, &mut lease).await?;
    Ok(found.map(|(output, size)| (StoredValue::stored(output, size, Some(Arc::new(lease))), cost)))
}

/// Remembers the value of another recipe. The memo of a value in memory is written in the background.
async fn remember(inner: &Inner, derivation: Address, value: &StoredValue, cost: Cost) -> Result<(), Error> {
    let memo = NewMemo { derivation, output: value.output, size: value.size, cost, inputs: &[] };
    let is_small = value.size <= SMALL as u64;
    let in_memory = || inner.store.get_now(&value.output).filter(|_| is_small);
    match value.bytes().cloned().or_else(in_memory) {
        Some(bytes) => inner.store.derived(memo, bytes).await?,
        None => inner.store.remember(memo, Class::Derivable).await?,
    };
    Ok(())
}

pub(crate) fn cost_of(spent: Duration) -> Cost {
    Cost { cpu: spent, ..Cost::default() }
}
