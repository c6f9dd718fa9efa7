//! Budgets: the most that a build may spend, and the meter that is asked before each call.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use anabranch_model::Error;
use anabranch_text::{duration, money};

use crate::config::Price;
use crate::output::Figures;
use crate::stop::{StopReason, StopSwitch};

/// The most that a build may spend. Calls, tokens and money count over all of its runs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Budget {
    pub max_calls: Option<u64>,
    /// Input and output together.
    pub max_tokens: Option<u64>,
    /// By the prices of the configuration.
    pub max_cost: Option<f64>,
    /// The time for this run, after which no further call begins.
    pub deadline: Option<Duration>,
}

/// The part of a budget that is spent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cap {
    Calls(u64),
    Tokens(u64),
    Cost(f64),
    Deadline(Duration),
}

impl Cap {
    /// The flag of the command line that sets it.
    pub fn flag(&self) -> &'static str {
        match self {
            Cap::Calls(_) => "--max-calls",
            Cap::Tokens(_) => "--max-tokens",
            Cap::Cost(_) => "--max-cost",
            Cap::Deadline(_) => "--deadline",
        }
    }
}

impl fmt::Display for Cap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cap::Calls(calls) => write!(f, "the budget of {calls} calls ({}) is spent", self.flag()),
            Cap::Tokens(tokens) => write!(f, "the budget of {tokens} tokens ({}) is spent", self.flag()),
            Cap::Cost(cost) => write!(f, "the budget of {} ({}) is spent", money::format(*cost), self.flag()),
            Cap::Deadline(after) => {
                write!(f, "the time of {} for this run ({}) is over", duration::format(*after), self.flag())
            }
        }
    }
}

/// Counts the calls of a build against its budget. Clones share it. Without a budget it costs a load per call.
#[derive(Clone, Default)]
pub(crate) struct Meter {
    shared: Arc<OnceLock<BudgetMeter>>,
    /// Custom columns ask models: their questions are not withheld, because the cell would fail.
    has_questions: Arc<AtomicBool>,
}

/// The meter of a build that has a budget.
struct BudgetMeter {
    budget: Budget,
    stop: StopSwitch,
    spent: Mutex<MeteredSpend>,
}

/// The spend of all runs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MeteredSpend {
    pub(crate) answered: u64,
    pub(crate) in_flight: u64,
    pub(crate) tokens: u64,
    pub(crate) cost: f64,
}

/// The right of a conversation to make calls. Once it has made one, it may finish.
#[derive(Clone, Default)]
pub(crate) enum Pass {
    /// Its calls are counted and never withheld.
    #[default]
    Free,
    /// The flag is true once the conversation has made a call.
    Conversation(Arc<AtomicBool>),
}

/// A call in flight, as the meter counts it.
pub(crate) struct MeteredCall<'m>(Option<&'m BudgetMeter>);

impl Meter {
    /// Sets the budget of a build that has spent this much before.
    pub(crate) fn begin(&self, budget: Budget, spent: MeteredSpend, stop: StopSwitch) {
        if budget == (Budget { deadline: budget.deadline, ..Budget::default() }) {
            return;
        }
        let limited = BudgetMeter { budget, stop, spent: Mutex::new(spent) };
        if self.has_questions.load(Relaxed)
            && let Some(cap) = limited.reached(&spent)
        {
            limited.stop.stop(StopReason::Budget(cap));
        }
        let _ = self.shared.set(limited);
    }

    /// Says that custom columns ask models.
    pub(crate) fn expect_questions(&self) {
        self.has_questions.store(true, Relaxed);
    }

    /// A pass for a conversation that begins.
    pub(crate) fn conversation(&self) -> Pass {
        match self.shared.get() {
            Some(_) => Pass::Conversation(Arc::default()),
            None => Pass::Free,
        }
    }

    /// Requests a call. The first call of a conversation is withheld if the budget has no room for it. The build then
    /// stops.
    pub(crate) fn begin_call(&self, pass: &Pass) -> Result<MeteredCall<'_>, Error> {
        let Some(limited) = self.shared.get() else { return Ok(MeteredCall(None)) };
        let mut spent = limited.lock();
        if let Some(cap) = limited.reached(&spent) {
            let may_go_on = match pass {
                Pass::Free => true,
                Pass::Conversation(has_begun) => has_begun.load(Relaxed),
            };
            limited.stop.stop(StopReason::Budget(cap));
            if !may_go_on {
                return Err(Error::Withheld(cap.to_string()));
            }
        }
        spent.in_flight += 1;
        drop(spent);
        if let Pass::Conversation(has_begun) = pass {
            has_begun.store(true, Relaxed);
        }
        Ok(MeteredCall(Some(limited)))
    }
}

impl BudgetMeter {
    fn lock(&self) -> MutexGuard<'_, MeteredSpend> {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The part of the budget that has no room for another call. Calls in flight count as much as the mean call.
    fn reached(&self, spent: &MeteredSpend) -> Option<Cap> {
        let Budget { max_calls, max_tokens, max_cost, .. } = self.budget;
        let means = spent.in_flight as f64 / spent.answered.max(1) as f64;
        let calls = max_calls.filter(|most| spent.answered + spent.in_flight >= *most).map(Cap::Calls);
        let tokens = || {
            let expected = spent.tokens as f64 * (1.0 + means);
            max_tokens.filter(|most| expected >= *most as f64).map(Cap::Tokens)
        };
        let cost = || max_cost.filter(|most| spent.cost * (1.0 + means) >= *most).map(Cap::Cost);
        calls.or_else(tokens).or_else(cost)
    }
}

impl MeteredCall<'_> {
    /// The call was answered.
    pub(crate) fn answered(mut self, figures: &Figures, price: Option<&Price>) {
        let Some(limited) = self.0.take() else { return };
        let mut spent = limited.lock();
        spent.in_flight -= 1;
        spent.answered += figures.calls;
        spent.tokens += figures.input_tokens + figures.output_tokens;
        spent.cost += price.map_or(0.0, |price| price.cost(figures));
    }
}

impl Drop for MeteredCall<'_> {
    fn drop(&mut self) {
        if let Some(limited) = self.0 {
            limited.lock().in_flight -= 1;
        }
    }
}
