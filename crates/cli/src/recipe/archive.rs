//! `anabranch recipe export` and `import`.

use std::path::{Path, PathBuf};

use anabranch_content::{Address, Exported};
use anabranch_text::{count, size};
use clap::Args;
use serde_json::json;

use super::at::{At, Missing};
use super::backend::Backend;
use super::input::Input;
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
        self.at.run_until("stopped; the archive is not whole", Missing::Refuse, async |backend| {
            let addresses = match self.targets.is_empty() {
                false => backend.find_all(&self.targets).await?,
                true => {
                    let mut roots = pin::all(backend).await?;
                    roots.extend(backend.refs().await?.into_iter().map(|(_, address)| address));
                    roots
                }
            };
            let mut sink = Sink::to(Some(&self.file))?;
            let exported = match sink.is_file() || !backend.is_shared() {
                true => backend.export(&addresses, &|| sink.rewritten()).await?,
                false => export_spooled(backend, &addresses, &mut sink, &self.at.folder()).await?,
            };
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

/// Exports to a pipe by way of a file: the owner of the store may end half-way, and what went to a pipe cannot be taken
/// back.
async fn export_spooled(
    backend: &Backend,
    addresses: &[Address],
    sink: &mut Sink,
    near: &Path,
) -> Result<Exported, Failure> {
    let failed = |error| Failure::of(format!("cannot keep the archive in a temporary file: {error}"));
    let spool = pour::spool_file(near).map_err(failed)?;
    let exported = backend.export(addresses, &|| pour::emptied(&spool).map_err(failed)).await?;
    let mut archive = pour::rewound(&spool).map_err(failed)?;
    loop {
        let chunk = pour::chunk(&mut archive).map_err(failed)?;
        if chunk.is_empty() {
            return Ok(exported);
        }
        sink.write(&chunk)?;
    }
}

impl Import {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let archive = Input::open(&self.file, &self.at.folder())?;
        self.at.run_until("stopped; what was imported so far is kept", Missing::Make, async |backend| {
            let imported = backend.import(&archive).await?;
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
