//! Recipes that failed for lack of resources, remembered for a while so that repeated requests fail fast.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anabranch_content::{Address, BuildAddress};
use anabranch_engine::clock::Clock;

use crate::error::Error;
use crate::function::Fault;

/// The time for which a failure is remembered.
const REMEMBERED: Duration = Duration::from_secs(60);

/// The maximum number of remembered failures.
const MOST: usize = 1024;

/// The failures, by recipe.
#[derive(Default)]
pub(crate) struct Refusals {
    failures: Mutex<Failures>,
    /// The number of failures. Usually there are none, and neither the lock nor the clock is needed.
    count: AtomicUsize,
}

type Failures = HashMap<Address, (Instant, Error), BuildAddress>;

impl Refusals {
    /// The failure of a recipe, if it is recent.
    pub(crate) fn recent(&self, address: &Address, clock: &dyn Clock) -> Option<Error> {
        if self.count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut refusals = self.lock();
        let (until, error) = refusals.get(address)?;
        if *until > clock.now() {
            return Some(error.clone());
        }
        refusals.remove(address);
        self.count.store(refusals.len(), Ordering::Relaxed);
        None
    }

    /// Remembers an error, if its reason is a lack of resources.
    pub(crate) fn add(&self, address: Address, error: &Error, now: Instant) {
        let Error::Function { fault: Fault::TooLarge { .. } | Fault::TooLong { .. }, .. } = error else {
            return;
        };
        let mut refusals = self.lock();
        if refusals.len() >= MOST {
            refusals.retain(|_, (until, _)| *until > now);
        }
        if refusals.len() >= MOST
            && let Some(oldest) = refusals.iter().min_by_key(|(_, (until, _))| *until).map(|(it, _)| *it)
        {
            refusals.remove(&oldest);
        }
        refusals.insert(address, (now + REMEMBERED, error.clone()));
        self.count.store(refusals.len(), Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Failures> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use anabranch_content::Address;
    use anabranch_engine::clock::{Clock, SystemClock};

    use super::{MOST, Refusals};
    use crate::error::Error;
    use crate::function::Fault;
    use crate::recipe::FunctionId;

    #[test]
    fn the_latest_failures_are_remembered() {
        let (refusals, now) = (Refusals::default(), SystemClock.now());
        let address = |number: usize| Address::of(&number.to_le_bytes());
        for number in 0..=MOST {
            let (function, fault) = (FunctionId::new("f", "1"), Fault::TooLarge { what: "it", most: 0 });
            let error = Error::Function { address: address(number), function: Box::new(function), fault };
            refusals.add(address(number), &error, now + Duration::from_nanos(number as u64));
        }
        let is_remembered = |number| refusals.recent(&address(number), &SystemClock).is_some();
        assert!(!is_remembered(0));
        assert!((1..=MOST).all(is_remembered));
    }
}
