//! Segments: the files of the log.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, RwLockWriteGuard};

use bytes::Bytes;

use super::record::{HEADER, Header, MAGIC, Record, Salt};
use crate::{Disk, Error, File, Open, Wait};

/// The length of a segment's header: magic, format, number, checksum.
pub(crate) const FRONT: usize = 20;

const FRONT_MAGIC: &[u8; 8] = b"anablog\n";

const FOLDER: &str = "log";
const QUARANTINE: &str = "quarantine";

/// The position and length of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RecordPlace {
    pub segment: u32,
    pub offset: u32,
    /// Header and body.
    pub len: u32,
}

impl RecordPlace {
    /// Is it the same record?
    pub(crate) fn is_at(self, other: RecordPlace) -> bool {
        (self.segment, self.offset) == (other.segment, other.offset)
    }

    /// The position right after the record.
    pub(crate) fn end(self) -> Position {
        Position { segment: self.segment, offset: u64::from(self.offset) + u64::from(self.len) }
    }
}

/// A point between two records of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    pub segment: u32,
    pub offset: u64,
}

/// A range of a segment that holds no whole record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Damage {
    pub segment: u32,
    pub from: u64,
    pub to: u64,
}

/// The segments of a log, open for reading.
#[derive(Debug)]
pub(crate) struct Segments {
    disk: Arc<dyn Disk>,
    salt: Salt,
    open: RwLock<OpenFiles>,
    /// Set when the log's state on the disk is no longer known. Nothing is written after that.
    broken: OnceLock<Error>,
    /// Held during a sync. The system reports a failed write to one sync only: a second one at the same time would
    /// take it for success.
    syncing: Mutex<()>,
}

#[derive(Debug, Default)]
struct OpenFiles {
    files: BTreeMap<u32, Arc<dyn File>>,
    /// The number of files removed from the log. A reader that opened a file while this changed may have opened a
    /// removed one.
    left: u64,
}

impl Segments {
    pub(crate) fn new(disk: Arc<dyn Disk>, salt: Salt) -> Result<Segments, Error> {
        disk.make_folder(Path::new(FOLDER)).map_err(|cause| Error::disk("make", Path::new(FOLDER), cause))?;
        let (open, broken, syncing) = (RwLock::default(), OnceLock::new(), Mutex::new(()));
        Ok(Segments { disk, salt, open, broken, syncing })
    }

