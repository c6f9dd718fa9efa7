//! The budget of a request: the rows and bytes that it may produce.
//!
//! A plan decides how much a request reads: a fan-out of fan-outs multiplies its lists, a join multiplies its rows. The
//! budget limits that before memory is allocated. It counts everything that the nodes of one request produce, from the
//! first to the last, and returns nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anabranch_text::size;

/// The most rows and bytes that one request may make, over all its nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Rows of nodes that make new rows: sources, fan-outs, joins, unions.
    pub rows: u64,
    /// The bytes of these rows, of columns with their texts, and of the keys of reads. Replies in progress count, too.
    pub bytes: u64,
}

impl Default for Bounds {
    /// 1,000,000 rows and 256 MiB.
    fn default() -> Bounds {
        Bounds { rows: 1_000_000, bytes: 256 << 20 }
    }
}

impl Bounds {
    /// No bounds, for callers that trust their plans.
    pub const NONE: Bounds = Bounds { rows: u64::MAX, bytes: u64::MAX };
}

/// The rows and bytes that one request has produced, and its limits.
#[derive(Debug, Default)]
pub struct Budget {
    bounds: Bounds,
    rows: AtomicU64,
    bytes: AtomicU64,
    /// The bytes of replies in progress, which no node has taken yet.
    replies: AtomicU64,
}

/// A request that would make more than it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OverBudget {
    /// Too many rows.
    #[error(
        "the request would make at least {needed} rows, and {allowed} are allowed; let the plan make fewer, or raise \
         `max_rows` (under [limits] of validation.toml or [plan] of anabranch.toml)"
    )]
    Rows {
        /// The rows of the request with those of this node.
        needed: u64,
        /// The rows that are allowed.
        allowed: u64,
    },
    /// Too many bytes.
    #[error(
        "the request would make at least {} of rows and columns, and {} are allowed; let the plan make less, or raise \
         `max_bytes` (under [limits] of validation.toml or [plan] of anabranch.toml)",
        size::format(*needed), size::format(*allowed)
    )]
    Bytes {
        /// The bytes of the request with those of this node.
        needed: u64,
        /// The bytes that are allowed.
        allowed: u64,
    },
}

/// The size of an id and of most values.
const VALUE_BYTES: u64 = 8;

/// Bytes of a reply that are counted on their own before they are counted in the budget, which all nodes share.
const UNCOUNTED: u64 = 4 << 10;

impl Budget {
    /// A budget of which nothing is used yet.
    pub fn new(bounds: Bounds) -> Budget {
        Budget { bounds, ..Budget::default() }
    }

    /// A budget of the remaining part of this one.
    pub(crate) fn rest(&self) -> Budget {
        let left = |all: u64, used: &AtomicU64| all.saturating_sub(used.load(Ordering::Relaxed));
        let Bounds { rows, bytes } = self.bounds;
        Budget::new(Bounds { rows: left(rows, &self.rows), bytes: left(bytes, &self.bytes) })
    }

    /// The number of rows that may still be produced.
    pub fn rows_left(&self) -> u64 {
        self.bounds.rows.saturating_sub(self.rows.load(Ordering::Relaxed))
    }

    /// Counts new rows with this many columns. Must be called before they are created.
    pub fn take_rows(&self, rows: u64, columns: u64) -> Result<(), OverBudget> {
        let allowed = self.bounds.rows;
        take(&self.rows, rows, allowed).map_err(|needed| OverBudget::Rows { needed, allowed })?;
        self.take_values(rows.saturating_mul(columns + 1))
    }

    /// Counts values of new columns, or keys of a read. Must be called before they are created.
    pub fn take_values(&self, values: u64) -> Result<(), OverBudget> {
        self.take_bytes(values.saturating_mul(VALUE_BYTES))
    }

    /// Counts bytes of texts that a node takes out of a reply.
    pub fn take_bytes(&self, bytes: u64) -> Result<(), OverBudget> {
        let allowed = self.bounds.bytes;
        take(&self.bytes, bytes, allowed).map_err(|needed| OverBudget::Bytes { needed, allowed })
    }

    /// Counts a reply of a source while it is decoded.
    pub fn reply(self: &Arc<Budget>) -> ReplyCount {
        let used = self.rows.load(Ordering::Relaxed);
        ReplyCount { rows: used, allowed: self.bounds.rows, bytes: 0, counted: 0, budget: Arc::clone(self) }
    }
}

