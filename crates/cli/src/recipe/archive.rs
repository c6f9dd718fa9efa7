//! `anabranch recipe export`, `import` and `imports`.

use std::path::{Path, PathBuf};

use anabranch_content::{Address, ExportReport};
use anabranch_text::{Plain, count, size, utc};
use clap::{Args, Subcommand};
use serde_json::{Value as Json, json};

use super::at::{At, MissingStore};
use super::backend::Backend;
use super::input::Input;
use super::pour::Sink;
use super::progress::Meter;
use super::{pin, pour, show};
use crate::args::STORE_EXIT_CODES;
use crate::failure::Failure;
use crate::out;
use crate::table::Table;

/// Writes an archive.
#[derive(Args)]
pub(crate) struct Export {
    /// The archive; `-` is stdout.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Addresses, the first 6 or more digits of them, or names; if none is given, all that pins and names lead to.
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,
    #[command(flatten)]
    at: At,
    /// The counts, as JSON on stdout.
    #[arg(long)]
    json: bool,
}

/// Adds the content of an archive.
#[derive(Args)]
pub(crate) struct Import {
    /// The archive; `-` is stdin.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Imports the archive's memos too: records of the values of recipes, which cannot be checked without computing them.
    /// The memos of the store are not replaced.
    #[arg(long)]
    trust_memos: bool,
    /// The import's label in `recipe imports`; the file's name if not given.
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
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
        let stopped = match self.file == Path::new("-") {
            true => "stopped; the archive on stdout is incomplete",
            false => "stopped; no archive was written",
        };
        self.at.run_until(stopped, MissingStore::Refuse, async |backend| {
            let addresses = match self.targets.is_empty() {
                false => backend.find_all(&self.targets).await?,
                true => {
                    let mut roots = pin::all(backend).await?;
                    roots.extend(backend.refs().await?.into_iter().map(|(_, address)| address));
                    roots
                }
            };
            let mut sink = Sink::to(Some(&self.file), &self.at.folder()?)?;
            let exported = match sink.is_file() || !backend.is_shared() {
                true => backend.export(&addresses, &|| sink.rewritten()).await?,
                false => export_spooled(backend, &addresses, &mut sink, &self.at.folder()?).await?,
            };
            sink.finish()?;
            let missing = show::addresses(&exported.missing);
            if self.json {
                return show::json(&json!({
                    "blobs": exported.blobs, "recipes": exported.derivations, "memos": exported.memos,
                    "names": exported.names, "bytes": exported.bytes, "missing": missing,
                }));
            }
            missing.iter().for_each(|address| out::note(&format!("warning: {address} is not in the store")));
            out::note(&format!(
                "{}, {}, {} and {}: {}",
                count(exported.blobs, "blob"),
                count(exported.derivations, "recipe"),
                count(exported.memos, "memo"),
                count(exported.names, "name"),
                size::format(exported.bytes),
            ));
            Ok(())
        })
    }
}

/// Exports to a pipe through a temporary file. The owner of the store may end halfway, and bytes in a pipe cannot be
/// taken back.
async fn export_spooled(
    backend: &Backend,
    addresses: &[Address],
    sink: &mut Sink,
    near: &Path,
) -> Result<ExportReport, Failure> {
    let failed = |error| Failure::of(format!("cannot keep the archive in a temporary file: {error}"));
    let spool = pour::spool_file(near).map_err(failed)?;
    let exported = backend.export(addresses, &|| pour::emptied(&spool).map_err(failed)).await?;
    let mut archive = pour::rewound(&spool).map_err(failed)?;
    let mut meter = Meter::new("writing", Some(exported.bytes));
    loop {
        let chunk = pour::chunk(&mut archive).map_err(failed)?;
        if chunk.is_empty() {
            return Ok(exported);
        }
        sink.write(&chunk)?;
        meter.add(chunk.len());
    }
}

