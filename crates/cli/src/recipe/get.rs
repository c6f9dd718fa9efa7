//! `anabranch recipe get`.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anabranch_content::Address;
use anabranch_engine::clock::{Clock as _, SystemClock};
use anabranch_recipe::Folder;
use anabranch_text::{count, duration, size};
use clap::Args;
use serde_json::json;

use super::at::{At, MissingStore};
use super::backend::Backend;
use super::folder::{self, ExistingFolder, Output};
use super::incoming::IncomingValue;
use super::pour::Sink;
use super::progress::{ComputeProgress, Meter, watched};
use super::show;
use crate::failure::Failure;
use crate::out;

pub(super) const HELP: &str = "\
stdout: the bytes of the value, unchanged; the value of a folder is its listing in JSON. With --output, \
the value goes to a file, and a folder to a folder, which appears once it is complete, and stderr says \
whether the value was computed.

  anabranch recipe get page
  anabranch recipe get page --range 0..1024 -o beginning.bin
  anabranch recipe get site -o public               # a folder, as `recipe put site/` kept it
  anabranch recipe get site:css/main.css            # a file in it

Exit codes: 0 written; 1 not found, failed, or not in time; 2 wrong usage; 3 written, but data that \
had been acknowledged was lost (the log says what).";

/// Writes a value.
#[derive(Args)]
pub(crate) struct Get {
    /// An address, the first 6 or more digits of one, a name, or FOLDER:PATH of a file in a folder.
    #[arg(value_name = "TARGET")]
    target: String,
    /// The file or folder to write; stdout if not given. A folder is written to a folder that does not exist or is empty.
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Replaces an existing folder and everything in it. An existing file is replaced without this option.
    #[arg(long, requires = "output")]
    force: bool,
    /// Only these bytes: FIRST..END, either may be left out.
    #[arg(long, value_name = "A..B", value_parser = range, default_value = "..", hide_default_value = true)]
    range: Range<u64>,
    /// The timeout, such as 500ms or 2s.
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    timeout: Option<Duration>,
    #[command(flatten)]
    at: At,
    /// The value's source, address and size, as JSON on stdout; for use with --output.
    #[arg(long, requires = "output")]
    json: bool,
}

impl Get {
    pub(crate) fn run(self) -> Result<(), Failure> {
        if self.json && self.output.as_deref() == Some(Path::new("-")) {
            return Err(Failure::Wrong("--json and the value cannot both go to stdout".to_owned()));
        }
        self.at.run_until(
            "stopped; values that were computed are kept",
            MissingStore::Refuse,
            async |backend| {
                let began = SystemClock.now();
                let address = backend.find(&self.target).await?;
                if let Some(path) = self.folder_path()
                    && let Some(folder) = folder_at(backend, address).await?
                {
                    return self.write_folder(backend, (address, folder), path, began).await;
                }
                // The output is opened before anything is computed, so that a failure is reported early.
                let sink = Sink::to(self.output.as_deref(), &self.at.folder()?)?;
                let get = backend.get(address, self.range.clone(), self.timeout);
                let mut got = watched(backend, get, ComputeProgress::new().as_ref()).await?;
                let written = write(&mut got, sink, &self.range).await?;
                let took = SystemClock.now() - began;
                if self.json {
                    let mut json = show::source_json(got.source);
                    json["output"] = got.output.to_string().into();
                    json["size"] = got.size.into();
                    json["written"] = written.into();
                    if got.cut_off > 0 {
                        json["cut_off"] = got.cut_off.into();
                    }
                    json["micros"] = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).into();
                    return show::json(&json);
                }
                if self.output.is_some() {
                    let (size, source) = (size::format(written), show::source(got.source));
                    let cut_off = match got.cut_off {
                        0 => String::new(),
                        recipes => format!(" ({} had equal inputs before)", count(recipes, "more recipe")),
                    };
                    out::note(&format!("{size}, {source}{cut_off}, in {}", duration::format(took)));
                }
                Ok(())
            },
        )
    }
}

impl Get {
    /// The path for writing a folder.
    fn folder_path(&self) -> Option<&Path> {
        self.output.as_deref().filter(|path| *path != Path::new("-"))
    }

    async fn write_folder(
        &self,
        backend: &Backend,
        (address, folder): (Address, Folder),
        path: &Path,
        began: Instant,
    ) -> Result<(), Failure> {
        if self.range != (0..u64::MAX) {
            return Err(Failure::Wrong("--range is for files; a folder is written as a whole".to_owned()));
        }
        let existing = if self.force { ExistingFolder::Replace } else { ExistingFolder::Refuse };
        let output = Output::to(path, existing, &self.at.folder()?)?;
        let written = folder::write(backend, folder, output, self.timeout).await?;
        let took = SystemClock.now() - began;
        if self.json {
            return show::json(&json!({
                "source": "folder", "output": address.to_string(), "written": written.bytes,
                "files": written.files, "folders": written.folders, "links": written.links,
                "micros": u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
            }));
        }
        out::note(&format!("{}, in {}", written.summary(), duration::format(took)));
        Ok(())
    }
}

/// The folder at an address, if it is one.
async fn folder_at(backend: &Backend, address: Address) -> Result<Option<Folder>, Failure> {
    match backend.resolve(address).await?.recipe {
        None => Ok(None),
        Some(recipe) => Folder::of(&recipe).map_err(|malformed| Failure::of(malformed.to_string())),
    }
}

async fn write(got: &mut IncomingValue<'_>, mut sink: Sink, range: &Range<u64>) -> Result<u64, Failure> {
    let wanted = range.end.min(got.size).saturating_sub(range.start);
    let mut meter = Meter::new("writing", Some(wanted));
    let mut written = 0;
    while let Some(piece) = got.next().await? {
        sink.write(&piece)?;
        written += piece.len() as u64;
        meter.add(piece.len());
    }
    drop(meter);
    sink.finish()?;
    Ok(written)
}

/// Parses `A..B`, `A..`, `..B` or `..`.
fn range(text: &str) -> Result<Range<u64>, String> {
    let wrong = || "a range looks like 0..1024, 100.. or ..100".to_owned();
    let (first, end) = text.split_once("..").ok_or_else(wrong)?;
    let number = |text: &str, otherwise| match text {
        "" => Ok(otherwise),
        text => text.parse().map_err(|_| wrong()),
    };
    let range = number(first, 0)?..number(end, u64::MAX)?;
    match range.start <= range.end {
        true => Ok(range),
        false => Err(format!("the range begins at byte {}, after its end, {}", range.start, range.end)),
    }
}
