//! The beginning of a build: what an earlier one left in the folder, and what is to be done.

use std::collections::BTreeMap;
use std::path::Path;

use crate::dataset::BuildOptions;
use crate::error::Error;
use crate::inputs::{self, Inputs};
use crate::journal::Journal;
use crate::output::{FileError, Folder, GroupOnDisk, Lock, Metadata};
use crate::run::Groups;
use crate::stop::StopSwitch;

/// A folder that is ready for a build.
pub(crate) struct Beginning {
    pub(crate) folder: Folder,
    /// Held as long as the build.
    pub(crate) lock: Lock,
    pub(crate) journal: Option<Journal>,
    /// The metadata of the build that is continued.
    pub(crate) before: Option<Metadata>,
    /// Row groups that are on disk and stay.
    pub(crate) kept: BTreeMap<u64, GroupOnDisk>,
    /// How often failed rows have been tried again on request, this time included.
    pub(crate) retry_rounds: u32,
}

/// Prepares a folder for a build, or says why it cannot be built into. Blocks.
pub(crate) fn begin(
    options: &BuildOptions,
    inputs: &Inputs,
    groups: Groups,
    stop: StopSwitch,
) -> Result<Beginning, Error> {
    let path = &options.out;
    std::fs::create_dir_all(path).map_err(|cause| FileError {
        action: "create",
        path: path.clone(),
        cause,
    })?;
    let lock = Lock::take(path)?;
    let before = if options.replace { None } else { earlier(path, inputs, groups.rows)? };
    let journal = options.journal_folder().map(|path| Journal::open(&path, stop)).transpose()?;
    if options.replace {
        Folder::clear(path)?;
    }
    let folder = Folder::create(path)?;
    let is_retry = options.retry_failed && before.is_some();
    let retry_rounds = before.as_ref().map_or(0, |before| before.retry_rounds) + u32::from(is_retry);
    let is_done = |before: &Metadata| {
        let has_failures = is_retry && !before.errors.is_empty();
        before.is_complete && before.target_num_records == groups.rows && !has_failures
    };
    let kept = match &before {
        Some(before) if is_done(before) => BTreeMap::new(),
        Some(_) => survey(&folder, groups, is_retry, journal.is_some())?,
        None => BTreeMap::new(),
    };
    Ok(Beginning { folder, lock, journal, before, kept, retry_rounds })
}

/// The metadata of the build that this one continues; `None` if there is none.
fn earlier(path: &Path, inputs: &Inputs, rows: u64) -> Result<Option<Metadata>, Error> {
    let Some(before) = Metadata::read(path)? else {
        return match Folder::holds_dataset(path) {
            true => Err(Error::Inputs { path: path.to_owned(), differ: vec!["metadata.json".to_owned()] }),
            false => Ok(None),
        };
    };
    let differ = inputs::difference(inputs, &before.inputs);
    let has_rows = Folder::has_rows(path);
    if !differ.is_empty() && !has_rows {
        return Ok(None);
    }
    if !differ.is_empty() {
        return Err(Error::Inputs { path: path.to_owned(), differ });
    }
    if rows < before.target_num_records && has_rows {
        return Err(Error::FewerRows { path: path.to_owned(), rows: before.target_num_records });
    }
    Ok(Some(before))
}

/// Finds the row groups that stay. Files that belong to other rows now, because the row groups have another size, are
/// removed: their replies are in the journal.
fn survey(
    folder: &Folder,
    groups: Groups,
    is_retry: bool,
    has_journal: bool,
) -> Result<BTreeMap<u64, GroupOnDisk>, Error> {
    let (kept, same_rows) = groups_on_disk(folder, groups, is_retry)?;
    let files = folder.row_files()?.len();
    if files > same_rows.len() && !has_journal {
        return Err(Error::Setup(format!(
            "{} holds row groups of another size, and there is no journal to rebuild them from; \
             use the same buffer size, or let --replace remove them",
            folder.path().display()
        )));
    }
    folder.remove_groups(|group| same_rows.binary_search(&group).is_ok())?;
    Ok(kept)
}

/// The row groups that are whole and stay, and the numbers of those that were built for the same rows. Blocks.
pub(crate) fn groups_on_disk(
    folder: &Folder,
    groups: Groups,
    is_retry: bool,
) -> Result<(BTreeMap<u64, GroupOnDisk>, Vec<u64>), FileError> {
    let (mut kept, mut same_rows) = (BTreeMap::new(), Vec::new());
    for group in 0..groups.count() {
        let Some(found) = folder.group(group)? else { continue };
        if found.ids != groups.ids(group) {
            continue;
        }
        same_rows.push(group);
        let is_tried_again = is_retry && !found.errors.is_empty();
        if found.unfinished == 0 && !is_tried_again {
            kept.insert(group, found);
        }
    }
    Ok((kept, same_rows))
}
