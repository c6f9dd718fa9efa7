//! The counters of one column and one model.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::journal::Figures;

/// Calls, tokens and time of a column, in this run.
#[derive(Default)]
pub(super) struct Counters {
    pub(super) column: String,
    calls: AtomicU64,
    cells: AtomicU64,
    input_tokens: AtomicU64,
    output_tokens: AtomicU64,
    cached_tokens: AtomicU64,
    took_ms: AtomicU64,
    prompt_bytes: AtomicU64,
    reused: AtomicU64,
}

impl Counters {
    pub(super) fn new(column: &str) -> Counters {
        Counters { column: column.to_owned(), ..Counters::default() }
    }

    pub(super) fn add(&self, figures: &Figures) {
        self.calls.fetch_add(figures.calls, Relaxed);
        self.cells.fetch_add(figures.cells, Relaxed);
        self.input_tokens.fetch_add(figures.input_tokens, Relaxed);
        self.output_tokens.fetch_add(figures.output_tokens, Relaxed);
        self.took_ms.fetch_add(figures.took_ms, Relaxed);
        self.prompt_bytes.fetch_add(figures.prompt_bytes, Relaxed);
        if figures.cached_tokens > 0 {
            self.cached_tokens.fetch_add(figures.cached_tokens, Relaxed);
        }
    }

    /// Counts replies of the journal that took the place of calls.
    pub(super) fn reuse(&self, calls: u64) {
        self.reused.fetch_add(calls, Relaxed);
    }

    pub(super) fn reused(&self) -> u64 {
        self.reused.load(Relaxed)
    }

    pub(super) fn figures(&self) -> Figures {
        Figures {
            calls: self.calls.load(Relaxed),
            cells: self.cells.load(Relaxed),
            input_tokens: self.input_tokens.load(Relaxed),
            output_tokens: self.output_tokens.load(Relaxed),
            cached_tokens: self.cached_tokens.load(Relaxed),
            took_ms: self.took_ms.load(Relaxed),
            prompt_bytes: self.prompt_bytes.load(Relaxed),
        }
    }
}
