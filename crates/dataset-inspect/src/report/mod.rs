//! The report about a built dataset, from one pass over its rows and from its other files.

mod errors;
mod estimate;
mod rows;
mod spend;
mod timeline;

pub use errors::{ErrorExample, ErrorGroup, ErrorSummary};
pub use estimate::PlanComparison;
pub use rows::Sample;
pub use spend::{BuildSpend, ColumnSpent};
pub use timeline::{GroupWritten, LimitPoint, ProgressPoint, Timeline};

use std::io;
use std::path::{Path, PathBuf};

use anabranch_dataset::output::{BuildState, FileError, Folder, FolderStatus, Metadata, StageReport};
use serde::Serialize;

use crate::column::ColumnStats;
use crate::row_names::RowNames;

/// A report about the dataset in a folder, and about each of its stages.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub sections: Vec<Section>,
}

/// The report about one folder of rows.
#[derive(Clone, Debug, Serialize)]
pub struct Section {
    /// The name of the stage's folder; `None` for the dataset itself.
    pub stage: Option<String>,
    pub state: BuildState,
    pub metadata: Metadata,
    /// Rows that were found in the files.
    pub rows: u64,
    pub columns: Vec<ColumnStats>,
    /// Rows from the whole length of the dataset.
    pub samples: Vec<Sample>,
    pub errors: ErrorSummary,
    pub spent: BuildSpend,
    /// The saved plan of the build, if there is one.
    pub estimated: Option<PlanComparison>,
    pub timeline: Timeline,
}

impl Report {
    /// Reads the dataset in a folder. Memory is bounded regardless of the number of rows. Blocks.
    pub fn read(folder: &Path) -> Result<Report, FileError> {
        let mut sections = Vec::new();
        let stages = stage_folders(folder)?;
        if stages.is_empty() || folder.join("metadata.json").exists() {
            sections.push(Section::read(folder, folder, None)?);
        }
        for stage in stages {
            let name = stage.file_name().map(|name| name.to_string_lossy().into_owned());
            sections.push(Section::read(folder, &stage, name)?);
        }
        Ok(Report { sections })
    }
}

impl Section {
    /// Reads a folder of rows of the dataset in `home`.
    fn read(home: &Path, folder: &Path, stage: Option<String>) -> Result<Section, FileError> {
        let metadata = metadata(folder)?;
        let state = state(folder, &metadata)?;
        let files = row_files(folder, stage.is_some())?;
        let rows = rows::read(&files, &metadata)?;
        let estimated = PlanComparison::read(folder, &metadata)?;
        let mut section = Section {
            stage,
            state,
            rows: rows.count,
            columns: rows.columns,
            samples: rows.samples,
            errors: errors::read(&folder.join("errors.jsonl"))?,
            spent: BuildSpend::of(&metadata),
            estimated,
            timeline: timeline::read(&folder.join("events.jsonl"))?,
            metadata,
        };
        section.name_rows(home)?;
        Ok(section)
    }

    fn name_rows(&mut self, home: &Path) -> Result<(), FileError> {
        let examples = || self.errors.groups.iter().flat_map(|group| &group.examples);
        let rows =
            self.samples.iter().filter_map(|sample| sample.id).chain(examples().map(|example| example.id));
        let names = RowNames::read(home, rows)?;
        for sample in &mut self.samples {
            sample.name = sample.id.map(|id| names.name(id));
        }
        for example in self.errors.groups.iter_mut().flat_map(|group| &mut group.examples) {
            example.row = names.name(example.id);
        }
        Ok(())
    }

    /// The time of all runs of the build; of an older build, the time of its last event.
    pub fn elapsed_ms(&self) -> u64 {
        if self.metadata.elapsed_ms > 0 { self.metadata.elapsed_ms } else { self.timeline.end_ms }
    }

    /// True if rows were left out on their way through stages, steps or the conditions of acceptance.
    pub fn has_stages(&self) -> bool {
        let metadata = &self.metadata;
        let is_plain = |stage: &StageReport| stage.steps.is_empty() && stage.rejected + stage.surplus == 0;
        metadata.stages.len() > 1 || !metadata.stages.iter().all(is_plain)
    }

    /// The word for the state.
    pub fn state_name(&self) -> &'static str {
        match self.state {
            BuildState::Running => "running",
            BuildState::Complete => "complete",
            BuildState::Stopped => "stopped",
            BuildState::Failed => "failed",
            BuildState::Interrupted => "interrupted",
        }
    }

    /// The name of the dataset, and of the stage.
    pub fn title(&self) -> String {
        let name =
            if self.metadata.dataset_name.is_empty() { "dataset" } else { &self.metadata.dataset_name };
        match &self.stage {
            Some(stage) => format!("{name}, stage {stage}"),
            None => name.to_owned(),
        }
    }
}

/// The folders of stages in a dataset's folder, in the order of their numbers.
pub(crate) fn stage_folders(folder: &Path) -> Result<Vec<PathBuf>, FileError> {
    let stages = folder.join("stages");
    let entries = match std::fs::read_dir(&stages) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|cause| unreadable(&stages, cause))?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(|cause| unreadable(&stages, cause))?.path();
        if path.join("metadata.json").exists() {
            found.push(path);
        }
    }
    found.sort_by_key(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let number: Option<u64> = name.split('-').next().and_then(|number| number.parse().ok());
        (number.unwrap_or(u64::MAX), name)
    });
    Ok(found)
}

/// The metadata in a folder.
pub(crate) fn metadata(folder: &Path) -> Result<Metadata, FileError> {
    let missing = || unreadable(&folder.join("metadata.json"), io::ErrorKind::NotFound.into());
    Metadata::read(folder)?.ok_or_else(missing)
}

/// The files with rows. The folder around stages may have none of its own.
pub(crate) fn row_files(folder: &Path, is_stage: bool) -> Result<Vec<PathBuf>, FileError> {
    match Folder::open(folder) {
        Err(error) if error.cause.kind() == io::ErrorKind::NotFound && (is_stage || has_stages(folder)) => {
            Ok(Vec::new())
        }
        opened => opened?.row_files(),
    }
}

fn has_stages(folder: &Path) -> bool {
    folder.join("stages").is_dir()
}

/// The state of the build. A folder without a status was built by an older version, or belongs to a stage.
fn state(folder: &Path, metadata: &Metadata) -> Result<BuildState, FileError> {
    match FolderStatus::read(folder) {
        Ok(status) => Ok(status.build.state),
        Err(error) if error.cause.kind() == io::ErrorKind::NotFound => {
            Ok(if metadata.is_complete { BuildState::Complete } else { BuildState::Interrupted })
        }
        Err(error) => Err(error),
    }
}

fn unreadable(path: &Path, cause: io::Error) -> FileError {
    FileError { action: "read", path: path.to_owned(), cause }
}

/// The lines of a file, one at a time; none if there is no such file.
pub(crate) fn lines(
    path: &Path,
    mut visit: impl FnMut(&str) -> Result<(), serde_json::Error>,
) -> Result<(), FileError> {
    let file = match std::fs::File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        file => file.map_err(|cause| unreadable(path, cause))?,
    };
    let mut file = io::BufReader::new(file);
    let mut line = String::new();
    loop {
        line.clear();
        let read = io::BufRead::read_line(&mut file, &mut line).map_err(|cause| unreadable(path, cause))?;
        if read == 0 {
            return Ok(());
        }
        // A killed build may have left half of its last line.
        if line.ends_with('\n') && !line.trim().is_empty() {
            visit(&line).map_err(|error| unreadable(path, error.into()))?;
        }
    }
}
