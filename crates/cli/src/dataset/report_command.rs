//! `anabranch dataset report`.

use std::io;
use std::path::{Path, PathBuf};

use anabranch_dataset::output::FileError;
use anabranch_dataset_inspect::Report as DatasetReport;
use clap::Args;

use super::report_text;
use crate::failure::Failure;
use crate::out;

/// The end of the help text.
pub(super) const HELP: &str = "\
The rows are read once, in bounded memory; figures of many rows that are estimates say so. A build
that runs is not disturbed: its report is about the row groups on disk.

stdout: the report as text, or with --json one JSON object. With --html: nothing; the page is one file
without scripts that loads nothing from anywhere, so it can be sent to others as it is.

  anabranch dataset report tickets
  anabranch dataset report tickets --html
  anabranch dataset report tickets --html /tmp/tickets.html

Exit codes: 0 the dataset was read; 1 there is no dataset, or its files cannot be read (stderr says
why); 2 wrong usage.";

/// Shows a built dataset.
#[derive(Args)]
pub(crate) struct Report {
    /// The folder that `build --out` named.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Writes the report as one HTML page: to this file, `-` for stdout, or DIR/report.html if no file is named.
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    html: Option<Option<PathBuf>>,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

impl Report {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let found = DatasetReport::read(&self.folder).map_err(|error| unread(&self.folder, error))?;
        if let Some(to) = self.html {
            return match to {
                Some(to) if to == Path::new("-") => out::data(&found.html()),
                to => write(&to.unwrap_or_else(|| self.folder.join("report.html")), &found),
            };
        }
        match self.json {
            true => {
                let json = serde_json::to_string(&found).expect("numbers and texts are JSON");
                out::data(&format!("{json}\n"))
            }
            false => out::data(&report_text::text(&found)),
        }
    }
}

fn write(path: &Path, found: &DatasetReport) -> Result<(), Failure> {
    out::file(path, &found.html())?;
    out::note(&format!("wrote {}", path.display()));
    Ok(())
}

/// The failure of reading a folder as a dataset.
pub(super) fn unread(folder: &Path, error: FileError) -> Failure {
    let is_missing = matches!(error.cause.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
    if !is_missing {
        return error.into();
    }
    let what = if folder.exists() { "holds no dataset" } else { "does not exist" };
    Failure::of(format!("{} {what}; name the folder that `dataset build --out` wrote", folder.display()))
}
