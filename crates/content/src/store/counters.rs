//! Counters of a store's operations, by kind.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{Operation, Outcome};

/// A kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Put,
    Get,
    Derivation,
    Memo,
    Recall,
    Derived,
    Append,
    Pin,
    Name,
    Collect,
    Scrub,
    Export,
    Import,
}

const NAMES: [&str; 13] = [
    "put",
    "get",
    "derivation",
    "memo",
    "recall",
    "derived",
    "append",
    "pin",
    "name",
    "collect",
    "scrub",
    "export",
    "import",
];

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        NAMES[self as usize]
    }
}

/// Counters of all kinds.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    kinds: [Counter; NAMES.len()],
}

/// The counters of one kind, on cache lines of their own to avoid false sharing.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Counter {
    count: AtomicU64,
    errors: AtomicU64,
    empty: AtomicU64,
    bytes: AtomicU64,
}

impl Counters {
    pub(crate) fn count(&self, kind: Kind, outcome: Outcome) {
        let counter = &self.kinds[kind as usize];
        counter.count.fetch_add(1, Ordering::Relaxed);
        match outcome {
            Outcome::Bytes(0) => {}
            Outcome::Bytes(bytes) => _ = counter.bytes.fetch_add(bytes, Ordering::Relaxed),
            Outcome::Nothing => _ = counter.empty.fetch_add(1, Ordering::Relaxed),
            Outcome::Failed => _ = counter.errors.fetch_add(1, Ordering::Relaxed),
        }
    }

    pub(crate) fn list(&self) -> Vec<Operation> {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let operation = |(name, counter): (&'static str, &Counter)| Operation {
            name,
            count: read(&counter.count),
            errors: read(&counter.errors),
            empty: read(&counter.empty),
            bytes: read(&counter.bytes),
        };
        NAMES.into_iter().zip(&self.kinds).map(operation).collect()
    }
}
