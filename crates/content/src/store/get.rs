//! Reading blobs: every byte that is returned has been verified.

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures_util::{Stream, StreamExt};

use super::catalogue::BlobAt;
use super::commit::{DoomedItem, Order, RemovalCondition};
use super::counters::Kind;
use super::sweep::Producers;
use super::tables::{BLOB_FRONT, Blob, Home, Row};
use super::{Core, Event, Store};
use crate::cache::VerifiedBytes;
use crate::facts::RemovalReason;
use crate::files::{self, BlobReader, Name};
use crate::log::{ItemKind, ItemRemoval};
use crate::{Address, Error, Open, Wait};

/// A packed blob up to this size is hashed on the calling thread, which takes a few tens of microseconds.
pub(super) const QUICK_MOST: usize = 128 << 10;

/// A file is kept in the cache if it takes no more than this part of it.
const CACHED_PART: u64 = 16;

/// The most times a read looks a record up again because cleaning of the log moved it. Each look-up finds a newer
/// place, so that even two are rare.
pub(super) const LOOKS_MOST: usize = 64;

impl Store {
    /// A blob's bytes, verified; `None` if it is not in the store. A blob too large for one piece of memory
    /// ([`super::Config::whole_most`]) is an error: use [`Store::read`].
    pub async fn get(&self, address: &Address) -> Result<Option<Bytes>, Error> {
        if let Some(bytes) = self.inner.core.in_memory(address) {
            return Ok(Some(bytes));
        }
        let address = *address;
        let result = self.quick(move |core, wait| core.load(&address, wait)).await;
        self.inner.core.count(Kind::Get, result, |bytes| Some(bytes.as_ref()?.len() as u64))
    }

    /// A blob's bytes, if they are in memory; `None` if they are not, or there is no such blob.
    pub fn get_now(&self, address: &Address) -> Option<Bytes> {
        self.inner.core.in_memory(address)
    }

    /// A range of a blob, verified, cut at the blob's end; `None` if the blob is not in the store.
    pub async fn get_range(&self, address: &Address, range: Range<u64>) -> Result<Option<Bytes>, Error> {
        if let Some(bytes) = self.inner.core.in_memory(address) {
            return Ok(Some(slice(&bytes, &range)));
        }
        let address = *address;
        let result = self.quick(move |core, wait| core.load_range(&address, &range, wait)).await;
        self.inner.core.count(Kind::Get, result, |bytes| Some(bytes.as_ref()?.len() as u64))
    }

    /// Reads a range of a blob (`0..u64::MAX`: the whole), piece by piece, each verified; `None` if the blob is not in
    /// the store.
    pub async fn read(&self, address: &Address, range: Range<u64>) -> Result<Option<Reader>, Error> {
        let core = &self.inner.core;
        let reader = |size, source| Reader { store: self.clone(), address: *address, size, source };
        for _ in 0..LOOKS_MOST {
            let looked_for = *address;
            let found = self.quick(move |core, wait| core.catalogue.blob(&looked_for, wait)).await?;
            let blob = match found {
                None => return Ok(None),
                Some(BlobAt::Pending(bytes)) => {
                    let source = Source::Bytes(Some(slice(&bytes, &range)));
                    return Ok(Some(reader(bytes.len() as u64, source)));
                }
                Some(BlobAt::Stored(blob)) => blob,
            };
            let Home::File { number, len } = blob.home else {
                let bytes = self.get_range(address, range).await?;
                return Ok(bytes.map(|bytes| reader(blob.size(), Source::Bytes(Some(bytes)))));
            };
            if core.is_hot(address, len) {
                let bytes = self.get(address).await?;
                return Ok(bytes.map(|bytes| reader(len, Source::Bytes(Some(slice(&bytes, &range))))));
            }
            let name = Name { address: *address, number };
            match files::Stream::open(&self.inner.pool, &core.files, name, len, range.clone()).await {
                Ok(stream) => {
                    return Ok(Some(reader(len, Source::File(Box::new(stream), blob))));
                }
                Err(error) => self.file_failed(*address, blob, error).await?,
            }
        }
        Err(core.keeps_moving(address))
    }

    /// The length of a blob in bytes; `None` if it is not in the store.
    pub async fn size(&self, address: &Address) -> Result<Option<u64>, Error> {
        let address = *address;
        let blob = self.quick(move |core, wait| core.catalogue.blob(&address, wait)).await?;
        Ok(blob.map(|blob| blob.size()))
    }

    /// Handles a file that could not be read: an error, or success if the read should be tried again.
    async fn file_failed(&self, address: Address, blob: Blob, error: files::Error) -> Result<(), Error> {
        self.blocking(move |core| core.file_failed(&address, &blob, error)).await
    }

