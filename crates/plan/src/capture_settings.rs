//! `[plan.captures]` of a project: the requests that are captured.

use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

use serde_json::Value;

use crate::fields::Fields;
use crate::json::show;

/// The captures of a project's requests, from its file; `None` stands for the default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureSettings {
    /// The folder of the store.
    pub store: PathBuf,
    /// The set.
    pub set: String,
    /// One request in this many is captured.
    pub one_in: Option<NonZeroU64>,
    /// The most captures per second.
    pub per_second: Option<NonZeroU32>,
    /// The most bytes that one capture may read.
    pub most_bytes: Option<u32>,
    /// The most bytes of all captures.
    pub total_bytes: Option<u64>,
    /// The most captures that wait to be written.
    pub most_waiting: Option<NonZeroUsize>,
    /// Keys whose values are masked.
    pub masked_keys: Vec<String>,
    /// Parameters whose values are masked.
    pub masked_params: Vec<String>,
}

impl CaptureSettings {
    /// Reads the fields of the table; `path` makes a path of one that is relative to the file.
    pub(crate) fn read(
        fields: &mut Fields<'_, '_>,
        path: &dyn Fn(&str) -> PathBuf,
    ) -> Option<CaptureSettings> {
        let store: Option<&str> = fields.required("store");
        let set: Option<String> = fields.optional("set");
        let settings = CaptureSettings {
            store: store.map(path).unwrap_or_default(),
            set: set.unwrap_or_else(|| "live".to_owned()),
            one_in: positive(fields, "one_in"),
            per_second: positive(fields, "per_second"),
            most_bytes: positive(fields, "most_bytes").map(NonZeroU32::get),
            total_bytes: positive(fields, "total_bytes").map(NonZeroU64::get),
            most_waiting: positive(fields, "most_waiting"),
            masked_keys: names(fields, "masked_keys"),
            masked_params: names(fields, "masked_params"),
        };
        store.map(|_| settings)
    }
}

/// A number of at least 1 that fits its kind.
fn positive<T: TryFrom<NonZeroU64>>(fields: &mut Fields<'_, '_>, name: &'static str) -> Option<T> {
    let number: i64 = fields.optional(name)?;
    let fits = u64::try_from(number).ok().and_then(NonZeroU64::new).and_then(|number| number.try_into().ok());
    if fits.is_none() {
        let what = match number {
            ..1 => "must be at least 1".to_owned(),
            _ => format!("must be from 1 to {}, not {number}", u32::MAX),
        };
        fields.error_with_help(name, what, "leave it out for the default");
    }
    fits
}

fn names(fields: &mut Fields<'_, '_>, name: &'static str) -> Vec<String> {
    let mut names = Vec::new();
    for value in fields.optional::<&[Value]>(name).unwrap_or_default() {
        match value {
            Value::String(name) => names.push(name.clone()),
            other => fields.error(name, format!("must be names, not {}", show(other))),
        }
    }
    names
}
