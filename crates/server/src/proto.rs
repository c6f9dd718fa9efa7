//! What goes over the wire, as the .proto files have it.
//!
//! Their Rust is kept in `generated`, so that a build needs no compiler for them; a test makes it again and compares.

#[allow(
    missing_docs,
    unused_qualifications,
    clippy::all,
    clippy::redundant_clone,
    clippy::semicolon_if_nothing_returned,
    clippy::wildcard_imports,
    reason = "generated; the .proto files have the comments"
)]
mod generated {
    pub mod deriva {
        include!("generated/deriva.rs");
    }
    pub mod recipes {
        include!("generated/anabranch.recipe.v1.rs");
    }
}

pub use generated::{deriva, recipes};

/// The .proto files, compiled: what reflection answers from.
pub const DESCRIPTORS: &[u8] = include_bytes!("generated/descriptors.bin");
