//! Single flight: callers that need the same recipe share one computation, and nothing that is remembered is computed.

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
use crate::value::{Computed, Origin, StoredValue};

/// The most functions that are fused.
pub(crate) const ROW_MOST: usize = 64;

/// A recipe that is to be computed.
pub(crate) struct Stage {
    pub address: Address,
    pub function: Arc<dyn Function>,
    pub params: Option<Arc<Params>>,
    pub input_count: usize,
    /// True if an input is the value of another recipe.
    pub reads_recipes: bool,
}

/// One recipe, or several to be fused.
pub(crate) type Stages = SmallVec<[Stage; 1]>;

/// The reader of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A recipe.
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

    /// The address of the same recipe on the values of its inputs. Two recipes whose inputs have equal values share it.
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
) -> Waiter<Address, Result<Computed, Error>> {
    let address = stages.last().expect("there is a stage").address;
    let working = Arc::clone(inner);
    inner.flights.join(address, || None, move || execute(working, stages, purpose, inputs))
}

/// Computes as many of the stages together as no other recipe reads between, and answers which was the last of them.
pub(crate) async fn row(
    inner: Arc<Inner>,
    mut stages: Vec<Stage>,
    purposes: Vec<Purpose>,
    inputs: Vec<StoredValue>,
) -> Result<(Computed, usize), Error> {
    let mut together = 1;
    while together < stages.len() {
        let (before, next) = (&stages[together - 1], &stages[together]);
        let none = Params::new();
        let params = next.params.as_deref().unwrap_or(&none);
        // Errors in the next stage are reported when its turn comes.
        let fits = registry::check_declared(next.function.signature(), next.input_count, params).is_ok();
        // A value that another caller computes at this moment is shared, not computed again inside of a row.
        let is_wanted = inner.flights.is_open(&before.address);
        if !fits || is_wanted || inner.store.dependents(&before.address, None, 2).await?.len() > 1 {
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
) -> Result<Computed, Error> {
    let (count, address) = (stages.len() as u64, stages[stages.len() - 1].address);
    // Another flight may have landed since this one was asked for.
    if let Some((value, _)) = recalled(&inner, &address).await? {
        return Ok(Computed { value, how: Origin::Memo });
    }
    let on_values = match &stages[..] {
        [stage] if stage.reads_recipes => stage.on_values(&inputs).filter(|on_values| *on_values != address),
        _ => None,
    };
    if let Some(on_values) = &on_values
        && let Some((value, cost)) = recalled(&inner, on_values).await?
    {
        remember(&inner, address, &value, cost).await?;
        return Ok(Computed { value, how: Origin::SameInputs });
    }
    let clock = inner.engine.clock();
    if let Some(refusal) = inner.refusals.recent(&address, clock.now()) {
        return Err(refusal);
    }
    let counters = &inner.counters;
    match compute(&inner, stages, purpose, inputs).await {
        Ok((value, spent)) => {
            if let Some(on_values) = on_values {
                remember(&inner, on_values, &value, cost_of(spent)).await?;
            }
            inner.count(&counters.computed, count);
            let (StoredValue { output, size, .. }, micros) = (&value, spent.as_micros() as u64);
            inner.events.tell(|| Event::Computed { address, output: *output, size: *size, micros });
            Ok(Computed { value, how: Origin::Ran })
        }
        Err(error) => {
            inner.refusals.add(address, &error, clock.now());
            inner.count(&counters.failed, 1);
            inner.events.tell(|| Event::Failed { address, error: error.to_string() });
            Err(error)
        }
    }
}

/// The remembered value of a recipe, held, and its cost; `None` if it has to be computed.
async fn recalled(inner: &Inner, address: &Address) -> Result<Option<(StoredValue, Cost)>, Error> {
    let Some(memo) = inner.store.recall(address).await? else { return Ok(None) };
    let cost = memo.cost;
    let mut lease = inner.store.lease();
    let found = closure::remembered(inner, memo, &mut lease).await?;
    Ok(found.map(|(output, size)| (StoredValue::stored(output, size, Some(Arc::new(lease))), cost)))
}

/// Remembers the value of one more recipe.
async fn remember(inner: &Inner, derivation: Address, value: &StoredValue, cost: Cost) -> Result<(), Error> {
    let memo = NewMemo { derivation, output: value.output, size: value.size, cost, inputs: &[] };
    match value.bytes() {
        Some(bytes) => inner.store.derived(memo, bytes.clone()).await?,
        None => inner.store.remember(memo, Class::Derivable).await?,
    };
    Ok(())
}

pub(crate) fn cost_of(spent: Duration) -> Cost {
    Cost { cpu: spent, ..Cost::default() }
}
