//! JSON over HTTP: a trip is one `POST` of all keys.
//!
//! To `{"read":"fields","keys":["user:1"],"fields":["country"]}`, a server answers `{"rows":[{"country":"US"}]}`, with
//! `null` for a missing key. To `{"read":"list","keys":["follow:1"],"limit":10}`, it answers `{"lists":[[1,2,"3"]]}`,
//! and to `"scored"` `{"lists":[[{"id":7,"score":0.5}]]}`. Ids are integers or decimal strings, exact to 64 bits. A
//! reply is decoded as its bytes arrive, in slices between which other tasks have their turn.

mod decode;
mod json;

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use anabranch_engine::clock::Clock;
use futures_util::future::{Either, select};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::{HeaderMap, Request, Response, StatusCode, header};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use self::decode::{DecodedReply, Decoder, Fault};
use super::values;
use super::{
    Bound, Error, Fetch, Hedge, Keys, MalformedValues, Pattern, Read, ReadContext, Reply, Source,
    TraceContext,
};
use crate::bounds::{Budget, ReplyCount};
use crate::registry::Endpoint;

/// Bytes that are decoded before other tasks get their turn.
const SLICE: usize = 64 << 10;

/// Bytes of an error's body that are read for its message.
const MESSAGE: usize = 4 << 10;

/// The address of an HTTP server, and the limits of reads.
#[derive(Clone, Debug)]
pub struct HttpConfig {
    /// Its name in messages.
    pub endpoint: Arc<str>,
    /// The URL of trips, for instance `http://127.0.0.1:8080/read`.
    pub url: String,
    /// The timeout of connecting.
    pub connect_timeout: Duration,
    /// The timeout of a trip's reply.
    pub response_timeout: Duration,
    /// The most concurrent trips.
    pub max_inflight: u32,
    /// The size limit of a reply in bytes. Default: 16 MiB.
    pub max_bytes: usize,
    /// The hedging of late reads, if enabled.
    pub hedge: Option<Hedge>,
    /// Whether a value that cannot be read fails the read. Otherwise it is null, or left out of its list, and counted
    /// in [`Reply::malformed`].
    pub strict_values: bool,
}

/// A URL for messages: without user and password.
fn without_login(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let host = rest[..end].rfind('@').map_or(0, |at| at + 1);
    format!("{scheme}://{}", &rest[host..])
}

impl HttpConfig {
    /// A config with this URL and defaults for everything else.
    pub fn new(url: impl Into<String>) -> HttpConfig {
        let url = url.into();
        HttpConfig {
            endpoint: url.as_str().into(),
            url,
            connect_timeout: Duration::from_secs(1),
            response_timeout: Duration::from_secs(1),
            max_inflight: 64,
            max_bytes: 16 << 20,
            hedge: None,
            strict_values: false,
        }
    }

    /// The description of an endpoint in the registry.
    pub fn from_endpoint(endpoint: &Endpoint) -> HttpConfig {
        let config = HttpConfig::new(format!("http://{}:{}/read", endpoint.host, endpoint.port));
        HttpConfig {
            endpoint: endpoint.name.as_str().into(),
            connect_timeout: endpoint.connect_timeout.unwrap_or(config.connect_timeout),
            response_timeout: endpoint.request_timeout.unwrap_or(config.response_timeout),
            max_inflight: endpoint.max_inflight.unwrap_or(config.max_inflight),
            ..config
        }
    }
}

/// A source that reads from an HTTP server. Connections are kept and shared by all requests.
pub struct Http {
    server: Arc<Server>,
}

struct Server {
    config: HttpConfig,
    client: Client<HttpConnector, Full<Bytes>>,
    clock: Arc<dyn Clock>,
}

impl Http {
    /// A server that is reached as `config` says.
    pub fn new(config: HttpConfig, clock: Arc<dyn Clock>) -> Http {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(config.connect_timeout));
        connector.set_nodelay(true);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_max_idle_per_host(config.max_inflight as usize)
            .build(connector);
        Http { server: Arc::new(Server { config, client, clock }) }
    }
}

