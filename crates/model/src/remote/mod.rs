//! Models on servers: OpenAI-compatible ones and Anthropic's.

mod anthropic;
mod openai;
mod plain_reply;
mod retry_after;
mod status;

pub(crate) use retry_after::retry_after;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use anabranch_engine::workload::BoxFuture;
use anabranch_value::{Map, Value};
use hyper::Uri;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};

use crate::error::{Error, shorten};
use crate::http::{Answer, Call, HttpClient, JSON};
use crate::provider::{ApiKey, EmbeddingParams, Generation, ModelConfig, Provider, ProviderKind};
use crate::rates::Rates;
use crate::request::{ChatReply, ChatRequest, EmbedReply, EmbedRequest, Identity, Model};

/// The model that a configuration names, on its provider's server. `lookup` finds environment variables. No connection is
/// made before the first request.
pub fn connect(
    provider: &Provider,
    config: &ModelConfig,
    client: HttpClient,
    lookup: impl Fn(&str) -> Option<String>,
) -> Result<Arc<dyn Model>, Error> {
    let key = provider.api_key.as_ref().map(|key| key.resolve(&provider.name, lookup)).transpose()?;
    // Some servers want a version in the query, which stays behind the path.
    let (base, query) = provider.endpoint.split_once('?').unwrap_or((&provider.endpoint, ""));
    let base = base.trim_end_matches('/');
    let uri = |path: &str| {
        let mark = if query.is_empty() { "" } else { "?" };
        let text = format!("{base}{path}{mark}{query}");
        let uri = text.parse::<Uri>().ok().filter(|uri| {
            matches!(uri.scheme_str(), Some("http" | "https"))
                && uri.host().is_some_and(|host| !host.is_empty())
        });
        uri.ok_or_else(|| {
            let (name, endpoint) = (&provider.name, &provider.endpoint);
            let example = "it should be a URL such as `https://api.openai.com/v1`";
            Error::Setup(format!("the endpoint `{endpoint}` of provider `{name}` is not usable: {example}"))
        })
    };
    let (chat, embed) = match provider.kind {
        ProviderKind::OpenAi => (uri("/chat/completions")?, Some(uri("/embeddings")?)),
        ProviderKind::Anthropic if base.ends_with("/v1") => (uri("/messages")?, None),
        ProviderKind::Anthropic => (uri("/v1/messages")?, None),
    };
    let embedding = match &config.params.kind {
        Generation::Embedding(params) => params.clone(),
        Generation::Chat(_) => EmbeddingParams::default(),
    };
    let parameters = parameters(provider, config);
    let server = Server {
        identity: Identity { provider: provider.name.as_str().into(), model: config.model.as_str().into() },
        kind: provider.kind,
        endpoint: format!("{}/{}", provider.name, config.model).into(),
        client,
        chat,
        embed,
        headers: headers(provider, key.as_ref())?,
        secrets: secrets(provider, key.as_ref()),
        timeout: config.params.timeout,
        model_body: config.params.extra_body.clone(),
        provider_body: provider.extra_body.clone(),
        embedding,
        parameters,
        not_taken: AtomicU8::new(0),
    };
    Ok(Arc::new(Remote { server: Arc::new(server) }))
}

struct Remote {
    server: Arc<Server>,
}

/// One model on one server.
struct Server {
    identity: Identity,
    kind: ProviderKind,
    /// The name in messages.
    endpoint: Arc<str>,
    client: HttpClient,
    chat: Uri,
    embed: Option<Uri>,
    headers: HeaderMap,
    /// Texts that no message may contain.
    secrets: Vec<String>,
    timeout: Duration,
    model_body: Map,
    provider_body: Map,
    embedding: EmbeddingParams,
    parameters: Map,
    /// Parts of requests that this server was found not to take: see [`Leave`].
    not_taken: AtomicU8,
}

/// Fields that no extra body can set, because exactly one complete reply per request is read.
const NEVER_SENT: &[&str] = &["n", "stream"];

/// Parts of a request that are left out or renamed.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Leave(u8);

impl Leave {
    /// A native schema for the reply is left out.
    const SCHEMA: Leave = Leave(1);
    /// `max_tokens` is called `max_completion_tokens`.
    const MAX_TOKENS: Leave = Leave(2);

    fn has(self, part: Leave) -> bool {
        self.0 & part.0 != 0
    }

    fn and(self, part: Leave) -> Leave {
        Leave(self.0 | part.0)
    }
}

impl Model for Remote {
    fn identity(&self) -> &Identity {
        &self.server.identity
    }

    fn parameters(&self) -> Map {
        self.server.parameters.clone()
    }

