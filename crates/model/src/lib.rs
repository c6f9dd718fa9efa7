//! Language models: chat and embeddings over HTTP, replies checked and repaired, an offline demo model.

mod provider;

pub use provider::*;
