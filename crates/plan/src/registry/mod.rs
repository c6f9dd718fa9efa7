//! The registries: what keys, parameters, features, capabilities and endpoints there are, and rules for plans.
//!
//! They are TOML files of one folder, one idea a file. All of them are read and everything wrong is told at once.

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
