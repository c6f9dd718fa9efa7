//! The user that a request is for.

use std::fmt;
use std::sync::Arc;

use anabranch_text::quote;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::json::show;
use crate::registry::Limits;

/// The longest string that is a user id, in bytes.
const LONGEST: usize = 256;

/// The user of a request: a 64-bit integer, or a string.
///
/// Rows have integers as ids. The row of a string user has [`row_id`](UserId::row_id). If that id is part of a key, as
/// in `user:{id}`, the key has the string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserId(Id);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Id {
    Int(i64),
    Text { name: Arc<str>, row: i64 },
}

impl UserId {
    /// The integer, if the id is one.
    pub fn as_int(&self) -> Option<i64> {
        match self.0 {
            Id::Int(id) => Some(id),
            Id::Text { .. } => None,
        }
    }

    /// The id of the user's row: the integer, or a negative number derived from the string.
    pub fn row_id(&self) -> i64 {
        match self.0 {
            Id::Int(id) | Id::Text { row: id, .. } => id,
        }
    }

    /// The string that stands for the user's row in keys, if `id` is that of a string user's row.
    pub(crate) fn name_of(&self, id: i64) -> Option<&str> {
        match &self.0 {
            Id::Text { name, row } if *row == id => Some(name),
            Id::Int(_) | Id::Text { .. } => None,
        }
    }

    /// Parses the `user_id` of a request. A string of digits is an integer, as in rankd; other strings are string ids.
    /// 0 and negative numbers are refused, because an unset field looks like that.
    pub(super) fn parse(value: Option<&Value>, limits: &Limits) -> Result<UserId, String> {
        let value = value.ok_or("`user_id` is missing")?;
        let found = match value {
            Value::Number(number) => number.as_i64().map(Id::Int),
            Value::String(text) if all_digits(text) => match text.parse() {
                Ok(number) => Some(Id::Int(number)),
                Err(_) => Some(Id::of_text(text)),
            },
            Value::String(text) if is_name(text) => Some(Id::of_text(text)),
            _ => None,
        };
        let allowed = |id: &Id| match (id, limits.max_user_id) {
            (Id::Int(id), most) => (1..=most.unwrap_or(i64::MAX)).contains(id),
            (Id::Text { .. }, most) => most.is_none(),
        };
        found.filter(allowed).map(UserId).ok_or_else(|| refusal(value, limits))
    }
}

fn refusal(value: &Value, limits: &Limits) -> String {
    let found = match value {
        Value::String(text) if text.len() > LONGEST => format!("a string of {} bytes", text.len()),
        Value::String(text) => format!("the string {}", quote(text)),
        other => show(other),
    };
    match limits.max_user_id {
        Some(most) => {
            format!("`user_id` must be a whole number from 1 to {most}, or a string of one, not {found}")
        }
        None => format!(
            "`user_id` must be a whole number from 1 to {}, or a string of at most {LONGEST} bytes, not {found}",
            i64::MAX
        ),
    }
}

fn all_digits(text: &str) -> bool {
    !text.is_empty() && text.len() <= LONGEST && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// True if a string can be an id: it says something, looks like no number, and looks the same to everybody who reads it.
fn is_name(text: &str) -> bool {
    let plain = !text.chars().any(char::is_control) && text.trim() == text;
    !text.is_empty() && text.len() <= LONGEST && plain && text.parse::<i64>().is_err()
}

impl Id {
    fn of_text(text: &str) -> Id {
        let digest = Sha256::digest(text);
        let bytes = digest[..8].try_into().expect("a digest has 32 bytes");
        // Ids of stores are hardly ever negative.
        Id::Text { name: text.into(), row: i64::from_be_bytes(bytes) | i64::MIN }
    }
}

impl From<i64> for UserId {
    fn from(id: i64) -> UserId {
        UserId(Id::Int(id))
    }
}

impl From<&str> for UserId {
    /// The integer that a string of digits says, or the string.
    fn from(text: &str) -> UserId {
        let number = text.parse().ok().filter(|_| all_digits(text));
        UserId(number.map_or_else(|| Id::of_text(text), Id::Int))
    }
}

impl fmt::Display for UserId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Id::Int(id) => id.fmt(f),
            Id::Text { name, .. } => f.write_str(name),
        }
    }
}
