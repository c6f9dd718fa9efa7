//! The ledger of a response: the list of its degraded parts.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::source::MalformedValues;

/// One node whose rows are not its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct LedgerEntry {
    /// The node that did not make it.
    pub node: String,
    /// The `core::timeout` node around it, if the stand-in is for the whole region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// The reason.
    pub reason: Reason,
    /// The message, for an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The fallback that replaces its rows: `empty`, `pass`, `default`, `stale`, or `node` and an id; `null` if only
    /// some values are missing.
    pub fallback: String,
    /// The time for which the request waited for it after its start.
    #[serde(rename = "waited_us", with = "micros")]
    pub waited: Duration,
    /// The age of the oldest value that replaces its rows, if they are stale.
    #[serde(rename = "age_us", default, skip_serializing_if = "Option::is_none", with = "some_micros")]
    pub age: Option<Duration>,
    /// The number of keys whose earlier values were known, for a stale fallback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_keys: Option<u32>,
    /// The number of keys that were requested, for a stale fallback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_keys: Option<u32>,
    /// The number of rows that replace its own, or of values that are missing.
    pub rows: usize,
}

impl LedgerEntry {
    /// Some values that a node read were of another kind than its columns, or not values at all.
    pub(crate) fn malformed(node: &str, malformed: MalformedValues) -> LedgerEntry {
        LedgerEntry {
            node: node.to_owned(),
            region: None,
            reason: Reason::Malformed,
            detail: malformed.first.map(|first| first.to_string()),
            fallback: "null".to_owned(),
            waited: Duration::ZERO,
            age: None,
            known_keys: None,
            asked_keys: None,
            rows: malformed.count as usize,
        }
    }

    /// True if other rows replace those of the node; otherwise only some of its values are missing.
    pub fn replaces_rows(&self) -> bool {
        self.reason != Reason::Malformed
    }
}

/// The reason why a node is degraded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// It was started, and did not finish in time.
    Timeout,
    /// It failed.
    Error,
    /// It was not started, because there was not enough time left.
    Shed,
    /// It has its rows, but some values in its source could not be read. They are null.
    Malformed,
}

impl Reason {
    /// The word in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Reason::Timeout => "timeout",
            Reason::Error => "error",
            Reason::Shed => "shed",
            Reason::Malformed => "malformed",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Durations as whole microseconds.
mod micros {
    use std::time::Duration;

    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_micros)
    }
}

mod some_micros {
    use std::time::Duration;

    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(duration: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
        super::micros::serialize(&duration.unwrap_or_default(), to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(from)?.map(Duration::from_micros))
    }
}
