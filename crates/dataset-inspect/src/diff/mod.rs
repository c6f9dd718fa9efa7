//! The difference between two built datasets.

mod example;
mod rows;
mod settings;

pub use example::CellChange;
pub use rows::{ColumnDifference, RowName, RowsDifference};
pub use settings::{CountChange, Setting, SpendChange};

use std::path::{Path, PathBuf};

use anabranch_dataset::output::FileError;
use serde::Serialize;

use crate::report::{BuildSpend, metadata, row_files, stage_folders};

/// The difference between two datasets, and between their stages.
#[derive(Clone, Debug, Serialize)]
pub struct Difference {
    pub sections: Vec<SectionDifference>,
    /// Stages that only the first dataset has.
    pub stages_removed: Vec<String>,
    /// Stages that only the second dataset has.
    pub stages_added: Vec<String>,
}

/// The difference between two folders of rows.
#[derive(Clone, Debug, Serialize)]
pub struct SectionDifference {
    /// The name of the stage's folder; `None` for the datasets themselves.
    pub stage: Option<String>,
    #[serde(flatten)]
    pub data: RowsDifference,
    /// Settings, inputs and models that differ.
    pub settings: Vec<Setting>,
    /// Failed cells by column and class, where there are some.
    pub errors: Vec<CountChange>,
    /// Calls, tokens and money of both.
    pub spent: SpendChange,
}

impl Difference {
    /// Compares the datasets in two folders. Rows are compared by their stable numbers, in any order. Memory is bounded,
    /// but for a few bytes per row. Blocks.
    pub fn read(before: &Path, after: &Path) -> Result<Difference, FileError> {
        let [old, new] = [stage_folders(before)?, stage_folders(after)?];
        let mut sections = Vec::new();
        let has_own = |folder: &Path| folder.join("metadata.json").exists();
        if (old.is_empty() && new.is_empty()) || (has_own(before) && has_own(after)) {
            sections.push(SectionDifference::read([before, after], before, after, None)?);
        }
        let missing = |stages: &[PathBuf], others: &[PathBuf]| -> Vec<String> {
            let has = |name: &String| others.iter().any(|other| stage_name(other) == *name);
            stages.iter().map(|stage| stage_name(stage)).filter(|name| !has(name)).collect()
        };
        for stage in &old {
            let name = stage_name(stage);
            if let Some(other) = new.iter().find(|other| stage_name(other) == name) {
                sections.push(SectionDifference::read([before, after], stage, other, Some(name))?);
            }
        }
        Ok(Difference { sections, stages_removed: missing(&old, &new), stages_added: missing(&new, &old) })
    }

    /// True if the rows, columns and cells of both are equal. Settings, errors and spend may differ.
    pub fn is_equal(&self) -> bool {
        let stages = self.stages_removed.is_empty() && self.stages_added.is_empty();
        stages && self.sections.iter().all(|section| section.data.is_equal())
    }
}

impl SectionDifference {
    /// Compares two folders of rows of the datasets in `homes`.
    fn read(
        homes: [&Path; 2],
        before: &Path,
        after: &Path,
        stage: Option<String>,
    ) -> Result<SectionDifference, FileError> {
        let [old, new] = [metadata(before)?, metadata(after)?];
        let files = [row_files(before, stage.is_some())?, row_files(after, stage.is_some())?];
        let mut data = rows::compare(&files)?;
        data.name_rows(homes)?;
        Ok(SectionDifference {
            stage,
            data,
            settings: settings::compare(&old, &new),
            errors: settings::errors(&old, &new),
            spent: SpendChange { before: BuildSpend::of(&old), after: BuildSpend::of(&new) },
        })
    }
}

fn stage_name(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