impl Import {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let open = || Input::open(&self.file, &self.at.folder()?);
        let stopped = "stopped; the items that were imported stay";
        self.at.run_with(stopped, MissingStore::Make, open, async |backend, archive| {
            let file_name = || self.file.file_name().map(|name| name.to_string_lossy().into_owned());
            let label = self.label.clone().or_else(file_name).unwrap_or_default();
            let terms =
                anabranch_content::Import { trust_memos: self.trust_memos, label, ..Default::default() };
            let imported = backend.import(&archive, terms).await?;
            if self.json {
                return show::json(&import_json(&imported));
            }
            for it in &imported.names {
                match it.taken_by {
                    None if it.is_skipped => out::note(&format!(
                        "warning: skipped the name `{0}`: it looks like the beginning of an address. To set it here: \
                         anabranch recipe ref set {0} {1}",
                        it.name, it.address
                    )),
                    None => out::data(&format!("{} {}\n", it.address, Plain(&it.name)))?,
                    Some(other) => out::note(&format!(
                        "warning: `{}` is {other} here and stays so; the archive has {}",
                        it.name, it.address
                    )),
                }
            }
            if imported.memos_left_out > 0 && !self.trust_memos {
                let memos = count(imported.memos_left_out, "memo");
                out::note(&format!("{memos} left out; `--trust-memos` imports them unchecked"));
            }
            let (items, size) = (count(imported.items, "item"), size::format(imported.bytes));
            let id = imported.id.map(|id| format!("; import {id} holds them")).unwrap_or_default();
            out::note(&format!("{items}, {} of them new: {size}{id}", imported.new));
            Ok(())
        })
    }
}

fn import_json(imported: &anabranch_content::ImportReport) -> Json {
    let name = |it: &anabranch_content::ImportedName| {
        let taken_by = it.taken_by.map(|it| it.to_string());
        json!({"name": it.name, "address": it.address.to_string(), "taken_by": taken_by, "skipped": it.is_skipped})
    };
    let names: Vec<Json> = imported.names.iter().map(name).collect();
    json!({
        "items": imported.items, "new": imported.new, "bytes": imported.bytes, "import": imported.id,
        "memos_left_out": imported.memos_left_out, "names": names,
    })
}

/// Lists imports, or drops one.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Imports {
    #[command(subcommand)]
    verb: Option<ImportsVerb>,
    #[command(flatten)]
    at: At,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// The verbs of imports.
#[derive(Subcommand)]
enum ImportsVerb {
    /// Drops an import: forgets the memos it brought, and lets collection remove what nothing else holds.
    #[command(after_help = STORE_EXIT_CODES)]
    Drop(DropImport),
}

/// Drops an import.
#[derive(Args)]
struct DropImport {
    /// Its id, as `recipe imports` lists it.
    id: String,
    #[command(flatten)]
    at: At,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

impl Imports {
    pub(crate) fn run(self) -> Result<(), Failure> {
        if let Some(ImportsVerb::Drop(drop)) = self.verb {
            return drop.run();
        }
        self.at.run(MissingStore::Refuse, async |backend| {
            let imports = backend.imports().await?;
            if self.json {
                let one = |it: &anabranch_content::ImportRecord| {
                    json!({
                        "id": it.id, "at_millis": it.at.0, "label": it.label, "blobs": it.blobs,
                        "recipes": it.derivations, "memos": it.memos, "whole": it.is_whole,
                    })
                };
                return show::json(&imports.iter().map(one).collect());
            }
            let mut table = Table::new(["id", "at (UTC)", "blobs", "recipes", "memos", "label"]);
            for it in &imports {
                let label = if it.is_whole { it.label.clone() } else { format!("{} (in part)", it.label) };
                let [blobs, recipes, memos] = [it.blobs, it.derivations, it.memos].map(|it| it.to_string());
                table.row([it.id.clone(), utc(it.at.0), blobs, recipes, memos, label]);
            }
            show::table(&table, imports.len(), "no imports; `anabranch recipe import FILE` makes one")
        })
    }
}

impl DropImport {
    fn run(self) -> Result<(), Failure> {
        self.at.run(MissingStore::Refuse, async |backend| {
            let dropped = backend.drop_import(&self.id).await?;
            let dropped = dropped.ok_or_else(|| {
                Failure::of(format!(
                    "no import has the id {:?}; `anabranch recipe imports` lists them",
                    self.id
                ))
            })?;
            if self.json {
                return show::json(&json!({
                    "id": dropped.record.id, "blobs": dropped.record.blobs, "recipes": dropped.record.derivations,
                    "memos": dropped.memos, "names": dropped.names,
                }));
            }
            out::note(&format!(
                "import {} no longer holds {} and {}; {} forgotten, {} dropped",
                dropped.record.id,
                count(dropped.record.blobs, "blob"),
                count(dropped.record.derivations, "recipe"),
                count(dropped.memos, "memo"),
                count(dropped.names, "name"),
            ));
            Ok(())
        })
    }
}
