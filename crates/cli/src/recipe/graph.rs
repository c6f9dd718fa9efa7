//! Stores a recipe file.

use std::collections::BTreeMap;
use std::path::Path;

use anabranch_content::Address;
use anabranch_recipe::{Error, FileBytes, Problem, Problems, RecipeFile, UnknownFunction};
use anabranch_server::{ClientError, Code};
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
    let references = references(backend, &file).await?;
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
    let insides = insides(backend, &file, &blobs).await?;
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

/// The most missing names and paths that are reported.
const PROBLEMS_MOST: usize = 20;

/// The addresses of the names of the store that the file reads.
async fn references(backend: &Backend, file: &RecipeFile) -> Result<BTreeMap<String, Address>, Failure> {
    let (mut found, mut problems) = (BTreeMap::new(), Problems::default());
    for name in file.references() {
        match look_up(backend, name).await? {
            Ok(address) => _ = found.insert(name.to_owned(), address),
            Err((what, help)) => {
                problems.error(Problem { help, ..file.reference_problem(name, what) });
            }
        }
        if problems.errors.len() == PROBLEMS_MOST {
            break;
        }
    }
    if problems.is_fine() { Ok(found) } else { Err(problems.in_order().into()) }
}

/// The addresses of the paths that the file reads inside its folders, which are stored already.
async fn insides(
    backend: &Backend,
    file: &RecipeFile,
    blobs: &[Address],
) -> Result<BTreeMap<(usize, String), Address>, Failure> {
    let (mut found, mut problems) = (BTreeMap::new(), Problems::default());
    for (blob, path) in file.insides() {
        let folder = blobs[blob].to_string();
        match look_up(backend, &format!("{folder}:{path}")).await? {
            Ok(address) => _ = found.insert((blob, path.to_owned()), address),
            Err((what, help)) => {
                // The file's own name for the folder.
                let what = what.replace(&folder, &file.blobs[blob].name);
                problems.error(Problem { help, ..file.inside_problem(blob, path, what) });
            }
        }
        if problems.errors.len() == PROBLEMS_MOST {
            break;
        }
    }
    if problems.is_fine() { Ok(found) } else { Err(problems.in_order().into()) }
}

/// The address of a text; or the problem with it, and advice.
async fn look_up(
    backend: &Backend,
    text: &str,
) -> Result<Result<Address, (String, Option<String>)>, Failure> {
    match backend.look_up(text).await {
        Ok(Some(address)) => Ok(Ok(address)),
        Ok(None) => backend.unknown(text).await.map(|(what, help)| Err((what, Some(help)))),
        Err(Failure::Failed(error)) if is_about_target(&*error) => Ok(Err((error.to_string(), None))),
        Err(failure) => Err(failure),
    }
}

/// Whether a lookup failed because of its text.
fn is_about_target(error: &(dyn std::error::Error + 'static)) -> bool {
    match (error.downcast_ref(), error.downcast_ref()) {
        (Some(Error::NotInside { .. } | Error::Ambiguous { .. }), _) => true,
        (_, Some(ClientError::Call { code, .. })) => matches!(code, Code::NotFound | Code::InvalidArgument),
        _ => false,
    }
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
