//! The values that pass through a get: the address of the bytes, and the bytes if they are in memory.

use std::sync::Arc;

use anabranch_content::{Address, Lease};
use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;

/// A value that exists.
#[derive(Clone, Debug)]
pub(crate) struct StoredValue {
    /// The address of its bytes.
    pub output: Address,
    /// Its length in bytes.
    pub size: u64,
    pub body: ValueBody,
    /// Protects the value from collection, if its bytes are not in memory.
    pub lease: Option<Arc<Lease>>,
}

/// The location of a value's bytes.
#[derive(Clone, Debug)]
pub(crate) enum ValueBody {
    /// In the store.
    Stored,
    /// In memory, in one piece.
    Bytes(Bytes),
    /// In memory, in pieces, for the caller that requested this value. The store has them too.
    Chunks(Arc<ValueChunks>),
}

/// A value in pieces, with its share of the memory for values returned from memory.
#[derive(Debug)]
pub(crate) struct ValueChunks {
    pub chunks: Vec<Bytes>,
    pub room: OwnedSemaphorePermit,
}

impl StoredValue {
    /// A value in the store.
    pub(crate) fn stored(output: Address, size: u64, lease: Option<Arc<Lease>>) -> StoredValue {
        StoredValue { output, size, body: ValueBody::Stored, lease }
    }

    /// The bytes, if they are in memory in one piece.
    pub(crate) fn bytes(&self) -> Option<&Bytes> {
        match &self.body {
            ValueBody::Bytes(bytes) => Some(bytes),
            ValueBody::Stored | ValueBody::Chunks(_) => None,
        }
    }
}

/// The outcome of a computation.
#[derive(Clone, Debug)]
pub(crate) struct ComputedValue {
    pub value: StoredValue,
    pub how: Origin,
}

/// The way in which a computation obtained its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Its functions ran.
    Ran,
    /// Another computation had stored it by then.
    Memo,
    /// The same function had already run on equal inputs (early cut-off).
    SameInputs,
}
