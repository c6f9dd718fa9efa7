//! Writing blobs.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, TryStreamExt};

use super::counters::Kind;
use super::get::QUICK_MOST;
use super::quota::Claim;
use super::tables::{Blob, Home};
use super::{Core, Store};
use crate::facts::Class;
use crate::files::{Durability, HashedBlob, Name, Sink};
use crate::log::Fact;
use crate::{Address, Error};

/// The result of putting a blob or the description of a derivation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Put {
    /// Its address.
    pub address: Address,
    /// Its length in bytes.
    pub len: u64,
    /// Whether it was not in the store before.
    pub new: bool,
}

impl Store {
    /// Stores bytes. A blob that is already in the store is not written again.
    pub async fn put(&self, bytes: impl Into<Bytes>, class: Class) -> Result<Put, Error> {
        let bytes: Bytes = bytes.into();
        if bytes.len() > self.inner.core.config.packed_most {
            let mut writer = self.writer(class);
            writer.write(bytes).await?;
            return writer.finish().await;
        }
        self.put_packed(bytes, class, None).await
    }

    /// Stores the bytes of a stream of any length, in little memory. An error of the stream ends the put and leaves
    /// nothing behind.
    pub async fn put_stream<E>(
        &self,
        stream: impl Stream<Item = Result<Bytes, E>>,
        class: Class,
    ) -> Result<Put, Error>
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        let mut writer = self.writer(class);
        let stream = stream.map_err(|error| Error::Source(Arc::new(error)));
        futures_util::pin_mut!(stream);
        while let Some(bytes) = stream.try_next().await? {
            writer.write(bytes).await?;
        }
        writer.finish().await
    }

    /// Makes a writer that stores a blob piece by piece.
    pub fn writer(&self, class: Class) -> Writer {
        let state = WriterState::Small(BytesMut::new());
        Writer { store: self.clone(), class, len: 0, claim: Claim::default(), state }
    }

    pub(super) fn count_put(&self, result: Result<Put, Error>) -> Result<Put, Error> {
        self.inner.core.count(Kind::Put, result, |put| put.new.then_some(put.len))
    }

    /// Stores bytes that fit a record; in the room of this claim, if the caller has one.
    async fn put_packed(&self, bytes: Bytes, class: Class, claim: Option<Claim>) -> Result<Put, Error> {
        let result = self.keep_packed(bytes, class, claim).await;
        self.count_put(result)
    }

    async fn keep_packed(&self, bytes: Bytes, class: Class, claim: Option<Claim>) -> Result<Put, Error> {
        let core = &self.inner.core;
        let len = bytes.len() as u64;
        let address = match bytes.len() {
            ..=QUICK_MOST => Address::of(&bytes),
            _ => {
                let bytes = bytes.clone();
                self.blocking(move |_| Ok(Address::of(&bytes))).await?
            }
        };
        if self.keeps(&address, class).await? {
            return Ok(Put { address, len, new: false });
        }
        let claim = match claim {
            Some(claim) => claim,
            None => core.claim(len).await?,
        };
        let outcome = core.write(Fact::Blob { address, bytes: bytes.clone() }, class, claim).await?;
        // A derived value is about to be read, so it may evict others; a blob from a caller may never be read.
        match class {
            Class::Derivable => core.admit(address, &bytes),
            Class::Acknowledged => core.admit_if_free(address, &bytes),
        }
        Ok(Put { address, len, new: outcome.written })
    }

    /// Puts the file of a blob in place, unless the store has the blob.
    pub(super) async fn keep_file(
        &self,
        hashed: HashedBlob,
        class: Class,
        (len, claim): (u64, Claim),
    ) -> Result<Put, Error> {
        let core = &self.inner.core;
        let Name { address, number } = hashed.name;
        if self.keeps(&address, class).await? {
            return Ok(Put { address, len, new: false });
        }
        let unsettled = UnsettledFile(core);
        let durability = match class {
            Class::Acknowledged => Durability::Now,
            Class::Derivable => Durability::Later,
        };
        hashed.keep(durability).await?;
        // If this fails, the log may have the record nevertheless: the file stays until the next open replays the log.
        let outcome = core.write(Fact::File { address, number, len }, class, claim).await?;
        std::mem::forget(unsettled);
        if !outcome.written {
            core.background.orphans(vec![Name { address, number }]);
        }
        Ok(Put { address, len, new: outcome.written })
    }

    /// Whether the store has a good copy of the blob, of this class at least. The copy is read and verified, so that a
    /// put heals a damaged blob. The class of a packed copy is raised; that of a file is not, as the file may be torn
    /// after a power cut, and the caller has a good copy.
    async fn keeps(&self, address: &Address, class: Class) -> Result<bool, Error> {
        let core = &self.inner.core;
        let wanted = core.guard.want(vec![*address]);
        // A log that can no longer be written may have removed blobs that the index still has.
        core.segments.check()?;
        if wanted.is_leaving(0) {
            return Ok(false);
        }
        let address = *address;
        let row = move |core: &Core, wait| core.catalogue.stored_blob(&address, wait);
        let Some(blob) = self.quick(row).await? else { return Ok(false) };
        let is_file = matches!(blob.home, Home::File { .. });
        if (is_file && blob.class < class) || !self.is_whole(address, blob).await? {
            return Ok(false);
        }
        if blob.class >= class && core.now().since(blob.at) < core.config.touch_after {
            return Ok(true);
        }
        if !core.write(Fact::Touch { address }, class, Claim::default()).await?.written {
            return Ok(false);
        }
        // The class was raised for these bytes: another copy that was put meanwhile does not count.
        Ok(self.quick(row).await?.is_some_and(|now| now.home == blob.home))
    }

    /// Whether the copy of a blob verifies. A damaged copy is removed.
    async fn is_whole(&self, address: Address, blob: Blob) -> Result<bool, Error> {
        let checked = match blob.home {
            Home::Packed => self.quick(move |core, wait| core.check_packed(&address, &blob, wait)).await,
            Home::File { .. } => self.check_file(address, blob).await,
        };
        match checked {
            Err(Error::Corrupt { .. }) => Ok(false),
            other => other,
        }
    }
}