    /// Whether a file's bytes verify, read on several threads; false also if another has taken its place meanwhile.
    pub(super) async fn check_file(&self, address: Address, blob: Blob) -> Result<bool, Error> {
        let Home::File { number, len } = blob.home else { return Ok(false) };
        let name = Name { address, number };
        match files::check_blob(&self.inner.pool, &self.inner.core.files, name, len).await {
            Ok(()) => Ok(true),
            Err(error) => self.file_failed(address, blob, error).await.map(|()| false),
        }
    }
}

/// Reads a blob piece by piece, each verified.
#[derive(Debug)]
pub struct Reader {
    store: Store,
    address: Address,
    size: u64,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Bytes(Option<Bytes>),
    File(Box<files::Stream>, Blob),
}

impl Reader {
    /// The length of the whole blob in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The next piece; `None` at the end and after an error.
    pub async fn next(&mut self) -> Option<Result<Bytes, Error>> {
        match &mut self.source {
            Source::Bytes(bytes) => bytes.take().filter(|bytes| !bytes.is_empty()).map(Ok),
            Source::File(stream, blob) => match stream.next().await? {
                Ok(bytes) => Some(Ok(bytes)),
                Err(error) => {
                    let failed = self.store.file_failed(self.address, *blob, error).await;
                    Some(Err(failed.err().unwrap_or(Error::Missing { address: self.address })))
                }
            },
        }
    }

    /// The pieces as a stream.
    pub fn into_stream(self) -> impl Stream<Item = Result<Bytes, Error>> + Send + Unpin {
        Box::pin(futures_util::stream::unfold(self, |mut reader| async move {
            let piece = reader.next().await?;
            Some((piece, reader))
        }))
        .fuse()
    }
}

impl Core {
    /// A blob's bytes, if they are in memory.
    fn in_memory(&self, address: &Address) -> Option<Bytes> {
        self.cache.get(address).or_else(|| self.catalogue.pending_blob(address))
    }

    /// Whether a file is served from memory: it is in the cache, or small enough for it and was read before not long ago.
    /// A file that is read once is not worth the memory.
    fn is_hot(&self, address: &Address, len: u64) -> bool {
        let fits = len <= self.config.cache_bytes / CACHED_PART && len <= self.config.whole_most;
        fits && (self.cache.contains(address) || self.read_before.note(address))
    }

    /// Adds verified bytes to the cache, weighed by the cost of reading them again.
    pub(super) fn admit(&self, address: Address, bytes: &Bytes) {
        self.cache.admit(VerifiedBytes::known(address, bytes.clone()), worth(bytes));
    }

    /// Adds verified bytes to the cache, if no entry has to be evicted for them.
    pub(super) fn admit_if_free(&self, address: Address, bytes: &Bytes) {
        self.cache.admit_if_free(VerifiedBytes::known(address, bytes.clone()), worth(bytes));
    }

    pub(super) fn load(&self, address: &Address, wait: Wait) -> Result<Option<Bytes>, Error> {
        let bytes = self.load_with(address, wait, |core, name, len| {
            if len > core.config.whole_most {
                let most = core.config.whole_most;
                return Err(
                    Error::TooLarge { what: "a blob to be read in one piece", size: len, most }.into()
                );
            }
            BlobReader::open(&core.files, name, len)?.read(0..len)
        })?;
        Ok(bytes.map(|(bytes, _)| {
            self.admit(*address, &bytes);
            bytes
        }))
    }

    pub(super) fn load_range(
        &self,
        address: &Address,
        range: &Range<u64>,
        wait: Wait,
    ) -> Result<Option<Bytes>, Error> {
        let wanted = range.end.saturating_sub(range.start);
        let whole_most = self.config.whole_most;
        let found = self.load_with(address, wait, |core, name, len| {
            if wanted.min(len) > whole_most {
                let what = "a range to be read in one piece";
                return Err(Error::TooLarge { what, size: wanted.min(len), most: whole_most }.into());
            }
            BlobReader::open(&core.files, name, len)?.read(range.clone())
        })?;
        Ok(found.map(|(bytes, blob)| match blob.home {
            Home::Packed => slice(&bytes, range),
            Home::File { .. } => bytes,
        }))
    }

    /// The bytes of a blob: the whole if it is packed, the result of `read` if it is a file.
    fn load_with(
        &self,
        address: &Address,
        wait: Wait,
        read: impl Fn(&Core, Name, u64) -> Result<Bytes, files::Error>,
    ) -> Result<Option<(Bytes, Blob)>, Error> {
        for _ in 0..LOOKS_MOST {
            let Some(blob) = self.catalogue.stored_blob(address, wait)? else { return Ok(None) };
            match blob.home {
                Home::Packed => {
                    if let Some(bytes) = self.load_packed(address, &blob, wait)? {
                        return Ok(Some((bytes, blob)));
                    }
                }
                Home::File { .. } if wait == Wait::No => return Err(Error::WouldBlock),
                Home::File { number, len } => match read(self, Name { address: *address, number }, len) {
                    Ok(bytes) => return Ok(Some((bytes, blob))),
                    Err(error) => self.file_failed(address, &blob, error)?,
                },
            }
        }
        Err(self.keeps_moving(address))
    }

