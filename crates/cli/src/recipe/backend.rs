//! The backend of a command: an executor in this process, or one behind a socket or a server. The verbs do not depend
//! on which. If the process that owns the store ends, its calls are retried, here or with the next owner.
//!
//! Every call is safe to retry when its reply was lost. Blobs and recipes are stored by their content. Pins, names,
//! invalidation, collection and imports reach the same state when they are done twice; only the counts in the reply
//! ("was pinned already", "0 of them new") are those of the last attempt. A name that another command set in between is
//! set once more, as if this command had come second.

use std::fs::File;
use std::io::ErrorKind::BrokenPipe;
use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anabranch_content::{
    Address, Class, Collect, CollectReport, DroppedImport, Error as StoreError, ExportReport, Health, Import,
    ImportRecord, ImportReport, NameChange, Put, Scrub, ScrubReport,
};
use anabranch_recipe::{
    AddedRecipe, Draft, Error, Invalidate, InvalidationReport, Listener, Notice, Signature, Status,
    UnknownFunction, is_short_address,
};
use anabranch_server::{Client, ClientError, Code, NoticeStream, ResolvedTarget, Target};
use anabranch_text::{closest, quote};
use bytes::Bytes;

use super::folder::FileToRead;
use super::incoming::IncomingValue;
use super::input::{Input, unread};
use super::owner::{Handover, Owner};
use super::place::{Connection, Place};
use super::pour;
use super::progress::{Meter, MeteredIo};
use crate::failure::Failure;
use crate::out;

/// The executor or server that does the work.
pub(super) struct Backend {
    place: Place,
    connection: Mutex<Arc<Connection>>,
}

/// The most owners that may end during one call before the command gives up.
const OWNERS_MOST: usize = 200;

/// From this length on, a file is put on several threads.
const LARGE_FILE: u64 = 1 << 20;

/// Stores a large file on several threads, and shows the progress on a terminal.
async fn put_file(owner: &Owner, path: &Path, len: u64) -> Result<Put, Failure> {
    let file = File::open(path).map_err(|error| unread(path, &error))?;
    put_opened(owner, file, &Mutex::new(Meter::new("reading", Some(len)))).await
}

/// The same for a file of a folder, which must not change while it is read.
async fn put_watched(owner: &Owner, watched: &FileToRead) -> Result<Put, Failure> {
    let failed = |error| unread(watched.path(), &error);
    let file = watched.open().map_err(failed)?;
    let again = file.try_clone().map_err(failed)?;
    let put = put_opened(owner, file, watched.meter()).await;
    watched.check(&again).map_err(failed)?;
    put
}

async fn put_opened(owner: &Owner, file: File, meter: &Mutex<Meter>) -> Result<Put, Failure> {
    let copied = |more: u64| meter.lock().unwrap_or_else(PoisonError::into_inner).add(more as usize);
    let put = owner.executor.store().put_file(file, Class::Acknowledged, copied).await;
    Ok(put.map_err(Error::from)?)
}

/// A source of events.
pub(super) enum EventSource {
    Local(Listener),
    Remote(Box<NoticeStream>),
}

impl EventSource {
    /// The next event; `None` after the last one.
    pub(super) async fn next(&mut self) -> Option<Notice> {
        match self {
            EventSource::Local(listener) => listener.next().await,
            EventSource::Remote(hearing) => hearing.next().await?.ok(),
        }
    }
}

impl Backend {
    /// Opens the store or connects to its owner.
    pub(super) async fn open(place: Place) -> Result<Backend, Failure> {
        let connection = Mutex::new(Arc::new(place.open().await?));
        Ok(Backend { place, connection })
    }

    /// Makes a call. It is retried if the owner of the store ends before it replies.
    pub(super) async fn call<T>(
        &self,
        attempt: impl AsyncFn(&Connection) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        Ok(self.call_on(attempt).await?.1)
    }

