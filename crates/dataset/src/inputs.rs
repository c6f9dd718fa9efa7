//! The inputs of a dataset: digests of everything that decides about its values. A build can be continued while they
//! are the same.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::UNIX_EPOCH;

use crate::config::{ColumnKind, WorkerConfig};
use crate::dataset::Dataset;
use crate::models::Models;
use crate::output::Metadata;
use crate::setup::LoadedConfig;

/// Digests by the names of the inputs.
pub(crate) type Inputs = BTreeMap<String, String>;

/// The inputs of a configuration.
pub(crate) fn of(loaded: &LoadedConfig, calls: &Models) -> Inputs {
    let config = &loaded.config;
    let run = &config.run;
    let turns = (run.max_conversation_correction_steps, run.max_conversation_restarts);
    let mut inputs = Inputs::from([
        ("configuration".to_owned(), config.digest.clone()),
        ("models".to_owned(), calls.digest(config)),
        ("seed".to_owned(), loaded.seed.to_string()),
        ("run options".to_owned(), format!("{turns:?} {}", run.preserve_dropped_columns)),
    ]);
    if let Some(rows) = &loaded.seed_rows {
        inputs.insert("seed dataset".to_owned(), rows.digest().to_owned());
    }
    let commands = config.columns.iter().filter_map(|column| match &column.kind {
        ColumnKind::Custom(custom) => match &custom.worker {
            WorkerConfig::Command { command } => Some(command),
            WorkerConfig::Http { .. } => None,
        },
        _ => None,
    });
    for column in &config.columns {
        inputs.insert(format!("{COLUMN}{}", column.name), column.digest.clone());
    }
    let files: Vec<String> =
        commands.flatten().filter_map(|word| file_digest(&loaded.folder.join(word))).collect();
    if !files.is_empty() {
        inputs.insert("files of custom columns".to_owned(), files.join(" "));
    }
    inputs
}

/// The size of a file and the time of its last change; `None` if there is no such file.
pub(crate) fn file_digest(path: &Path) -> Option<String> {
    let metadata = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    let changed = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(format!("{} bytes of {}", metadata.len(), changed.as_nanos()))
}

/// One digest of all inputs.
pub(crate) fn digest(inputs: &Inputs) -> String {
    let mut hasher = blake3::Hasher::new();
    for (name, digest) in inputs {
        hasher.update(format!("{name:?} {digest:?}\n").as_bytes());
    }
    hasher.finalize().to_hex()[..16].to_owned()
}

/// The prefix of the name of an input that is one column's definition.
const COLUMN: &str = "column ";

/// The names of the inputs that differ, but for the definitions of single columns, and the edits of those.
pub(crate) fn difference(now: &Inputs, before: &Inputs) -> (Vec<String>, ColumnEdits) {
    let names = now.keys().chain(before.keys().filter(|name| !now.contains_key(*name)));
    let differ = names.filter(|name| !name.starts_with(COLUMN) && now.get(*name) != before.get(*name));
    (differ.cloned().collect(), ColumnEdits::between(before, now))
}

impl Dataset {
    /// The inputs that differ from those of a dataset that was built, and the edits of columns since then.
    pub fn difference(&self, built: &Metadata) -> (Vec<String>, ColumnEdits) {
        let (mut differ, columns) = difference(&self.inputs, &built.inputs);
        // Names and types of columns follow from the other inputs, and are known when the dataset is built.
        differ.retain(|name| name != "columns");
        (differ, columns)
    }
}

/// The edits of a configuration's columns since a dataset was built.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnEdits {
    pub added: Vec<String>,
    pub removed: Vec<String>,
    /// The old name and the new one of each column that is otherwise the same.
    pub renamed: Vec<(String, String)>,
    pub edited: Vec<String>,
    /// True if the dataset is of an earlier version, which did not record its columns' definitions.
    pub unknown: bool,
}

impl ColumnEdits {
    /// True if no column was edited.
    pub fn is_empty(&self) -> bool {
        *self == ColumnEdits::default()
    }

    fn between(before: &Inputs, now: &Inputs) -> ColumnEdits {
        let columns = |inputs: &Inputs| -> BTreeMap<String, String> {
            let named = |(name, digest): (&String, &String)| {
                Some((name.strip_prefix(COLUMN)?.to_owned(), digest.clone()))
            };
            inputs.iter().filter_map(named).collect()
        };
        let (before, now) = (columns(before), columns(now));
        if before.is_empty() && !now.is_empty() {
            return ColumnEdits { unknown: true, ..ColumnEdits::default() };
        }
        let missing = |from: &BTreeMap<String, String>, other: &BTreeMap<String, String>| -> Vec<String> {
            from.keys().filter(|name| !other.contains_key(*name)).cloned().collect()
        };
        let (mut added, mut removed) = (missing(&now, &before), missing(&before, &now));
        let mut renamed = Vec::new();
        removed.retain(|old| match added.iter().position(|new| now[new] == before[old]) {
            Some(place) => {
                renamed.push((old.clone(), added.remove(place)));
                false
            }
            None => true,
        });
        let is_edited = |name: &&String| before.get(*name).is_some_and(|digest| *digest != now[*name]);
        let edited = now.keys().filter(is_edited).cloned().collect();
        ColumnEdits { added, removed, renamed, edited, unknown: false }
    }
}