    /// The error of a read that found its record at another place each time it looked.
    pub(super) fn keeps_moving(&self, address: &Address) -> Error {
        Error::Moving { address: *address }
    }

    /// A packed blob's bytes; `None` if it has moved meanwhile.
    fn load_packed(&self, address: &Address, blob: &Blob, wait: Wait) -> Result<Option<Bytes>, Error> {
        let place = blob.place;
        if wait == Wait::No && place.len as usize > QUICK_MOST {
            return Err(Error::WouldBlock);
        }
        let what = match self.segments.read(place, wait) {
            Ok(bytes) if bytes.len() >= BLOB_FRONT && Address::of(&bytes[BLOB_FRONT..]) == *address => {
                return Ok(Some(bytes.slice(BLOB_FRONT..)));
            }
            Ok(bytes) if wait == Wait::Yes => {
                let what = format!("its record in segment {} of the log is damaged", place.segment);
                self.keep_damaged(address, &bytes);
                what
            }
            Err(cause) if cause.kind() == std::io::ErrorKind::WouldBlock => return Err(Error::WouldBlock),
            Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::disk("read", &crate::log::segment_path(place.segment), cause));
            }
            // Missing or wrong: examined on a thread that may wait for the disk.
            _ if wait == Wait::No => return Err(Error::WouldBlock),
            _ => format!("segment {} of the log is missing", place.segment),
        };
        self.lose(address, blob, what).map(|()| None)
    }

    /// Whether a packed blob's bytes verify; false also if it has moved meanwhile.
    pub(super) fn check_packed(&self, address: &Address, blob: &Blob, wait: Wait) -> Result<bool, Error> {
        Ok(self.load_packed(address, blob, wait)?.is_some())
    }

    /// Handles a file that could not be read: an error, or success if the read should be tried again.
    pub(super) fn file_failed(
        &self,
        address: &Address,
        blob: &Blob,
        error: files::Error,
    ) -> Result<(), Error> {
        let what = match error {
            files::Error::Missing => "its file is missing".to_owned(),
            files::Error::Corrupt { what } => what,
            other => return Err(other.into()),
        };
        if let Home::File { number, .. } = blob.home {
            self.files.quarantine(&Name { address: *address, number })?;
        }
        self.lose(address, blob, what)
    }

    /// Copies the remains of a damaged packed blob to quarantine, for inspection.
    fn keep_damaged(&self, address: &Address, bytes: &[u8]) {
        let path = Path::new("quarantine").join(format!("{address}.packed"));
        // A failed copy is not worth an error of its own.
        let _ = self.disk.open(&path, Open::Create).and_then(|file| file.write_at(bytes, 0));
    }

    /// Removes a damaged blob: it is missing from now on. Does nothing if it has changed meanwhile.
    fn lose(&self, address: &Address, blob: &Blob, what: String) -> Result<(), Error> {
        let now = self.catalogue.stored_blob(address, Wait::Yes)?;
        if !now.is_some_and(|now| now.is_same_as(blob)) {
            return Ok(());
        }
        self.cache.remove(address);
        let removed = ItemRemoval { address: *address, what: ItemKind::Blob, edges: Vec::new() };
        let mut groups = vec![vec![DoomedItem { removed, when: RemovalCondition::Damaged(blob.encode()) }]];
        for (row, bytes) in Producers::find(self)?.of(self, address)? {
            let removed = self.doom_memo(&row)?;
            groups.push(vec![DoomedItem { removed, when: RemovalCondition::Damaged(bytes) }]);
        }
        self.submit_blocking(Order::Remove(RemovalReason::Damaged, groups))?;
        self.tell(&Event::Quarantined { address: *address, class: blob.class, what: what.clone() });
        Err(Error::Corrupt { address: *address, what })
    }
}

/// The files that were read lately: a table of a fixed size, in which a later address takes the place of an earlier one.
#[derive(Debug)]
pub(crate) struct RecentReads(Box<[AtomicU64]>);

/// The slots of the table of files that were read.
const READ_SLOTS: usize = 4096;

impl Default for RecentReads {
    fn default() -> RecentReads {
        RecentReads((0..READ_SLOTS).map(|_| AtomicU64::new(0)).collect())
    }
}

impl RecentReads {
    /// Notes a read; returns whether the same address was noted before.
    fn note(&self, address: &Address) -> bool {
        let bits = address.bits();
        self.0[bits as usize % READ_SLOTS].swap(bits, Ordering::Relaxed) == bits
    }
}

fn worth(bytes: &Bytes) -> u64 {
    20_000 + bytes.len() as u64
}

fn slice(bytes: &Bytes, range: &Range<u64>) -> Bytes {
    let len = bytes.len() as u64;
    let start = range.start.min(len);
    bytes.slice(start as usize..range.end.clamp(start, len) as usize)
}
