//! Language models: chat and embeddings over HTTP, replies checked and repaired, an offline demo model.
//!
//! A [`Model`] answers one request. [`connect`] creates the one that a configuration names. [`Demo`] works without a
//! network. [`conversation::converse`] repeats a request until a reply fits: it sends corrections, then starts a new
//! conversation. Transport errors are returned unchanged; their [`Error::class`] and `severity` tell a scheduler how to
//! handle them.
//!
//! ```
//! use anabranch_model::{ChatRequest, Demo, Message, Model, Schema};
//! use anabranch_value::Value;
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let schema = Value::from_json(r#"{"type": "object", "properties": {"age": {"type": "integer"}}}"#)?;
//! let request = ChatRequest::new([Message::user("Invent a person.")]).with_format("person", schema.clone());
//! let reply = Demo::new().chat(request).await?;
//! let person = anabranch_model::reply::json(&reply.text)?;
//! assert!(Schema::new(&schema)?.fit(person).is_ok());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```

mod provider;
mod number;
mod request;
mod error;
mod date;
mod rates;
mod http;
mod remote;
pub mod reply;
mod schema;
pub mod judge;
pub mod conversation;
mod demo;

pub use demo::{Demo, Simulation};
pub use error::Error;
pub use http::{HttpClient, HttpSettings, JsonReply, ProxySettings};
pub use provider::{
    ApiKey, ChatParams, EmbeddingParams, EncodingFormat, Generation, ModelConfig, Number, Params, Provider,
    ProviderKind,
};
pub use rates::{RateWindow, Rates};
pub use remote::connect;
pub use request::{
    ChatReply, ChatRequest, EmbedReply, EmbedRequest, Finish, Format, Identity, Message, Model, Role,
    Sampling, Usage,
};
pub use schema::{FitProblem, Schema, SchemaError};
