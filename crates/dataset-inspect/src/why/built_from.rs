//! A note in the output folder about the files and options that a build was started with.

use std::io;
use std::path::{Path, PathBuf};

use anabranch_dataset::output::FileError;
use serde::{Deserialize, Serialize};

const FILE: &str = "sources.json";

/// The files and options that a build was started with, in `sources.json`. It holds no secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuiltFrom {
    /// The configuration.
    pub config: PathBuf,
    /// The file with models.
    pub models: Option<PathBuf>,
    /// The file with run options.
    pub run_config: Option<PathBuf>,
    pub seed: u64,
    /// Every model was the demo model.
    pub demo: bool,
    /// The folder of the journal; `None` if there was none.
    pub journal: Option<PathBuf>,
    /// The requested number of rows.
    pub rows: u64,
    /// The time of the first start of the build, in milliseconds since 1970.
    pub began_ms: u64,
}

impl BuiltFrom {
    /// The note in a folder; `None` if it has no note. Blocks.
    pub fn read(folder: &Path) -> Result<Option<BuiltFrom>, FileError> {
        let path = folder.join(FILE);
        let unreadable = |cause: io::Error| FileError { action: "read", path: path.clone(), cause };
        let text = match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.map_err(unreadable)?,
        };
        serde_json::from_str(&text).map(Some).map_err(|error| unreadable(error.into()))
    }

    /// Writes the note. Blocks.
    pub fn write(&self, folder: &Path) -> Result<(), FileError> {
        let (path, aside) = (folder.join(FILE), folder.join("sources.json.new"));
        let unwritable = |cause: io::Error| FileError { action: "write", path: path.clone(), cause };
        let text = serde_json::to_string_pretty(self).expect("paths and numbers are JSON");
        std::fs::write(&aside, text + "\n").map_err(unwritable)?;
        std::fs::rename(&aside, &path).map_err(unwritable)
    }
}
