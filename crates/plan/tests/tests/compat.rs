//! Files of rankd, when they are there.

use std::path::{Path, PathBuf};

/// Where they are. Without them a test says that it was skipped.
#[allow(clippy::print_stderr, reason = "a skipped test says so")]
pub(crate) fn folder() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/compat/rankd");
    if !folder.is_dir() {
        eprintln!("skipped: ../shared/compat is not there");
        return None;
    }
    Some(folder)
}

/// The plans of one of its folders, by name.
pub(crate) fn plans(folder_name: &str) -> Vec<(String, String)> {
    let Some(folder) = folder() else { return Vec::new() };
    let mut plans = Vec::new();
    for entry in std::fs::read_dir(folder.join(folder_name)).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().replace(".plan.json", "");
        plans.push((name, std::fs::read_to_string(&path).unwrap()));
    }
    plans.sort();
    plans
}
