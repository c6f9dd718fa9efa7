//! Plans and recipes over gRPC and HTTP, dataset jobs and runs over HTTP.
//!
//! No logic of its own: calls are read from the wire, handed to the executor, and its answers are written back.
//! [`Service`] is that, as one router; [`Client`] is the other end of our own gRPC service. Every request passes two
//! layers: `observe` (ids, metrics, log lines, headers) and `guard` (host, site, body type, token, load). The table of
//! routes in `api` says what each route needs.

pub mod proto;
mod wire;
mod settings;
mod failure;
mod codec;
mod deadline;
mod access;
mod api;
mod load;
mod guard;
mod metrics;
mod observe;
mod tls;
mod budget;
mod connections;
mod incoming;
mod pieces;
mod deriva;
mod recipes;
mod plans;
mod health;
pub mod runs;
mod datasets;
mod http;
pub mod console;
mod service;
mod serve;
mod local;
mod client;
pub mod decoders;
#[cfg(test)]
mod allocated;

pub use access::{Access, Error as TokenError, NotAScope, Scope, Token, TokenFiles, TokenRecord};
pub use client::{
    Client, Error as ClientError, Exporting, Got, Hearing, Many, Piece, Resolved, ServerAddress,
};
pub use datasets::{DatasetSettings, Datasets};
pub use guard::{AllowedHost, NotAHost};
pub use metrics::MetricsPart;
pub use observe::{RequestId, TraceContext};
pub use plans::{CanarySettings, PlanSettings, Plans};
pub use serve::Served;
pub use service::{Load, Service};
pub use settings::Settings;
pub use tls::{Error as TlsError, Tls};
pub use tonic::Code;
pub use wire::Target;
