//! Plans and recipes over gRPC and HTTP.
//!
//! No logic of its own: calls are read from the wire, handed to the executor, and its answers are written back.
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
mod plans;
mod health;
pub mod runs;
mod http;
pub mod console;
mod service;
mod serve;
mod local;
mod client;
#[cfg(test)]
mod allocated;

pub use access::{Access, Error as TokenError, NotAScope, Scope, Token, TokenFiles, TokenRecord};
pub use client::{Client, Error as ClientError, Exporting, Got, Hearing, Many, Piece, Resolved};
pub use guard::{AllowedHost, NotAHost};
pub use plans::{CanarySettings, PlanSettings, Plans};
pub use serve::Served;
pub use service::{Load, Service};
pub use settings::Settings;
pub use tonic::Code;
pub use wire::Target;
