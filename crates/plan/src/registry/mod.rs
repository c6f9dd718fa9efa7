//! The registries: the keys, parameters, features, capabilities and endpoints, and the rules for plans.
//!
//! They are TOML files in one folder, one kind of entry per file. All of them are read, and all problems are reported
//! at once.

mod entries;
mod payload;
mod tables;
mod columns;
mod capabilities;
mod endpoints;
mod limits;
mod load;

pub use entries::{
    Capability, Endpoint, EndpointKind, Endpoints, Feature, KeyEntry, KeyKind, Keys, Limits, ParamEntry,
    Params, Registries, Shape, Status,
};
pub use limits::BoundsSettings;
pub(crate) use limits::bounds;
pub use payload::{Payload, PayloadType};
