//! The `[[entry]]` tables that every registry file consists of.

use std::collections::HashSet;

use anabranch_text::{Problem, Problems, quote};
use serde_json::{Map, Value};

use crate::fields::Fields;
use crate::json::show;

/// A registry file: its name for messages, and its content.
#[derive(Clone, Copy)]
pub(super) struct File<'a> {
    pub(super) name: &'a str,
    pub(super) map: &'a Map<String, Value>,
}

/// Reads the `[[what]]` tables of a file, which may contain nothing else except for a version.
pub(super) fn read<T>(
    file: File<'_>,
    what: &'static str,
    problems: &mut Problems,
    entry: impl FnMut(&mut Fields<'_, '_>) -> Option<T>,
) -> Vec<T> {
    let mut top = Fields::new(file.map, file.name, problems);
    version(&mut top);
    let list: &[Value] = top.optional(what).unwrap_or_default();
    top.finish();
    read_list(file.name, what, list, problems, entry)
}

/// `schema_version`, or `version`; there is only one so far.
pub(super) fn version(top: &mut Fields<'_, '_>) {
    for name in ["schema_version", "version"] {
        if let Some(version) = top.optional::<i64>(name)
            && version != 1
        {
            top.error(name, format!("version {version} is not known; this program reads version 1"));
        }
    }
}

/// Reads the entries of a list.
pub(super) fn read_list<T>(
    file: &str,
    what: &str,
    list: &[Value],
    problems: &mut Problems,
    mut entry: impl FnMut(&mut Fields<'_, '_>) -> Option<T>,
) -> Vec<T> {
    let mut entries = Vec::with_capacity(list.len());
    for (at, value) in list.iter().enumerate() {
        let Some(map) = value.as_object() else {
            let place = format!("{file}, {what} {}", at + 1);
            problems.error(Problem::new(place, format!("must be a table, not {}", show(value))));
            continue;
        };
        let name = ["name", "id", "endpoint_id"].iter().find_map(|field| map.get(*field)?.as_str());
        let place = match name {
            Some(name) => format!("{file}, {what} {}", quote(name)),
            None => format!("{file}, {what} {}", at + 1),
        };
        let mut fields = Fields::new(map, place, problems);
        entries.extend(entry(&mut fields));
        fields.finish();
    }
    entries
}

/// Values that may be there once.
#[derive(Default)]
pub(super) struct Unique(HashSet<String>);

impl Unique {
    /// Notes an error if an earlier entry had the same value.
    pub(super) fn claim(&mut self, fields: &mut Fields<'_, '_>, field: &str, value: &impl ToString) {
        let value = value.to_string();
        let shown = quote(&value);
        if !self.0.insert(value) {
            fields.error(field, format!("{shown} is taken by an earlier entry"));
        }
    }
}
