//! Values on their way to the log that are known already: whoever asks finds them here until the index has them.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use bytes::Bytes;

use super::lock;
use crate::Address;
use crate::address::BuildAddress;
use crate::facts::Memo;

const SHARDS: usize = 64;

/// What was derived and is not in the index yet. Its bound is the room that whoever adds something has in the queue.
#[derive(Debug)]
pub(crate) struct Pending {
    /// How many entries there are: nobody need look while it is 0.
    count: AtomicUsize,
    bytes: AtomicU64,
    next_ticket: AtomicU64,
    memos: Box<[Mutex<Memos>]>,
    blobs: Box<[Mutex<Blobs>]>,
}

type Memos = HashMap<Address, (Ticket, Memo), BuildAddress>;

/// Bytes, and how many entries they belong to.
type Blobs = HashMap<Address, (usize, Bytes), BuildAddress>;

/// Tells two entries of one derivation apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket(u64);

impl Pending {
    pub(crate) fn new() -> Pending {
        Pending {
            count: AtomicUsize::new(0),
            bytes: AtomicU64::new(0),
            next_ticket: AtomicU64::new(0),
            memos: (0..SHARDS).map(|_| Mutex::default()).collect(),
            blobs: (0..SHARDS).map(|_| Mutex::default()).collect(),
        }
    }

    /// Adds a memo and its output's bytes; nothing if the same is there already.
    pub(crate) fn add(&self, memo: Memo, bytes: Bytes) -> Option<Ticket> {
        let mut memos = lock(shard(&self.memos, &memo.derivation));
        if memos.get(&memo.derivation).is_some_and(|(_, there)| there.output == memo.output) {
            return None;
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        let ticket = Ticket(self.next_ticket.fetch_add(1, Ordering::Relaxed));
        // Whoever finds the memo finds its output.
        lock(shard(&self.blobs, &memo.output)).entry(memo.output).or_insert((0, bytes)).0 += 1;
        memos.insert(memo.derivation, (ticket, memo));
        Some(ticket)
    }

    /// Takes an entry away: the index has it, or it was not written.
    pub(crate) fn remove(&self, ticket: Ticket, derivation: &Address, output: &Address) {
        let mut memos = lock(shard(&self.memos, derivation));
        if memos.get(derivation).is_some_and(|(there, _)| *there == ticket) {
            memos.remove(derivation);
        }
        drop(memos);
        let mut blobs = lock(shard(&self.blobs, output));
        if let Some((count, bytes)) = blobs.get_mut(output) {
            self.bytes.fetch_sub(bytes.len() as u64, Ordering::Relaxed);
            *count -= 1;
            if *count == 0 {
                blobs.remove(output);
            }
        }
        drop(blobs);
        // Whoever sees the lower count sees what the index has.
        self.count.fetch_sub(1, Ordering::Release);
    }

    /// Takes all away: nobody writes any more.
    pub(crate) fn clear(&self) {
        self.memos.iter().for_each(|shard| lock(shard).clear());
        self.blobs.iter().for_each(|shard| lock(shard).clear());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// How many bytes of values there are.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn memo(&self, derivation: &Address) -> Option<Memo> {
        if self.is_empty() {
            return None;
        }
        lock(shard(&self.memos, derivation)).get(derivation).map(|(_, memo)| memo.clone())
    }

    pub(crate) fn blob(&self, address: &Address) -> Option<Bytes> {
        if self.is_empty() {
            return None;
        }
        lock(shard(&self.blobs, address)).get(address).map(|(_, bytes)| bytes.clone())
    }
}

fn shard<'a, T>(shards: &'a [T], address: &Address) -> &'a T {
    &shards[address.bits() as usize % SHARDS]
}
