//! `anabranch dataset export`.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use anabranch_dataset::output::{ExportFormat, Folder, export};
use anabranch_text::count;
use clap::{Args, ValueEnum};

use crate::failure::Failure;
use crate::out;

/// Writes the rows of a dataset in another format.
#[derive(Args)]
pub(crate) struct Export {
    /// The folder that `build --out` named.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// The format of the rows.
    #[arg(long, value_name = "FORMAT")]
    format: Format,
    /// Where to; stdout if not given, or `-`.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// One JSON object per line.
    Jsonl,
    /// Comma-separated values below a header; lists and maps are written as JSON.
    Csv,
}

impl Export {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let format = match self.format {
            Format::Jsonl => ExportFormat::Jsonl,
            Format::Csv => ExportFormat::Csv,
        };
        let folder = Folder::open(&self.folder).map_err(|error| match error.cause.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                let folder = self.folder.display();
                Failure::of(format!(
                    "{folder} holds no dataset; name the folder that `dataset build --out` wrote"
                ))
            }
            _ => Failure::from(error),
        })?;
        match self.output.as_deref().filter(|path| *path != Path::new("-")) {
            None => {
                let mut stdout = BufWriter::with_capacity(1 << 16, io::stdout().lock());
                match export(&folder, format, Path::new("stdout"), &mut stdout) {
                    Err(error) if error.cause.kind() == io::ErrorKind::BrokenPipe => {
                        Err(Failure::OutputClosed)
                    }
                    exported => Ok(exported.map(drop)?),
                }
            }
            Some(path) => {
                let cannot = |error| Failure::of(format!("cannot write {}: {error}", path.display()));
                let mut file = BufWriter::with_capacity(1 << 16, File::create(path).map_err(cannot)?);
                let rows = export(&folder, format, path, &mut file)?;
                out::note(&format!("wrote {} to {}", count(rows, "row"), path.display()));
                Ok(())
            }
        }
    }
}
