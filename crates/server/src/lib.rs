//! Recipes over gRPC and HTTP.
//!
//! No logic of its own: calls are read from the wire, handed to the executor, and its answers are written back.
//! [`Client`] is the other end of our own service.

pub mod proto;
mod wire;
mod client;

pub use client::{Client, Error as ClientError, Exporting, Got, Hearing, Many, Piece, Resolved};
pub use tonic::Code;
pub use wire::Target;
