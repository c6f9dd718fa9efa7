//! The messages and services of the wire protocol, from the .proto files.
//!
//! The generated code is kept in `generated`, so that a build needs no protobuf compiler. A test generates it again and
//! compares.

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
        include!("generated/deriva.rs");
    }
    /// The messages and services of plans.
    pub mod plans {
        include!("generated/anabranch.plan.v1.rs");
    }
    /// The messages and services of our own recipe API.
    pub mod recipes {
        include!("generated/anabranch.recipe.v1.rs");
    }
}

pub use generated::{deriva, plans, recipes};

/// The compiled .proto files, which the reflection service uses.
pub const DESCRIPTORS: &[u8] = include_bytes!("generated/descriptors.bin");
