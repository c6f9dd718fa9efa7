//! A client of our own service, for programs without an executor.

mod add;
mod connect;
mod http;
mod inside;
mod socket;
mod streams;

use std::sync::Arc;
use std::time::Duration;

use anabranch_content::{Address, Collect, CollectReport, NameChange, Put, Scrub, ScrubReport};
use anabranch_recipe::{Invalidate, InvalidationReport, Signature, Status};
use bytes::Bytes;
use futures_util::Stream;
use tokio::net::UnixStream;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request};

use connect::Bearer;
pub use connect::ServerAddress;
pub use http::{ApiRequest, ServerEvent, ServerEvents};
use socket::SocketConnector;
pub use streams::{NoticeStream, ReceivedArchive, ReceivedValue, ReceivedValues, ValuePiece};

use crate::proto::recipes as proto;
use crate::proto::recipes::recipes_client::RecipesClient;
use crate::wire::{self, MalformedMessage, ResolvedTarget, Target};

/// Errors of calls to a server.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No server answers there.
    #[error("could not connect to {url}")]
    Connect {
        /// The address of the server.
        url: String,
        /// The cause.
        #[source]
        cause: Arc<tonic::transport::Error>,
    },
    /// The certificates to trust cannot be read, or the address has no host.
    #[error("could not connect to {url}: {problem}")]
    Address {
        /// The address of the server.
        url: String,
        /// The problem.
        problem: String,
    },
    /// The connection broke before the call was answered.
    #[error("the connection to the server broke: {cause}")]
    Broken {
        /// The cause.
        cause: String,
    },
    /// The server refused, or failed.
    #[error("{message}")]
    Call {
        /// The kind of failure.
        code: Code,
        /// The server's message.
        message: String,
    },
    /// The request cannot be encoded.
    #[error("{0}")]
    Request(String),
    /// The client does not understand the server's reply; the server may be newer.
    #[error("the server's reply is not understood: {0}")]
    Answer(String),
    /// The stream of bytes to send failed.
    #[error("reading the bytes to be sent failed")]
    Source(#[source] Arc<dyn std::error::Error + Send + Sync>),
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

/// The cause of a transport failure. Errors of the server itself and deadlines have no cause.
fn first_cause(status: &tonic::Status) -> Option<String> {
    let mut first = std::error::Error::source(status)?;
    let mut is_unsent = false;
    loop {
        // The connection broke before the call was sent.
        is_unsent |= first.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_canceled);
        match first.source() {
            Some(cause) => first = cause,
            None => break,
        }
    }
    let is_late = matches!(status.code(), Code::Cancelled | Code::DeadlineExceeded);
    (is_unsent || !is_late).then(|| first.to_string())
}

/// A malformed reply of the server. Malformed requests of this client become errors in `unwritable`.
impl From<MalformedMessage> for Error {
    fn from(bad: MalformedMessage) -> Error {
        Error::Answer(bad.0)
    }
}

fn unwritable(bad: MalformedMessage) -> Error {
    Error::Request(bad.0)
}

/// A connection to a server; clones share it.
#[derive(Clone, Debug)]
pub struct Client {
    recipes: RecipesClient<InterceptedService<Channel, Bearer>>,
    channel: Channel,
    bearer: Bearer,
}

/// The timeout of connecting.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// A server that is silent for this long is pinged, and has as long again to answer.
const SILENT_MOST: Duration = Duration::from_secs(10);

/// The size limit of a message in either direction. A batch of recipes is one message.
const MESSAGE_MOST: usize = 256 << 20;

