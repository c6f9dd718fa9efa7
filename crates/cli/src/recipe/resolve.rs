//! `anabranch recipe resolve`.

use anabranch_content::{Address, Memo};
use anabranch_recipe::{Error, Folder, FolderEntry, ParamsAsJson, Recipe, ValueAsJson};
use anabranch_text::{duration, size, utc};
use clap::Args;
use serde_json::{Value as Json, json};

use super::at::{At, MissingStore};
use super::show;
use crate::failure::Failure;
use crate::out;
use crate::table::Table;

/// Describes an address.
#[derive(Args)]
pub(crate) struct Resolve {
    /// An address, the first 6 or more digits of one, a name, or FOLDER:PATH.
    #[arg(value_name = "TARGET")]
    target: String,
    #[command(flatten)]
    at: At,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

impl Resolve {
    pub(crate) fn run(self) -> Result<(), Failure> {
        self.at.run(MissingStore::Refuse, async |backend| {
            let address = backend.find(&self.target).await?;
            let found = backend.resolve(address).await?;
            let Some(recipe) = found.recipe else {
                let absent = Error::NotFound { address, needed_by: None, gone: found.removal };
                let size = found.size.ok_or(absent)?;
                return match self.json {
                    true => {
                        show::json(&json!({"address": address.to_string(), "kind": "blob", "size": size}))
                    }
                    false => show::facts(&[("blob", address.to_string()), ("size", size::format(size))]),
                };
            };
            if let Ok(Some(folder)) = Folder::of(&recipe) {
                return match self.json {
                    true => show::json(&folder_json(address, &folder)),
                    false => folder_text(address, &folder),
                };
            }
            match self.json {
                true => show::json(&as_json(address, &recipe, found.memo.as_ref())),
                false => text(address, &recipe, found.memo.as_ref()),
            }
        })
    }
}

/// The entries of a folder by name, as JSON.
fn folder_json(address: Address, folder: &Folder) -> Json {
    let entry = |(name, entry): (&str, &FolderEntry)| match entry {
        FolderEntry::File { address, executable } => {
            json!({"name": name, "kind": "file", "address": address.to_string(), "executable": executable})
        }
        FolderEntry::Folder { address } => {
            json!({"name": name, "kind": "folder", "address": address.to_string()})
        }
        FolderEntry::Link { target } => json!({"name": name, "kind": "link", "target": target}),
    };
    let entries: Vec<Json> = folder.entries().map(entry).collect();
    json!({"address": address.to_string(), "kind": "folder", "entries": entries})
}

/// The same, for people.
fn folder_text(address: Address, folder: &Folder) -> Result<(), Failure> {
    let entries = folder.entries();
    show::facts(&[("folder", address.to_string()), ("entries", entries.len().to_string())])?;
    let mut table = Table::new(["name", "kind", "address"]).whole_in_pipes();
    for (name, entry) in entries {
        let (kind, to) = match entry {
            FolderEntry::File { address, executable: false } => ("file", address.to_string()),
            FolderEntry::File { address, executable: true } => ("executable", address.to_string()),
            FolderEntry::Folder { address } => ("folder", address.to_string()),
            FolderEntry::Link { target } => ("link", format!("to {target}")),
        };
        table.row([name, kind, &to]);
    }
    if folder.entries().len() == 0 { Ok(()) } else { out::data(&table.text(0)) }
}

fn text(address: Address, recipe: &Recipe, memo: Option<&Memo>) -> Result<(), Failure> {
    let mut facts = vec![("recipe", address.to_string()), ("function", recipe.function.to_string())];
    for (at, input) in recipe.inputs.iter().enumerate() {
        facts.push((if at == 0 { "inputs" } else { "" }, input.to_string()));
    }
    for (at, (name, value)) in recipe.params.iter().enumerate() {
        let shown = format!("{name} = {}", json!(ValueAsJson(value)));
        facts.push((if at == 0 { "params" } else { "" }, shown));
    }
    match memo {
        None => facts.push(("value", "not stored".to_owned())),
        Some(memo) => {
            facts.push(("value", memo.output.to_string()));
            facts.push(("size", size::format(memo.size)));
            facts.push((
                "computed",
                format!("{} UTC, in {}", utc(memo.at.0), duration::format(memo.cost.cpu)),
            ));
        }
    }
    show::facts(&facts)
}

fn as_json(address: Address, recipe: &Recipe, memo: Option<&Memo>) -> Json {
    let memo = memo.map(|memo| {
        json!({
            "output": memo.output.to_string(), "size": memo.size, "at_millis": memo.at.0,
            "cpu_micros": u64::try_from(memo.cost.cpu.as_micros()).unwrap_or(u64::MAX),
        })
    });
    json!({
        "address": address.to_string(), "kind": "recipe", "function": recipe.function.to_string(),
        "inputs": show::addresses(&recipe.inputs), "params": ParamsAsJson(&recipe.params), "memo": memo,
    })
}
