//! Conversions between wire messages and the executor's types, for the service and its client.

mod answers;
mod events;
mod functions;
mod inside;
mod recipes;
mod resolved;

pub(crate) use answers::{
    collect, collected, exported, from_collect, from_collected, from_exported, from_invalidate,
    from_invalidated, from_put, from_scrubbed, from_status, invalidate, invalidated, put, scrubbed, status,
};
pub(crate) use events::{event, from_event};
pub(crate) use functions::{from_function, function};
pub(crate) use inside::{
    from_import_record, from_imported, from_listed_blob, from_listed_derivation, from_listed_memo,
    from_usage, import_record, imported, listed_blob, listed_derivation, listed_memo, removed, usage,
};
pub(crate) use recipes::{
    Part, added, draft, from_added, from_checked, from_draft, from_header, from_memo, from_recipe,
    from_unknown, header, memo, recipe, unknown,
};
pub use resolved::ResolvedTarget;
pub(crate) use resolved::{from_resolved, resolved};

use anabranch_content::{Address, NameChange, Time};
use bytes::Bytes;

use crate::proto::recipes as proto;

/// A malformed message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct MalformedMessage(pub String);

/// The target of a call: an address, or a name for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// An address.
    Address(Address),
    /// A name, or the beginning of an address.
    Name(String),
}

impl std::fmt::Display for Target {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Target::Address(address) => address.fmt(out),
            Target::Name(name) => name.fmt(out),
        }
    }
}

impl From<Address> for Target {
    fn from(address: Address) -> Target {
        Target::Address(address)
    }
}

/// 64 hex digits are an address, anything else is a name or the beginning of an address.
impl From<&str> for Target {
    fn from(text: &str) -> Target {
        text.parse().map_or_else(|_| Target::Name(text.to_owned()), Target::Address)
    }
}

/// The address in a field of a message.
pub(crate) fn address(field: &'static str, bytes: &[u8]) -> Result<Address, MalformedMessage> {
    let bytes: [u8; 32] = bytes
        .try_into()
        .map_err(|_| MalformedMessage(format!("`{field}` has {} bytes; an address has 32", bytes.len())))?;
    Ok(Address::from_bytes(bytes))
}

pub(crate) fn addresses(field: &'static str, list: &[Bytes]) -> Result<Vec<Address>, MalformedMessage> {
    list.iter().map(|bytes| address(field, bytes)).collect()
}

pub(crate) fn from_address(address: &Address) -> Bytes {
    Bytes::copy_from_slice(address.as_bytes())
}

pub(crate) fn from_addresses(list: &[Address]) -> Vec<Bytes> {
    list.iter().map(from_address).collect()
}

/// A field that must be set.
pub(crate) fn set<T>(field: &'static str, value: Option<T>) -> Result<T, MalformedMessage> {
    value
        .ok_or_else(|| MalformedMessage(format!("`{field}` is not set, or is set to something unknown here")))
}

/// The value of an enum field.
pub(crate) fn known<T: TryFrom<i32>>(field: &'static str, number: i32) -> Result<T, MalformedMessage> {
    T::try_from(number).map_err(|_| MalformedMessage(format!("`{field}` is {number}, which is unknown here")))
}

/// A number that must fit into `usize`.
pub(crate) fn size(field: &'static str, number: u64) -> Result<usize, MalformedMessage> {
    usize::try_from(number)
        .map_err(|_| MalformedMessage(format!("`{field}` is {number}, which is too large")))
}

pub(crate) fn target(target: Option<proto::Target>) -> Result<Target, MalformedMessage> {
    match set("target", target.and_then(|target| target.of))? {
        proto::target::Of::Address(bytes) => Ok(Target::Address(address("target", &bytes)?)),
        proto::target::Of::Name(name) => Ok(Target::from(&*name)),
    }
}

pub(crate) fn from_target(target: Target) -> proto::Target {
    let of = match target {
        Target::Address(address) => proto::target::Of::Address(from_address(&address)),
        Target::Name(name) => proto::target::Of::Name(name),
    };
    proto::Target { of: Some(of) }
}

pub(crate) fn named(named: proto::NameChange) -> Result<NameChange, MalformedMessage> {
    let address = named.address.map(|bytes| address("address", &bytes)).transpose()?;
    Ok(NameChange { address, at: Time(named.at) })
}

pub(crate) fn from_named(named: &NameChange) -> proto::NameChange {
    proto::NameChange { address: named.address.as_ref().map(from_address), at: named.at.0 }
}
