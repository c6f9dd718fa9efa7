//! Folders: read from the disk into a store, and written back.

mod walk;
mod watched;
mod put;
mod plan;
mod write;

use anabranch_text::{count, size};

pub(super) use put::{PutFolder, put};
pub(super) use walk::WalkedFolder;
pub(super) use watched::FileToRead;
pub(super) use write::{ExistingFolder, Output, write};

/// Describes the content of a folder by the numbers of its files, folders and links, and its bytes.
fn in_words([files, folders, links]: [usize; 3], bytes: u64) -> String {
    let links = if links > 0 { format!(", {}", count(links, "link")) } else { String::new() };
    format!("{} in {}{links}, {}", count(files, "file"), count(folders, "folder"), size::format(bytes))
}
