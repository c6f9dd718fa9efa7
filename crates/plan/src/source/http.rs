//! JSON over HTTP: a trip is one `POST` of all keys.
//!
//! Asked `{"read":"fields","keys":["user:1"],"fields":["country"]}` a server answers
//! `{"rows":[{"country":"US"}]}`, with `null` for a key that is not there; asked
//! `{"read":"list","keys":["follow:1"],"limit":10}` it answers `{"lists":[[1,2,"3"]]}`, and asked for `"scored"`
//! `{"lists":[[{"id":7,"score":0.5}]]}`. Ids are integers or decimal strings, exact to 64 bits.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::clock::Clock;
use futures_util::future::{Either, select};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::{Request, StatusCode, header};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::values::{self, Json, Values};
use super::{Bound, Data, Error, Fetch, Field, Hedge, Keys, Lists, Pattern, Read, Reply, Source};
use crate::registry::Endpoint;

/// How to reach an HTTP server, and what may be asked of it.
#[derive(Clone, Debug)]
pub struct HttpConfig {
    /// What errors call it.
    pub endpoint: Arc<str>,
    /// Where trips go, for instance `http://127.0.0.1:8080/read`.
    pub url: String,
    /// The longest to wait for a connection.
    pub connect_timeout: Duration,
    /// The longest to wait for a trip's reply.
    pub response_timeout: Duration,
    /// Trips in flight at a time.
    pub max_inflight: u32,
    /// The longest reply in bytes.
    pub max_bytes: usize,
    /// When a late read is sent a second time, if that is done.
    pub hedge: Option<Hedge>,
}

impl HttpConfig {
    /// This URL, and everything else as usual.
    pub fn new(url: impl Into<String>) -> HttpConfig {
        let url = url.into();
        HttpConfig {
            endpoint: url.as_str().into(),
            url,
            connect_timeout: Duration::from_secs(1),
            response_timeout: Duration::from_secs(1),
            max_inflight: 64,
            max_bytes: 64 << 20,
            hedge: None,
        }
    }

    /// What the registry says about an endpoint.
    pub fn from_endpoint(endpoint: &Endpoint) -> HttpConfig {
        let config = HttpConfig::new(format!("http://{}:{}/read", endpoint.host, endpoint.port));
        HttpConfig {
            endpoint: endpoint.id.as_str().into(),
            connect_timeout: endpoint.connect_timeout.unwrap_or(config.connect_timeout),
            response_timeout: endpoint.request_timeout.unwrap_or(config.response_timeout),
            max_inflight: endpoint.max_inflight.unwrap_or(config.max_inflight),
            ..config
        }
    }
}

/// A source of what an HTTP server answers. Connections are kept and shared by all requests.
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
    fn fetch(&self, keys: Keys) -> Fetch {
        if let Some(reply) = self.ask.read.without_trip(&keys) {
            return Fetch::Ready(Ok(reply));
        }
        let (server, ask) = (Arc::clone(&self.server), Arc::clone(&self.ask));
        Fetch::Later(Box::pin(async move {
            let names = ask.names(&keys);
            let body = server.post(ask.body(&names)).await?;
            let data = ask.decode(&server, &names, &body)?;
            Ok(Reply::whole(data, 1, keys.commands()))
        }))
    }
}

impl Server {
    /// Posts `body`; what came back, all of it.
    async fn post(&self, body: String) -> Result<Bytes, Error> {
        let HttpConfig { endpoint, url, response_timeout: after, .. } = &self.config;
        let request = Request::post(url)
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(body)))
            .map_err(|e| self.no_connection(&format!("`{url}` is no URL: {e}")))?;
        let too_late = self.clock.sleep_until(self.clock.now() + *after);
        match select(Box::pin(self.exchange(request)), too_late).await {
            Either::Left((answer, _)) => answer,
            Either::Right(_) => Err(Error::Timeout { endpoint: Arc::clone(endpoint), after: *after }),
        }
    }

    async fn exchange(&self, request: Request<Full<Bytes>>) -> Result<Bytes, Error> {
        let response = self.client.request(request).await.map_err(|e| self.no_connection(&chain(&e)))?;
        let status = response.status();
        let body = Limited::new(response.into_body(), self.config.max_bytes).collect().await;
        let body = body.map_err(|e| {
            if e.is::<http_body_util::LengthLimitError>() {
                let found = format!("more than {} bytes", self.config.max_bytes);
                self.malformed(found, "a shorter reply")
            } else {
                self.no_connection(&format!("the reply broke off: {e}"))
            }
        })?;
        let body = body.to_bytes();
        if status == StatusCode::OK {
            return Ok(body);
        }
        let said = values::quoted(&String::from_utf8_lossy(&body));
        match status {
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => Err(self.no_connection(&format!("{status}: {said}"))),
            _ => Err(Error::Refused {
                endpoint: Arc::clone(&self.config.endpoint),
                command: self.command(),
                message: format!("{status}: {said}"),
            }),
        }
    }

    fn command(&self) -> String {
        format!("POST {}", self.config.url)
    }

    fn no_connection(&self, cause: &str) -> Error {
        Error::Connect { endpoint: Arc::clone(&self.config.endpoint), cause: cause.into() }
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

#[derive(Deserialize)]
struct RowsReply<'a> {
    #[serde(borrow)]
    rows: Vec<Option<HashMap<String, &'a RawValue>>>,
}

