//! Keeps bytes by address: blobs, memo, cache, collection.
//!
//! Reading order: the modules as listed.

mod address;
mod canonical;
mod disk;
mod memory;
mod error;
mod log;
mod index;
mod tree;
mod files;
mod cache;
mod store;

pub use address::{Address, Context, ParseError};
pub use disk::{Disk, Entry, File, Folder, Open, Wait};
pub use error::Error;
pub use memory::Memory;
