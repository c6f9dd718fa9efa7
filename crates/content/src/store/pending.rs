//! Pending values: derived values that are not written yet. Reads find them here until the index has them.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use bytes::Bytes;

use super::lock;
use crate::Address;
use crate::address::BuildAddress;
use crate::facts::Memo;
use crate::shards::Shards;

/// Derived values that are not in the index yet. The room in the writer's queue bounds them: each caller that adds a
/// value holds some of it.
#[derive(Debug, Default)]
pub(crate) struct PendingValues {
    /// The number of entries: readers skip the maps while it is 0.
    count: AtomicUsize,
    next_ticket: AtomicU64,
    /// The number of entries that name inputs: the search for dependents skips them while it is 0.
    with_inputs: AtomicUsize,
    memos: Shards<Mutex<Memos>>,
    blobs: Shards<Mutex<Blobs>>,
}

type Memos = HashMap<Address, PendingMemo, BuildAddress>;

#[derive(Debug)]
struct PendingMemo {
    ticket: Ticket,
    memo: Memo,
    inputs: Box<[Address]>,
}

/// Bytes, and the number of entries that they belong to.
type Blobs = HashMap<Address, (usize, Bytes), BuildAddress>;

/// The identity of an entry: one derivation may have several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket(u64);

impl PendingValues {
    /// Adds a memo and its output's bytes; `None` if the same memo is there already.
    pub(crate) fn add(&self, memo: Memo, inputs: &[Address], bytes: Bytes) -> Option<Ticket> {
        let mut memos = lock(self.memos.of(&memo.derivation));
        if memos.get(&memo.derivation).is_some_and(|there| there.memo.output == memo.output) {
            return None;
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        let ticket = Ticket(self.next_ticket.fetch_add(1, Ordering::Relaxed));
        // The output is added before the memo: a reader that finds the memo must find its output.
        lock(self.blobs.of(&memo.output)).entry(memo.output).or_insert((0, bytes)).0 += 1;
        let replaced = memos.insert(memo.derivation, PendingMemo { ticket, memo, inputs: inputs.into() });
        let (more, fewer) = (!inputs.is_empty(), replaced.is_some_and(|it| !it.inputs.is_empty()));
        self.with_inputs.fetch_add(usize::from(more), Ordering::Relaxed);
        self.with_inputs.fetch_sub(usize::from(fewer), Ordering::Relaxed);
        Some(ticket)
    }

    /// Removes an entry: the index has it, or its write failed.
    pub(crate) fn remove(&self, ticket: Ticket, derivation: &Address, output: &Address) {
        let mut memos = lock(self.memos.of(derivation));
        if memos.get(derivation).is_some_and(|there| there.ticket == ticket) {
            let removed = memos.remove(derivation);
            let fewer = removed.is_some_and(|it| !it.inputs.is_empty());
            self.with_inputs.fetch_sub(usize::from(fewer), Ordering::Relaxed);
        }
        drop(memos);
        let mut blobs = lock(self.blobs.of(output));
        if let Some((count, _)) = blobs.get_mut(output) {
            *count -= 1;
            if *count == 0 {
                blobs.remove(output);
            }
        }
        drop(blobs);
        // Release: a reader that sees the lower count sees the index's entry too.
        self.count.fetch_sub(1, Ordering::Release);
    }

    /// Removes all entries: the writer has stopped.
    pub(crate) fn clear(&self) {
        self.memos.iter().for_each(|shard| lock(shard).clear());
        self.blobs.iter().for_each(|shard| lock(shard).clear());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    pub(crate) fn memo(&self, derivation: &Address) -> Option<Memo> {
        if self.is_empty() {
            return None;
        }
        lock(self.memos.of(derivation)).get(derivation).map(|there| there.memo.clone())
    }

    /// The derivations that read an address, according to their memos.
    pub(crate) fn readers(&self, input: &Address) -> Vec<Address> {
        if self.with_inputs.load(Ordering::Acquire) == 0 {
            return Vec::new();
        }
        let mut found = Vec::new();
        for shard in self.memos.iter() {
            let memos = lock(shard);
            let readers = memos.iter().filter(|(_, it)| it.inputs.contains(input));
            found.extend(readers.map(|(derivation, _)| *derivation));
        }
        found
    }

    pub(crate) fn blob(&self, address: &Address) -> Option<Bytes> {
        if self.is_empty() {
            return None;
        }
        lock(self.blobs.of(address)).get(address).map(|(_, bytes)| bytes.clone())
    }
}