#[derive(Deserialize)]
struct ListsReply<'a> {
    #[serde(borrow)]
    lists: Vec<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct ScoredReply<'a> {
    #[serde(borrow)]
    lists: Vec<Vec<ScoredItem<'a>>>,
}

#[derive(Deserialize)]
struct ScoredItem<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    #[serde(borrow)]
    score: &'a RawValue,
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

    fn decode(&self, server: &Server, names: &[Option<String>], body: &[u8]) -> Result<Data, Error> {
        let wrong = |expected| move |e: serde_json::Error| server.malformed(e.to_string(), expected);
        match &self.read {
            Read::Fields(fields) => {
                let reply: RowsReply<'_> =
                    serde_json::from_slice(body).map_err(wrong(r#"{"rows": [{..} or null]}"#))?;
                columns(server, fields, names, &reply.rows).map(Data::Columns)
            }
            Read::List { limit } => {
                let reply: ListsReply<'_> =
                    serde_json::from_slice(body).map_err(wrong(r#"{"lists": [[id]]}"#))?;
                let lists = Ids { server, names, limit: *limit };
                lists.read(&reply.lists, |item| (*item, None)).map(Data::Lists)
            }
            Read::Scored { limit } => {
                let reply: ScoredReply<'_> =
                    serde_json::from_slice(body).map_err(wrong(r#"{"lists": [[{"id", "score"}]]}"#))?;
                let lists = Ids { server, names, limit: *limit };
                lists.read(&reply.lists, |item| (item.id, Some(item.score))).map(|lists| {
                    let scores = lists.scores.unwrap_or_default();
                    Data::Lists(Lists { scores: Some(scores), ..lists })
                })
            }
        }
    }
}

fn columns(
    server: &Server,
    fields: &[Field],
    names: &[Option<String>],
    rows: &[Option<HashMap<String, &RawValue>>],
) -> Result<Vec<anabranch_rows::Column>, Error> {
    let mut columns: Vec<Values> = fields.iter().map(|field| Values::new(field.kind, names.len())).collect();
    let mut rows = server.one_a_key(names, rows)?;
    for name in names {
        let row = name.as_ref().and_then(|_| rows.next()?.as_ref());
        for (field, column) in fields.iter().zip(&mut columns) {
            let value = row.and_then(|row| row.get(&*field.name)).map(|raw| (raw, values::json(raw.get())));
            let read = match &value {
                None | Some((_, Json::Null)) => {
                    column.push_null();
                    true
                }
                Some((_, Json::Text(text))) => column.push(text),
                Some((_, Json::Nested)) => false,
            };
            if let (false, Some((raw, _)), Some(name)) = (read, value, name) {
                let found = format!("{} as `{}` of `{name}`", values::quoted(raw.get()), field.name);
                return Err(server.malformed(found, values::expected(field.kind)));
            }
        }
    }
    Ok(columns.into_iter().map(Values::finish).collect())
}

impl Server {
    /// The replies, of which there must be one a key.
    fn one_a_key<'a, T>(
        &self,
        names: &[Option<String>],
        replies: &'a [T],
    ) -> Result<std::slice::Iter<'a, T>, Error> {
        let keys = names.iter().flatten().count();
        if replies.len() == keys {
            return Ok(replies.iter());
        }
        Err(self.malformed(format!("{} for {keys} keys", replies.len()), "one a key"))
    }
}

/// Reads lists of ids.
struct Ids<'a> {
    server: &'a Server,
    names: &'a [Option<String>],
    limit: u32,
}

impl Ids<'_> {
    fn read<'r, T>(
        &self,
        lists: &'r [Vec<T>],
        parts: impl Fn(&'r T) -> (&'r RawValue, Option<&'r RawValue>),
    ) -> Result<Lists, Error> {
        let mut replies = self.server.one_a_key(self.names, lists)?;
        let mut read = Lists { lens: Vec::with_capacity(self.names.len()), ..Lists::default() };
        for name in self.names {
            let Some((name, items)) = name.as_ref().and_then(|name| Some((name, replies.next()?))) else {
                read.lens.push(0);
                continue;
            };
            if items.len() > self.limit as usize {
                let found = format!("{} items for `{name}`", items.len());
                return Err(self.server.malformed(found, "as many as were asked for, at most"));
            }
            read.lens.push(items.len() as u32);
            for (id, score) in items.iter().map(&parts) {
                read.ids.push(self.number(name, id, values::int, values::AN_ID)?);
                if let Some(score) = score {
                    let score = self.number(name, score, values::float, "a finite score")?;
                    read.scores.get_or_insert_default().push(score);
                }
            }
        }
        Ok(read)
    }

    fn number<N>(
        &self,
        name: &str,
        raw: &RawValue,
        read: impl Fn(&str) -> Option<N>,
        expected: &'static str,
    ) -> Result<N, Error> {
        let number = match values::json(raw.get()) {
            Json::Text(text) => read(&text),
            _ => None,
        };
        number.ok_or_else(|| {
            let found = format!("the item {} for `{name}`", values::quoted(raw.get()));
            self.server.malformed(found, expected)
        })
    }
}