    /// The same, with the connection that replied.
    pub(super) async fn call_on<T>(
        &self,
        attempt: impl AsyncFn(&Connection) -> Result<T, Failure>,
    ) -> Result<(Arc<Connection>, T), Failure> {
        let mut owners = 1;
        loop {
            let connection = self.connection();
            match attempt(&connection).await {
                Err(failure) if owners < OWNERS_MOST && self.is_cut(&connection, &failure).await => {
                    owners += 1;
                    self.renew(&connection).await?;
                }
                result => return Ok((connection, result?)),
            }
        }
    }

    /// The current connection.
    fn connection(&self) -> Arc<Connection> {
        Arc::clone(&self.connection.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether a call failed because the owner of the store ended.
    pub(super) async fn is_cut(&self, connection: &Connection, failure: &Failure) -> bool {
        matches!(connection, Connection::Client(_)) && self.place.is_handed_over(failure).await
    }

    /// Becomes the owner of the store or finds the next one, unless that has already been done.
    pub(super) async fn renew(&self, cut: &Arc<Connection>) -> Result<(), Failure> {
        if Arc::ptr_eq(&self.connection(), cut) {
            let next = Arc::new(self.place.open().await?);
            *self.connection.lock().unwrap_or_else(PoisonError::into_inner) = next;
        }
        Ok(())
    }

    /// Whether another process does the work.
    pub(super) fn is_remote(&self) -> bool {
        !matches!(*self.connection(), Connection::Owner(_))
    }

    /// Whether that process may end before this command does. This command then continues by itself.
    pub(super) fn is_shared(&self) -> bool {
        self.is_remote() && matches!(self.place, Place::Folder { .. })
    }

    /// Stores an input as a blob.
    pub(super) async fn put(&self, input: &Input) -> Result<Put, Failure> {
        self.call(async |connection| match (connection, input) {
            // Files that the system makes up as they are read have no length.
            (Connection::Owner(owner), Input::File { path, len: len @ LARGE_FILE.. }) => {
                put_file(owner, path, *len).await
            }
            (Connection::Owner(owner), Input::Opened { file, len: len @ LARGE_FILE.. }) => {
                let file = file.try_clone().map_err(|error| unread(Path::new("the input"), &error))?;
                put_opened(owner, file, &Mutex::new(Meter::new("reading", Some(*len)))).await
            }
            (Connection::Owner(owner), Input::Watched(file)) if file.len() >= LARGE_FILE => {
                put_watched(owner, file).await
            }
            (Connection::Owner(owner), _) => {
                pour::into(input.reader()?, |bytes| owner.executor.put_stream(bytes)).await
            }
            (Connection::Client(client), _) => {
                pour::into(input.reader()?, |bytes| client.put_stream(bytes)).await
            }
        })
        .await
    }

    /// Stores bytes.
    pub(super) async fn put_bytes(&self, bytes: Bytes) -> Result<Put, Failure> {
        self.call(async |connection| match connection {
            Connection::Owner(Owner { executor, .. }) => Ok(executor.put(bytes.clone()).await?),
            Connection::Client(client) => Ok(client.put(bytes.clone()).await?),
        })
        .await
    }

    /// Stores recipes that may read each other.
    pub(super) async fn add_all(
        &self,
        drafts: &[Draft],
        unknown: UnknownFunction,
    ) -> Result<Vec<AddedRecipe>, Failure> {
        self.call(async |connection| match connection {
            Connection::Owner(Owner { executor, .. }) => Ok(executor.add_all(drafts, unknown).await?),
            Connection::Client(client) => Ok(client.add_all(drafts, unknown).await?),
        })
        .await
    }

    /// The address of a text, which is an address, the beginning of one, or a name.
    pub(super) async fn find(&self, text: &str) -> Result<Address, Failure> {
        match self.look_up(text).await? {
            Some(address) => Ok(address),
            None => Err(self.nothing_named(text).await),
        }
    }

    /// The address of a text; `None` if there is none.
    pub(super) async fn look_up(&self, text: &str) -> Result<Option<Address>, Failure> {
        self.call(async |connection| match connection {
            Connection::Owner(Owner { executor, .. }) => match executor.find(text).await {
                Err(Error::NoSuchName { .. }) => Ok(None),
                found => Ok(Some(found?)),
            },
            Connection::Client(client) => Ok(client.look_up(text).await?),
        })
        .await
    }

    /// The failure of an unknown text, with the closest name as a suggestion.
    pub(super) async fn nothing_named(&self, text: &str) -> Failure {
        match self.unknown(text).await {
            Ok((what, help)) => Failure::of(format!("{what}; {help}")),
            Err(failure) => failure,
        }
    }

    /// The problem with an unknown text, and advice.
    pub(super) async fn unknown(&self, text: &str) -> Result<(String, String), Failure> {
        let names = self.refs().await?;
        let near = closest(text, names.iter().map(|(name, _)| name.as_str()));
        let help = match near {
            Some(near) => format!("did you mean {}?", quote(near)),
            None => {
                "`anabranch recipe ls` lists names and addresses; an entry of a recipe file has a name in the \
                     store if it has `ref = true`"
                    .to_owned()
            }
        };
        Ok((Error::NoSuchName { name: text.to_owned() }.to_string(), help))
    }

    /// The addresses of several texts.
    pub(super) async fn find_all(&self, texts: &[String]) -> Result<Vec<Address>, Failure> {
        let mut found = Vec::with_capacity(texts.len());
        for text in texts {
            found.push(self.find(text).await?);
        }
        Ok(found)
    }

    /// What is stored at an address. This is not counted as a get.
    pub(super) async fn resolve(&self, address: Address) -> Result<ResolvedTarget, Failure> {
        self.call(async |connection| match connection {
            Connection::Owner(Owner { executor, .. }) => Ok(ResolvedTarget::find(executor, address).await?),
            Connection::Client(client) => Ok(client.resolve(address).await?),
        })
        .await
    }

    /// A value or a part of it, within a timeout if one is given.
    pub(super) async fn get(
        &self,
        address: Address,
        range: Range<u64>,
        within: Option<Duration>,
    ) -> Result<IncomingValue<'_>, Failure> {
        IncomingValue::begin(self, address, range, within).await
    }

    /// Subscribes to events from now on.
    pub(super) async fn listen(&self) -> Result<EventSource, Failure> {
        self.call(async |connection| match connection {
            Connection::Owner(Owner { executor, .. }) => Ok(EventSource::Local(executor.listen())),
            Connection::Client(client) => Ok(EventSource::Remote(Box::new(client.events().await?))),
        })
        .await
    }

    /// Forgets the values of recipes.
    pub(super) async fn invalidate(
        &self,
        address: Address,
        terms: &Invalidate,
    ) -> Result<InvalidationReport, Failure> {
        self.call(async |connection| match connection {
            Connection::Owner(Owner { executor, .. }) => Ok(executor.invalidate(&address, terms).await?),
            Connection::Client(client) => Ok(client.invalidate(address, terms).await?),
        })
        .await
    }

    /// Pins an address; true if it was not pinned before.
    pub(super) async fn pin(&self, address: Address) -> Result<bool, Failure> {
        self.call(async |connection| match connection {
            Connection::Owner(Owner { executor, .. }) => Ok(executor.store().pin(&address).await?),
            Connection::Client(client) => Ok(client.pin(address).await?),
        })
        .await
    }

    /// Unpins an address; true if it was pinned.
    pub(super) async fn unpin(&self, address: Address) -> Result<bool, Failure> {
        self.call(async |connection| match connection {
            Connection::Owner(Owner { executor, .. }) => Ok(executor.store().unpin(&address).await?),
            Connection::Client(client) => Ok(client.unpin(address).await?),
        })
        .await
    }

    /// A page of the pinned addresses after `after`.
    pub(super) async fn pins(&self, after: Option<Address>, page: u16) -> Result<Vec<Address>, Failure> {
        self.call(async |connection| match connection {
            Connection::Owner(Owner { executor, .. }) => {
                Ok(executor.store().pins(after, usize::from(page)).await?)
            }
            Connection::Client(client) => Ok(client.pins(after, u32::from(page)).await?),
        })
        .await
    }

    /// Points a name to an address, or drops it.
    pub(super) async fn set_ref(&self, name: &str, address: Option<Address>) -> Result<bool, Failure> {
        let set = self.call(async |connection| match connection {
            Connection::Owner(Owner { executor, .. }) => Ok(executor.store().name(name, address).await?),
            Connection::Client(client) => Ok(client.set_ref(name, address).await?),
        });
        let is_new = set.await?;
        warn_of_short(name, address);
        Ok(is_new)
    }

    /// Points a name to an address, if it points to `expected` now. After a lost reply the change may have been made, so
    /// a name that then has the wanted address is no conflict.
    pub(super) async fn set_ref_if(
        &self,
        name: &str,
        address: Option<Address>,
        expected: Option<Address>,
    ) -> Result<bool, Failure> {
        let attempts = AtomicU32::new(0);
        let set = self.call(async |connection| {
            let is_retry = attempts.fetch_add(1, Ordering::Relaxed) > 0;
            match connection {
                Connection::Owner(Owner { executor, .. }) => {
                    match executor.store().name_if(name, address, expected).await {
                        Err(StoreError::NameConflict { found, .. }) if is_retry && found == address => {
                            Ok(true)
                        }
                        set => Ok(set?),
                    }
                }
                Connection::Client(client) => match client.set_ref_if(name, address, expected).await {
                    Err(ClientError::Call { code: Code::Aborted, .. })
                        if is_retry && latest(&client.history(name).await?) == address =>
                    {
                        Ok(true)
                    }
                    set => Ok(set?),
                },
            }
        });
        let is_new = set.await?;
        warn_of_short(name, address);
        Ok(is_new)
    }

    /// The imports that still protect their content from collection, oldest first.
    pub(super) async fn imports(&self) -> Result<Vec<ImportRecord>, Failure> {
        self.call(async |connection| match connection {
            Connection::Owner(Owner { executor, .. }) => Ok(executor.store().imports().await?),
            Connection::Client(client) => Ok(client.imports().await?),
        })
        .await
    }

    /// Drops an import; `None` if there is no such import.
    pub(super) async fn drop_import(&self, id: &str) -> Result<Option<DroppedImport>, Failure> {
        self.call(async |connection| match connection {
            Connection::Owner(Owner { executor, .. }) => Ok(executor.drop_import(id).await?),
            Connection::Client(client) => Ok(client.drop_import(id).await?),
        })
        .await
    }

    /// All names, with their addresses.
    pub(super) async fn refs(&self) -> Result<Vec<(String, Address)>, Failure> {
        self.call(async |connection| match connection {
            Connection::Owner(Owner { executor, .. }) => Ok(executor.store().names().await?),
            Connection::Client(client) => Ok(client.refs().await?),
        })
        .await
    }

    /// The history of a name, newest last.
    pub(super) async fn history(&self, name: &str) -> Result<Vec<NameChange>, Failure> {
        self.call(async |connection| match connection {
            Connection::Owner(Owner { executor, .. }) => Ok(executor.store().history(name).await?),
            Connection::Client(client) => Ok(client.history(name).await?),
        })
        .await
    }

    /// Removes everything that nothing protects.
    pub(super) async fn collect(&self, terms: &Collect) -> Result<CollectReport, Failure> {
        self.call(async |connection| match connection {
            Connection::Owner(Owner { executor, .. }) => Ok(executor.store().collect(terms.clone()).await?),
            Connection::Client(client) => Ok(client.collect(terms).await?),
        })
        .await
    }

    /// Reads and checks everything at this rate. The default is unlimited for the owner, and the store's default rate
    /// for a server.
    pub(super) async fn scrub(&self, bytes_per_second: Option<u64>) -> Result<ScrubReport, Failure> {
        self.call(async |connection| match connection {
            Connection::Owner(Owner { executor, .. }) => {
                Ok(executor.store().scrub(Scrub { bytes_per_second }).await?)
            }
            Connection::Client(client) => {
                let bytes_per_second = bytes_per_second.or(Scrub::default().bytes_per_second);
                Ok(client.scrub(&Scrub { bytes_per_second }).await?)
            }
        })
        .await
    }

    /// Writes an archive of addresses and everything that they refer to. Each attempt gets a new writer at its
    /// beginning.
    pub(super) async fn export(
        &self,
        addresses: &[Address],
        writer: &dyn Fn() -> Result<Box<dyn Write + Send>, Failure>,
    ) -> Result<ExportReport, Failure> {
        self.call(async |connection| {
            let to = MeteredIo { inner: writer()?, meter: Meter::new("exporting", None) };
            match connection {
                Connection::Owner(owner) => {
                    owner.executor.store().export(addresses, to).await.map_err(unexported)
                }
                Connection::Client(client) => receive_archive(client, addresses, to).await,
            }
        })
        .await
    }

    /// Imports an archive.
    pub(super) async fn import(&self, archive: &Input, terms: Import) -> Result<ImportReport, Failure> {
        self.call(async |connection| {
            let from = archive.reader()?;
            match connection {
                Connection::Owner(owner) => Ok(owner.executor.import(from, terms.clone()).await?),
                Connection::Client(client) => pour::into(from, |bytes| client.import(bytes, &terms)).await,
            }
        })
        .await
    }

    /// The functions that recipes may name.
    pub(super) async fn functions(&self) -> Result<Vec<Signature>, Failure> {
        self.call(async |connection| match connection {
            Connection::Owner(Owner { executor, .. }) => {
                Ok(executor.functions().list().map(|function| function.signature().clone()).collect())
            }
            Connection::Client(client) => Ok(client.functions().await?),
        })
        .await
    }

    /// The sizes and counters of the store and the executor.
    pub(super) async fn status(&self) -> Result<Status, Failure> {
        self.call(async |connection| match connection {
            Connection::Owner(Owner { executor, .. }) => Ok(executor.status()),
            Connection::Client(client) => Ok(client.status().await?),
        })
        .await
    }

    /// The health of the store, if this process owns it.
    pub(super) fn health(&self) -> Option<Health> {
        match &*self.connection() {
            Connection::Owner(owner) => Some(owner.executor.store().stats().health),
            _ => None,
        }
    }

    /// Closes the store, if this process owns it.
    pub(super) async fn close(&self, handover: Handover) -> Result<(), Failure> {
        match &*self.connection() {
            Connection::Owner(owner) => owner.close(handover).await,
            _ => Ok(()),
        }
    }
}

/// Warns of a new name that takes precedence over the beginning of an address.
fn warn_of_short(name: &str, address: Option<Address>) {
    if address.is_some() && is_short_address(name) {
        out::note(&format!(
            "warning: `{name}` looks like the beginning of an address. From now on `{name}` means this name, not that \
             address."
        ));
    }
}

/// The address of a name with this history.
fn latest(history: &[NameChange]) -> Option<Address> {
    history.last().and_then(|last| last.address)
}

async fn receive_archive(
    client: &Client,
    addresses: &[Address],
    mut to: impl Write,
) -> Result<ExportReport, Failure> {
    let mut archive = client.export(addresses.iter().copied().map(Target::from)).await?;
    while let Some(piece) = archive.next().await {
        to.write_all(&piece?).map_err(|error| unwritten(&error))?;
    }
    to.flush().map_err(|error| unwritten(&error))?;
    let exported = archive.exported().cloned();
    exported.ok_or_else(|| Failure::of("the archive ended early; export it again"))
}

/// An error of an export. A broken pipe means that the reader has closed it.
fn unexported(error: StoreError) -> Failure {
    match error {
        StoreError::Disk { cause, .. } if cause.kind() == BrokenPipe => Failure::OutputClosed,
        error => error.into(),
    }
}

fn unwritten(error: &std::io::Error) -> Failure {
    pour::unwritten(Path::new("the archive"), error)
}