    /// May the log be written?
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.broken.get() {
            Some(cause) => Err(Error::Broken(Box::new(cause.clone()))),
            None => Ok(()),
        }
    }

    /// Stops all writes from now on.
    pub(crate) fn break_off(&self, cause: &Error) {
        // Only the first cause is kept.
        let _ = self.broken.set(cause.clone());
    }

    /// Makes a segment durable. A failure is final: the system may have dropped what it could not write, so the log's
    /// state is not known until it is read again.
    pub(crate) fn sync(&self, segment: u32, file: &dyn File) -> Result<(), Error> {
        let _turn = self.syncing.lock().unwrap_or_else(PoisonError::into_inner);
        self.check()?;
        let synced = file.sync().map_err(|cause| Error::disk("sync", &path(segment), cause));
        synced.inspect_err(|error| self.break_off(error))
    }

    pub(crate) fn salt(&self) -> Salt {
        self.salt
    }

    /// The numbers of all segments, in order, with their lengths.
    pub(crate) fn list(&self) -> Result<BTreeMap<u32, u64>, Error> {
        let entries = self
            .disk
            .list(Path::new(FOLDER))
            .map_err(|cause| Error::disk("list", Path::new(FOLDER), cause))?;
        Ok(entries.iter().filter_map(|entry| Some((number(&entry.name)?, entry.len?))).collect())
    }

    /// Creates a segment: its front is written, its name is durable.
    pub(crate) fn create(&self, segment: u32) -> Result<Arc<dyn File>, Error> {
        let path = path(segment);
        let file =
            self.disk.open(&path, Open::Create).map_err(|cause| Error::disk("create", &path, cause))?;
        let made = file.write_at(&front(segment), 0).and_then(|()| self.disk.sync_folder(Path::new(FOLDER)));
        if let Err(cause) = made {
            // A file that cannot be removed either is reported as damage when the store opens, unless its front is
            // whole.
            let _ = self.disk.remove(&path);
            return Err(Error::disk("write", &path, cause));
        }
        self.open_files().files.insert(segment, Arc::clone(&file));
        Ok(file)
    }

    /// Rewrites a segment with only these ranges of it, and returns its new length. The result is durable, even if a
    /// sync failed before and the system holds bytes that it will never write.
    pub(crate) fn rewrite(&self, segment: u32, ranges: &[Range<u64>]) -> Result<u64, Error> {
        let (path, new) = (path(segment), path(segment).with_extension("new"));
        let failed = |cause| Error::disk("rewrite", &path, cause);
        match self.disk.remove(&new) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(failed(cause)),
            _ => {}
        }
        let from = self.file(segment, Wait::Yes).map_err(failed)?;
        let to = self.disk.open(&new, Open::Create).map_err(failed)?;
        let written = to.write_at(&front(segment), 0).and_then(|()| copy(&*from, &*to, ranges));
        let written = written.and_then(|len| to.sync().map(|()| len));
        let written = written.and_then(|len| self.disk.rename(&new, &path).map(|()| len));
        let len = written.map_err(|cause| {
            // A file that cannot be removed now is removed by the next rewrite.
            let _ = self.disk.remove(&new);
            failed(cause)
        })?;
        self.forget(segment);
        self.sync_folder(FOLDER)?;
        Ok(len)
    }

    pub(crate) fn remove(&self, segment: u32) -> Result<(), Error> {
        let path = path(segment);
        self.disk.remove(&path).map_err(|cause| Error::disk("remove", &path, cause))?;
        self.forget(segment);
        self.sync_folder(FOLDER)
    }

    /// The number in the front of a file, if it is another one than that of its name: the file was swapped or renamed.
    pub(crate) fn says_it_is(&self, segment: u32) -> Option<u32> {
        let mut bytes = [0; FRONT];
        let read = self.file(segment, Wait::Yes).and_then(|file| file.read_at(&mut bytes, 0, Wait::Yes));
        let said = u32::from_le_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]);
        (read.is_ok() && said != segment && bytes == front(said)).then_some(said)
    }

    /// Gives files the names that their fronts say: pairs of the name's number and the front's.
    pub(crate) fn rename(&self, pairs: &[(u32, u32)]) -> Result<(), Error> {
        let between = |segment: u32| path(segment).with_extension("moved");
        let rename = |from: &Path, to: &Path| {
            self.disk.rename(from, to).map_err(|cause| Error::disk("rename", from, cause))
        };
        for (named, _) in pairs {
            self.open.write().unwrap_or_else(PoisonError::into_inner).files.remove(named);
            rename(&path(*named), &between(*named))?;
        }
        for (named, said) in pairs {
            rename(&between(*named), &path(*said))?;
        }
        self.sync_folder(FOLDER)
    }

    /// Moves a segment to the quarantine folder, where an operator can inspect it.
    pub(crate) fn quarantine(&self, segment: u32) -> Result<(), Error> {
        let from = path(segment);
        let to = Path::new(QUARANTINE).join(format!("{segment:08}.log"));
        self.disk.rename(&from, &to).map_err(|cause| Error::disk("quarantine", &from, cause))?;
        self.forget(segment);
        self.sync_folder(QUARANTINE)?;
        self.sync_folder(FOLDER)
    }

    /// Copies a damaged range to the quarantine folder, where an operator can inspect it.
    pub(crate) fn keep_damaged(&self, damage: &Damage) {
        let Damage { segment, from, to } = *damage;
        let path = Path::new(QUARANTINE).join(format!("{segment:08}.log.{from}"));
        let read = || {
            let mut bytes = vec![0; (to - from) as usize];
            let count = self.file(segment, Wait::Yes)?.read_at(&mut bytes, from, Wait::Yes)?;
            self.disk.open(&path, Open::Create)?.write_at(&bytes[..count], 0)
        };
        // A copy for inspection that fails is not worth an error of its own.
        let _: io::Result<()> = read();
    }

    /// Without this, a removed segment could be back after a power cut, and undo what a later segment, also removed,
    /// had done.
    fn sync_folder(&self, folder: &str) -> Result<(), Error> {
        let folder = Path::new(folder);
        self.disk.sync_folder(folder).map_err(|cause| Error::disk("sync", folder, cause))
    }

    /// The file of a segment. Opening it for the first time may wait for the disk.
    pub(crate) fn file(&self, segment: u32, wait: Wait) -> io::Result<Arc<dyn File>> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = open.files.get(&segment) {
            return Ok(Arc::clone(file));
        }
        let left = open.left;
        drop(open);
        if wait == Wait::No {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let file = self.disk.open(&path(segment), Open::Read)?;
        let mut open = self.open_files();
        if open.left == left {
            open.files.insert(segment, Arc::clone(&file));
        }
        Ok(file)
    }

    /// Closes a segment's file, once its name is gone or names another file: a file that stayed open would keep its
    /// space on the disk.
    fn forget(&self, segment: u32) {
        let mut open = self.open_files();
        open.files.remove(&segment);
        open.left += 1;
    }

    fn open_files(&self) -> RwLockWriteGuard<'_, OpenFiles> {
        self.open.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bytes of the record at a place; fewer if the segment ends before.
    pub(crate) fn read(&self, place: RecordPlace, wait: Wait) -> io::Result<Bytes> {
        let mut bytes = vec![0; place.len as usize];
        let count = self.file(place.segment, wait)?.read_at(&mut bytes, place.offset.into(), wait)?;
        bytes.truncate(count);
        Ok(bytes.into())
    }

    /// The record at a place, if its checksums hold.
    pub(crate) fn record(&self, place: RecordPlace, wait: Wait) -> io::Result<Option<Record>> {
        Ok(Record::decode_whole(self.salt, &self.read(place, wait)?))
    }

    /// Calls `each` with every whole record from an offset on, in order; returns the damaged ranges.
    pub(crate) fn scan(
        &self,
        segment: u32,
        from: u64,
        each: &mut dyn FnMut(RecordPlace, Record) -> Result<(), Error>,
    ) -> Result<Vec<Damage>, Error> {
        let read = |cause| Error::disk("read", &path(segment), cause);
        let file = self.file(segment, Wait::Yes).map_err(read)?;
        let mut window = Window { end: file.len().map_err(read)?, file, start: 0, bytes: Vec::new() };
        let mut damage: Vec<Damage> = Vec::new();
        let mut note = |from, to| match damage.last_mut() {
            Some(last) if last.to == from => last.to = to,
            _ => damage.push(Damage { segment, from, to }),
        };
        let mut offset = from;
        if offset < FRONT as u64 {
            let whole = window.at(0, FRONT).map_err(read)?.is_some_and(|bytes| bytes == front(segment));
            if !whole && window.end > 0 {
                note(0, window.end.min(FRONT as u64));
            }
            offset = FRONT as u64;
        }
        while offset < window.end {
            if let Some(record) = window.record(self.salt, offset).map_err(read)? {
                let len = record.0;
                each(RecordPlace { segment, offset: offset as u32, len }, record.1)?;
                offset += u64::from(len);
            } else {
                let next = window.after_damage(self.salt, offset).map_err(read)?;
                // Zeros at the end are not damage: they were written ahead of records that never came.
                if next < window.end || !window.is_zero(offset).map_err(read)? {
                    note(offset, next);
                }
                offset = next;
            }
        }
        Ok(damage)
    }
}

