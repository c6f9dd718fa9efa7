//! The tail of a journal: entries that are not in its store yet.
//!
//! The thread that receives a reply appends it to a file with one write, which costs about as much as hashing the
//! request. So no other thread is woken for it, and the reply survives the process before anything that depends on it
//! starts. Every second, the entries of a file move to the store together, and the file is removed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch_content::{Address, BuildAddress};
use bytes::Bytes;
use indexmap::IndexMap;

use super::entry;
use super::ledger::{Figures, Ledger};
use super::origin::Origin;

/// Entries by key, in the order in which they came.
pub(super) type Entries = IndexMap<Address, Bytes, BuildAddress>;

/// The file that entries are appended to, with its entries in memory.
pub(super) struct Tail {
    folder: PathBuf,
    state: Mutex<State>,
}

struct State {
    file: Option<File>,
    /// The number of the next file.
    number: u64,
    path: Option<PathBuf>,
    /// Entries of the file.
    entries: Entries,
    bytes: usize,
    /// Entries of files before, which move to the store now, and these files.
    moving: Arc<Entries>,
    moving_paths: Vec<PathBuf>,
    buffer: Vec<u8>,
    /// Counts all entries that were ever recorded.
    ledger: Ledger,
    /// A write failed, so later entries in the file would be unreadable.
    broken: bool,
}

/// Entries that move to the store.
pub(super) struct MovingEntries {
    pub(super) entries: Arc<Entries>,
    /// The store may have some of them already: an earlier move was interrupted.
    pub(super) again: bool,
    /// The ledger that counts them, and the number of their last file.
    pub(super) ledger: Ledger,
    pub(super) last: u64,
}

/// A record: the length of the entry, the checksum of key and entry, the key, the entry.
const HEAD: usize = 4 + 4 + 32;