impl Source for Http {
    fn bind(&self, pattern: &Pattern, read: &Read) -> Arc<dyn Bound> {
        let (prefix, suffix) = pattern.affixes().unwrap_or(("", ""));
        let ask = Ask { prefix: prefix.into(), suffix: suffix.into(), read: read.clone() };
        Arc::new(Trip { server: Arc::clone(&self.server), ask: Arc::new(ask) })
    }

    fn max_inflight(&self) -> Option<u32> {
        Some(self.server.config.max_inflight)
    }

    fn hedge(&self) -> Option<Hedge> {
        self.server.config.hedge
    }
}

struct Trip {
    server: Arc<Server>,
    ask: Arc<Ask>,
}

struct Ask {
    prefix: Box<str>,
    suffix: Box<str>,
    read: Read,
}

impl Bound for Trip {
    fn fetch(&self, keys: Keys, context: ReadContext<'_>) -> Fetch {
        if let Some(reply) = self.ask.read.without_trip(&keys) {
            return Fetch::Ready(Ok(reply));
        }
        let (server, ask) = (Arc::clone(&self.server), Arc::clone(&self.ask));
        let (count, trace) = (context.budget.reply(), context.trace.cloned());
        Fetch::Later(Box::pin(async move {
            let names = ask.names(&keys);
            server.post(&ask, &names, count, trace.as_ref()).await
        }))
    }
}

impl Server {
    /// Asks for these keys; `count` counts the reply.
    async fn post(
        &self,
        ask: &Ask,
        names: &[Option<String>],
        count: ReplyCount,
        trace: Option<&TraceContext>,
    ) -> Result<Reply, Error> {
        let HttpConfig { endpoint, url, response_timeout: after, .. } = &self.config;
        let mut request = Request::post(url)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT_ENCODING, "identity")
            .body(Full::new(Bytes::from(ask.body(names))))
            .map_err(|e| self.no_connection(&format!("`{}` is not a URL: {e}", without_login(url))))?;
        if let Some(trace) = trace {
            trace.write(request.headers_mut());
        }
        let too_late = self.clock.sleep_until(self.clock.now() + *after);
        match select(Box::pin(self.exchange(request, ask, names, count)), too_late).await {
            Either::Left((reply, _)) => reply,
            Either::Right(_) => Err(Error::Timeout { endpoint: Arc::clone(endpoint), after: *after }),
        }
    }

    async fn exchange(
        &self,
        request: Request<Full<Bytes>>,
        ask: &Ask,
        names: &[Option<String>],
        count: ReplyCount,
    ) -> Result<Reply, Error> {
        let mut response = self.client.request(request).await.map_err(|e| self.no_connection(&chain(&e)))?;
        if response.status() != StatusCode::OK {
            return Err(self.refused(response).await);
        }
        if let Some(encoding) = response.headers().get(header::CONTENT_ENCODING)
            && encoding != "identity"
        {
            let found = format!(
                "a reply encoded as {}",
                values::quoted(&String::from_utf8_lossy(encoding.as_bytes()))
            );
            return Err(self.malformed(found, "a reply without encoding, as it was asked for"));
        }
        let mut decoder = Decoder::new(&ask.read, names, count);
        let fault = |fault: Fault| self.fault(fault);
        let (mut left, mut since_turn) = (self.config.max_bytes, 0);
        while let Some(bytes) = self.next_bytes(&mut response).await? {
            let Some(rest) = left.checked_sub(bytes.len()) else {
                let found = format!("more than {} bytes", self.config.max_bytes);
                return Err(self.malformed(found, "a shorter reply"));
            };
            left = rest;
            for slice in bytes.chunks(SLICE) {
                if since_turn >= SLICE {
                    give_way().await;
                    since_turn = 0;
                }
                since_turn += slice.len();
                decoder.feed(slice).map_err(fault)?;
            }
        }
        let DecodedReply { data, malformed: count, first_malformed } = decoder.finish().map_err(fault)?;
        let first = first_malformed.map(fault);
        if let Some(error) = first.clone().filter(|_| self.config.strict_values) {
            return Err(error);
        }
        let malformed = MalformedValues { count, first: first.map(|error| error.to_string().into()) };
        Ok(Reply { data, trips: 1, commands: names.iter().flatten().count() as u32, malformed })
    }

    async fn next_bytes(&self, response: &mut Response<Incoming>) -> Result<Option<Bytes>, Error> {
        while let Some(frame) = response.frame().await {
            let frame = frame.map_err(|e| Error::Broken {
                endpoint: Arc::clone(&self.config.endpoint),
                cause: chain(&e).into(),
            })?;
            if let Ok(bytes) = frame.into_data() {
                return Ok(Some(bytes));
            }
        }
        Ok(None)
    }

    /// The error that a status other than 200 is.
    async fn refused(&self, mut response: Response<Incoming>) -> Error {
        let status = response.status();
        let retry_after = retry_after(response.headers());
        let mut body = Vec::new();
        while let Ok(Some(bytes)) = self.next_bytes(&mut response).await {
            body.extend_from_slice(&bytes[..bytes.len().min(MESSAGE - body.len())]);
            if body.len() == MESSAGE {
                break;
            }
        }
        let message = format!("{status}: {}", values::quoted(&String::from_utf8_lossy(&body)));
        let endpoint = Arc::clone(&self.config.endpoint);
        match status {
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => Error::Busy { endpoint, message, retry_after },
            _ => Error::Refused { endpoint, command: self.command(), message },
        }
    }

    fn command(&self) -> String {
        format!("POST {}", without_login(&self.config.url))
    }

    fn no_connection(&self, cause: &str) -> Error {
        Error::Connect { endpoint: Arc::clone(&self.config.endpoint), cause: cause.into() }
    }

    fn fault(&self, fault: Fault) -> Error {
        match fault {
            Fault::Malformed { found, expected } => self.malformed(found, expected),
            Fault::TooLong(cause) => {
                let endpoint = Arc::clone(&self.config.endpoint);
                Error::TooLong { endpoint, command: self.command(), cause }
            }
        }
    }

    fn malformed(&self, found: String, expected: &'static str) -> Error {
        let endpoint = Arc::clone(&self.config.endpoint);
        Error::Malformed { endpoint, command: self.command(), found, expected }
    }
}

