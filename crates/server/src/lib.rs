//! Plans and recipes over gRPC and HTTP, dataset jobs and runs over HTTP.
//!
//! The crate has no logic of its own. It decodes calls, passes them to the executor, and encodes the responses.
//! [`Service`] does that as one router; [`Client`] is the client of our own gRPC service. Every request passes two
//! layers: `observe` (ids, metrics, log lines, headers) and `guard` (host, site, body type, token, load). The table of
//! routes in `api` has the needs of each route.

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
mod blocking;
mod connections;
mod heads;
mod incoming;
mod outgoing;
mod pieces;
mod deriva;
mod recipes;
mod plans;
mod health;
pub mod runs;
mod datasets;
mod http;
pub mod console;
mod responder;
mod service;
mod serve;
mod local;
mod client;
pub mod decoders;
#[cfg(test)]
mod allocated;
#[cfg(test)]
mod listeners_tests;

pub use access::{Access, Error as TokenError, NotAScope, Scope, Token, TokenFiles, TokenRecord};
pub use client::{
    ApiRequest, Client, Error as ClientError, NoticeStream, ReceivedArchive, ReceivedValue, ReceivedValues,
    ServerAddress, ServerEvent, ServerEvents, ValuePiece,
};
pub use datasets::{DatasetSettings, Datasets};
pub use guard::{AllowedHost, NotAHost};
pub use metrics::MetricsPart;
pub use observe::{RequestId, TraceContext};
pub use plans::{CanarySettings, PlanSettings, Plans};
pub use serve::{Listeners, ShutdownReport};
pub use service::{Load, Service};
pub use settings::Settings;
pub use tls::{Error as TlsError, Tls};
pub use tonic::Code;
pub use wire::{ResolvedTarget, Target};