impl Tail {
    /// A tail with the entries that an earlier process left in its files.
    pub(super) fn open(folder: &Path) -> io::Result<Tail> {
        let left = left_behind(folder)?;
        let (ledger, counted) = Ledger::read(folder)?;
        let mut state = State {
            file: None,
            // No file has the number of one that is counted.
            number: left.last().map(|(number, _)| *number).max(counted).map_or(0, |last| last + 1),
            path: None,
            entries: Entries::default(),
            bytes: 0,
            moving: Arc::default(),
            moving_paths: Vec::new(),
            buffer: Vec::new(),
            ledger,
            broken: false,
        };
        for (number, path) in left {
            let is_counted = counted.is_some_and(|counted| number <= counted);
            let mut entries = Entries::default();
            read(&path, |key, entry| {
                if let Some((origin, figures)) = entry::counted(&entry).filter(|_| !is_counted) {
                    state.ledger.add(origin, figures);
                }
                entries.insert(key, entry);
            })?;
            Arc::make_mut(&mut state.moving).extend(entries);
            state.moving_paths.push(path);
        }
        Ok(Tail { folder: folder.to_owned(), state: Mutex::new(state) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_empty(&self) -> bool {
        let state = self.lock();
        state.entries.is_empty() && state.moving.is_empty()
    }

    /// The entry under a key.
    pub(super) fn find(&self, key: &Address) -> Option<Bytes> {
        let state = self.lock();
        state.entries.get(key).or_else(|| state.moving.get(key)).cloned()
    }

    /// The counts of all entries that were ever recorded.
    pub(super) fn ledger(&self) -> Ledger {
        self.lock().ledger.clone()
    }

    /// Appends an entry, which is counted. Returns the bytes of all entries in the file. Writes to the page cache, on the calling thread.
    pub(super) fn append(
        &self,
        key: Address,
        entry: Bytes,
        (origin, figures): (&Origin, Figures),
    ) -> io::Result<usize> {
        let mut state = self.lock();
        if state.broken {
            return Err(io::Error::other("an earlier write failed"));
        }
        if state.file.is_none() {
            let path = self.folder.join(format!("tail-{:08}.log", state.number));
            state.file = Some(OpenOptions::new().create_new(true).append(true).open(&path)?);
            state.number += 1;
            state.path = Some(path);
        }
        let State { file, buffer, .. } = &mut *state;
        buffer.clear();
        buffer.extend((entry.len() as u32).to_le_bytes());
        buffer.extend(checksum(&key, &entry).to_le_bytes());
        buffer.extend(key.as_bytes());
        buffer.extend(&*entry);
        if let Some(file) = file
            && let Err(error) = file.write_all(buffer)
        {
            state.broken = true;
            return Err(error);
        }
        state.bytes += entry.len() + HEAD;
        state.entries.insert(key, entry);
        state.ledger.add(origin.bytes(), figures);
        Ok(state.bytes)
    }

    /// Begins a new file. Returns the entries of the current one, and those of an interrupted move, for moving; `None`
    /// if there are none.
    pub(super) fn rotate(&self) -> Option<MovingEntries> {
        let mut state = self.lock();
        let again = !state.moving_paths.is_empty();
        if state.path.is_none() && !again {
            return None;
        }
        (state.file, state.bytes) = (None, 0);
        let (path, entries) = (state.path.take(), std::mem::take(&mut state.entries));
        state.moving_paths.extend(path);
        match again {
            true => Arc::make_mut(&mut state.moving).extend(entries),
            false => state.moving = Arc::new(entries),
        }
        let (entries, ledger) = (Arc::clone(&state.moving), state.ledger.clone());
        Some(MovingEntries { entries, again, ledger, last: state.number - 1 })
    }

    /// The store has all entries of the move.
    pub(super) fn moved(&self) -> io::Result<()> {
        let mut state = self.lock();
        state.moving = Arc::default();
        let paths = std::mem::take(&mut state.moving_paths);
        drop(state);
        paths.iter().try_for_each(fs::remove_file)
    }
}

fn checksum(key: &Address, entry: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&(entry.len() as u32).to_le_bytes());
    hasher.update(key.as_bytes());
    hasher.update(entry);
    hasher.finalize()
}

/// The files that an earlier process left, the oldest first, with their numbers.
fn left_behind(folder: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut files = Vec::new();
    for found in fs::read_dir(folder)? {
        let path = found?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let number = name.strip_prefix("tail-").and_then(|rest| rest.strip_suffix(".log"));
        if let Some(number) = number.and_then(|number| number.parse().ok()) {
            files.push((number, path));
        }
    }
    files.sort_unstable();
    Ok(files)
}

/// Reads the entries of a file, up to the first incomplete record, which a killed process leaves.
fn read(path: &Path, mut found: impl FnMut(Address, Bytes)) -> io::Result<()> {
    let bytes = Bytes::from(fs::read(path)?);
    let mut at = 0;
    while let Some(head) = bytes.get(at..at + HEAD) {
        let length = u32::from_le_bytes(head[..4].try_into().expect("four bytes")) as usize;
        let crc = u32::from_le_bytes(head[4..8].try_into().expect("four bytes"));
        let key = Address::from_bytes(head[8..].try_into().expect("32 bytes"));
        let (start, end) = (at + HEAD, at + HEAD + length);
        if end > bytes.len() || checksum(&key, &bytes[start..end]) != crc {
            break;
        }
        found(key, bytes.slice(start..end));
        at = end;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::origin::OriginNames;
    use super::*;

    fn scratch(test: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("anabranch-journal-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn read(path: &Path) -> io::Result<Entries> {
        let mut entries = Entries::default();
        super::read(path, |key, entry| _ = entries.insert(key, entry)).map(|()| entries)
    }

    fn entry(number: u8) -> (Address, Bytes) {
        (Address::of(&[number]), Bytes::from(vec![number; usize::from(number)]))
    }

    #[test]
    fn a_file_is_read_up_to_the_record_that_is_torn() {
        let folder = scratch("torn");
        fs::write(folder.join("tail-00000002.log"), b"").unwrap();
        let tail = Tail::open(&folder).unwrap();
        for number in 0..20 {
            let (key, entry) = entry(number);
            let origin = Origin::new(&OriginNames::default());
            tail.append(key, entry, (&origin, Figures::default())).unwrap();
        }
        let moving = tail.rotate().unwrap();
        assert!(!moving.entries.is_empty() && moving.again, "with what was left behind");
        let (key, last) = entry(19);
        assert_eq!(tail.find(&key), Some(last.clone()), "also while it moves");
        let files = left_behind(&folder).unwrap();
        assert_eq!(files.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [2, 3]);
        let file = &files[1].1;
        assert_eq!(read(file).unwrap(), *moving.entries);
        assert_eq!(Tail::open(&folder).unwrap().find(&key), Some(last), "also after a kill");
        let whole = fs::read(file).unwrap();
        for end in 0..whole.len() {
            fs::write(file, &whole[..end]).unwrap();
            let read = read(file).unwrap();
            let expected = (0..20_u8).map(|number| HEAD + usize::from(number)).scan(0, |sum, size| {
                *sum += size;
                Some(*sum)
            });
            assert_eq!(read.len(), expected.take_while(|size| *size <= end).count());
        }
        let mut damaged = whole.clone();
        let middle = whole.len() / 2;
        damaged[middle] ^= 1;
        fs::write(file, &damaged).unwrap();
        assert!(read(file).unwrap().len() < 20);
        tail.moved().unwrap();
        assert_eq!(tail.find(&key), None);
        assert!(left_behind(&folder).unwrap().is_empty());
        fs::remove_dir_all(&folder).unwrap();
    }
}
