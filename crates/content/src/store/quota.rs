//! The bytes that count against the quota: those in use, and those of writes that are not finished.

use std::sync::{Arc, Mutex};

use super::lock;

/// The room that the quota leaves. Without a quota, only the bytes in use are known.
#[derive(Debug)]
pub(crate) struct Room {
    quota: Option<u64>,
    taken: Arc<Mutex<TakenBytes>>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TakenBytes {
    /// The tally's bytes in use, for callers that must not wait for its lock.
    pub(crate) used: u64,
    /// The bytes of all claims.
    pub(crate) unfinished: u64,
}

impl TakenBytes {
    pub(crate) fn all(self) -> u64 {
        self.used.saturating_add(self.unfinished)
    }
}

/// Room for bytes that are not in the index yet. It is given back when the claim is dropped.
#[derive(Debug, Default)]
pub(crate) struct Claim {
    bytes: u64,
    /// The count that the bytes are in; `None` in a store without a quota.
    taken: Option<Arc<Mutex<TakenBytes>>>,
}

impl Room {
    pub(crate) fn new(quota: Option<u64>, used: u64) -> Room {
        Room { quota, taken: Arc::new(Mutex::new(TakenBytes { used, unfinished: 0 })) }
    }

    /// Claims room for this many bytes; `None` if they do not fit the quota now.
    pub(crate) fn claim(&self, bytes: u64) -> Option<Claim> {
        let Some(quota) = self.quota else { return Some(Claim::default()) };
        let mut taken = lock(&self.taken);
        let fits = taken.all().saturating_add(bytes) <= quota;
        fits.then(|| {
            taken.unfinished += bytes;
            Claim { bytes, taken: Some(Arc::clone(&self.taken)) }
        })
    }

    /// Notes the bytes in use after writes that had these claims: no byte is counted twice, and none is left out.
    pub(crate) fn written(&self, used: u64, mut claims: Claim) {
        let mut taken = lock(&self.taken);
        taken.used = used;
        taken.unfinished -= std::mem::take(&mut claims.bytes);
    }

    pub(crate) fn taken(&self) -> TakenBytes {
        *lock(&self.taken)
    }
}

impl Claim {
    /// The bytes that it has room for; 0 in a store without a quota.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds the room of another claim to this one.
    pub(crate) fn add(&mut self, mut other: Claim) {
        self.bytes += std::mem::take(&mut other.bytes);
        self.taken = self.taken.take().or_else(|| other.taken.take());
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(taken) = self.taken.as_ref().filter(|_| self.bytes > 0) {
            lock(taken).unfinished -= self.bytes;
        }
    }
}
