//! The history of one row, from the files of its dataset: its location, or the reason why it was dropped, stage by
//! stage.

mod built_from;
mod path;
mod stage;

use std::path::{Path, PathBuf};

use anabranch_dataset::output::{FileError, Metadata};
use anabranch_dataset::stages::{StepFate, child_id};

pub use built_from::BuiltFrom;
pub use path::{NotARow, RowPath};
pub use stage::{RowPlace, StageStory};

use crate::report::{metadata, stage_folders};

/// The story of one row.
#[derive(Clone, Debug)]
pub struct RowStory {
    /// The row as it is written.
    pub row: String,
    /// The stages that the row went through, up to the one that it did not survive.
    pub stages: Vec<StageStory>,
    /// The metadata of the dataset.
    pub metadata: Metadata,
}

/// The effect of the steps after a stage on a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepStory {
    /// The row was passed to the next stage.
    Passed,
    /// A step dropped the row.
    Dropped { step: String, fate: StepFate },
    /// A step exploded the row into these rows.
    Became { step: String, rows: Vec<String> },
    /// A step exploded the row, and this part is not among the resulting rows.
    NoSuchPart { step: String, row: String, rows: usize },
}

/// Rows that a list shows.
const LISTED: usize = 20;

impl RowStory {
    /// Reads the history of a row. Blocks.
    pub fn read(home: &Path, row: &RowPath) -> Result<RowStory, FileError> {
        let metadata = metadata(home)?;
        let mut folders = stage_folders(home)?;
        let path = row.resolved(&folders)?;
        folders.push(home.to_owned());
        let mut walk = Walk { id: path.first, parts: path.parts.clone(), row: RowPath::new(path.first, &[]) };
        let mut stages = Vec::new();
        for (number, folder) in folders.iter().enumerate() {
            walk.enter_cycle();
            let is_last = number + 1 == folders.len();
            let name = if folders.len() == 1 { None } else { Some(stage_name(folder, &metadata, is_last)) };
            let mut story = StageStory::read(folder, name, (walk.id, walk.row.to_string()), !is_last)?;
            if let RowPlace::InFile { file, .. } = &mut story.place {
                *file = file.strip_prefix(home).unwrap_or(file).to_owned();
            }
            let has_ended = match &story.place {
                RowPlace::InFile { .. } if !is_last => {
                    story.steps = walk.through_steps(folder)?;
                    story.steps != StepStory::Passed
                }
                RowPlace::InFile { .. } => false,
                _ => true,
            };
            stages.push(story);
            if has_ended {
                break;
            }
        }
        if let (Some(last), [_, ..]) = (stages.last_mut(), &walk.parts[..])
            && last.steps == StepStory::Passed
        {
            // The row exists, and was never exploded.
            last.place = RowPlace::NoSuchPart { row: path.to_string() };
        }
        Ok(RowStory { row: path.to_string(), stages, metadata })
    }
}

/// The name of a stage: that of its folder without the number, or the last one of the metadata.
fn stage_name(folder: &Path, metadata: &Metadata, is_last: bool) -> String {
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    match metadata.stages.last() {
        Some(last) if is_last => last.name.clone(),
        _ => name.split_once('-').map_or(name.clone(), |(_, name)| name.to_owned()),
    }
}

/// A row on its way through the stages.
struct Walk {
    id: u64,
    /// The parts that are still to come.
    parts: Vec<u32>,
    /// The row so far.
    row: RowPath,
}

impl Walk {
    /// A stage that makes more rows than it is given starts over, and its rows get ids of their own.
    fn enter_cycle(&mut self) {
        if self.parts.first().is_some_and(|part| part >> 31 == 1) {
            self.enter_part();
        }
    }

    fn enter_part(&mut self) {
        let part = self.parts.remove(0);
        self.id = child_id(self.id, part);
        self.row.parts.push(part);
    }

    /// Follows the row through the steps behind a stage.
    fn through_steps(&mut self, folder: &Path) -> Result<StepStory, FileError> {
        loop {
            let (mut own, mut parts, mut taken_apart) = (None, Vec::new(), 0);
            anabranch_dataset::stages::read_fates(folder, |fate| match fate.fate {
                StepFate::Item { parent, item } if parent == self.id => {
                    parts.push(item);
                    taken_apart = fate.step;
                }
                StepFate::Item { .. } => {}
                _ if fate.row == self.id => own = Some(fate),
                _ => {}
            })?;
            if let Some(own) = own {
                return Ok(StepStory::Dropped { step: step_name(folder, own.step)?, fate: own.fate });
            }
            if parts.is_empty() {
                return Ok(StepStory::Passed);
            }
            let step = step_name(folder, taken_apart)?;
            match self.parts.first() {
                Some(part) if parts.contains(part) => self.enter_part(),
                Some(part) => {
                    let row = format!("{}.{part}", self.row);
                    return Ok(StepStory::NoSuchPart { step, row, rows: parts.len() });
                }
                None => {
                    let rows = parts.iter().take(LISTED).map(|part| format!("{}.{part}", self.row));
                    let mut rows: Vec<String> = rows.collect();
                    if parts.len() > LISTED {
                        rows.push("...".to_owned());
                    }
                    return Ok(StepStory::Became { step, rows });
                }
            }
        }
    }
}

/// A step in words: its number from 1, and its name.
fn step_name(folder: &Path, number: u32) -> Result<String, FileError> {
    let path: PathBuf = folder.join("steps.json");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let done: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    let name = done["steps"][number as usize]["step"].as_str().map(|name| format!(" ({name})"));
    Ok(format!("step {}{}", number + 1, name.unwrap_or_default()))
}
