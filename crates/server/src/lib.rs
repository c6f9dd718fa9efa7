//! Recipes over gRPC and HTTP.
//!
//! No logic of its own: calls are read from the wire, handed to the executor, and its answers are written back.
//! [`Service`] is that, as one router; [`Client`] is the other end of our own gRPC service.

pub mod proto;
mod wire;
mod settings;
mod failure;
mod deadline;
mod guard;
mod budget;
mod connections;
mod incoming;
mod pieces;
mod deriva;
mod recipes;
mod health;
mod http;
mod service;
mod serve;
mod local;
mod client;
pub mod decoders;
#[cfg(test)]
mod allocated;

pub use client::{Client, Error as ClientError, Exporting, Got, Hearing, Many, Piece, Resolved};
pub use guard::{AllowedHost, NotAHost};
pub use serve::Served;
pub use service::{Load, Service};
pub use settings::Settings;
pub use tonic::Code;
pub use wire::Target;