/// The HTTP/2 flow control windows, in bytes: of one call, and of the connection.
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
        // The URL's host is only sent with each call. Calls go to the socket.
        let failed = |cause| Error::Connect { url: "the socket".to_owned(), cause: Arc::new(cause) };
        let endpoint = configured(Endpoint::from_static("http://localhost"));
        let channel = endpoint.connect_with_connector(SocketConnector(Some(socket))).await.map_err(failed)?;
        Ok(Client::on(channel, Bearer::default()))
    }

    fn on(channel: Channel, bearer: Bearer) -> Client {
        let recipes = RecipesClient::with_interceptor(channel.clone(), bearer.clone())
            .max_decoding_message_size(MESSAGE_MOST)
            .max_encoding_message_size(MESSAGE_MOST);
        Client { recipes, channel, bearer }
    }

    /// Stores bytes. They are durable when this returns.
    pub async fn put(&self, bytes: impl Into<Bytes>) -> Result<Put, Error> {
        let bytes: Bytes = bytes.into();
        self.put_stream(futures_util::stream::iter([Ok::<_, std::convert::Infallible>(bytes)])).await
    }

    /// Stores the bytes of a stream of any length. An error of the stream cancels the put, and nothing is stored.
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

    /// A range of the value of an address, within a timeout if one is given.
    pub async fn get(
        &self,
        target: impl Into<Target>,
        range: std::ops::Range<u64>,
        within: Option<Duration>,
    ) -> Result<ReceivedValue, Error> {
        let target = Some(wire::from_target(target.into()));
        let end = (range.end != u64::MAX).then_some(range.end);
        let mut request = Request::new(proto::GetRequest { target, start: range.start, end });
        if let Some(within) = within {
            request.set_timeout(within);
        }
        ReceivedValue::begin(self.recipes.clone().get(request).await?.into_inner()).await
    }

    /// Several values, in the requested order.
    pub async fn get_many(&self, targets: impl IntoIterator<Item = Target>) -> Result<ReceivedValues, Error> {
        let targets = targets.into_iter().map(wire::from_target).collect();
        let stream = self.recipes.clone().get_many(proto::GetManyRequest { targets }).await?;
        Ok(ReceivedValues { stream: stream.into_inner() })
    }

    /// The address of a target, which is a name, an address or the beginning of an address.
    pub async fn find(&self, text: &str) -> Result<Address, Error> {
        let request = proto::FindRequest { text: text.to_owned(), may_be_absent: false };
        let reply = self.recipes.clone().find(request).await?;
        Ok(wire::address("address", &reply.into_inner().address)?)
    }

    /// The same; `None` if nothing has that name or address.
    pub async fn look_up(&self, text: &str) -> Result<Option<Address>, Error> {
        let request = proto::FindRequest { text: text.to_owned(), may_be_absent: true };
        let address = self.recipes.clone().find(request).await?.into_inner().address;
        Ok(if address.is_empty() { None } else { Some(wire::address("address", &address)?) })
    }

    /// What is stored at an address.
    pub async fn resolve(&self, target: impl Into<Target>) -> Result<ResolvedTarget, Error> {
        let target = Some(wire::from_target(target.into()));
        let reply = self.recipes.clone().resolve(proto::ResolveRequest { target }).await?.into_inner();
        Ok(wire::resolved(reply)?)
    }

    /// Forgets the value of a recipe and, if requested, the values of everything that reads it.
    pub async fn invalidate(
        &self,
        target: impl Into<Target>,
        terms: &Invalidate,
    ) -> Result<InvalidationReport, Error> {
        let request = wire::from_invalidate(wire::from_target(target.into()), terms);
        let reply = self.recipes.clone().invalidate(request).await?;
        Ok(wire::invalidated(&reply.into_inner())?)
    }

    /// Pins an address, so that collection keeps it; true if it was not pinned before.
    pub async fn pin(&self, target: impl Into<Target>) -> Result<bool, Error> {
        let target = Some(wire::from_target(target.into()));
        Ok(self.recipes.clone().pin(proto::PinRequest { target }).await?.into_inner().new)
    }

    /// Unpins an address; true if it was pinned.
    pub async fn unpin(&self, target: impl Into<Target>) -> Result<bool, Error> {
        let target = Some(wire::from_target(target.into()));
        Ok(self.recipes.clone().unpin(proto::UnpinRequest { target }).await?.into_inner().was_pinned)
    }

    /// Up to `most` pinned addresses after `after`, in order.
    pub async fn pins(&self, after: Option<Address>, most: u32) -> Result<Vec<Address>, Error> {
        let after = after.as_ref().map(wire::from_address);
        let reply = self.recipes.clone().pins(proto::PinsRequest { after, most }).await?;
        Ok(wire::addresses("addresses", &reply.into_inner().addresses)?)
    }

    /// Points a name to an address, or drops it; true if that changes the name.
    pub async fn set_ref(&self, name: &str, address: Option<Address>) -> Result<bool, Error> {
        self.change_ref(name, address, None).await
    }

    /// Points a name to an address, or drops it, if it points to `expected` now; else an error with the code `Aborted`.
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

    /// Drops a name with its history; true if the name existed.
    pub async fn forget_ref(&self, name: &str) -> Result<bool, Error> {
        let request =
            proto::SetRefRequest { name: name.to_owned(), forget: true, ..proto::SetRefRequest::default() };
        Ok(self.recipes.clone().set_ref(request).await?.into_inner().changed)
    }

    /// The addresses that a name has had, newest last.
    pub async fn history(&self, name: &str) -> Result<Vec<NameChange>, Error> {
        let reply = self.recipes.clone().history(proto::HistoryRequest { name: name.to_owned() }).await?;
        Ok(reply.into_inner().history.into_iter().map(wire::named).collect::<Result<_, _>>()?)
    }

    /// All names that have an address, with their addresses, in order.
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

    /// The names after `after`, and the start of the next page if there is one. 0 means the most that the server sends.
    pub async fn refs_page(
        &self,
        after: &str,
        most: u32,
    ) -> Result<(Vec<(String, Address)>, Option<String>), Error> {
        let request = proto::RefsRequest { after: after.to_owned(), most };
        let proto::RefsReply { refs, next } = self.recipes.clone().refs(request).await?.into_inner();
        let named = |named: proto::Ref| Ok((named.name, wire::address("address", &named.address)?));
        let refs = refs.into_iter().map(named).collect::<Result<_, MalformedMessage>>()?;
        Ok((refs, Some(next).filter(|next| !next.is_empty())))
    }

    /// Removes everything that nothing protects.
    pub async fn collect(&self, terms: &Collect) -> Result<CollectReport, Error> {
        let reply = self.recipes.clone().collect(wire::from_collect(terms)).await?;
        Ok(wire::collected(&reply.into_inner())?)
    }

    /// Reads and checks everything that is stored.
    pub async fn scrub(&self, terms: &Scrub) -> Result<ScrubReport, Error> {
        let bytes_per_second = terms.bytes_per_second;
        let reply = self.recipes.clone().scrub(proto::ScrubRequest { bytes_per_second }).await?;
        Ok(wire::scrubbed(reply.into_inner())?)
    }

    /// The archive of these addresses and everything that they refer to.
    pub async fn export(&self, targets: impl IntoIterator<Item = Target>) -> Result<ReceivedArchive, Error> {
        let targets = targets.into_iter().map(wire::from_target).collect();
        let stream = self.recipes.clone().export(proto::ExportRequest { targets }).await?;
        Ok(ReceivedArchive::begin(stream.into_inner()))
    }

    /// The functions that recipes may name.
    pub async fn functions(&self) -> Result<Vec<Signature>, Error> {
        let reply = self.recipes.clone().functions(proto::FunctionsRequest {}).await?;
        Ok(reply.into_inner().functions.into_iter().map(wire::function).collect::<Result<_, _>>()?)
    }

    /// The sizes and counters of the server. The store's requests by kind are not included.
    pub async fn status(&self) -> Result<Status, Error> {
        let reply = self.recipes.clone().status(proto::StatusRequest {}).await?;
        Ok(wire::status(&reply.into_inner())?)
    }

    /// Subscribes to the server's events from now on.
    pub async fn events(&self) -> Result<NoticeStream, Error> {
        NoticeStream::begin(self.recipes.clone().events(proto::EventsRequest {}).await?.into_inner()).await
    }
}
