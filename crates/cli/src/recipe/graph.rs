//! Stores a recipe file.

use std::collections::BTreeMap;
use std::path::Path;

use anabranch_content::Address;
use anabranch_recipe::{FileBytes, RecipeFile, UnknownFunction};
use serde_json::{Value as Json, json};

use super::backend::Backend;
use super::folder::{self, WalkedFolder};
use super::input::Input;
use super::show;
use crate::failure::Failure;
use crate::out;
use crate::table::Table;

/// A stored blob or recipe of a file.
pub(super) struct Entry {
    name: String,
    is_folder: bool,
    /// The function of a recipe.
    function: Option<String>,
    address: Address,
    reference: Option<String>,
    dangling: Vec<Address>,
}

/// Stores all blobs and recipes of a file, and sets its references.
pub(super) async fn put(
    backend: &Backend,
    file: RecipeFile,
    unknown: UnknownFunction,
    store: &Path,
) -> Result<Vec<Entry>, Failure> {
    let mut references = BTreeMap::new();
    for name in file.references() {
        if !references.contains_key(name) {
            references.insert(name.to_owned(), backend.find(name).await?);
        }
    }
    let mut blobs = Vec::with_capacity(file.blobs.len());
    for blob in &file.blobs {
        let put = match &blob.bytes {
            FileBytes::Here(bytes) => backend.put_bytes(bytes.clone()).await?,
            FileBytes::At(path) => backend.put(&Input::named(path)?).await?,
            FileBytes::Folder(path) => {
                blobs.push(folder::put(backend, WalkedFolder::named(path, store)?).await?.address);
                continue;
            }
        };
        blobs.push(put.address);
    }
    let mut insides = BTreeMap::new();
    for (place, path) in file.insides() {
        let address = backend.find(&format!("{}:{path}", blobs[place])).await?;
        insides.insert((place, path.to_owned()), address);
    }
    let added = backend.add_all(&file.drafts(&blobs, &references, &insides), unknown).await?;
    let mut entries = Vec::with_capacity(blobs.len() + added.len());
    for (blob, address) in file.blobs.into_iter().zip(blobs) {
        let (function, dangling) = (None, Vec::new());
        let is_folder = matches!(blob.bytes, FileBytes::Folder(_));
        entries.push(Entry {
            name: blob.name,
            is_folder,
            function,
            address,
            reference: blob.reference,
            dangling,
        });
    }
    for (recipe, added) in file.recipes.into_iter().zip(added) {
        let (function, address) = (Some(recipe.function.to_string()), added.address);
        let (name, reference) = (recipe.name, recipe.reference);
        entries.push(Entry {
            name,
            is_folder: false,
            function,
            address,
            reference,
            dangling: added.dangling,
        });
    }
    for entry in &entries {
        if let Some(reference) = &entry.reference {
            backend.set_ref(reference, Some(entry.address)).await?;
        }
    }
    Ok(entries)
}

/// Warns of recipes whose inputs are not in the store, and of a file whose entries cannot be found by name.
pub(super) fn warn(entries: &[Entry]) {
    entries.iter().for_each(|entry| show::dangling(Some(&entry.name), &entry.dangling));
    if !entries.is_empty() && entries.iter().all(|entry| entry.reference.is_none()) {
        out::note("no entry has a name in the store: use addresses, or add `ref = true` to entries");
    }
}

/// Names and addresses, for people.
pub(super) fn text(entries: &[Entry]) -> String {
    let mut table = Table::new(["name", "what", "address", "ref"]);
    for entry in entries {
        let what = entry
            .function
            .clone()
            .unwrap_or_else(|| if entry.is_folder { "folder" } else { "blob" }.to_owned());
        let reference = entry.reference.clone().unwrap_or_default();
        table.row([entry.name.clone(), what, entry.address.to_string(), reference]);
    }
    table.text(0)
}

/// Names and addresses as JSON.
pub(super) fn as_json(entries: &[Entry]) -> Json {
    let one = |entry: &Entry| {
        json!({
            "name": entry.name, "function": entry.function, "address": entry.address.to_string(),
            "ref": entry.reference, "dangling": show::addresses(&entry.dangling),
        })
    };
    entries.iter().map(one).collect()
}
