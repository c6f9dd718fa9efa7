//! Folders: read from the disk into a store, and written back.

mod walk;
mod watched;
mod put;
mod plan;
mod write;

pub(super) use put::{PutFolder, put};
pub(super) use walk::WalkedFolder;
pub(super) use watched::FileToRead;
pub(super) use write::{ExistingFolder, Output, write};
