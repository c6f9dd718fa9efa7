//! The size of an executor's store and its activity.

use std::sync::atomic::{AtomicU64, Ordering};

use anabranch_content::Stats;

use crate::executor::Inner;

/// The size of an executor's store, and its activity since it began.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Status {
    /// The store; its derivations are recipes.
    pub store: Stats,
    /// Functions that recipes may name.
    pub functions: usize,
    /// Values that were requested.
    pub gets: u64,
    /// Requests that were cache hits.
    pub hits: u64,
    /// Recipes computed.
    pub computed: u64,
    /// Recipes that could not be computed.
    pub failed: u64,
    /// Recipes being computed now.
    pub computing: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub gets: AtomicU64,
    pub hits: AtomicU64,
    pub computed: AtomicU64,
    pub failed: AtomicU64,
}

impl Status {
    pub(crate) fn of(inner: &Inner) -> Status {
        let counters = &inner.counters;
        Status {
            store: inner.store.stats(),
            functions: inner.functions.list().count(),
            gets: counters.gets.load(Ordering::Relaxed),
            hits: counters.hits.load(Ordering::Relaxed),
            computed: counters.computed.load(Ordering::Relaxed),
            failed: counters.failed.load(Ordering::Relaxed),
            computing: inner.flights.open(),
        }
    }
}
