//! Writes the output of a call to the store.

use std::sync::Arc;
use std::time::Duration;

use anabranch_content::{Address, Class, Cost, Error as StoreError, NewMemo, Writer};
use bytes::Bytes;

use crate::error::Error;
use crate::execute::Purpose;
use crate::executor::Inner;
use crate::function::Chunks;
use crate::registry;
use crate::value::{StoredValue, ValueBody, ValueChunks};

/// Values up to this size are kept in one piece.
pub(crate) const SMALL: usize = 64 << 10;

/// The maximum size of a value that is also kept in memory for the caller that requested it.
const KEPT_MOST: usize = 16 << 20;

/// An output that is being stored.
pub(crate) enum Sink {
    Small(Chunks, usize),
    /// The writer, the bytes as long as they are few enough to keep in memory, and the length.
    Large(Box<Writer>, Option<ValueChunks>, usize),
}

impl Sink {
    /// An empty output.
    pub(crate) fn new() -> Sink {
        Sink::Small(Chunks::new(), 0)
    }

    /// Adds the next chunk.
    pub(crate) async fn take(self, inner: &Inner, purpose: Purpose, chunk: Bytes) -> Result<Sink, Error> {
        match self {
            Sink::Small(mut chunks, len) if len + chunk.len() <= SMALL => {
                let len = len + chunk.len();
                chunks.push(chunk);
                Ok(Sink::Small(chunks, len))
            }
            large => Box::pin(large.write(inner, purpose, chunk)).await,
        }
    }

    async fn write(self, inner: &Inner, purpose: Purpose, chunk: Bytes) -> Result<Sink, Error> {
        match self {
            Sink::Small(mut chunks, len) => {
                let mut writer = inner.store.writer(Class::Derivable);
                let len = len + chunk.len();
                chunks.push(chunk);
                for chunk in &chunks {
                    writer.write(chunk.clone()).await?;
                }
                // Only the value requested by a caller is kept in memory.
                let room = match purpose {
                    Purpose::Caller if len <= KEPT_MOST => {
                        Arc::clone(&inner.kept).try_acquire_many_owned(KEPT_MOST as u32).ok()
                    }
                    Purpose::Caller | Purpose::Recipe => None,
                };
                let kept = room.map(|room| ValueChunks { chunks: chunks.into_vec(), room });
                Ok(Sink::Large(Box::new(writer), kept, len))
            }
            Sink::Large(mut writer, kept, len) => {
                let len = len + chunk.len();
                let kept = kept.filter(|_| len <= KEPT_MOST).map(|mut kept| {
                    kept.chunks.push(chunk.clone());
                    kept
                });
                writer.write(chunk).await?;
                Ok(Sink::Large(writer, kept, len))
            }
        }
    }

    /// Stores the whole output, the memo of the derivation, and the memo of the call if it has another address. A small
    /// output is written in the background.
    pub(crate) async fn keep(
        self,
        inner: &Inner,
        (derivation, call): (Address, Option<Address>),
        spent: Duration,
    ) -> Result<StoredValue, Error> {
        let store = &inner.store;
        let cost = Cost { cpu: spent, ..Cost::default() };
        let memo = |derivation, output, size| NewMemo { derivation, output, size, cost, inputs: &[] };
        match self {
            Sink::Small(chunks, len) => {
                let bytes = registry::join(chunks);
                let (output, size) = (Address::of(&bytes), len as u64);
                store.derived(memo(derivation, output, size), call, bytes.clone()).await?;
                Ok(StoredValue { output, size, body: ValueBody::Bytes(bytes), lease: None })
            }
            Sink::Large(writer, mut kept, len) => {
                // The reserved memory is for the largest value; the unused part is released.
                if let Some(kept) = &mut kept {
                    drop(kept.room.split(KEPT_MOST - len));
                }
                let finished = async {
                    let put = writer.finish().await?;
                    let mut lease = store.lease();
                    // The value may have been collected before the lease held it.
                    if !lease.hold(put.address).await? || store.size(&put.address).await?.is_none() {
                        return Err(StoreError::Missing { address: put.address }.into());
                    }
                    for derivation in [derivation].into_iter().chain(call) {
                        store.remember(memo(derivation, put.address, put.len), Class::Derivable).await?;
                    }
                    Ok::<_, Error>((put, lease))
                };
                let (put, lease) = Box::pin(finished).await?;
                let body = kept.map_or(ValueBody::Stored, |kept| ValueBody::Chunks(Arc::new(kept)));
                Ok(StoredValue { output: put.address, size: put.len, body, lease: Some(Arc::new(lease)) })
            }
        }
    }
}