    fn chat(&self, request: ChatRequest) -> BoxFuture<ChatReply, Error> {
        let server = Arc::clone(&self.server);
        Box::pin(async move { server.answer(&request).await })
    }

    fn embed(&self, request: EmbedRequest) -> BoxFuture<EmbedReply, Error> {
        let server = Arc::clone(&self.server);
        Box::pin(async move { server.vectors(&request).await })
    }
}

impl Server {
    /// Sends a request. If the server rejects an optional part of it, the request is sent without that part, and so are
    /// all later ones.
    async fn answer(&self, request: &ChatRequest) -> Result<ChatReply, Error> {
        let known = Leave(self.not_taken.load(Ordering::Relaxed));
        let mut leave = known;
        loop {
            let answer = self.post(self.chat.clone(), self.chat_body(request, leave)).await?;
            if !(200..300).contains(&answer.status) {
                match self.could_leave(request, &answer, leave) {
                    Some(part) => leave = leave.and(part),
                    None => return Err(self.failure(&answer)),
                }
                continue;
            }
            if leave != known {
                self.not_taken.fetch_or(leave.0, Ordering::Relaxed);
            }
            let bytes = answer.body.len();
            let reply = match self.kind {
                ProviderKind::OpenAi => openai::read_plain_chat(self, &answer.body)
                    .unwrap_or_else(|| openai::read_chat(self, &self.json(&answer)?, bytes)),
                ProviderKind::Anthropic => anthropic::read_chat(self, &self.json(&answer)?, bytes),
            };
            return reply.map(|reply| ChatReply { rates: rates(&answer.headers).map(Box::new), ..reply });
        }
    }

    async fn vectors(&self, request: &EmbedRequest) -> Result<EmbedReply, Error> {
        let Some(uri) = self.embed.clone() else {
            let what = "Anthropic has no embeddings; use an embedding model of another provider".to_owned();
            return Err(Error::Unsupported { endpoint: self.name(), what });
        };
        let body = self.finished_body(openai::embed_body(self, request), None);
        let answer = self.post(uri, body.to_json().into_bytes()).await?;
        if !(200..300).contains(&answer.status) {
            return Err(self.failure(&answer));
        }
        let reply = openai::read_vectors(self, &self.json(&answer)?, request.texts.len(), answer.body.len())?;
        Ok(EmbedReply { rates: rates(&answer.headers).map(Box::new), ..reply })
    }

    fn chat_body(&self, request: &ChatRequest, leave: Leave) -> Vec<u8> {
        let extra = [Some(&self.model_body), request.extra_body.as_deref(), Some(&self.provider_body)];
        let body = match self.kind {
            ProviderKind::OpenAi
                if extra.into_iter().flatten().all(|extra| extra.is_empty())
                    && (request.format.is_none() || leave.has(Leave::SCHEMA)) =>
            {
                return openai::plain_chat_body(self, request, leave);
            }
            ProviderKind::OpenAi => openai::chat_body(self, request, leave),
            ProviderKind::Anthropic => anthropic::chat_body(self, request, leave),
        };
        self.finished_body(body, request.extra_body.as_deref()).to_json().into_bytes()
    }

    /// The body with the extra fields: of the model, of the call, of the provider. Later ones win.
    fn finished_body(&self, mut body: Map, call: Option<&Map>) -> Value {
        let empty = Map::new();
        for extra in [&self.model_body, call.unwrap_or(&empty), &self.provider_body] {
            for (name, value) in extra {
                body.insert(Arc::clone(name), value.clone());
            }
        }
        for field in NEVER_SENT {
            body.shift_remove(*field);
        }
        body.into()
    }

