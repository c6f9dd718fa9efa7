//! Recipes over gRPC and HTTP, dataset jobs and runs over HTTP.
//!
//! Calls of recipes are read from the wire, handed to the executor, and its answers are written back.
//! [`Service`] is that, as one router; [`Client`] is the other end of our own gRPC service.

pub mod proto;
mod wire;
mod settings;
mod failure;
mod deadline;
mod access;
mod api;
mod guard;
mod budget;
mod connections;
mod incoming;
mod pieces;
mod deriva;
mod recipes;
mod health;
pub mod runs;
mod datasets;
mod http;
mod service;
mod serve;
mod local;
mod client;
#[cfg(test)]
mod allocated;

pub use access::{Access, Error as TokenError, NotAScope, Scope, Token, TokenFiles, TokenRecord};
pub use client::{Client, Error as ClientError, Exporting, Got, Hearing, Many, Piece, Resolved};
pub use datasets::{DatasetSettings, Datasets};
pub use guard::{AllowedHost, NotAHost};
pub use serve::Served;
pub use service::{Load, Service};
pub use settings::Settings;
pub use tonic::Code;
pub use wire::Target;
