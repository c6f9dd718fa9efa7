//! `anabranch recipe export` and `import`.

use std::path::{Path, PathBuf};

use anabranch_text::{count, size};
use clap::Args;
use serde_json::json;

use super::at::{At, Missing};
use super::pour::Sink;
use super::{pin, pour, show};
use crate::failure::Failure;
use crate::out;

/// Writes an archive.
#[derive(Args)]
pub(crate) struct Export {
    /// The archive; `-` is stdout.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Addresses or names; if none is given, all that pins and names lead to.
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,
    #[command(flatten)]
    at: At,
    /// What was written, as JSON on stdout.
    #[arg(long)]
    json: bool,
}

/// Brings in an archive.
#[derive(Args)]
pub(crate) struct Import {
    /// The archive; `-` is stdin.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    at: At,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

impl Export {
    pub(crate) fn run(self) -> Result<(), Failure> {
        if self.json && self.file == Path::new("-") {
            return Err(Failure::Wrong("--json and the archive cannot both go to stdout".to_owned()));
        }
        self.at.run(Missing::Refuse, async |backend| {
            let addresses = match self.targets.is_empty() {
                false => backend.find_all(&self.targets).await?,
                true => {
                    let mut roots = pin::all(backend).await?;
                    roots.extend(backend.refs().await?.into_iter().map(|(_, address)| address));
                    roots
                }
            };
            let sink = Sink::to(Some(&self.file))?;
            let exported = backend.export(&addresses, sink.writer()?).await?;
            sink.finish()?;
            let missing = show::addresses(&exported.missing);
            if self.json {
                return show::json(&json!({
                    "blobs": exported.blobs, "recipes": exported.derivations, "memos": exported.memos,
                    "bytes": exported.bytes, "missing": missing,
                }));
            }
            missing.iter().for_each(|address| out::note(&format!("warning: {address} is not here")));
            out::note(&format!(
                "{}, {} and {}: {}",
                count(exported.blobs, "blob"),
                count(exported.derivations, "recipe"),
                count(exported.memos, "memo"),
                size::format(exported.bytes),
            ));
            Ok(())
        })
    }
}

impl Import {
    pub(crate) fn run(self) -> Result<(), Failure> {
        self.at.run(Missing::Make, async |backend| {
            let imported = backend.import(pour::open(&self.file)?).await?;
            if self.json {
                let (things, new, bytes) = (imported.things, imported.new, imported.bytes);
                return show::json(&json!({"things": things, "new": new, "bytes": bytes}));
            }
            let (things, size) = (count(imported.things, "thing"), size::format(imported.bytes));
            out::note(&format!("{things}, {} of them new: {size}", imported.new));
            Ok(())
        })
    }
}
