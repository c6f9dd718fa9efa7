//! The output folder of a build, looked at and not changed.

use std::path::{Path, PathBuf};

use super::EarlierBuild;
use crate::dataset::BuildOptions;
use crate::error::Error;
use crate::inputs::{self, Inputs};
use crate::journal::Journal;
use crate::output::{Folder, FolderStatus, Metadata};
use crate::stop::StopSwitch;

/// The state of a folder that a build would begin with.
pub(super) struct FoundFolder {
    pub(super) journal: Option<Journal>,
    /// The folder, if a build would continue in it.
    pub(super) folder: Option<Folder>,
    /// The metadata of the build that would be continued.
    pub(super) continued: Option<Metadata>,
    pub(super) is_complete: bool,
    pub(super) differ: Vec<String>,
    pub(super) earlier: Option<EarlierBuild>,
    pub(super) is_retry: bool,
    pub(super) retry_rounds: u32,
}

impl FoundFolder {
    /// Lets other processes at the journal.
    pub(super) async fn release(&self) -> Result<(), Error> {
        match &self.journal {
            Some(journal) => Ok(journal.release().await?),
            None => Ok(()),
        }
    }
}

/// Looks at a folder as a build would, and changes nothing. Blocks.
pub(super) fn look(options: &BuildOptions, inputs: &Inputs, stop: StopSwitch) -> Result<FoundFolder, Error> {
    let path = &options.out;
    let before = Metadata::read(path)?;
    let has_rows = Folder::has_rows(path) || Folder::has_stages(path);
    let differ = match &before {
        _ if options.replace || !has_rows => Vec::new(),
        Some(before) => differences(options, inputs, before),
        None => vec!["metadata.json".to_owned()],
    };
    let continued = before.as_ref().filter(|_| differ.is_empty() && has_rows && !options.replace);
    let is_retry = options.retry_failed && continued.is_some();
    let is_complete = continued.is_some_and(|before| {
        let has_failures = is_retry && !before.errors.is_empty();
        before.is_complete && before.asked_num_records == options.rows && !has_failures
    });
    let retry_rounds = continued.map_or(0, |before| before.retry_rounds) + u32::from(is_retry);
    let folder = match continued {
        Some(_) if Folder::has_rows(path) => Some(Folder::open(path)?),
        _ => None,
    };
    let journal = options.journal_folder().filter(has_entries);
    Ok(FoundFolder {
        journal: journal.map(|path| Journal::open(&path, stop)).transpose()?,
        folder,
        is_complete,
        continued: continued.cloned(),
        earlier: before.map(|before| earlier(path, before)),
        differ,
        is_retry,
        retry_rounds,
    })
}

fn differences(options: &BuildOptions, inputs: &Inputs, before: &Metadata) -> Vec<String> {
    let (mut differ, columns) = inputs::difference(inputs, &before.inputs);
    if differ.is_empty() && !columns.is_empty() {
        differ.push("configuration".to_owned());
    }
    if options.rows < before.asked_num_records {
        differ.push("number of rows".to_owned());
    }
    differ
}

/// The build that is in a folder. Blocks.
fn earlier(path: &Path, metadata: Metadata) -> EarlierBuild {
    // A build that was killed at once has no status.
    let status = FolderStatus::read(path).ok();
    EarlierBuild {
        rows: metadata.asked_num_records,
        columns: metadata.columns.into_iter().map(|column| column.name).collect(),
        cells: status.map_or_else(Vec::new, |status| status.build.progress.columns),
        stages: metadata.stages,
    }
}

/// True for a folder that is not empty.
fn has_entries(path: &PathBuf) -> bool {
    std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some())
}
