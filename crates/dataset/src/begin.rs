//! The beginning of a build and of each of its stages: the results of an earlier build, and the remaining work.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use crate::dataset::BuildOptions;
use crate::error::Error;
use crate::inputs::{self, Inputs};
use crate::journal::Journal;
use crate::output::{FileError, Folder, GroupOnDisk, Lock, Metadata};
use crate::run::Groups;
use crate::stop::StopSwitch;

/// An output folder that is ready for a build.
pub(crate) struct Beginning {
    pub(crate) folder: Folder,
    /// Held as long as the build.
    pub(crate) lock: Lock,
    pub(crate) journal: Option<Journal>,
    /// The metadata of the build that is continued.
    pub(crate) before: Option<Metadata>,
    /// Failed rows are tried again.
    pub(crate) is_retry: bool,
    /// The number of requested retries of failed rows, including this one.
    pub(crate) retry_rounds: u32,
}

/// Prepares a folder for a build, or says why it cannot be built into. Blocks.
pub(crate) fn begin(options: &BuildOptions, inputs: &Inputs, stop: StopSwitch) -> Result<Beginning, Error> {
    let path = &options.out;
    std::fs::create_dir_all(path).map_err(|cause| FileError {
        action: "create",
        path: path.clone(),
        cause,
    })?;
    let lock = Lock::take(path)?;
    let before = if options.replace { None } else { earlier(path, inputs, options.rows)? };
    let journal = options.journal_folder().map(|path| Journal::open(&path, stop)).transpose()?;
    if options.replace {
        Folder::clear(path)?;
    }
    let folder = Folder::create(path)?;
    let is_retry = options.retry_failed && before.is_some();
    let retry_rounds = before.as_ref().map_or(0, |before| before.retry_rounds) + u32::from(is_retry);
    Ok(Beginning { folder, lock, journal, before, is_retry, retry_rounds })
}

/// The metadata of the build that this one continues; `None` if there is no such build.
fn earlier(path: &Path, inputs: &Inputs, rows: u64) -> Result<Option<Metadata>, Error> {
    let Some(before) = Metadata::read(path)? else {
        return match Folder::holds_dataset(path) {
            true => Err(Error::Inputs {
                path: path.to_owned(),
                differ: vec!["metadata.json".to_owned()],
                columns: Box::default(),
            }),
            false => Ok(None),
        };
    };
    let (differ, columns) = inputs::difference(inputs, &before.inputs);
    let has_rows = Folder::has_rows(path) || Folder::has_stages(path);
    let is_other = !differ.is_empty() || !columns.is_empty();
    if is_other && !has_rows {
        return Ok(None);
    }
    if is_other {
        return Err(Error::Inputs { path: path.to_owned(), differ, columns: Box::new(columns) });
    }
    if rows < before.asked_num_records && has_rows {
        return Err(Error::FewerRows { path: path.to_owned(), rows: before.asked_num_records });
    }
    Ok(Some(before))
}

/// The row groups of a stage that are on disk already.
#[derive(Default)]
pub(crate) struct FoundGroups {
    /// The metadata of a stage that has nothing left to do.
    pub(crate) done: Option<Metadata>,
    /// Groups that stay.
    pub(crate) kept: BTreeMap<u64, GroupOnDisk>,
    /// Groups that are on disk in part, and are built again.
    pub(crate) parts: BTreeMap<u64, GroupOnDisk>,
    /// Groups that are built again, with the positions of their rows. Only for stages that accept some of their rows.
    pub(crate) again: Vec<(u64, Range<u64>)>,
}

/// The stage that groups are looked for.
pub(crate) struct WantedGroups<'a> {
    pub(crate) groups: Groups,
    /// It generates rows until enough are accepted.
    pub(crate) accepts: bool,
    pub(crate) inputs: &'a Inputs,
    /// The digest of the rows that the stage starts from.
    pub(crate) input_digest: &'a str,
    pub(crate) is_retry: bool,
    pub(crate) has_journal: bool,
}

/// Finds the row groups of a stage that stay. All others are removed: their replies are in the journal. Blocks.
pub(crate) fn find_groups(folder: &Folder, wanted: &WantedGroups<'_>) -> Result<FoundGroups, Error> {
    let before = Metadata::read(folder.path())?;
    let is_same =
        |before: &&Metadata| before.inputs == *wanted.inputs && before.input_digest == wanted.input_digest;
    let Some(before) = before.as_ref().filter(is_same) else {
        folder.clear_rows()?;
        return Ok(FoundGroups::default());
    };
    let has_failures = wanted.is_retry && !before.errors.is_empty();
    if before.is_complete && before.target_num_records == wanted.groups.rows && !has_failures {
        return Ok(FoundGroups { done: Some(before.clone()), ..FoundGroups::default() });
    }
    if wanted.accepts { in_order(folder, wanted) } else { survey(folder, wanted) }
}

/// Looks for the row groups of a stage that would stay, and removes nothing. Blocks.
pub(crate) fn look_at_groups(folder: &Folder, wanted: &WantedGroups<'_>) -> Result<FoundGroups, FileError> {
    Ok(match wanted.accepts {
        true => groups_in_order(folder, wanted)?.0,
        false => groups_of_size(folder, wanted)?.0,
    })
}

/// Finds the groups of fixed size that stay.
fn survey(folder: &Folder, wanted: &WantedGroups<'_>) -> Result<FoundGroups, Error> {
    let (found, same_rows) = groups_of_size(folder, wanted)?;
    let files = folder.row_files()?.len();
    if files > same_rows.len() && !wanted.has_journal {
        return Err(Error::Setup(format!(
            "{} holds row groups of another size, and there is no journal to rebuild them from; \
             use the same buffer size, or let --replace remove them",
            folder.path().display()
        )));
    }
    folder.remove_groups(|group| same_rows.binary_search(&group).is_ok())?;
    Ok(found)
}

/// The groups of fixed size that stay, and the numbers of those that were built for the same rows.
fn groups_of_size(folder: &Folder, wanted: &WantedGroups<'_>) -> Result<(FoundGroups, Vec<u64>), FileError> {
    let (mut kept, mut parts, mut same_rows) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
    for group in 0..wanted.groups.count() {
        let Some(found) = folder.group(group)? else { continue };
        if found.ids != wanted.groups.ids(group) {
            continue;
        }
        same_rows.push(group);
        if found.unfinished == 0 && (!wanted.is_retry || found.errors.is_empty()) {
            kept.insert(group, found);
        } else if found.unfinished > 0 {
            parts.insert(group, found);
        }
    }
    Ok((FoundGroups { kept, parts, ..FoundGroups::default() }, same_rows))
}

/// Finds the groups that follow each other without a gap. Their sizes were chosen as they began.
fn in_order(folder: &Folder, wanted: &WantedGroups<'_>) -> Result<FoundGroups, Error> {
    let (found, groups) = groups_in_order(folder, wanted)?;
    folder.remove_groups(|group| group < groups)?;
    Ok(found)
}

/// The groups that follow each other, and their number.
fn groups_in_order(folder: &Folder, wanted: &WantedGroups<'_>) -> Result<(FoundGroups, u64), FileError> {
    let mut found = FoundGroups::default();
    let mut next_row = 0;
    let mut groups = 0;
    while let Some(group) = folder.group(groups)?.filter(|group| group.ids.start == next_row) {
        next_row = group.ids.end;
        if group.unfinished > 0 || (wanted.is_retry && !group.errors.is_empty()) {
            found.again.push((groups, group.ids));
        } else {
            found.kept.insert(groups, group);
        }
        groups += 1;
    }
    Ok((found, groups))
}