/// The count of one reply of a source while it is decoded.
///
/// Its bytes count until it is dropped: the node that makes rows and columns of the reply counts these for good. Its
/// ids are compared with the rows that are left.
#[derive(Debug)]
pub struct ReplyCount {
    /// The rows of the request when the read began, and the ids of the reply.
    rows: u64,
    allowed: u64,
    /// Bytes that the budget does not know of yet.
    bytes: u64,
    /// Bytes that it does.
    counted: u64,
    budget: Arc<Budget>,
}

impl ReplyCount {
    /// Counts ids, each with this many values. Must be called before they are stored.
    #[inline]
    pub fn take_ids(&mut self, ids: u64, values: u64) -> Result<(), OverBudget> {
        let needed = self.rows.saturating_add(ids);
        if needed > self.allowed {
            return Err(OverBudget::Rows { needed, allowed: self.allowed });
        }
        self.rows = needed;
        self.take_bytes(ids.saturating_mul((values + 1) * VALUE_BYTES))
    }

    /// Counts bytes of texts. Must be called before they are stored.
    #[inline]
    pub fn take_bytes(&mut self, bytes: u64) -> Result<(), OverBudget> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes < UNCOUNTED { Ok(()) } else { self.settle() }
    }

    /// Adds the rest of the count to the budget. Must be called when the reply is complete.
    pub fn settle(&mut self) -> Result<(), OverBudget> {
        let (bytes, allowed) = (std::mem::take(&mut self.bytes), self.budget.bounds.bytes);
        let used = self.budget.bytes.load(Ordering::Relaxed);
        let taken = take(&self.budget.replies, bytes, allowed.saturating_sub(used));
        taken.map_err(|replies| OverBudget::Bytes { needed: used.saturating_add(replies), allowed })?;
        self.counted += bytes;
        Ok(())
    }
}

impl Drop for ReplyCount {
    fn drop(&mut self) {
        self.budget.replies.fetch_sub(self.counted, Ordering::Relaxed);
    }
}

/// Adds to `used`; if that is more than `allowed`, adds nothing and returns the sum.
fn take(used: &AtomicU64, more: u64, allowed: u64) -> Result<(), u64> {
    let fits = |used: u64| used.checked_add(more).filter(|sum| *sum <= allowed);
    let taken = used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits);
    taken.map(|_| ()).map_err(|used| used.saturating_add(more))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_not_counted() {
        let budget = Budget::new(Bounds { rows: 10, bytes: 200 });
        assert_eq!(budget.take_rows(4, 1), Ok(()));
        assert_eq!(budget.take_rows(7, 0), Err(OverBudget::Rows { needed: 11, allowed: 10 }));
        assert_eq!(budget.rows_left(), 6);
        assert_eq!(budget.take_values(18), Err(OverBudget::Bytes { needed: 208, allowed: 200 }));
        assert_eq!(budget.take_values(17), Ok(()));
        assert_eq!(budget.rest().take_values(1), Err(OverBudget::Bytes { needed: 8, allowed: 0 }));
        assert_eq!(Budget::new(Bounds::NONE).take_rows(u64::MAX, 0), Ok(()));
    }

    #[test]
    fn replies_of_one_request_share_its_bytes() {
        let budget = Arc::new(Budget::new(Bounds { rows: 1_000, bytes: 2 * UNCOUNTED }));
        let (mut first, mut second) = (budget.reply(), budget.reply());
        assert_eq!(first.take_ids(500, 1), Ok(()));
        assert_eq!(second.take_bytes(100), Ok(()));
        let needed = 500 * 16 + 100 + 93;
        assert_eq!(second.take_bytes(93), Ok(()));
        assert_eq!(second.settle(), Err(OverBudget::Bytes { needed, allowed: 2 * UNCOUNTED }));
        assert_eq!(first.take_ids(501, 0), Err(OverBudget::Rows { needed: 1_001, allowed: 1_000 }));
        assert_eq!(budget.rows_left(), 1_000, "rows are counted by the node that makes them");
        drop(first);
        assert_eq!(second.take_bytes(2 * UNCOUNTED), Ok(()));
        drop(second);
        assert_eq!(budget.take_bytes(2 * UNCOUNTED), Ok(()));
        let needed = 2 * UNCOUNTED + 8;
        let mut late = budget.reply();
        assert_eq!(late.take_ids(1, 0), Ok(()), "it is not counted yet");
        assert_eq!(late.settle(), Err(OverBudget::Bytes { needed, allowed: 2 * UNCOUNTED }));
    }
}
