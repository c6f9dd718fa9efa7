//! `anabranch dataset why`.

use std::path::{Path, PathBuf};

use anabranch_content::Error as StoreError;
use anabranch_dataset::config::Config;
use anabranch_dataset::{
    BuildOptions, ColumnEdits, Error, JournalCause, JournalPlace, LoadedConfig, Sources, TracedCell,
};
use anabranch_dataset_inspect::{BuiltFrom, RowPath, RowStory};
use anabranch_text::count;
use clap::Args;

use super::report_command::unread;
use super::sources::{engine, offline_dataset, runtime};
use super::{unbuilt, why_json, why_text};
use crate::failure::Failure;
use crate::{out, wait};

/// The end of the help text.
pub(super) const HELP: &str = "\
It tells where the row is in the files, or which column, condition or step dropped it and why; and for
each cell the prompt as it was rendered, the model with its parameters, each reply with its tokens
and its time, whether this build paid for it or found it in the journal, and the value.

No model is asked. The row is made once more from the configuration, the seed and the journal, which
are found by the note that `build` left in the folder (sources.json). What is gone or was edited since
is named, and the rest is told from the files.

  anabranch dataset why tickets 17
  anabranch dataset why tickets 17.3 --column answer --full
  anabranch dataset why tickets 17 --json

ROW is the number of a row, from 0, as errors.jsonl has it. A row that the step `explode` made is written
as the row that it was made of, and its item, from 0: 17.3.

Exit codes: 0 told, whether or not the row is in the files; 1 there is no dataset, or it cannot be read
(stderr says why); 2 wrong usage.";

/// Tells the story of one row.
#[derive(Args)]
pub(crate) struct Why {
    /// The folder that `build --out` named.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// The row: its number, or a part of it such as 17.3.
    #[arg(value_name = "ROW")]
    row: RowPath,
    /// Tells about this column only.
    #[arg(long, value_name = "NAME")]
    column: Option<String>,
    /// Shows prompts, replies and values whole.
    #[arg(long)]
    full: bool,
    /// One JSON object; its texts are whole.
    #[arg(long)]
    json: bool,
    /// The configuration, if it is not where it was when the dataset was built.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The file with models, if it is not where it was.
    #[arg(long, value_name = "MODELS.yaml")]
    models: Option<PathBuf>,
    /// The folder of the journal, if it is not where it was.
    #[arg(long, value_name = "DIR")]
    journal: Option<PathBuf>,
}

/// Everything that is known about a row.
pub(super) struct KnownRow {
    pub(super) folder: PathBuf,
    pub(super) story: RowStory,
    pub(super) built: Option<BuiltFrom>,
    /// `None` if the configuration cannot be read.
    pub(super) config: Option<Config>,
    /// The cells of the row and of the rows that it was made from.
    pub(super) cells: Vec<TracedCell>,
    /// Notes about missing information, with the reasons.
    pub(super) notes: Vec<String>,
}

impl Why {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let story = RowStory::read(&self.folder, &self.row).map_err(|error| unread(&self.folder, error))?;
        let built = BuiltFrom::read(&self.folder)?;
        let mut known = KnownRow {
            folder: self.folder.clone(),
            story,
            built,
            config: None,
            cells: Vec::new(),
            notes: Vec::new(),
        };
        if let Err(note) = self.trace(&mut known) {
            known.notes.push(note);
        }
        if let Some(column) = &self.column
            && !known.has_column(column)
        {
            return Err(Failure::of(known.no_column(column)));
        }
        match self.json {
            true => out::data(&format!("{}\n", why_json::json(&known, self.column.as_deref()))),
            false => out::data(&why_text::text(&known, self.column.as_deref(), self.full)),
        }
    }

    /// Computes the row again; the error is the reason why that is impossible.
    fn trace(&self, known: &mut KnownRow) -> Result<(), String> {
        let mut loaded = self.load(known.built.as_ref())?;
        let buffer_size = known.story.metadata.buffer_size;
        loaded.config.run.buffer_size = if buffer_size == 0 { 1_000 } else { buffer_size };
        known.config = Some(loaded.config.clone());
        let built = known.built.clone().unwrap_or_default();
        let journal = self.journal(&built)?;
        let options = BuildOptions {
            rows: known.story.metadata.asked_num_records.max(built.rows),
            out: self.folder.clone(),
            journal: JournalPlace::Folder(journal.clone()),
            ..BuildOptions::default()
        };
        let mut ids: Vec<u64> = known.story.stages.iter().map(|stage| stage.id).collect();
        ids.dedup();
        let runtime = runtime().map_err(|failure| format!("{failure:?}"))?;
        for id in ids {
            let traced = trace_row(&loaded, &options, built.demo, id, &mut known.notes);
            let traced = wait::on(&runtime, Box::pin(traced)).map_err(|error| untraced(&error, &journal))?;
            let is_new = |cell: &TracedCell| known.cells.iter().all(|other| other.column != cell.column);
            let new: Vec<TracedCell> = traced.into_iter().filter(is_new).collect();
            known.cells.extend(new);
        }
        Ok(())
    }

    /// Reads the configuration of the build.
    fn load(&self, built: Option<&BuiltFrom>) -> Result<LoadedConfig, String> {
        let Some(config) = self.config.as_ref().or(built.map(|built| &built.config)) else {
            return Err("the folder does not say what it was built from: name the configuration (--config FILE) to see \
                        prompts and replies"
                .to_owned());
        };
        if !config.exists() {
            return Err(format!(
                "the configuration {} is not there any more: name it (--config FILE) to see prompts and replies",
                config.display()
            ));
        }
        let sources = Sources {
            config: config.clone(),
            models: self.models.clone().or(built.and_then(|built| built.models.clone())),
            run: built.and_then(|built| built.run_config.clone()),
            seed: built.map_or(0, |built| built.seed),
            seed_folders: None,
        };
        LoadedConfig::read(&sources).map_err(|problems| {
            format!(
                "the configuration {} cannot be read now ({}): `anabranch dataset check` lists what is wrong",
                config.display(),
                count(problems.errors.len(), "error")
            )
        })
    }

    /// The path of the journal's folder.
    fn journal(&self, built: &BuiltFrom) -> Result<PathBuf, String> {
        let journal = match (&self.journal, &built.journal) {
            (Some(journal), _) | (None, Some(journal)) => journal.clone(),
            (None, None) if built.config.as_os_str().is_empty() => self.folder.join("journal"),
            (None, None) => {
                return Err(
                    "the dataset was built without a journal, so its prompts and replies are not known"
                        .to_owned(),
                );
            }
        };
        match std::fs::read_dir(&journal).is_ok_and(|mut entries| entries.next().is_some()) {
            true => Ok(journal),
            false => Err(format!(
                "the journal {} is gone, and the prompts and replies with it; name another one (--journal DIR) if it was \
                 moved",
                journal.display()
            )),
        }
    }
}

