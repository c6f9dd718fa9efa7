//! What goes over the wire, as the .proto files have it.

#[allow(
    unused_qualifications,
    clippy::all,
    clippy::redundant_clone,
    clippy::semicolon_if_nothing_returned,
    clippy::wildcard_imports,
    reason = "generated; the .proto files have the comments"
)]
mod generated {
    /// The messages and services of Deriva.
    pub mod deriva {
        include!(concat!(env!("OUT_DIR"), "/deriva.rs"));
    }
    /// The messages and services of our own recipe API.
    pub mod recipes {
        include!(concat!(env!("OUT_DIR"), "/anabranch.recipe.v1.rs"));
    }
}

pub use generated::{deriva, recipes};

/// The .proto files, compiled: what reflection answers from.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
