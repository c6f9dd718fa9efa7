//! Recipes that failed for lack of resources, remembered for a while so that repeated requests fail fast.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anabranch_content::{Address, BuildAddress};

use crate::error::Error;
use crate::function::Fault;

/// The time for which a failure is remembered.
const REMEMBERED: Duration = Duration::from_secs(60);

/// The maximum number of remembered failures.
const MOST: usize = 1024;

/// The failures, by recipe.
#[derive(Default)]
pub(crate) struct Refusals(Mutex<HashMap<Address, (Instant, Error), BuildAddress>>);

impl Refusals {
    /// The failure of a recipe, if it is recent.
    pub(crate) fn recent(&self, address: &Address, now: Instant) -> Option<Error> {
        let mut refusals = self.lock();
        let (until, error) = refusals.get(address)?;
        if *until > now {
            return Some(error.clone());
        }
        refusals.remove(address);
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
        if refusals.len() < MOST {
            refusals.insert(address, (now + REMEMBERED, error.clone()));
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Address, (Instant, Error), BuildAddress>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
