//! The state of a disk, and the calls that change it. All of it is behind one lock.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use super::call_log::{Call, Event};
use super::content::Content;
use super::crash::Crash;
use super::tree::{Id, Node, Tree, parent};
use crate::Rng;

pub(super) struct State {
    pub(super) tree: Tree,
    /// Includes files without a name: they may still be open, or get their name back after power loss.
    files: BTreeMap<Id, Content>,
    pub(super) faults: Faults,
    pub(super) calls: u64,
    syncs: u64,
    pub(super) call_log: Vec<Event>,
    pub(super) rng: Rng,
}

pub(super) struct Faults {
    pub(super) dies_at: Option<u64>,
    pub(super) fail_once: BTreeMap<u64, io::ErrorKind>,
    pub(super) fail_syncs: BTreeSet<u64>,
    pub(super) capacity: Option<u64>,
    pub(super) cached_percent: u64,
}

impl State {
    pub(super) fn new(rng: Rng) -> State {
        let faults = Faults {
            dies_at: None,
            fail_once: BTreeMap::new(),
            fail_syncs: BTreeSet::new(),
            capacity: None,
            cached_percent: 100,
        };
        let (tree, files) = (Tree::default(), BTreeMap::new());
        State { tree, files, faults, calls: 0, syncs: 0, call_log: Vec::new(), rng }
    }

    /// The state that the next process finds.
    pub(super) fn after_crash(&self, crash: Crash, mut rng: Rng) -> State {
        if crash == Crash::Kill {
            return State { tree: self.tree.clone(), files: self.files.clone(), ..State::new(rng) };
        }
        let tree = self.tree.after_crash(crash, &mut rng);
        let ids = tree.visible.iter().filter_map(|(_, node)| file(node));
        let files = ids.map(|id| (id, self.content(id).after_crash(crash, &mut rng))).collect();
        State { tree, files, ..State::new(rng) }
    }

    /// Makes all visible names and bytes durable.
    pub(super) fn make_durable(&mut self) {
        self.tree.make_durable();
        self.files.values_mut().for_each(Content::make_durable);
    }

    pub(super) fn content(&self, id: Id) -> &Content {
        &self.files[&id]
    }

    pub(super) fn content_mut(&mut self, id: Id) -> &mut Content {
        self.files.get_mut(&id).expect("files are never removed from the map")
    }

    pub(super) fn lengths(&self) -> impl Iterator<Item = (PathBuf, u64)> {
        let len = |id| self.content(id).visible().len() as u64;
        self.tree.visible.iter().filter_map(move |(path, node)| Some((path.to_owned(), len(file(node)?))))
    }

    /// Creates a file and the folders above it, unless they exist.
    pub(super) fn make_file(&mut self, path: &Path) -> io::Result<()> {
        self.tree.add_folders(parent(path))?;
        match self.tree.visible.file(path) {
            Ok(_) => Ok(()),
            Err(_) => self.create(path).map(|_| ()),
        }
    }
}

/// The calls of a process.
impl State {
    /// Runs a call, unless a fault makes it fail.
    pub(super) fn call<T>(
        &mut self,
        call: Call,
        path: &Path,
        act: impl FnOnce(&mut State) -> io::Result<T>,
    ) -> io::Result<T> {
        self.begin(call, path)?;
        let done = act(self);
        self.end(done)
    }

    /// Logs and counts a call before it runs. An error if a fault makes the call fail.
    fn begin(&mut self, call: Call, path: &Path) -> io::Result<()> {
        self.check_alive()?;
        let is_read_only = call.is_read_only();
        self.call_log.push(Event { call, path: path.to_owned(), failed: true });
        if is_read_only {
            return Ok(());
        }
        self.calls += 1;
        self.check_alive()?;
        self.faults.fail_once.remove(&self.calls).map_or(Ok(()), |error| Err(error.into()))
    }

    fn end<T>(&mut self, done: io::Result<T>) -> io::Result<T> {
        self.call_log.last_mut().expect("`begin` added an event").failed = done.is_err();
        done
    }

    pub(super) fn check_alive(&self) -> io::Result<()> {
        match self.faults.dies_at {
            Some(call) if self.calls >= call => {
                Err(io::Error::other(format!("the process died in call {call}")))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn create(&mut self, path: &Path) -> io::Result<Id> {
        let id = self.files.last_key_value().map_or(0, |(last, _)| last + 1);
        self.tree.add_file(path, id)?;
        self.files.insert(id, Content::default());
        Ok(id)
    }

    pub(super) fn write(&mut self, id: Id, path: &Path, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.check_alive()?;
        let begun = self.begin(Call::Write { offset, len: bytes.len() }, path);
        let fits = self.max_len(id).saturating_sub(offset).min(bytes.len() as u64);
        let count = if begun.is_ok() { fits } else { self.rng.within(0..fits + 1) };
        self.content_mut(id).write(&bytes[..count as usize], offset as usize);
        let full = fits < bytes.len() as u64;
        self.end(begun.and(if full { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }))
    }

    pub(super) fn set_len(&mut self, id: Id, len: u64) -> io::Result<()> {
        if len > self.max_len(id) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.content_mut(id).set_len(len as usize);
        Ok(())
    }

    pub(super) fn sync(&mut self, id: Id, path: &Path) -> io::Result<()> {
        let mut begun = self.begin(Call::Sync, path);
        // If the process dies here, the sync was never requested, so the changes may still survive.
        self.check_alive()?;
        self.syncs += 1;
        if self.faults.fail_syncs.remove(&self.syncs) {
            begun = Err(io::Error::other("the sync failed, as the test requested"));
        }
        match begun {
            Ok(()) => self.content_mut(id).sync(),
            Err(_) => self.content_mut(id).fail_sync(),
        }
        self.end(begun)
    }

    /// The length that a file can have at most on this disk.
    fn max_len(&self, id: Id) -> u64 {
        let Some(capacity) = self.faults.capacity else { return u64::MAX };
        let used: u64 = self.lengths().map(|(_, len)| len).sum();
        self.content(id).visible().len() as u64 + capacity.saturating_sub(used)
    }
}

fn file(node: Node) -> Option<Id> {
    match node {
        Node::File(id) => Some(id),
        Node::Folder => None,
    }
}
