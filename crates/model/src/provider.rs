//! Models and providers, as a configuration names them.

use std::fmt;
use std::time::Duration;

use anabranch_value::Map;

use crate::error::Error;

/// A model under the alias that columns use.
#[derive(Clone, Debug)]
pub struct ModelConfig {
    pub alias: String,
    /// The name that the provider has for it.
    pub model: String,
    /// The name of a [`Provider`].
    pub provider: String,
    pub params: Params,
    pub skip_health_check: bool,
}

/// The inference parameters of a model.
#[derive(Clone, Debug)]
pub struct Params {
    pub kind: Generation,
    /// The most concurrent calls.
    pub max_parallel_requests: u32,
    /// The timeout of one call.
    pub timeout: Duration,
    /// Fields added to the body of each request.
    pub extra_body: Map,
}

/// The kind of output of a model, with its parameters.
#[derive(Clone, Debug)]
pub enum Generation {
    Chat(ChatParams),
    Embedding(EmbeddingParams),
}

/// The parameters of a chat model.
#[derive(Clone, Debug, Default)]
pub struct ChatParams {
    pub temperature: Option<Number>,
    pub top_p: Option<Number>,
    pub max_tokens: Option<u32>,
}

/// A number, or a distribution that each request draws one from.
#[derive(Clone, Debug, PartialEq)]
pub enum Number {
    Fixed(f64),
    Uniform { low: f64, high: f64 },
    Choice { values: Vec<f64>, weights: Option<Vec<f64>> },
}

/// The parameters of an embedding model.
#[derive(Clone, Debug, Default)]
pub struct EmbeddingParams {
    pub encoding_format: EncodingFormat,
    pub dimensions: Option<u32>,
}

/// The encoding of vectors in a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EncodingFormat {
    #[default]
    Float,
    Base64,
}

impl EncodingFormat {
    /// The word in a request's body.
    pub fn as_str(self) -> &'static str {
        match self {
            EncodingFormat::Float => "float",
            EncodingFormat::Base64 => "base64",
        }
    }
}

/// A server that has models.
#[derive(Clone)]
pub struct Provider {
    pub name: String,
    /// The base URL, for instance `https://api.openai.com/v1`.
    pub endpoint: String,
    pub kind: ProviderKind,
    pub api_key: Option<ApiKey>,
    pub extra_body: Map,
    pub extra_headers: Vec<(String, String)>,
}

/// Without the values of headers, which may be secrets.
impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&str> = self.extra_headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Provider")
            .field("name", &self.name)
            .field("endpoint", &self.endpoint)
            .field("kind", &self.kind)
            .field("api_key", &self.api_key)
            .field("extra_body", &self.extra_body)
            .field("extra_headers", &headers)
            .finish()
    }
}

/// The protocol of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderKind {
    OpenAi,
    Anthropic,
}

/// A secret. It is shown nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// A key, or the name of the environment variable that holds it.
    pub fn new(key: impl Into<String>) -> ApiKey {
        ApiKey(key.into())
    }

    /// The key to send: the value of the environment variable of that name if `lookup` knows it, else the text itself. A
    /// text that can only be a variable's name is an error then.
    pub fn resolve(
        &self,
        provider: &str,
        lookup: impl FnOnce(&str) -> Option<String>,
    ) -> Result<ApiKey, Error> {
        match lookup(&self.0) {
            Some(key) if key.trim().is_empty() => Err(Error::Setup(format!(
                "the environment variable `{}` is empty: it should hold the API key of provider `{provider}`",
                self.0
            ))),
            Some(key) => Ok(ApiKey(key.trim().to_owned())),
            None if is_variable_name(&self.0) => Err(Error::Setup(format!(
                "the environment variable `{}` is not set: it should hold the API key of provider `{provider}`",
                self.0
            ))),
            None => Ok(self.clone()),
        }
    }

    /// The secret itself, for a request's header.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(..)")
    }
}

/// Whether a text looks like `OPENAI_API_KEY`.
fn is_variable_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_uppercase() || c == '_')
        && text.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}
