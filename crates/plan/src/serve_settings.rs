//! `[serve]` of a project: the settings of `anabranch serve`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anabranch_text::{duration, size};
use serde_json::Value;

use crate::fields::Fields;
use crate::json::show;

/// The settings of the server that a project's file has, by name, each in the text that the command line takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServeSettings {
    values: BTreeMap<&'static str, Vec<String>>,
}

/// The type of a setting in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    /// Relative to the folder of the file.
    Path,
    Texts,
    Paths,
    Count,
    Number,
    /// A number of bytes, or text such as `"64MiB"`.
    Size,
    /// Text such as `"10s"`.
    Duration,
    Switch,
}

/// All settings. The server defines their meaning and their defaults.
const FIELDS: [(&str, Kind); 39] = [
    ("log", Kind::Text),
    ("listen", Kind::Text),
    ("data", Kind::Path),
    ("token_file", Kind::Path),
    ("anonymous", Kind::Text),
    ("tls_cert", Kind::Path),
    ("tls_key", Kind::Path),
    ("insecure_listen", Kind::Switch),
    ("allow_hosts", Kind::Texts),
    ("cache", Kind::Size),
    ("quota", Kind::Size),
    ("accept_loss", Kind::Switch),
    ("function_memory", Kind::Size),
    ("threads", Kind::Count),
    ("cpu_threads", Kind::Count),
    ("batch_threads", Kind::Count),
    ("max_body", Kind::Size),
    ("max_message", Kind::Size),
    ("max_unfinished", Kind::Size),
    ("max_uploads", Kind::Count),
    ("max_connections", Kind::Count),
    ("max_in_flight", Kind::Count),
    ("max_queue", Kind::Count),
    ("max_open", Kind::Count),
    ("queue_wait", Kind::Duration),
    ("stall_timeout", Kind::Duration),
    ("idle_timeout", Kind::Duration),
    ("grace", Kind::Duration),
    ("canary", Kind::Number),
    ("canary_for", Kind::Duration),
    ("keep_requests", Kind::Switch),
    ("dataset_models", Kind::Path),
    ("dataset_files", Kind::Paths),
    ("dataset_builds", Kind::Count),
    ("dataset_open", Kind::Count),
    ("dataset_kept", Kind::Count),
    ("dataset_disk", Kind::Size),
    ("dataset_allow_custom", Kind::Switch),
    ("dataset_ca_file", Kind::Path),
];

impl ServeSettings {
    /// The names of all settings: those of the options of `anabranch serve`.
    pub fn names() -> impl Iterator<Item = &'static str> {
        FIELDS.into_iter().map(|(name, _)| name)
    }

    /// The texts of a setting: one, or any number for a list.
    pub fn list(&self, name: &str) -> Option<&[String]> {
        self.values.get(name).map(Vec::as_slice)
    }

    /// Reads the fields of the table; `path` makes a path of one that is relative to the file.
    pub(crate) fn read(fields: &mut Fields<'_, '_>, path: &dyn Fn(&str) -> PathBuf) -> ServeSettings {
        let mut values = BTreeMap::new();
        for (name, kind) in FIELDS {
            let Some(value) = fields.raw(name) else { continue };
            match kind.texts(value, path) {
                Ok(texts) => drop(values.insert(name, texts)),
                Err(problem) => fields.error(name, problem),
            }
        }
        ServeSettings { values }
    }
}

impl Kind {
    fn texts(self, value: &Value, path: &dyn Fn(&str) -> PathBuf) -> Result<Vec<String>, String> {
        let text = match (self, value) {
            (Kind::Text, Value::String(text)) => text.clone(),
            (Kind::Path, Value::String(text)) => path(text).to_string_lossy().into_owned(),
            (Kind::Switch, Value::Bool(on)) => on.to_string(),
            (Kind::Count | Kind::Size, Value::Number(number)) if number.is_u64() => number.to_string(),
            (Kind::Size, Value::String(text)) => size::parse(text).map(|_| text.clone())?,
            (Kind::Duration, Value::String(text)) => duration::parse(text).map(|_| text.clone())?,
            (Kind::Number, Value::Number(number)) => number.to_string(),
            (Kind::Texts | Kind::Paths, Value::Array(items)) => {
                let one = |text: &str| match self {
                    Kind::Paths => path(text).to_string_lossy().into_owned(),
                    _ => text.to_owned(),
                };
                let text = |item: &Value| item.as_str().map(one).ok_or_else(|| self.expected(item));
                return items.iter().map(text).collect();
            }
            (_, other) => return Err(self.expected(other)),
        };
        Ok(vec![text])
    }

    fn expected(self, found: &Value) -> String {
        let what = match self {
            Kind::Text | Kind::Path => "a string",
            Kind::Texts | Kind::Paths => "a list of strings",
            Kind::Count => "a whole number",
            Kind::Number => "a number",
            Kind::Size => "a number of bytes, or a size such as \"256MiB\"",
            Kind::Duration => "a duration such as \"10s\"",
            Kind::Switch => "true or false",
        };
        format!("must be {what}, not {}", show(found))
    }
}