/// Copies ranges of a file behind the front of another; returns the other's new length.
fn copy(from: &dyn File, to: &dyn File, ranges: &[Range<u64>]) -> io::Result<u64> {
    let mut piece = Vec::new();
    let mut end = FRONT as u64;
    for range in ranges {
        let mut offset = range.start;
        while offset < range.end {
            piece.resize((range.end - offset).min(STRIDE as u64) as usize, 0);
            let got = from.read_at(&mut piece, offset, Wait::Yes)?;
            if got == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            to.write_at(&piece[..got], end)?;
            (offset, end) = (offset + got as u64, end + got as u64);
        }
    }
    Ok(end)
}

/// A view of a file that moves along it.
struct Window {
    file: Arc<dyn File>,
    end: u64,
    start: u64,
    bytes: Vec<u8>,
}

/// The number of bytes that a window reads at once.
const STRIDE: usize = 1 << 20;

impl Window {
    /// `count` bytes at an offset; `None` if the file ends before.
    fn at(&mut self, offset: u64, count: usize) -> io::Result<Option<&[u8]>> {
        if offset + count as u64 > self.end {
            return Ok(None);
        }
        let held = self.start..=self.start + self.bytes.len() as u64;
        if !held.contains(&offset) || !held.contains(&(offset + count as u64)) {
            let want = (count.max(STRIDE) as u64).min(self.end - offset) as usize;
            self.bytes.resize(want, 0);
            let got = self.file.read_at(&mut self.bytes, offset, Wait::Yes)?;
            self.bytes.truncate(got);
            self.start = offset;
        }
        let begin = (offset - self.start) as usize;
        Ok(self.bytes.get(begin..begin + count))
    }

