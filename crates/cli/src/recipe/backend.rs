//! The backend of a command: an executor in this process, or a server. The verbs cannot tell which.

use std::io::ErrorKind::BrokenPipe;
use std::io::{Read, Write};
use std::ops::Range;
use std::time::Duration;

use anabranch_content::{
    Address, Collect, Collected, DroppedImport, Exported, Health, Import, ImportRecord, Imported, NameChange,
    Put, Scrub, Scrubbed,
};
use anabranch_engine::clock::{Clock as _, SystemClock};
use anabranch_recipe::{
    Added, Draft, Executor, Get, Heard, Invalidate, Invalidated, Listener, Ref, Signature, Source, Status,
    UnknownFunction,
};
use anabranch_server::{Client, Hearing, Resolved, Target};
use bytes::Bytes;

use super::pour;
use crate::failure::Failure;

/// The executor or server that does the work.
pub(super) enum Backend {
    Local(Executor),
    Remote(Client),
}

/// A value on its way.
pub(super) struct Got {
    pub output: Address,
    pub size: u64,
    pub source: Source,
    body: Body,
}

enum Body {
    Local(anabranch_recipe::Got),
    Remote(Box<anabranch_server::Got>),
}

impl Got {
    /// The next piece; nothing at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        match &mut self.body {
            Body::Local(got) => Ok(got.next().await.transpose()?),
            Body::Remote(got) => Ok(got.next().await.transpose()?),
        }
    }
}

/// Hears what happens.
pub(super) enum Ear {
    Local(Listener),
    Remote(Box<Hearing>),
}

impl Ear {
    /// The next event; `None` after the last one.
    pub(super) async fn next(&mut self) -> Option<Heard> {
        match self {
            Ear::Local(listener) => listener.next().await,
            Ear::Remote(hearing) => hearing.next().await?.ok(),
        }
    }
}

impl Backend {
    /// Keeps what a reader gives.
    pub(super) async fn put(&self, from: impl Read) -> Result<Put, Failure> {
        match self {
            Backend::Local(executor) => pour::into(from, |bytes| executor.put_stream(bytes)).await,
            Backend::Remote(client) => pour::into(from, |bytes| client.put_stream(bytes)).await,
        }
    }

    /// Keeps bytes.
    pub(super) async fn put_bytes(&self, bytes: Bytes) -> Result<Put, Failure> {
        match self {
            Backend::Local(executor) => Ok(executor.put(bytes).await?),
            Backend::Remote(client) => Ok(client.put(bytes).await?),
        }
    }

    /// Keeps recipes that may read each other.
    pub(super) async fn add_all(
        &self,
        drafts: &[Draft],
        unknown: UnknownFunction,
    ) -> Result<Vec<Added>, Failure> {
        match self {
            Backend::Local(executor) => Ok(executor.add_all(drafts, unknown).await?),
            Backend::Remote(client) => in_parts(client, drafts, unknown).await,
        }
    }

    /// The address that a text means: an address, or a name for one.
    pub(super) async fn find(&self, text: &str) -> Result<Address, Failure> {
        match self {
            Backend::Local(executor) => Ok(executor.find(text).await?),
            Backend::Remote(client) => Ok(client.find(text).await?),
        }
    }

    /// The addresses that several texts mean.
    pub(super) async fn find_all(&self, texts: &[String]) -> Result<Vec<Address>, Failure> {
        let mut found = Vec::with_capacity(texts.len());
        for text in texts {
            found.push(self.find(text).await?);
        }
        Ok(found)
    }

    /// The recipe at an address, and what it came to.
    pub(super) async fn resolve(&self, address: Address) -> Result<Resolved, Failure> {
        match self {
            Backend::Local(executor) => {
                let recipe = executor.resolve(&address).await?;
                let memo = executor.store().status(&address).await?.memo;
                Ok(Resolved { address, recipe, memo })
            }
            Backend::Remote(client) => Ok(client.resolve(address).await?),
        }
    }

    /// A value, or a part of it, in time if it must be.
    pub(super) async fn get(
        &self,
        address: Address,
        range: Range<u64>,
        within: Option<Duration>,
    ) -> Result<Got, Failure> {
        match self {
            Backend::Local(executor) => {
                let deadline = within.map(|within| SystemClock.now() + within);
                let got = executor.get(&address, &Get { range, deadline }).await?;
                Ok(Got { output: got.output, size: got.size, source: got.source, body: Body::Local(got) })
            }
            Backend::Remote(client) => {
                let got = client.get(address, range, within).await?;
                Ok(Got {
                    output: got.output,
                    size: got.size,
                    source: got.source,
                    body: Body::Remote(Box::new(got)),
                })
            }
        }
    }

