//! The other end of our own service: what a program calls that has no executor itself.

mod connect;
mod inside;
mod socket;
mod streams;

use std::sync::Arc;
use std::time::Duration;

use anabranch_content::{Address, Collect, Collected, Memo, NameChange, Put, Scrub, Scrubbed};
use anabranch_recipe::{
    Added, Draft, Invalidate, Invalidated, Recipe, Ref, Signature, Status, UnknownFunction,
};
use bytes::Bytes;
use futures_util::Stream;
use tokio::net::UnixStream;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request};

use connect::Bearer;
pub use connect::ServerAddress;
use socket::Connected;
pub use streams::{Exporting, Got, Hearing, Many, Piece};

use crate::proto::recipes as proto;
use crate::proto::recipes::recipes_client::RecipesClient;
use crate::wire::{self, Bad, Target};

/// What can go wrong with a call to a server.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No server answers there.
    #[error("could not connect to {url}")]
    Connect {
        /// Where it should be.
        url: String,
        /// Why.
        #[source]
        cause: Arc<tonic::transport::Error>,
    },
    /// The certificates to trust cannot be read, or the address has no host.
    #[error("could not connect to {url}: {problem}")]
    Address {
        /// Where the server should be.
        url: String,
        /// What is wrong.
        problem: String,
    },
    /// The connection broke before the call was answered.
    #[error("the connection to the server broke: {cause}")]
    Broken {
        /// What broke it.
        cause: String,
    },
    /// The server refused, or failed.
    #[error("{message}")]
    Call {
        /// The kind of failure.
        code: Code,
        /// What the server says about it.
        message: String,
    },
    /// The call cannot be written down.
    #[error("{0}")]
    Request(String),
    /// The server answered something that this client does not understand; it may be newer.
    #[error("the server's answer is not understood: {0}")]
    Answer(String),
    /// The giver of a stream failed.
    #[error("the bytes' giver failed")]
    Giver(#[source] Arc<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// The kind of failure that the server reports; a broken connection is `Unavailable`.
    pub fn code(&self) -> Option<Code> {
        match self {
            Error::Call { code, .. } => Some(*code),
            Error::Broken { .. } => Some(Code::Unavailable),
            _ => None,
        }
    }
}

impl From<tonic::Status> for Error {
    fn from(status: tonic::Status) -> Error {
        match first_cause(&status) {
            Some(cause) => Error::Broken { cause },
            None => Error::Call { code: status.code(), message: status.message().to_owned() },
        }
    }
}

/// What happened on the way; what the server itself says comes without a cause, and so does a deadline.
fn first_cause(status: &tonic::Status) -> Option<String> {
    let mut first = std::error::Error::source(status)?;
    while let Some(cause) = first.source() {
        first = cause;
    }
    let is_late = matches!(status.code(), Code::Cancelled | Code::DeadlineExceeded);
    (!is_late).then(|| first.to_string())
}

/// What the server sent is wrong; what this end sends is checked with `unwritable`.
impl From<Bad> for Error {
    fn from(bad: Bad) -> Error {
        Error::Answer(bad.0)
    }
}

fn unwritable(bad: Bad) -> Error {
    Error::Request(bad.0)
}

/// What a server knows about an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The address.
    pub address: Address,
    /// The recipe there, if it is one's.
    pub recipe: Option<Recipe>,
    /// What that came to, if it is remembered.
    pub memo: Option<Memo>,
}

/// A connection to a server; clones share it.
#[derive(Clone, Debug)]
pub struct Client {
    recipes: RecipesClient<InterceptedService<Channel, Bearer>>,
}

/// How long a connection may take to come about.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// A server that says nothing for so long is asked whether it lives, and has as long again to answer.
const SILENT_MOST: Duration = Duration::from_secs(10);

/// The largest message either way; a batch of recipes is one.
const MESSAGE_MOST: usize = 256 << 20;

/// Recipes of one call: a message has up to 16 MiB, unless a server is set up otherwise.
const BATCH_MOST: usize = 8 << 20;

/// The most recipes of one call: a server bounds the memory of a decoded message, too.
const BATCH_RECIPES: usize = 20_000;

