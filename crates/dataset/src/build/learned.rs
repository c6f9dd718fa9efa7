//! The learned limits of models, stored in the journal's folder for the next build.

use std::path::Path;
use std::time::Duration;

use anabranch_engine::limit::{LearnedLimit, Limits};
use serde::{Deserialize, Serialize};

use crate::output::{FileError, write_json};

const NAME: &str = "limits.json";

#[derive(Serialize, Deserialize)]
struct SavedLimit {
    name: String,
    limit: u32,
    ceiling: Option<u32>,
    latency_us: Option<u64>,
}

/// Continues with the limits that an earlier build learned. A missing or unreadable file is ignored.
pub(crate) fn load(folder: &Path, limits: &Limits) {
    let Ok(text) = std::fs::read_to_string(folder.join(NAME)) else { return };
    let Ok(learned) = serde_json::from_str::<Vec<SavedLimit>>(&text) else { return };
    let learned: Vec<(String, LearnedLimit)> = learned
        .into_iter()
        .map(|SavedLimit { name, limit, ceiling, latency_us }| {
            (name, LearnedLimit { limit, ceiling, latency: latency_us.map(Duration::from_micros) })
        })
        .collect();
    limits.load(&learned);
}

/// Saves the learned limits. Blocks.
pub(crate) fn save(folder: &Path, limits: &Limits) -> Result<(), FileError> {
    let learned = limits.save().into_iter().map(|(name, LearnedLimit { limit, ceiling, latency })| {
        SavedLimit { name, limit, ceiling, latency_us: latency.map(|latency| latency.as_micros() as u64) }
    });
    write_json(&folder.join(NAME), &learned.collect::<Vec<_>>())
}