    /// Hears from now on what happens.
    pub(super) async fn listen(&self) -> Result<Ear, Failure> {
        match self {
            Backend::Local(executor) => Ok(Ear::Local(executor.listen())),
            Backend::Remote(client) => Ok(Ear::Remote(Box::new(client.events().await?))),
        }
    }

    /// Forgets what recipes came to.
    pub(super) async fn invalidate(
        &self,
        address: Address,
        terms: &Invalidate,
    ) -> Result<Invalidated, Failure> {
        match self {
            Backend::Local(executor) => Ok(executor.invalidate(&address, terms).await?),
            Backend::Remote(client) => Ok(client.invalidate(address, terms).await?),
        }
    }

    /// Holds an address; whether that is new.
    pub(super) async fn pin(&self, address: Address) -> Result<bool, Failure> {
        match self {
            Backend::Local(executor) => Ok(executor.store().pin(&address).await?),
            Backend::Remote(client) => Ok(client.pin(address).await?),
        }
    }

    /// Lets an address go; whether it was held.
    pub(super) async fn unpin(&self, address: Address) -> Result<bool, Failure> {
        match self {
            Backend::Local(executor) => Ok(executor.store().unpin(&address).await?),
            Backend::Remote(client) => Ok(client.unpin(address).await?),
        }
    }

    /// Pinned addresses behind one, as many as a page has.
    pub(super) async fn pins(&self, after: Option<Address>, page: u16) -> Result<Vec<Address>, Failure> {
        match self {
            Backend::Local(executor) => Ok(executor.store().pins(after, usize::from(page)).await?),
            Backend::Remote(client) => Ok(client.pins(after, u32::from(page)).await?),
        }
    }

    /// Has a name mean an address, or nothing.
    pub(super) async fn set_ref(&self, name: &str, address: Option<Address>) -> Result<bool, Failure> {
        match self {
            Backend::Local(executor) => Ok(executor.store().name(name, address).await?),
            Backend::Remote(client) => Ok(client.set_ref(name, address).await?),
        }
    }

    /// Has a name mean an address, if it means `expected` now.
    pub(super) async fn set_ref_if(
        &self,
        name: &str,
        address: Option<Address>,
        expected: Option<Address>,
    ) -> Result<bool, Failure> {
        match self {
            Backend::Local(executor) => Ok(executor.store().name_if(name, address, expected).await?),
            Backend::Remote(client) => Ok(client.set_ref_if(name, address, expected).await?),
        }
    }

    /// The imports that hold what they brought, oldest first.
    pub(super) async fn imports(&self) -> Result<Vec<ImportRecord>, Failure> {
        match self {
            Backend::Local(executor) => Ok(executor.store().imports().await?),
            Backend::Remote(client) => Ok(client.imports().await?),
        }
    }

    /// Drops an import; `None` if there is none.
    pub(super) async fn drop_import(&self, id: &str) -> Result<Option<DroppedImport>, Failure> {
        match self {
            Backend::Local(executor) => Ok(executor.store().drop_import(id).await?),
            Backend::Remote(client) => Ok(client.drop_import(id).await?),
        }
    }

    /// All names, with what they mean.
    pub(super) async fn refs(&self) -> Result<Vec<(String, Address)>, Failure> {
        match self {
            Backend::Local(executor) => Ok(executor.store().names().await?),
            Backend::Remote(client) => Ok(client.refs().await?),
        }
    }

    /// The history of a name, newest last.
    pub(super) async fn history(&self, name: &str) -> Result<Vec<NameChange>, Failure> {
        match self {
            Backend::Local(executor) => Ok(executor.store().history(name).await?),
            Backend::Remote(client) => Ok(client.history(name).await?),
        }
    }

    /// Removes what nothing holds.
    pub(super) async fn collect(&self, terms: Collect) -> Result<Collected, Failure> {
        match self {
            Backend::Local(executor) => Ok(executor.store().collect(terms).await?),
            Backend::Remote(client) => Ok(client.collect(&terms).await?),
        }
    }

