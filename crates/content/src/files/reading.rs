//! Reads a blob's file.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use super::stored::StoredFile;
use super::values::Values;
use super::{Error, Files, Name, WHOLE_LEN};
use crate::tree::{Tree, Value};
use crate::{Address, Open};

/// A blob's file, for any number of threads. It returns only bytes that were verified against the address.
#[derive(Debug)]
pub(crate) struct BlobReader(Source);

#[derive(Debug)]
enum Source {
    /// A short blob, checked as a whole.
    Whole(Bytes),
    Groups(Groups),
}

/// A long blob, checked group by group.
#[derive(Debug)]
struct Groups {
    stored: StoredFile,
    tree: Tree,
    values: Mutex<Values>,
}

impl BlobReader {
    /// Opens the file of a blob of `len` bytes.
    pub(crate) fn open(files: &Arc<Files>, name: Name, len: u64) -> Result<BlobReader, Error> {
        let stored = StoredFile::open(files, name, len)?;
        Ok(BlobReader(match len {
            ..=WHOLE_LEN => Source::Whole(read_whole(&stored)?),
            _ => Source::Groups(Groups::open(stored)?),
        }))
    }

    /// The bytes of a range, as far as the blob goes. They are a slice of a buffer of at least a piece: a caller that
    /// keeps a few of them for long copies them.
    pub(crate) fn read(&self, range: Range<u64>) -> Result<Bytes, Error> {
        let len = self.len();
        let range = range.start.min(len)..range.end.min(len);
        match &self.0 {
            _ if range.is_empty() => Ok(Bytes::new()),
            Source::Whole(bytes) => Ok(bytes.slice(range.start as usize..range.end as usize)),
            Source::Groups(groups) => groups.read(&range),
        }
    }

    pub(crate) fn len(&self) -> u64 {
        match &self.0 {
            Source::Whole(bytes) => bytes.len() as u64,
            Source::Groups(groups) => groups.stored.len,
        }
    }
}

fn read_whole(stored: &StoredFile) -> Result<Bytes, Error> {
    let mut bytes = vec![0; stored.len as usize];
    stored.read(&mut bytes, 0)?;
    match Address::of(&bytes) {
        address if address == stored.name.address => Ok(bytes.into()),
        other => Err(Error::Corrupt { what: format!("the bytes hash to {other}") }),
    }
}

impl Groups {
    fn open(stored: StoredFile) -> Result<Groups, Error> {
        let StoredFile { files, name, len, .. } = &stored;
        let tree = files.disk.open(&name.tree(), Open::Read).ok();
        let values = match tree.and_then(|tree| Values::open(tree, &name.address, *len)) {
            Some(values) => values,
            None => stored.rebuild()?,
        };
        Ok(Groups { tree: Tree::of(*len), stored, values: Mutex::new(values) })
    }

    /// Reads a range that is not empty and within the blob.
    fn read(&self, range: &Range<u64>) -> Result<Bytes, Error> {
        let groups = self.tree.groups_of(range);
        let start = self.tree.group(groups.start).start;
        let within = |range: Range<u64>| (range.start - start) as usize..(range.end - start) as usize;
        let len = (self.tree.group(groups.end - 1).end - start) as usize;
        let mut buffer = self.stored.files.buffers.take(len);
        self.stored.read(&mut buffer[..len], start)?;
        for (group, value) in groups.clone().zip(self.values(groups)?) {
            let place = self.tree.group(group);
            if !self.tree.group_holds(group, &buffer[within(place.clone())], &value) {
                let Range { start, end } = place;
                return Err(Error::Corrupt {
                    what: format!("bytes {start} to {end} do not hash to the address"),
                });
            }
        }
        Ok(buffer.into_bytes(within(range.clone())))
    }

    fn values(&self, groups: Range<u64>) -> Result<Vec<Value>, Error> {
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = values.of_groups(groups.clone()) {
            return Ok(found);
        }
        *values = self.stored.rebuild()?;
        values.of_groups(groups).ok_or_else(|| self.stored.tree_is_lost())
    }
}
