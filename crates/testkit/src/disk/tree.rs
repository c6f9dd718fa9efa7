//! The names: those that a process sees, those that are certainly on the disk, and the changes in between.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io;
use std::mem;
use std::path::{Path, PathBuf};

use super::crash::{Crash, Luck};
use crate::Rng;

/// A file, whatever its name.
pub(super) type Id = u64;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Node {
    Folder,
    File(Id),
}

/// Files and folders by path. All folders above a path are there too, but for the empty path.
#[derive(Clone, Default)]
pub(super) struct Names(BTreeMap<PathBuf, Node>);

#[derive(Clone, Default)]
pub(super) struct Tree {
    pub(super) seen: Names,
    durable: Names,
    changes: Vec<Change>,
}

#[derive(Clone)]
struct Change {
    what: What,
    /// Its folder was synced. The name is durable once that folder's own name is.
    synced: bool,
}

#[derive(Clone)]
enum What {
    Add(PathBuf, Node),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
}

impl Names {
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Path, Node)> {
        self.0.iter().map(|(path, node)| (path.as_path(), *node))
    }

    pub(super) fn file(&self, path: &Path) -> io::Result<Id> {
        match self.0.get(path) {
            Some(Node::File(id)) => Ok(*id),
            Some(Node::Folder) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(self.folder(home(path)).err().unwrap_or(io::ErrorKind::NotFound.into())),
        }
    }

    pub(super) fn folder(&self, path: &Path) -> io::Result<()> {
        if path == Path::new("") || self.0.get(path) == Some(&Node::Folder) {
            return Ok(());
        }
        let is_file = |above: &Path| matches!(self.0.get(above), Some(Node::File(_)));
        let blocked = path.ancestors().any(is_file);
        Err(if blocked { io::ErrorKind::NotADirectory } else { io::ErrorKind::NotFound }.into())
    }

    fn apply(&mut self, what: &What) {
        match what {
            What::Add(path, node) => {
                self.0.insert(path.clone(), *node);
            }
            What::Rename(from, to) => {
                let node = self.0.remove(from).expect("what made the name has happened");
                self.0.insert(to.clone(), node);
            }
            What::Remove(path) => {
                self.0.remove(path);
            }
        }
    }
}

impl Tree {
    pub(super) fn add_file(&mut self, path: &Path, id: Id) -> io::Result<()> {
        self.seen.folder(home(path))?;
        if self.seen.0.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.change(What::Add(path.to_owned(), Node::File(id)));
        Ok(())
    }

    pub(super) fn add_folders(&mut self, path: &Path) -> io::Result<()> {
        match self.seen.folder(path) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(_) if self.seen.0.contains_key(path) => return Err(io::ErrorKind::AlreadyExists.into()),
            Err(error) => return Err(error),
        }
        self.add_folders(home(path))?;
        self.change(What::Add(path.to_owned(), Node::Folder));
        Ok(())
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        self.seen.folder(home(from))?;
        self.seen.folder(home(to))?;
        self.seen.file(from)?;
        if self.seen.folder(to).is_ok() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if from != to {
            self.change(What::Rename(from.to_owned(), to.to_owned()));
        }
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &Path) -> io::Result<()> {
        self.seen.file(path)?;
        self.change(What::Remove(path.to_owned()));
        Ok(())
    }

    pub(super) fn sync(&mut self, folder: &Path) -> io::Result<()> {
        self.seen.folder(folder)?;
        for change in self.changes.iter_mut().filter(|change| change.home() == folder) {
            change.synced = true;
        }
        let certain = self.happened(&vec![false; self.changes.len()]);
        for (change, certain) in mem::take(&mut self.changes).into_iter().zip(certain) {
            if certain {
                self.durable.apply(&change.what);
            } else {
                self.changes.push(change);
            }
        }
        Ok(())
    }

    /// Makes all names that a process sees durable.
    pub(super) fn settle(&mut self) {
        self.changes.clear();
        self.durable = self.seen.clone();
    }

    /// The names after power loss.
    pub(super) fn after(&self, crash: Crash, rng: &mut Rng) -> Tree {
        let lucky = self.lucky(Luck::new(crash, rng));
        let mut found = self.durable.clone();
        for (change, happened) in self.changes.iter().zip(self.happened(&lucky)) {
            if happened {
                found.apply(&change.what);
            }
        }
        Tree { seen: found.clone(), durable: found, changes: Vec::new() }
    }

    fn change(&mut self, what: What) {
        self.seen.apply(&what);
        self.changes.push(Change { what, synced: false });
    }

    fn lucky(&self, mut luck: Luck<'_>) -> Vec<bool> {
        if !luck.in_order() {
            return self.changes.iter().map(|_| luck.keeps()).collect();
        }
        let mut left: BTreeMap<&Path, usize> = BTreeMap::new();
        for change in &self.changes {
            *left.entry(change.home()).or_default() += 1;
        }
        left.values_mut().for_each(|count| *count = luck.first(*count));
        let mut take = |change: &Change| {
            let left = left.get_mut(change.home()).expect("counted above");
            let lucky = *left > 0;
            *left = left.saturating_sub(1);
            lucky
        };
        self.changes.iter().map(&mut take).collect()
    }

    /// Which changes survive, given those that survive by chance: these and the synced ones, if their folder is there,
    /// and every change that one of them builds on. So reusing a name does not lose the file that had it before.
    fn happened(&self, lucky: &[bool]) -> Vec<bool> {
        let mut happened = vec![false; lucky.len()];
        loop {
            let before = happened.clone();
            self.happen_in_folders(lucky, &mut happened);
            self.happen_before(&mut happened);
            if happened == before {
                return happened;
            }
        }
    }

    fn happen_in_folders(&self, lucky: &[bool], happened: &mut [bool]) {
        let mut made = BTreeSet::new();
        for (at, change) in self.changes.iter().enumerate() {
            let home = change.home();
            let there = made.contains(home) || self.durable.folder(home).is_ok();
            happened[at] |= there && (change.synced || lucky[at]);
            if let (What::Add(path, Node::Folder), true) = (&change.what, happened[at]) {
                made.insert(path.as_path());
            }
        }
    }

    fn happen_before(&self, happened: &mut [bool]) {
        let mut needed = HashSet::new();
        for (at, change) in self.changes.iter().enumerate().rev() {
            happened[at] |= change.paths().any(|path| needed.contains(path));
            if happened[at] {
                needed.extend(change.paths().chain(change.home().ancestors()));
            }
        }
    }
}

impl Change {
    fn paths(&self) -> impl Iterator<Item = &Path> {
        let (one, other) = match &self.what {
            What::Add(path, _) | What::Remove(path) => (path, None),
            What::Rename(from, to) => (from, Some(to)),
        };
        [Some(one), other].into_iter().flatten().map(PathBuf::as_path)
    }

    /// The folder whose sync makes it durable.
    fn home(&self) -> &Path {
        match &self.what {
            What::Add(path, _) | What::Rename(_, path) | What::Remove(path) => home(path),
        }
    }
}

/// The folder that a path's name is in.
pub(super) fn home(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}
