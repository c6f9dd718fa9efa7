//! A value on its way through a get: the blob that it is, and its bytes if they are in memory.

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
    /// Keeps it from being collected, if its bytes are not in memory.
    pub lease: Option<Arc<Lease>>,
}

/// Where the bytes of a value are.
#[derive(Clone, Debug)]
pub(crate) enum ValueBody {
    /// In the store.
    Stored,
    /// In memory, in one piece.
    Bytes(Bytes),
    /// In memory, in pieces, for the caller that asked for just this value; the store has them too.
    Chunks(Arc<ValueChunks>),
}

/// A value in pieces, with its share of the memory for answers.
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
pub(crate) struct Computed {
    pub value: StoredValue,
    pub how: Origin,
}

/// How a computation came to its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Its functions ran.
    Ran,
    /// Another computation had remembered it by then.
    Memo,
    /// The same function had run before on equal inputs: an early cut-off.
    SameInputs,
}
