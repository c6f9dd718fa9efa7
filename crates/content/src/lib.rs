//! Keeps bytes by address: blobs, memo, cache, collection.
//!
//! Reading order: the modules as listed.

mod address;
mod canonical;
mod facts;
mod disk;
mod memory;
mod error;
mod fields;
mod io;
mod log;
mod index;
mod tree;
mod files;
mod cache;
mod store;
#[doc(hidden)]
pub mod decoders;

pub use address::{Address, Context, ParseError};
pub use cache::{Admission, Cache, CacheStats, Mismatch, Refusal, Settings as CacheSettings, Verified};
pub use canonical::{DecodeError, Fault, TooDeep, Value};
pub use disk::{Disk, Entry, File, Folder, Open, Wait};
pub use error::Error;
pub use facts::{Class, Cost, Derivation, Gone, Memo, Named, Time, Why};
pub use memory::Memory;
pub use store::{
    Collect, Collected, Config, DryRun, Event, Exported, Imported, Lease, Listener, Made, Opened, Operation,
    Outcome, Put, Reader, Scope, Scrub, Scrubbed, Standing, Stats, Store, Unreadable, Writer,
};