/// The bytes of a message around one of its recipes.
const DRAFT_ENVELOPE: usize = 8;

/// An earlier recipe of a list of which `sent` were added before: its place in this batch, or its address.
fn batch_place(place: usize, sent: usize, added: &[Added]) -> Ref {
    match added.get(place) {
        Some(added) => Ref::Address(added.address),
        None => Ref::Earlier(place.saturating_sub(sent)),
    }
}

/// Bytes that may be under way to here unread, of one call and of all; more only costs memory.
const WINDOWS: [u32; 2] = [2 << 20, 8 << 20];

fn configured(endpoint: Endpoint) -> Endpoint {
    endpoint
        .connect_timeout(CONNECT_WITHIN)
        .http2_keep_alive_interval(SILENT_MOST)
        .keep_alive_timeout(SILENT_MOST)
        .initial_stream_window_size(WINDOWS[0])
        .initial_connection_window_size(WINDOWS[1])
}

impl Client {
    /// Connects to a server without a token, `http://host:port` or `https://host:port`.
    pub async fn connect(url: &str) -> Result<Client, Error> {
        Client::connect_to(&ServerAddress::new(url)).await
    }

    /// A client on a connected Unix socket. It does not connect again: once the socket is closed, every call fails with
    /// [`Error::Broken`].
    pub async fn over_socket(socket: UnixStream) -> Result<Client, Error> {
        // The host of the URL is sent with each call; the socket decides where calls go.
        let failed = |cause| Error::Connect { url: "the socket".to_owned(), cause: Arc::new(cause) };
        let endpoint = configured(Endpoint::from_static("http://localhost"));
        let channel = endpoint.connect_with_connector(Connected(Some(socket))).await.map_err(failed)?;
        Ok(Client::on(channel, Bearer::default()))
    }

    fn on(channel: Channel, bearer: Bearer) -> Client {
        let recipes = RecipesClient::with_interceptor(channel, bearer)
            .max_decoding_message_size(MESSAGE_MOST)
            .max_encoding_message_size(MESSAGE_MOST);
        Client { recipes }
    }

    /// Keeps bytes; durable when answered.
    pub async fn put(&self, bytes: impl Into<Bytes>) -> Result<Put, Error> {
        let bytes: Bytes = bytes.into();
        self.put_stream(futures_util::stream::iter([Ok::<_, std::convert::Infallible>(bytes)])).await
    }

