//! Keeps a folder: its files as blobs, then the folders themselves as recipes, in one go.

use std::path::Path;

use anabranch_content::Address;
use anabranch_recipe::{Draft, Folder, FolderEntry, Malformed, Ref, UnknownFunction};
use anabranch_text::{count, size};
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};

use super::super::backend::Backend;
use super::super::input::Input;
use super::walk::{Walked, WalkedEntry};
use crate::failure::Failure;

/// A folder that was put.
pub(in super::super) struct PutFolder {
    pub address: Address,
    pub files: usize,
    /// With the folder itself.
    pub folders: usize,
    pub links: usize,
    pub bytes: u64,
    /// It was not known before.
    pub new: bool,
}

impl PutFolder {
    /// How much is in it, in words.
    pub(in super::super) fn summary(&self) -> String {
        let links = if self.links > 0 { format!(", {}", count(self.links, "link")) } else { String::new() };
        let (files, folders) = (count(self.files, "file"), count(self.folders, "folder"));
        format!("{files} in {folders}{links}, {}", size::format(self.bytes))
    }
}

/// Files that are put at a time: small ones share their waits for the disk.
const AT_ONCE: usize = 32;

/// Keeps a folder. Its address appears once everything in it is kept.
pub(in super::super) async fn put(
    backend: &Backend,
    path: &Path,
    walked: Walked,
) -> Result<PutFolder, Failure> {
    let Walked { folders, files, links, .. } = walked;
    let executable: Vec<bool> = files.iter().map(|file| file.executable).collect();
    let count = files.len();
    let puts = stream::iter(files).map(async |file| backend.put(&Input::Watched(file)).await);
    let puts: Vec<anabranch_content::Put> = puts.buffered(AT_ONCE).try_collect().await?;
    let mut drafts = Vec::with_capacity(folders.len());
    for entries in folders {
        let mut folder = Folder::new();
        for (name, entry) in entries {
            let entry = match entry {
                WalkedEntry::File(place) => FolderEntry::File {
                    address: Ref::Address(puts[place].address),
                    executable: executable[place],
                },
                WalkedEntry::Folder(place) => FolderEntry::Folder { address: Ref::Earlier(place) },
                WalkedEntry::Link(target) => FolderEntry::Link { target },
            };
            folder
                .add(name, entry)
                .map_err(|Malformed(problem)| Failure::of(format!("{}: {problem}", path.display())))?;
        }
        drafts.push(folder.draft());
    }
    let added = add(backend, &drafts).await?;
    let whole = added.last().expect("the folder itself is the last one");
    let bytes = puts.iter().map(|put| put.len).sum();
    Ok(PutFolder {
        address: whole.address,
        files: count,
        folders: drafts.len(),
        links,
        bytes,
        new: whole.new,
    })
}

async fn add(backend: &Backend, drafts: &[Draft]) -> Result<Vec<anabranch_recipe::Added>, Failure> {
    let added = backend.add_all(drafts, UnknownFunction::Refuse).await?;
    match added.iter().flat_map(|added| &added.dangling).next() {
        None => Ok(added),
        Some(lost) => Err(Failure::of(format!(
            "the file {lost} was collected before its folder was kept; put the folder again"
        ))),
    }
}
