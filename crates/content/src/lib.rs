//! Keeps bytes by address: blobs, memo, cache, collection.
//!
//! A program that computes values from files and from other values wants to compute each value once, to find it again
//! after a restart, and to be told if the disk damaged it. This crate is that store, for one process. A [`Store`] is a
//! folder ([`Store::open`]) or memory ([`Store::in_memory`]). The address of a blob is the BLAKE3 hash of its bytes, as
//! `b3sum` prints it, so equal blobs are kept once and every read can be verified.
//!
//! # Put and get
//!
//! ```
//! use anabranch_content::{Class, Config, Store};
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! # let folder = std::env::temp_dir().join(format!("anabranch-content-page-{}", std::process::id()));
//! let store = Store::open(&folder, Config::default())?;
//! let put = store.put("all at sea", Class::Acknowledged).await?; // durable from here on
//! assert_eq!(store.get(&put.address).await?.unwrap(), "all at sea");
//! store.close().await?;
//!
//! let store = Store::open(&folder, Config::default())?;
//! assert_eq!(store.get(&put.address).await?.unwrap(), "all at sea");
//! # store.close().await?;
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
//! ```
//!
//! Blobs larger than memory go in by [`Store::put_stream`], [`Store::put_file`] or [`Store::writer`], and come out by
//! [`Store::read`]. A missing blob is `None`, not an error.
//!
//! # Describe, compute, remember, recall
//!
//! A *derivation* is a description of work: a canonical encoding of a [`Value`] that says which function is applied to
//! which inputs. Its address is derived from the encoding and a [`Context`], so equal descriptions are one derivation.
//! The inputs are the [`Value::Address`]es in the description. A *memo* is the remembered output of a derivation.
//!
//! ```
//! use anabranch_content::{Class, Collect, Config, Context, Cost, NewMemo, Store, Value};
//! use std::time::Duration;
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let store = Store::in_memory(Config::default())?;
//! let text = store.put("all at sea", Class::Acknowledged).await?.address;
//!
//! // Describe: the input's address is part of the description.
//! let description = Value::List(vec![Value::Text("upper case".into()), Value::Address(text)]);
//! let context = Context("example.com 2026 text functions");
//! let derivation = store.put_derivation(context, description.encode()?).await?;
//!
//! // Recall the output; compute and remember it if it is not known.
//! if store.recall(&derivation).await?.is_none() {
//!     let bytes = store.get(&text).await?.expect("put above").to_ascii_uppercase();
//!     let output = store.put(bytes, Class::Derivable).await?;
//!     let cost = Cost { cpu: Duration::from_millis(3), ..Cost::default() };
//!     let made = NewMemo { derivation, output: output.address, size: output.len, cost, inputs: &[text] };
//!     store.remember(made, Class::Derivable).await?;
//! }
//! let memo = store.recall(&derivation).await?.expect("remembered above");
//! assert_eq!(store.get(&memo.output).await?.unwrap(), "ALL AT SEA");
//!
//! // Ask which derivations read a blob.
//! assert_eq!(store.dependents(&text, None, 10).await?, [derivation]);
//!
//! // Keep the derivation, and collect the rest.
//! store.pin(&derivation).await?;
//! let unused = store.put("nobody needs this", Class::Acknowledged).await?.address;
//! store.collect(Collect { grace: Duration::ZERO, ..Collect::default() }).await?;
//! assert!(store.get(&unused).await?.is_none());
//! assert!(store.get(&memo.output).await?.is_some() && store.get(&text).await?.is_some());
//! store.close().await?;
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
//! ```
//!
//! [`Store::derived`] does the put and the remember in one call that does not wait for the disk. A memo may outlive its
//! output: if `get` returns `None`, compute the value again. A derivation can have an *alias*, a second address of
//! another naming scheme ([`NewDerivation::alias`]). [`Store::alias`] returns the derivation that an alias leads to.
//!
//! # What survives what
//!
//! | written as | process killed | power cut | quota, if no root keeps it |
//! |---|---|---|---|
//! | [`Class::Acknowledged`]; every derivation, pin and name | kept | kept | kept |
//! | [`Class::Derivable`], by `put` and `remember` | kept | may be lost | may be evicted |
//! | [`Store::derived`], before [`Store::written`] returns | may be lost | may be lost | may be evicted |
//! | [`Store::append`], before [`Store::sync`] returns | kept | may be lost | kept |
//!
//! "Kept" is from the moment at which the call returns. Bytes are verified whenever they are read from the disk. To put
//! a blob again reads and checks the copy that is there, and replaces a damaged one.
//!
//! # Keep and collect
//!
//! [`Store::collect`] removes everything that no root leads to and that is older than a grace period. Roots are pins
//! ([`Store::pin`]), names with their history ([`Store::name`]), and leases, which last until they are dropped
//! ([`Store::lease`]). A root keeps its own value, and the descriptions and blobs that are needed to derive that value
//! again. Intermediate values are collected. [`Store::status`] says when and why something was removed.
//!
//! # Hear of damage
//!
//! A read of damaged bytes is [`Error::Corrupt`] once. The bytes go to the folder `quarantine`, and the address is
//! missing from then on. Every [`Event`] goes to [`Config::listener`] and to `tracing` (target `anabranch_content`);
//! [`Stats::health`] sums them up.
//!
//! ```
//! use anabranch_content::{Class, Config, Disk, Error, Event, Memory, Open, Store};
//! use std::sync::{Arc, Mutex};
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let damaged = Arc::new(Mutex::new(Vec::new()));
//! let heard = Arc::clone(&damaged);
//! let listener = move |event: &Event| {
//!     if let Event::Quarantined { address, .. } = event {
//!         heard.lock().unwrap().push(*address);
//!     }
//! };
//! let config = Config { cache_bytes: 0, listener: Some(Arc::new(listener)), ..Config::default() };
//! let disk = Arc::new(Memory::new());
//! let store = Store::open_on(disk.clone(), config)?;
//! assert!(store.opened().losses() == 0 && store.stats().health.is_fine());
//!
//! let address = store.put("all at sea", Class::Acknowledged).await?.address;
//! let log = disk.open("log/00000001.log".as_ref(), Open::Read)?;
//! log.write_at(b"?", log.len()? - 1)?; // the disk damages the blob
//! assert!(matches!(store.get(&address).await, Err(Error::Corrupt { .. })));
//! assert!(store.get(&address).await?.is_none());
//! assert_eq!(*damaged.lock().unwrap(), [address]);
//! assert_eq!(store.stats().health.lost, 1);
//!
//! store.put("all at sea", Class::Acknowledged).await?; // putting the bytes again heals the store
//! assert_eq!(store.get(&address).await?.unwrap(), "all at sea");
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
//! ```
//!
//! [`Store::opened`] says what opening found and repaired after a crash or damage. [`Store::scrub`] reads and checks
//! everything.
//!
//! # Settings, and closing
//!
//! Three settings of [`Config`] matter to most programs: [`cache_bytes`](Config::cache_bytes) bounds the memory for
//! values, [`quota_bytes`](Config::quota_bytes) bounds the disk, and [`listener`](Config::listener) hears of events.
//!
//! [`Store::close`] writes what is in the queue, waits for it, and releases the folder for the next process. When the
//! last handle of a store is dropped, the store closes too: on a plain thread the drop waits, inside an async runtime it
//! does not, and the store's own threads finish the work. A store that was not closed, because its process was killed,
//! is repaired when it is opened.
//!
//! The files on disk, all settings, events and limits are described in `docs/content.md` of the repository. To read the
//! source, take the modules in the order in which they are listed.

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

/// Runs the example of the design page.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/content.md")]
mod design_page {}

pub use address::{Address, BuildAddress, Context, ParseError};
pub use cache::{Admission, Cache, CacheStats, Mismatch, Refusal, Settings as CacheSettings, VerifiedBytes};
pub use canonical::{DecodeError, Fault, TooDeep, Value, tag};
pub use disk::{Disk, Entry, File, Folder, Open, Wait};
pub use error::Error;
pub use facts::{Class, Cost, Derivation, Memo, NameChange, RemovalReason, RemovalRecord, Time};
pub use memory::Memory;
pub use store::{
    AddressStatus, Collect, CollectReport, Config, DroppedImport, DryRun, Event, ExportReport, Health,
    Holder, Import, ImportRecord, ImportReport, ImportedName, Lease, ListedBlob, ListedDerivation, Listener,
    Lookup, NewDerivation, NewMemo, OpenReport, Operation, Outcome, Put, Reader, RemovedItems, Root,
    RootSpace, Scope, Scrub, ScrubReport, Space, Stats, Store, UnreadableStretch, Usage, Writer,
};