    /// The part that a refused request can be sent without.
    fn could_leave(&self, request: &ChatRequest, answer: &Answer, left: Leave) -> Option<Leave> {
        if !matches!(answer.status, 400 | 422) {
            return None;
        }
        let said = String::from_utf8_lossy(&answer.body).to_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| said.contains(word));
        let schema_words: &[&str] = match self.kind {
            ProviderKind::OpenAi => &["response_format", "json_schema", "structured output", "guided_json"],
            ProviderKind::Anthropic => &["tool_choice", "tools", "input_schema"],
        };
        const UNKNOWN: &[&str] =
            &["unknown field", "unrecognized", "extra_forbidden", "extra fields", "extra inputs"];
        if self.kind == ProviderKind::OpenAi
            && request.sampling.max_tokens.is_some()
            && !left.has(Leave::MAX_TOKENS)
            && says(&["max_completion_tokens"])
        {
            return Some(Leave::MAX_TOKENS);
        }
        let schema_sent = request.format.is_some() && !left.has(Leave::SCHEMA);
        (schema_sent && (says(schema_words) || says(UNKNOWN))).then_some(Leave::SCHEMA)
    }

    async fn post(&self, uri: Uri, body: Vec<u8>) -> Result<Answer, Error> {
        let call =
            Call { endpoint: self.name(), uri, headers: self.headers.clone(), body, timeout: self.timeout };
        self.client.send(call).await
    }

    /// The body of a good answer. Some servers answer 200 with an error in the body.
    fn json(&self, answer: &Answer) -> Result<Value, Error> {
        let text = std::str::from_utf8(&answer.body).map_err(|_| self.malformed("it is not UTF-8"))?;
        let value = Value::from_json(text)
            .map_err(|error| self.malformed(format!("{error}, in `{}`", self.clean(text))))?;
        match value.get("error") {
            None | Some(Value::Null) => Ok(value),
            Some(_) => Err(self.failure(answer)),
        }
    }

    fn failure(&self, answer: &Answer) -> Error {
        status::failure(self.name(), answer, |text| self.clean(text))
    }

    fn malformed(&self, found: impl Into<String>) -> Error {
        Error::Malformed { endpoint: self.name(), found: found.into() }
    }

    fn name(&self) -> Arc<str> {
        Arc::clone(&self.endpoint)
    }

    /// A server's text for a message: short, and without the secrets that it may repeat.
    fn clean(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.secrets {
            text = text.replace(secret, "***");
        }
        shorten(&text)
    }
}

fn rates(headers: &HeaderMap) -> Option<Rates> {
    Rates::read(|name| headers.get(name)?.to_str().ok())
}

/// See [`Model::parameters`]. The bodies stay apart, because those of a call win over one and lose to the other.
fn parameters(provider: &Provider, config: &ModelConfig) -> Map {
    let sent = |body: &Map, winner: &Map| -> Map {
        let fields =
            body.iter().filter(|(name, _)| !NEVER_SENT.contains(&&***name) && !winner.contains_key(&***name));
        fields.map(|(name, value)| (Arc::clone(name), value.clone())).collect()
    };
    let model_body = sent(&config.params.extra_body, &provider.extra_body);
    let provider_body = sent(&provider.extra_body, &Map::new());
    let mut parameters = Map::new();
    for (name, body) in [("model_body", model_body), ("provider_body", provider_body)] {
        if !body.is_empty() {
            parameters.insert(name.into(), body.into());
        }
    }
    if let Generation::Embedding(params) = &config.params.kind {
        parameters.insert("encoding_format".into(), params.encoding_format.as_str().into());
        if let Some(dimensions) = params.dimensions {
            parameters.insert("dimensions".into(), i64::from(dimensions).into());
        }
    }
    parameters
}

fn headers(provider: &Provider, key: Option<&ApiKey>) -> Result<HeaderMap, Error> {
    let mut headers = HeaderMap::new();
    let name = &provider.name;
    if let Some(key) = key {
        let (header, value) = match provider.kind {
            ProviderKind::OpenAi => ("authorization", format!("Bearer {}", key.expose())),
            ProviderKind::Anthropic => ("x-api-key", key.expose().to_owned()),
        };
        let mut value = HeaderValue::from_str(&value).map_err(|_| {
            Error::Setup(format!("the API key of provider `{name}` has characters that no header may have"))
        })?;
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    if provider.kind == ProviderKind::Anthropic {
        headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
    }
    headers.insert("user-agent", HeaderValue::from_static(concat!("anabranch/", env!("CARGO_PKG_VERSION"))));
    for (header, value) in &provider.extra_headers {
        let wrong =
            |what| Error::Setup(format!("the header `{header}` of provider `{name}` has a wrong {what}"));
        let header_name = HeaderName::from_bytes(header.as_bytes()).map_err(|_| wrong("name"))?;
        let mut value = HeaderValue::from_str(value).map_err(|_| wrong("value"))?;
        value.set_sensitive(true);
        headers.insert(header_name, value);
    }
    // This header comes last, because bodies are JSON regardless of the configuration.
    let (content_type, json) = JSON;
    headers.insert(content_type, json);
    Ok(headers)
}

/// The key and the values of headers that are long enough to be secrets.
fn secrets(provider: &Provider, key: Option<&ApiKey>) -> Vec<String> {
    let key = key.map(|key| key.expose().to_owned()).filter(|key| key.len() >= 4);
    let headers = provider.extra_headers.iter().map(|(_, value)| value.clone());
    key.into_iter().chain(headers.filter(|value| value.len() >= 8)).collect()
}
