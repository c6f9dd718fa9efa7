//! The inputs of a dataset: digests of everything that decides about its values. A build can be continued while they
//! are the same.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::UNIX_EPOCH;

use crate::config::{ColumnKind, WorkerConfig};
use crate::models::Models;
use crate::setup::Loaded;

/// Digests by the names of the inputs.
pub(crate) type Inputs = BTreeMap<String, String>;

/// The inputs of a configuration.
pub(crate) fn of(loaded: &Loaded, calls: &Models) -> Inputs {
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

/// The names of the inputs that differ.
pub(crate) fn difference(one: &Inputs, other: &Inputs) -> Vec<String> {
    let names = one.keys().chain(other.keys().filter(|name| !one.contains_key(*name)));
    names.filter(|name| one.get(*name) != other.get(*name)).cloned().collect()
}