/// Writes a blob piece by piece. Dropping it before [`Writer::finish`] leaves nothing behind.
#[derive(Debug)]
pub struct Writer {
    store: Store,
    class: Class,
    len: u64,
    /// Room in the quota for the bytes so far.
    claim: Claim,
    state: WriterState,
}

#[derive(Debug)]
enum WriterState {
    /// The bytes so far, which may be small enough to be packed.
    Small(BytesMut),
    Large(Box<Sink>),
    /// An earlier write failed or was cancelled.
    Torn,
}

impl Writer {
    /// Appends bytes. On [`Error::Quota`] none are appended, and the call can be retried; after any other error, or if
    /// the future is dropped half-way, the blob cannot be finished.
    pub async fn write(&mut self, bytes: Bytes) -> Result<(), Error> {
        let core = &self.store.inner.core;
        let len = self.len + bytes.len() as u64;
        self.claim.add(core.claim(bytes.len() as u64).await?);
        self.state = match std::mem::replace(&mut self.state, WriterState::Torn) {
            WriterState::Small(mut small) if len <= core.config.packed_most as u64 => {
                small.extend_from_slice(&bytes);
                WriterState::Small(small)
            }
            WriterState::Small(small) => {
                let number = core.next_file.fetch_add(1, Ordering::Relaxed);
                let mut sink = Sink::begin(&self.store.inner.pool, &core.files, number).await?;
                sink.write(small.freeze()).await?;
                sink.write(bytes).await?;
                WriterState::Large(Box::new(sink))
            }
            WriterState::Large(mut sink) => {
                sink.write(bytes).await?;
                WriterState::Large(sink)
            }
            WriterState::Torn => return Err(Error::Torn),
        };
        self.len = len;
        Ok(())
    }

    /// Stores the blob, which is complete.
    pub async fn finish(self) -> Result<Put, Error> {
        let Writer { store, class, len, claim, state } = self;
        match state {
            WriterState::Small(bytes) => store.put_packed(bytes.freeze(), class, Some(claim)).await,
            WriterState::Torn => Err(Error::Torn),
            WriterState::Large(sink) => {
                let result = match sink.hash().await {
                    Ok(hashed) => store.keep_file(hashed, class, (len, claim)).await,
                    Err(error) => Err(error.into()),
                };
                store.count_put(result)
            }
        }
    }
}

/// A file in place that the log may or may not name. If dropped, the next open lists all files, and finds it.
pub(super) struct UnsettledFile<'a>(pub(super) &'a Core);

impl Drop for UnsettledFile<'_> {
    fn drop(&mut self) {
        self.0.unsettled.store(true, Ordering::Relaxed);
    }
}
