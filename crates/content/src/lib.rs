//! Keeps bytes by address: blobs, memo, cache, collection.
//!
//! A [`Store`] is a folder (or memory, or any [`Disk`]) that one process owns. [`Store::put`] gives bytes an
//! [`Address`], their BLAKE3 hash; [`Store::get`] gives them back, verified. A derivation has an address too, of its
//! canonical description ([`Value`]) in a [`Context`]; [`Store::remember`] keeps what it came to. Whatever no pin, name
//! or lease leads to is for [`Store::collect`] to remove, after a grace period; what is missing is derived again.
//!
//! ```
//! use anabranch_content::{Class, Config, Context, Cost, Made, Store, Value};
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let store = Store::in_memory(Config::default())?;
//! let text = store.put("all at sea", Class::Acknowledged).await?.address;
//!
//! let described = Value::List(vec![Value::Text("upper case".into()), Value::Address(text)]).encode()?;
//! let derivation = store.put_derivation(Context("example.com 2026 derivations"), described, &[text]).await?;
//! if store.recall(&derivation).await?.is_none() {
//!     let bytes = store.get(&text).await?.expect("put above").to_ascii_uppercase();
//!     let made = store.put(bytes, Class::Derivable).await?;
//!     let made = Made { derivation, output: made.address, size: made.len, cost: Cost::default(), inputs: &[text] };
//!     store.remember(made, Class::Acknowledged).await?;
//! }
//! let memo = store.recall(&derivation).await?.expect("remembered above");
//! assert_eq!(store.get(&memo.output).await?.unwrap(), "ALL AT SEA");
//! assert_eq!(store.dependents(&text, None, 10).await?, [derivation]);
//! store.pin(&derivation).await?;
//! store.close().await?;
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
//! ```
//!
//! Reading order: the modules as listed.

mod address;
mod canonical;
mod facts;
mod disk;
mod memory;
mod error;
mod fields;
mod shards;
mod io;
mod log;
mod index;
mod tree;
mod files;
mod cache;
mod store;
#[doc(hidden)]
pub mod bare_index;
#[doc(hidden)]
pub mod decoders;

pub use address::{Address, BuildAddress, Context, ParseError};
pub use cache::{Admission, Cache, CacheStats, Mismatch, Refusal, Settings as CacheSettings, Verified};
pub use canonical::{DecodeError, Fault, TooDeep, Value};
pub use disk::{Disk, Entry, File, Folder, Open, Wait};
pub use error::Error;
pub use facts::{Class, Cost, Derivation, Gone, Memo, Named, Time, Why};
pub use memory::Memory;
pub use store::{
    AddressStatus, Collect, Collected, Config, Described, DryRun, Event, Exported, Health, Import, Imported,
    Known, Lease, Listener, Made, Opened, Operation, Outcome, Put, Reader, Scope, Scrub, Scrubbed, Stats,
    Store, Unreadable, Writer,
};