    /// Keeps the bytes of a stream of any length. An error of the stream ends the put; nothing of it is left.
    pub async fn put_stream<E>(
        &self,
        stream: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    ) -> Result<Put, Error>
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        let mut recipes = self.recipes.clone();
        let reply =
            streams::send(stream, |chunk| proto::PutRequest { chunk }, |chunks| recipes.put(chunks)).await?;
        Ok(wire::put(&reply)?)
    }

    /// Keeps several recipes that may read each other: in one call, or in several if there are too many for one.
    pub async fn add_all(&self, drafts: &[Draft], unknown: UnknownFunction) -> Result<Vec<Added>, Error> {
        let unknown_function = wire::from_unknown(unknown).into();
        let mut added: Vec<Added> = Vec::with_capacity(drafts.len());
        let mut drafts = drafts.iter().peekable();
        loop {
            let sent = added.len();
            let (mut batch, mut bytes) = (Vec::new(), 0);
            while let Some(draft) = drafts.peek() {
                let draft = wire::from_draft(draft, |place| batch_place(place, sent, &added));
                let draft = draft.map_err(unwritable)?;
                bytes += prost::Message::encoded_len(&draft) + DRAFT_ENVELOPE;
                if (bytes > BATCH_MOST && !batch.is_empty()) || batch.len() == BATCH_RECIPES {
                    break;
                }
                batch.push(draft);
                drafts.next();
            }
            let count = batch.len();
            let reply =
                self.recipes.clone().add(proto::AddRequest { drafts: batch, unknown_function }).await?;
            let reply = reply.into_inner().added;
            if reply.len() != count {
                return Err(Error::Answer(format!(
                    "{count} recipes were added, and {} answered",
                    reply.len()
                )));
            }
            for one in &reply {
                added.push(wire::added(one)?);
            }
            if drafts.peek().is_none() {
                return Ok(added);
            }
        }
    }

    /// The value of an address, from a byte on up to one, within a time if one is given.
    pub async fn get(
        &self,
        target: impl Into<Target>,
        range: std::ops::Range<u64>,
        within: Option<Duration>,
    ) -> Result<Got, Error> {
        let target = Some(wire::from_target(target.into()));
        let end = (range.end != u64::MAX).then_some(range.end);
        let mut request = Request::new(proto::GetRequest { target, start: range.start, end });
        if let Some(within) = within {
            request.set_timeout(within);
        }
        Got::begin(self.recipes.clone().get(request).await?.into_inner()).await
    }

    /// Several values, in the order asked for.
    pub async fn get_many(&self, targets: impl IntoIterator<Item = Target>) -> Result<Many, Error> {
        let targets = targets.into_iter().map(wire::from_target).collect();
        let stream = self.recipes.clone().get_many(proto::GetManyRequest { targets }).await?;
        Ok(Many { stream: stream.into_inner() })
    }

    /// What a text means: an address, or a name for one.
    pub async fn find(&self, text: &str) -> Result<Address, Error> {
        let reply = self.recipes.clone().find(proto::FindRequest { text: text.to_owned() }).await?;
        Ok(wire::address("address", &reply.into_inner().address)?)
    }

    /// The recipe at an address, and what it came to.
    pub async fn resolve(&self, target: impl Into<Target>) -> Result<Resolved, Error> {
        let target = Some(wire::from_target(target.into()));
        let reply = self.recipes.clone().resolve(proto::ResolveRequest { target }).await?.into_inner();
        let address = wire::address("address", &reply.address)?;
        let recipe = reply.recipe.map(wire::recipe).transpose()?;
        let memo = reply.memo.map(|memo| wire::memo(address, &memo)).transpose()?;
        Ok(Resolved { address, recipe, memo })
    }

    /// Forgets what a recipe came to, and if asked, what everything made from it did.
    pub async fn invalidate(
        &self,
        target: impl Into<Target>,
        terms: &Invalidate,
    ) -> Result<Invalidated, Error> {
        let request = wire::from_invalidate(wire::from_target(target.into()), terms);
        let reply = self.recipes.clone().invalidate(request).await?;
        Ok(wire::invalidated(&reply.into_inner())?)
    }

    /// Holds an address against collection; whether it was not held before.
    pub async fn pin(&self, target: impl Into<Target>) -> Result<bool, Error> {
        let target = Some(wire::from_target(target.into()));
        Ok(self.recipes.clone().pin(proto::PinRequest { target }).await?.into_inner().new)
    }

    /// Lets go of an address; whether it was held.
    pub async fn unpin(&self, target: impl Into<Target>) -> Result<bool, Error> {
        let target = Some(wire::from_target(target.into()));
        Ok(self.recipes.clone().unpin(proto::UnpinRequest { target }).await?.into_inner().was_pinned)
    }

    /// Pinned addresses, in order: at most so many, behind `after`.
    pub async fn pins(&self, after: Option<Address>, most: u32) -> Result<Vec<Address>, Error> {
        let after = after.as_ref().map(wire::from_address);
        let reply = self.recipes.clone().pins(proto::PinsRequest { after, most }).await?;
        Ok(wire::addresses("addresses", &reply.into_inner().addresses)?)
    }

    /// Has a name mean an address from now on, or nothing; whether that is new.
    pub async fn set_ref(&self, name: &str, address: Option<Address>) -> Result<bool, Error> {
        self.change_ref(name, address, None).await
    }

    /// Has a name mean an address, or nothing, if it means `expected` now; else an error with the code `Aborted`.
    pub async fn set_ref_if(
        &self,
        name: &str,
        address: Option<Address>,
        expected: Option<Address>,
    ) -> Result<bool, Error> {
        let expected = proto::ExpectedRef { address: expected.as_ref().map(wire::from_address) };
        self.change_ref(name, address, Some(expected)).await
    }

    async fn change_ref(
        &self,
        name: &str,
        address: Option<Address>,
        expected: Option<proto::ExpectedRef>,
    ) -> Result<bool, Error> {
        let address = address.as_ref().map(wire::from_address);
        let request = proto::SetRefRequest { name: name.to_owned(), address, expected, forget: false };
        Ok(self.recipes.clone().set_ref(request).await?.into_inner().changed)
    }

    /// Drops a name with its history; whether there was one.
    pub async fn forget_ref(&self, name: &str) -> Result<bool, Error> {
        let request =
            proto::SetRefRequest { name: name.to_owned(), forget: true, ..proto::SetRefRequest::default() };
        Ok(self.recipes.clone().set_ref(request).await?.into_inner().changed)
    }

    /// What a name has meant, newest last.
    pub async fn history(&self, name: &str) -> Result<Vec<NameChange>, Error> {
        let reply = self.recipes.clone().history(proto::HistoryRequest { name: name.to_owned() }).await?;
        Ok(reply.into_inner().history.into_iter().map(wire::named).collect::<Result<_, _>>()?)
    }

    /// All names that mean something, with what they mean, in order.
    pub async fn refs(&self) -> Result<Vec<(String, Address)>, Error> {
        let (mut refs, mut after) = (Vec::new(), String::new());
        loop {
            let (page, next) = self.refs_page(&after, 0).await?;
            refs.extend(page);
            match next {
                Some(next) if next > after => after = next,
                Some(next) => {
                    return Err(Error::Answer(format!("the page of names behind {next:?} comes twice")));
                }
                None => return Ok(refs),
            }
        }
    }

    /// The names behind `after`, and where the next page begins if there is one; 0 is as many as the server gives.
    pub async fn refs_page(
        &self,
        after: &str,
        most: u32,
    ) -> Result<(Vec<(String, Address)>, Option<String>), Error> {
        let request = proto::RefsRequest { after: after.to_owned(), most };
        let proto::RefsReply { refs, next } = self.recipes.clone().refs(request).await?.into_inner();
        let named = |named: proto::Ref| Ok((named.name, wire::address("address", &named.address)?));
        let refs = refs.into_iter().map(named).collect::<Result<_, Bad>>()?;
        Ok((refs, Some(next).filter(|next| !next.is_empty())))
    }

    /// Removes what nothing holds.
    pub async fn collect(&self, terms: &Collect) -> Result<Collected, Error> {
        let reply = self.recipes.clone().collect(wire::from_collect(terms)).await?;
        Ok(wire::collected(&reply.into_inner())?)
    }

    /// Reads and checks all that is kept.
    pub async fn scrub(&self, terms: &Scrub) -> Result<Scrubbed, Error> {
        let bytes_per_second = terms.bytes_per_second;
        let reply = self.recipes.clone().scrub(proto::ScrubRequest { bytes_per_second }).await?;
        Ok(wire::scrubbed(reply.into_inner())?)
    }

    /// Addresses and all that they lead to, as an archive.
    pub async fn export(&self, targets: impl IntoIterator<Item = Target>) -> Result<Exporting, Error> {
        let targets = targets.into_iter().map(wire::from_target).collect();
        let stream = self.recipes.clone().export(proto::ExportRequest { targets }).await?;
        Ok(Exporting::begin(stream.into_inner()))
    }

    /// The functions that recipes may name.
    pub async fn functions(&self) -> Result<Vec<Signature>, Error> {
        let reply = self.recipes.clone().functions(proto::FunctionsRequest {}).await?;
        Ok(reply.into_inner().functions.into_iter().map(wire::function).collect::<Result<_, _>>()?)
    }

    /// How much there is and what was done. What was asked of the store by kind is not told.
    pub async fn status(&self) -> Result<Status, Error> {
        let reply = self.recipes.clone().status(proto::StatusRequest {}).await?;
        Ok(wire::status(&reply.into_inner())?)
    }

    /// Hears from now on what happens.
    pub async fn events(&self) -> Result<Hearing, Error> {
        Hearing::begin(self.recipes.clone().events(proto::EventsRequest {}).await?.into_inner()).await
    }
}