    /// Reads and checks everything, so many bytes a second; as fast as it goes here, gently on a server, if not said.
    pub(super) async fn scrub(&self, bytes_per_second: Option<u64>) -> Result<Scrubbed, Failure> {
        match self {
            Backend::Local(executor) => Ok(executor.store().scrub(Scrub { bytes_per_second }).await?),
            Backend::Remote(client) => {
                let bytes_per_second = bytes_per_second.or(Scrub::default().bytes_per_second);
                Ok(client.scrub(&Scrub { bytes_per_second }).await?)
            }
        }
    }

    /// Writes addresses and all that they lead to.
    pub(super) async fn export(
        &self,
        addresses: &[Address],
        mut to: impl Write + Send + 'static,
    ) -> Result<Exported, Failure> {
        match self {
            Backend::Local(executor) => executor.store().export(addresses, to).await.map_err(unexported),
            Backend::Remote(client) => {
                let mut archive = client.export(addresses.iter().copied().map(Target::from)).await?;
                while let Some(piece) = archive.next().await {
                    to.write_all(&piece?).map_err(|error| unwritten(&error))?;
                }
                to.flush().map_err(|error| unwritten(&error))?;
                let exported = archive.exported().cloned();
                exported.ok_or_else(|| Failure::of("the archive ended early; export it again"))
            }
        }
    }

    /// Brings in what an archive holds.
    pub(super) async fn import(
        &self,
        from: impl Read + Send + 'static,
        terms: Import,
    ) -> Result<Imported, Failure> {
        match self {
            Backend::Local(executor) => Ok(executor.import(from, terms).await?),
            Backend::Remote(client) => pour::into(from, |bytes| client.import(bytes, &terms)).await,
        }
    }

    /// The functions that recipes may name.
    pub(super) async fn functions(&self) -> Result<Vec<Signature>, Failure> {
        match self {
            Backend::Local(executor) => {
                Ok(executor.functions().list().map(|function| function.signature().clone()).collect())
            }
            Backend::Remote(client) => Ok(client.functions().await?),
        }
    }

    /// How much there is and what was done.
    pub(super) async fn status(&self) -> Result<Status, Failure> {
        match self {
            Backend::Local(executor) => Ok(executor.status()),
            Backend::Remote(client) => Ok(client.status().await?),
        }
    }

    /// The health of the store, if this process has it.
    pub(super) fn health(&self) -> Option<Health> {
        match self {
            Backend::Local(executor) => Some(executor.store().stats().health),
            Backend::Remote(_) => None,
        }
    }

    /// Closes the store, if this process has it.
    pub(super) async fn close(&self) -> Result<(), Failure> {
        match self {
            Backend::Local(executor) => Ok(executor.store().clone().close().await?),
            Backend::Remote(_) => Ok(()),
        }
    }
}

/// So many recipes are sent at once; a server bounds what one call may bring.
const SENT: usize = 20_000;

async fn in_parts(
    client: &Client,
    drafts: &[Draft],
    unknown: UnknownFunction,
) -> Result<Vec<Added>, Failure> {
    let mut added: Vec<Added> = Vec::with_capacity(drafts.len());
    for part in drafts.chunks(SENT) {
        let before = added.len();
        let input = |input: &Ref| match *input {
            Ref::Earlier(place) if place < before => Ref::Address(added[place].address),
            Ref::Earlier(place) => Ref::Earlier(place - before),
            Ref::Address(address) => Ref::Address(address),
        };
        let moved = |draft: &Draft| Draft {
            inputs: draft.inputs.iter().map(input).collect(),
            function: draft.function.clone(),
            params: draft.params.clone(),
        };
        let part: Vec<Draft> = part.iter().map(moved).collect();
        added.extend(client.add_all(&part, unknown).await?);
    }
    Ok(added)
}

/// An error of the store, unless it is that nobody reads the archive any more.
fn unexported(error: anabranch_content::Error) -> Failure {
    match error {
        anabranch_content::Error::Disk { cause, .. } if cause.kind() == BrokenPipe => Failure::Unheard,
        error => error.into(),
    }
}

fn unwritten(error: &std::io::Error) -> Failure {
    match error.kind() {
        BrokenPipe => Failure::Unheard,
        _ => Failure::of(format!("cannot write the archive: {error}")),
    }
}