/// Traces the cells of a row.
async fn trace_row(
    loaded: &LoadedConfig,
    options: &BuildOptions,
    demo: bool,
    id: u64,
    notes: &mut Vec<String>,
) -> Result<Vec<TracedCell>, Error> {
    let engine = engine().map_err(|failure| Error::Setup(format!("{failure:?}")))?;
    let dataset = offline_dataset(loaded, &engine, demo)?;
    if let Some(metadata) = anabranch_dataset::output::Metadata::read(&options.out)? {
        let (differ, columns) = dataset.difference(&metadata);
        let note = edited(&differ, &columns);
        notes.extend(note.filter(|note| !notes.contains(note)));
    }
    let trace = dataset.trace_row(options, id).await?;
    Ok(trace.map_or_else(Vec::new, |trace| trace.cells))
}

/// A note about inputs that have changed.
fn edited(differ: &[String], columns: &ColumnEdits) -> Option<String> {
    if differ.is_empty() && columns.is_empty() {
        return None;
    }
    Some(format!(
        "the dataset was made with {}: prompts are shown as they are now",
        unbuilt::others(differ, columns)
    ))
}

/// The reason why the row cannot be computed again.
fn untraced(error: &Error, journal: &Path) -> String {
    if let Error::Journal(error) = error
        && let JournalCause::Store(store) = &error.cause
        && let StoreError::Owned { owner, .. } = &**store
    {
        return format!(
            "the journal {} is in use by {owner}: prompts and replies can be seen when that build has ended",
            journal.display()
        );
    }
    format!("prompts and replies cannot be shown: {error}")
}

impl KnownRow {
    fn names(&self) -> Vec<&str> {
        let files = self.story.stages.iter().flat_map(|stage| &stage.values).map(|(name, _)| name.as_str());
        let traced = self.cells.iter().flat_map(|cell| {
            std::iter::once(cell.column.as_str()).chain(cell.values.iter().map(|(name, _)| name.as_str()))
        });
        let errors =
            self.story.stages.iter().flat_map(|stage| &stage.errors).map(|error| error.column.as_str());
        let configured = self.config.iter().flat_map(|config| &config.columns).map(|column| &*column.name);
        files.chain(traced).chain(errors).chain(configured).collect()
    }

    fn has_column(&self, column: &str) -> bool {
        self.names().contains(&column)
    }

    fn no_column(&self, column: &str) -> String {
        let near = anabranch_text::closest(column, self.names());
        let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        format!("the row has no column {}{near}", anabranch_text::quote(column))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_in_use_is_told() {
        let cause = StoreError::Owned { owner: "process 7".to_owned(), listens_on: None };
        let error = anabranch_dataset::JournalError {
            action: "open",
            path: "out/journal".into(),
            cause: cause.into(),
        };
        let told = untraced(&Error::from(error), Path::new("out/journal"));
        assert!(
            told.starts_with("the journal out/journal is in use by process 7: prompts and replies"),
            "{told}"
        );
    }
}
