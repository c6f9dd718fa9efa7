//! Models and providers, as a configuration names them.

use std::time::Duration;

use anabranch_value::{Map, Value};

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
    /// Calls in flight at the same time.
    pub max_parallel_requests: u32,
    /// The longest time for one call.
    pub timeout: Duration,
    /// Fields added to the body of each request.
    pub extra_body: Map,
}

/// What a model generates, with the parameters of that kind.
#[derive(Clone, Debug)]
pub enum Generation {
    Chat(ChatParams),
    Embedding(EmbeddingParams),
}

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

#[derive(Clone, Debug, Default)]
pub struct EmbeddingParams {
    pub encoding_format: EncodingFormat,
    pub dimensions: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EncodingFormat {
    #[default]
    Float,
    Base64,
}

/// A server that has models.
#[derive(Clone, Debug)]
pub struct Provider {
    pub name: String,
    /// The base URL, for instance `https://api.openai.com/v1`.
    pub endpoint: String,
    pub kind: ProviderKind,
    pub api_key: Option<ApiKey>,
    pub extra_body: Map,
    pub extra_headers: Vec<(String, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderKind {
    OpenAi,
    Anthropic,
}

/// A secret. It is shown nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    pub fn new(key: impl Into<String>) -> ApiKey {
        ApiKey(key.into())
    }

    /// The secret itself, for a request's header.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ApiKey(..)")
    }
}

#[allow(dead_code)]
type Unused = Value;