/// An error and its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// Decodes any bytes as the reply to a read of four keys, in pieces of this length.
pub(super) fn decode_any(bytes: &[u8], piece: usize, read: &Read) {
    let names = [Some("a".to_owned()), None, Some("b".to_owned()), None];
    let mut decoder = Decoder::new(read, &names, Arc::<Budget>::default().reply());
    for piece in bytes.chunks(piece) {
        if decoder.feed(piece).is_err() {
            return;
        }
    }
    if let Ok(decoded) = decoder.finish() {
        decoded.data.assert_rows(4);
    }
}

/// The pause that a server requests, in seconds.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// Lets other tasks have their turn.
async fn give_way() {
    let mut waited = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut waited, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

impl Ask {
    /// The whole keys; `None` where a row has none.
    fn names(&self, keys: &Keys) -> Vec<Option<String>> {
        match keys {
            Keys::Ids(ids) => {
                ids.iter().map(|id| Some(format!("{}{id}{}", self.prefix, self.suffix))).collect()
            }
            Keys::Whole(keys) => keys.iter().map(|key| key.as_deref().map(str::to_owned)).collect(),
        }
    }

    fn body(&self, names: &[Option<String>]) -> String {
        let keys: Vec<&String> = names.iter().flatten().collect();
        let body = match &self.read {
            Read::Fields(fields) => {
                let fields: Vec<&str> = fields.iter().map(|field| &*field.name).collect();
                serde_json::json!({ "read": "fields", "keys": keys, "fields": fields })
            }
            Read::List { limit } => serde_json::json!({ "read": "list", "keys": keys, "limit": limit }),
            Read::Scored { limit } => serde_json::json!({ "read": "scored", "keys": keys, "limit": limit }),
        };
        body.to_string()
    }
}
