//! The contents of the registries.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use anabranch_rows::{Key, Kind};
use regex::Regex;

use super::payload::Payload;
use crate::bounds::Bounds;
use crate::value::Scalar;

/// All registries of an environment.
#[derive(Clone, Debug, Default)]
pub struct Registries {
    /// Columns.
    pub keys: Keys,
    /// Request parameters.
    pub params: Params,
    /// Features, for tools that read plans.
    pub features: Vec<Feature>,
    /// Extensions that plans may require.
    pub capabilities: Vec<Capability>,
    /// The stores.
    pub endpoints: Endpoints,
    /// Rules for plans.
    pub limits: Limits,
    /// The environment that the endpoints are of, if there are any.
    pub env: Option<String>,
    /// The files they were read from, by name.
    pub texts: Arc<[(String, String)]>,
}

/// A registered column.
#[derive(Clone, Debug)]
pub struct KeyEntry {
    /// Its number.
    pub key: Key,
    /// Its name.
    pub name: String,
    /// The type of its values.
    pub kind: KeyKind,
    /// True if a row may have no value.
    pub nullable: bool,
    /// Its status.
    pub status: Status,
    /// True if plans may read it.
    pub allow_read: bool,
    /// True if plans may write it.
    pub allow_write: bool,
    /// The value that stands for a missing one.
    pub default: Option<Scalar>,
    /// The key to use instead.
    pub replaced_by: Option<Key>,
    /// A sentence for people.
    pub doc: String,
}

/// The type of a key's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// A kind that columns have.
    Column(Kind),
    /// A bundle of features; plans may name such keys but not compute with them.
    FeatureBundle,
}

/// The status of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It may be used.
    Active,
    /// It may be used, with a warning.
    Deprecated,
    /// It may not be used.
    Blocked,
}

/// The registered columns.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    /// By ascending number.
    pub(super) entries: Vec<KeyEntry>,
}

impl Keys {
    /// The entry of `key`.
    pub fn get(&self, key: Key) -> Option<&KeyEntry> {
        let at = self.entries.binary_search_by_key(&key, |entry| entry.key).ok()?;
        Some(&self.entries[at])
    }

    /// The entry called `name`.
    pub fn named(&self, name: &str) -> Option<&KeyEntry> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// All entries, by ascending number.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &KeyEntry> {
        self.entries.iter()
    }
}

/// A registered request parameter.
#[derive(Clone, Debug)]
pub struct ParamEntry {
    /// Its number in plans.
    pub id: u32,
    /// Its place in a request's [`Values`](crate::Values).
    pub index: usize,
    /// Its name in requests.
    pub name: String,
    /// The kind of its value, or of the items of its list.
    pub kind: Kind,
    /// One value, or a list.
    pub shape: Shape,
    /// True if a request may set it to null.
    pub nullable: bool,
    /// Its status.
    pub status: Status,
    /// True if plans may read it.
    pub allow_read: bool,
    /// True if requests may set it.
    pub allow_write: bool,
    /// Its value in requests that do not set it; a list that is not set is null.
    pub default: Option<Scalar>,
    /// A sentence for people.
    pub doc: String,
}

/// The shape of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One value.
    One,
    /// A list of values.
    List,
}

impl ParamEntry {
    /// The name of its type in `params.toml`.
    pub fn type_name(&self) -> &'static str {
        match (self.shape, self.kind) {
            (Shape::List, Kind::Text) => "string_list",
            (Shape::List, _) => "int_list",
            (Shape::One, Kind::Int) => "int",
            (Shape::One, Kind::Float) => "float",
            (Shape::One, Kind::Bool) => "bool",
            (Shape::One, Kind::Text) => "string",
        }
    }
}

/// The registered parameters.
#[derive(Clone, Debug, Default)]
pub struct Params {
    /// By place.
    pub(super) entries: Vec<ParamEntry>,
}

impl Params {
    /// The entry with this number.
    pub fn get(&self, id: u32) -> Option<&ParamEntry> {
        self.entries.iter().find(|entry| entry.id == id)
    }

    /// The entry called `name`.
    pub fn named(&self, name: &str) -> Option<&ParamEntry> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// All entries, by place.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &ParamEntry> {
        self.entries.iter()
    }
}

/// A registered feature.
#[derive(Clone, Debug)]
pub struct Feature {
    /// Its number.
    pub id: u32,
    /// The stage it belongs to.
    pub stage: String,
    /// Its name within the stage.
    pub name: String,
    /// The type of its values.
    pub kind: Kind,
}

/// A registered extension.
#[derive(Clone, Debug)]
pub struct Capability {
    /// Its name in plans.
    pub id: String,
    /// True if plans may require it.
    pub supported: bool,
    /// The shape of its payload; `None` allows no payload.
    pub payload: Option<Payload>,
}

/// The protocol of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EndpointKind {
    /// Redis.
    Redis,
    /// JSON over HTTP.
    Http,
}

impl fmt::Display for EndpointKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EndpointKind::Redis => "redis",
            EndpointKind::Http => "http",
        })
    }
}

/// A registered place that rows come from.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Its place among the endpoints.
    pub index: usize,
    /// Its name in plans, `ep_...`.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// Its protocol.
    pub kind: EndpointKind,
    /// The host.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Trips in flight at a time.
    pub max_inflight: Option<u32>,
    /// The longest to wait for a connection.
    pub connect_timeout: Option<Duration>,
    /// The longest to wait for a trip's reply.
    pub request_timeout: Option<Duration>,
}

/// The registered endpoints of one environment.
#[derive(Clone, Debug, Default)]
pub struct Endpoints {
    /// By place.
    pub(super) entries: Vec<Endpoint>,
}

impl Endpoints {
    /// The endpoint with this name.
    pub fn named(&self, name: &str) -> Option<&Endpoint> {
        self.entries.iter().find(|endpoint| endpoint.name == name)
    }

    /// The endpoint with this id.
    pub fn get(&self, id: &str) -> Option<&Endpoint> {
        self.entries.iter().find(|endpoint| endpoint.id == id)
    }

    /// All endpoints, by place.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Endpoint> {
        self.entries.iter()
    }
}

/// Rules for plans.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The pattern of plan names.
    pub plan_name: Regex,
    /// The pattern of node ids.
    pub node_id: Regex,
    /// The widest fan-out.
    pub max_fanout: u32,
    /// The largest user id that requests may have. If it is given, user ids are integers, as in rankd.
    pub max_user_id: Option<i64>,
    /// The most rows and bytes of one request: `max_rows` and `max_bytes`.
    pub bounds: Bounds,
}
