//! The names of files and folders: those that a process sees, the durable ones, and the changes between the two.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io;
use std::mem;
use std::path::{Path, PathBuf};

use super::crash::{Chances, Crash};
use crate::Rng;

/// Identifies a file independently of its name.
pub(super) type Id = u64;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Node {
    Folder,
    File(Id),
}

/// Files and folders by path. Every folder above a path has an entry, except the root, which is the empty path.
#[derive(Clone, Default)]
pub(super) struct Names(BTreeMap<PathBuf, Node>);

#[derive(Clone, Default)]
pub(super) struct Tree {
    pub(super) visible: Names,
    durable: Names,
    changes: Vec<Change>,
}

#[derive(Clone)]
struct Change {
    what: NameChange,
    /// The folder was synced. The change is durable once the folder's own name is durable.
    synced: bool,
}

#[derive(Clone)]
enum NameChange {
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
            None => Err(self.folder(parent(path)).err().unwrap_or(io::ErrorKind::NotFound.into())),
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

    fn apply(&mut self, what: &NameChange) {
        match what {
            NameChange::Add(path, node) => {
                self.0.insert(path.clone(), *node);
            }
            NameChange::Rename(from, to) => {
                let node =
                    self.0.remove(from).expect("the change that surviving_folders the name comes before");
                self.0.insert(to.clone(), node);
            }
            NameChange::Remove(path) => {
                self.0.remove(path);
            }
        }
    }
}

impl Tree {
    pub(super) fn add_file(&mut self, path: &Path, id: Id) -> io::Result<()> {
        self.visible.folder(parent(path))?;
        if self.visible.0.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.change(NameChange::Add(path.to_owned(), Node::File(id)));
        Ok(())
    }

    pub(super) fn add_folders(&mut self, path: &Path) -> io::Result<()> {
        match self.visible.folder(path) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(_) if self.visible.0.contains_key(path) => return Err(io::ErrorKind::AlreadyExists.into()),
            Err(error) => return Err(error),
        }
        self.add_folders(parent(path))?;
        self.change(NameChange::Add(path.to_owned(), Node::Folder));
        Ok(())
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        self.visible.folder(parent(from))?;
        self.visible.folder(parent(to))?;
        self.visible.file(from)?;
        if self.visible.folder(to).is_ok() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if from != to {
            self.change(NameChange::Rename(from.to_owned(), to.to_owned()));
        }
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &Path) -> io::Result<()> {
        self.visible.file(path)?;
        self.change(NameChange::Remove(path.to_owned()));
        Ok(())
    }

    pub(super) fn sync(&mut self, folder: &Path) -> io::Result<()> {
        self.visible.folder(folder)?;
        for change in self.changes.iter_mut().filter(|change| change.folder() == folder) {
            change.synced = true;
        }
        let certain = self.surviving(&vec![false; self.changes.len()]);
        for (change, certain) in mem::take(&mut self.changes).into_iter().zip(certain) {
            if certain {
                self.durable.apply(&change.what);
            } else {
                self.changes.push(change);
            }
        }
        Ok(())
    }

    /// Makes all visible names durable.
    pub(super) fn make_durable(&mut self) {
        self.changes.clear();
        self.durable = self.visible.clone();
    }

    /// The names after power loss.
    pub(super) fn after_crash(&self, crash: Crash, rng: &mut Rng) -> Tree {
        let kept = self.kept_by_chance(Chances::new(crash, rng));
        let mut names = self.durable.clone();
        for (change, survives) in self.changes.iter().zip(self.surviving(&kept)) {
            if survives {
                names.apply(&change.what);
            }
        }
        Tree { visible: names.clone(), durable: names, changes: Vec::new() }
    }

    fn change(&mut self, what: NameChange) {
        self.visible.apply(&what);
        self.changes.push(Change { what, synced: false });
    }

    fn kept_by_chance(&self, mut chances: Chances<'_>) -> Vec<bool> {
        if !chances.is_in_order() {
            return self.changes.iter().map(|_| chances.keeps()).collect();
        }
        let mut left: BTreeMap<&Path, usize> = BTreeMap::new();
        for change in &self.changes {
            *left.entry(change.folder()).or_default() += 1;
        }
        left.values_mut().for_each(|count| *count = chances.surviving_prefix(*count));
        let mut take = |change: &Change| {
            let left = left.get_mut(change.folder()).expect("every folder was counted above");
            let kept = *left > 0;
            *left = left.saturating_sub(1);
            kept
        };
        self.changes.iter().map(&mut take).collect()
    }

    /// Which changes survive. These are the changes that were synced or kept by chance, if their folder survives, and
    /// every earlier change that one of them depends on: so the reuse of a name does not lose the file that had it.
    fn surviving(&self, kept: &[bool]) -> Vec<bool> {
        let mut survives = vec![false; kept.len()];
        loop {
            let before = survives.clone();
            self.add_kept(kept, &mut survives);
            self.add_dependencies(&mut survives);
            if survives == before {
                return survives;
            }
        }
    }

    fn add_kept(&self, kept: &[bool], survives: &mut [bool]) {
        let mut surviving_folders = BTreeSet::new();
        for (at, change) in self.changes.iter().enumerate() {
            let folder = change.folder();
            let folder_survives = surviving_folders.contains(folder) || self.durable.folder(folder).is_ok();
            survives[at] |= folder_survives && (change.synced || kept[at]);
            if let (NameChange::Add(path, Node::Folder), true) = (&change.what, survives[at]) {
                surviving_folders.insert(path.as_path());
            }
        }
    }

    fn add_dependencies(&self, survives: &mut [bool]) {
        let mut needed = HashSet::new();
        for (at, change) in self.changes.iter().enumerate().rev() {
            survives[at] |= change.paths().any(|path| needed.contains(path));
            if survives[at] {
                needed.extend(change.paths().chain(change.folder().ancestors()));
            }
        }
    }
}

impl Change {
    fn paths(&self) -> impl Iterator<Item = &Path> {
        let (one, other) = match &self.what {
            NameChange::Add(path, _) | NameChange::Remove(path) => (path, None),
            NameChange::Rename(from, to) => (from, Some(to)),
        };
        [Some(one), other].into_iter().flatten().map(PathBuf::as_path)
    }

    /// The folder whose sync makes the change durable.
    fn folder(&self) -> &Path {
        match &self.what {
            NameChange::Add(path, _) | NameChange::Rename(_, path) | NameChange::Remove(path) => parent(path),
        }
    }
}

/// The folder that contains `path`.
pub(super) fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}
