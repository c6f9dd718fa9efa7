//! Stores a folder: its files as blobs, then the folders themselves as recipes, in one call.

use anabranch_content::Address;
use anabranch_recipe::{Draft, DraftInput, Folder, FolderEntry, MalformedRecipe, UnknownFunction};
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};

use super::super::backend::Backend;
use super::super::input::Input;
use super::in_words;
use super::walk::{WalkedEntry, WalkedFolder};
use crate::failure::Failure;

/// A stored folder.
pub(in super::super) struct PutFolder {
    pub address: Address,
    pub files: usize,
    /// Including the folder itself.
    pub folders: usize,
    pub links: usize,
    pub bytes: u64,
    /// Whether it was not stored before.
    pub new: bool,
}

impl PutFolder {
    /// Describes its content.
    pub(in super::super) fn summary(&self) -> String {
        in_words([self.files, self.folders, self.links], self.bytes)
    }
}

/// The number of files that are stored concurrently. Small ones share their syncs.
const AT_ONCE: usize = 32;

/// Stores a folder, unless it changed since it was walked. Its recipe is added once everything in it is stored, so the
/// stored folder existed on disk in this state.
pub(in super::super) async fn put(backend: &Backend, walked: WalkedFolder) -> Result<PutFolder, Failure> {
    let files = stream::iter(walked.files.clone());
    let puts = files.map(async |file| backend.put(&Input::Watched(file)).await);
    let puts: Vec<anabranch_content::Put> = puts.buffered(AT_ONCE).try_collect().await?;
    walked.check_unchanged()?;
    let WalkedFolder { path, folders, files, links, .. } = walked;
    let mut drafts = Vec::with_capacity(folders.len());
    for entries in folders {
        let mut folder = Folder::new();
        for (name, entry) in entries {
            let entry = match entry {
                WalkedEntry::File(place) => FolderEntry::File {
                    address: DraftInput::Address(puts[place].address),
                    executable: files[place].executable,
                },
                WalkedEntry::Folder(place) => FolderEntry::Folder { address: DraftInput::Earlier(place) },
                WalkedEntry::Link(target) => FolderEntry::Link { target },
            };
            folder
                .add(name, entry)
                .map_err(|MalformedRecipe(problem)| Failure::of(format!("{}: {problem}", path.display())))?;
        }
        drafts.push(folder.draft());
    }
    let added = add(backend, &drafts).await?;
    let whole = added.last().expect("the folder itself is the last one");
    let bytes = puts.iter().map(|put| put.len).sum();
    Ok(PutFolder {
        address: whole.address,
        files: files.len(),
        folders: drafts.len(),
        links,
        bytes,
        new: whole.new,
    })
}

async fn add(backend: &Backend, drafts: &[Draft]) -> Result<Vec<anabranch_recipe::AddedRecipe>, Failure> {
    let added = backend.add_all(drafts, UnknownFunction::Refuse).await?;
    match added.iter().flat_map(|added| &added.dangling).next() {
        None => Ok(added),
        Some(lost) => Err(Failure::of(format!(
            "the file {lost} was collected before its folder was kept; put the folder again"
        ))),
    }
}