    fn header(&mut self, salt: Salt, offset: u64) -> io::Result<Option<Header>> {
        Ok(self.at(offset, HEADER)?.and_then(|bytes| Header::decode(salt, bytes)))
    }

    fn record(&mut self, salt: Salt, offset: u64) -> io::Result<Option<(u32, Record)>> {
        let Some(header) = self.header(salt, offset)? else { return Ok(None) };
        let body = self.at(offset + HEADER as u64, header.len)?.map(Bytes::copy_from_slice);
        let record = body.and_then(|body| Record::decode(&header, &body));
        Ok(record.map(|record| ((HEADER + header.len) as u32, record)))
    }

    /// Are there only zeros from here to the end?
    fn is_zero(&mut self, mut offset: u64) -> io::Result<bool> {
        while offset < self.end {
            let count = (self.end - offset).min(STRIDE as u64);
            let bytes = self.at(offset, count as usize)?.unwrap_or_default();
            if bytes.is_empty() || bytes.iter().any(|byte| *byte != 0) {
                return Ok(false);
            }
            offset += count;
        }
        Ok(true)
    }

    /// The next position to try after a damaged record. If only the body is damaged, the header still has the record's
    /// length. Skipping the body matters: it may be a blob that is a copy of a segment, and a search would find records
    /// in it. The header is trusted if another record follows, or nothing.
    fn after_damage(&mut self, salt: Salt, offset: u64) -> io::Result<u64> {
        if let Some(header) = self.header(salt, offset)? {
            let end = offset + (HEADER + header.len) as u64;
            if end >= self.end || self.is_zero(end)? {
                return Ok(self.end);
            }
            if self.header(salt, end)?.is_some() {
                return Ok(end);
            }
        }
        self.next_header(salt, offset + 1)
    }

    /// The first offset from here on at which a whole header is, or the file's end.
    fn next_header(&mut self, salt: Salt, mut offset: u64) -> io::Result<u64> {
        while let Some(bytes) = self.at(offset, HEADER)? {
            if bytes[0] == MAGIC && Header::decode(salt, bytes).is_some() {
                return Ok(offset);
            }
            offset += 1;
        }
        Ok(self.end)
    }
}

fn front(segment: u32) -> [u8; FRONT] {
    let mut bytes = [0; FRONT];
    bytes[..8].copy_from_slice(FRONT_MAGIC);
    bytes[8..12].copy_from_slice(&1u32.to_le_bytes());
    bytes[12..16].copy_from_slice(&segment.to_le_bytes());
    let crc = crc32fast::hash(&bytes[..16]);
    bytes[16..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// The path of a segment in the store.
pub(crate) fn path(segment: u32) -> PathBuf {
    Path::new(FOLDER).join(format!("{segment:08}.log"))
}

fn number(name: &str) -> Option<u32> {
    let number = name.strip_suffix(".log")?.parse().ok()?;
    (path(number).file_name()?.to_str()? == name).then_some(number)
}
