//! Requests to a model, and its replies.

use std::sync::Arc;

use anabranch_engine::workload::BoxFuture;
use anabranch_value::{Map, Value};

use crate::error::Error;
use crate::rates::Rates;

/// A language model.
pub trait Model: Send + Sync + 'static {
    /// The provider and the model, for journals and messages.
    fn identity(&self) -> &Identity;

    /// Everything besides the request and the names in [`Identity`] that decides about replies. It contains no header,
    /// no key and no address of a server.
    fn parameters(&self) -> Map {
        Map::new()
    }

    /// Answers a conversation.
    fn chat(&self, request: ChatRequest) -> BoxFuture<ChatReply, Error>;

    /// Embeds texts: one vector per text, in order.
    fn embed(&self, request: EmbedRequest) -> BoxFuture<EmbedReply, Error>;
}

/// The provider's and the model's name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    pub provider: Arc<str>,
    pub model: Arc<str>,
}

/// A conversation to continue. Clones share all text.
#[derive(Clone, Debug)]
pub struct ChatRequest {
    pub messages: Arc<[Message]>,
    pub sampling: Sampling,
    /// The format of the reply, for models that support a JSON schema.
    pub format: Option<Format>,
    /// Distinguishes equal requests of different rows. It is not sent to servers.
    pub sample: u64,
    /// Tells apart further tries of the same row; 0 is the first. It is not sent to servers.
    pub attempt: u32,
    /// Fields for the body of this request; they win over those of the model's configuration.
    pub extra_body: Option<Arc<Map>>,
}

impl ChatRequest {
    /// A request with these messages and nothing else.
    pub fn new(messages: impl IntoIterator<Item = Message>) -> ChatRequest {
        ChatRequest {
            messages: messages.into_iter().collect(),
            sampling: Sampling::default(),
            format: None,
            sample: 0,
            attempt: 0,
            extra_body: None,
        }
    }

    /// The same request for a reply that follows a JSON schema.
    pub fn with_format(self, name: impl Into<Arc<str>>, schema: Value) -> ChatRequest {
        ChatRequest { format: Some(Format { name: name.into(), schema }), ..self }
    }

    /// The same request with other messages.
    pub fn with_messages(&self, messages: Vec<Message>) -> ChatRequest {
        ChatRequest { messages: messages.into(), ..self.clone() }
    }
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub role: Role,
    pub text: Arc<str>,
}

impl Message {
    /// A message of the system.
    pub fn system(text: impl Into<Arc<str>>) -> Message {
        Message { role: Role::System, text: text.into() }
    }

    /// A message of the user.
    pub fn user(text: impl Into<Arc<str>>) -> Message {
        Message { role: Role::User, text: text.into() }
    }

    /// A message of the model.
    pub fn assistant(text: impl Into<Arc<str>>) -> Message {
        Message { role: Role::Assistant, text: text.into() }
    }
}

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    System,
    User,
    Assistant,
}

impl Role {
    /// The word in a request's body and in traces.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
        }
    }
}

/// Sampling parameters as plain numbers; `None` leaves one to the server.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sampling {
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub max_tokens: Option<u32>,
}

/// The JSON schema of a reply, with a name that servers show.
#[derive(Clone, Debug, PartialEq)]
pub struct Format {
    pub name: Arc<str>,
    pub schema: Value,
}

/// A model's reply.
#[derive(Clone, Debug)]
pub struct ChatReply {
    pub text: Arc<str>,
    /// The model's reasoning, if the server returns it.
    pub reasoning: Option<Arc<str>>,
    pub finish: Finish,
    pub usage: Usage,
    /// The size of the reply's body.
    pub bytes: usize,
    /// Whether the demo model invented the reply.
    pub demo: bool,
    /// The rate limits that the server reported with the reply.
    pub rates: Option<Box<Rates>>,
}

/// The reason why a model stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finish {
    /// The reply is complete.
    Stop,
    /// The reply is cut off at `max_tokens` or at the end of the context.
    Length,
    /// Another reason, in the provider's word.
    Other(Arc<str>),
}

/// Tokens that were spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// The input tokens from the provider's cache, if it reports them.
    pub cached_tokens: Option<u64>,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Usage) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        if let Some(cached) = other.cached_tokens {
            self.cached_tokens = Some(self.cached_tokens.unwrap_or(0).saturating_add(cached));
        }
    }
}

/// Texts to embed. Clones share them.
#[derive(Clone, Debug)]
pub struct EmbedRequest {
    pub texts: Arc<[Arc<str>]>,
    /// Distinguishes equal requests of different rows. It is not sent to servers.
    pub sample: u64,
}

/// One vector per text.
#[derive(Clone, Debug)]
pub struct EmbedReply {
    pub vectors: Vec<Vec<f64>>,
    pub usage: Usage,
    /// The size of the reply's body.
    pub bytes: usize,
    /// The vectors are invented by the demo model.
    pub demo: bool,
    /// The rate limits that the server reported with the reply.
    pub rates: Option<Box<Rates>>,
}
