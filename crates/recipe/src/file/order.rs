//! Resolves names to entries, and sorts recipes so that each comes after those it reads.

use std::collections::HashMap;

use anabranch_document::{Notes, Span};
use anabranch_engine::Dag;
use anabranch_text::{circle, quote};

use super::read::{Call, Entry, EntryContent, Input};
use super::{FileBlob, FileBytes, FileInput, FileRecipe, RecipeFile};
use crate::recipe::Params;

/// The file with all names resolved. Problems are reported in `notes`.
pub(super) fn linked(entries: &[Entry], notes: &mut Notes<'_>) -> RecipeFile {
    let places = places(entries, notes);
    let reads: Vec<Vec<usize>> = entries.iter().map(|entry| reads(entry, entries, &places, notes)).collect();
    let order = Dag::sort(&reads, |places| {
        let names = places.iter().map(|place| entries[*place].key.name.as_str());
        let what = format!("a recipe cannot read itself: {}", circle(names, "reads"));
        notes.note(&entries[places[0]].key.at, what, "take one of these inputs away");
    });
    if order.len() < entries.len() {
        return RecipeFile::default();
    }
    references(entries, notes);
    if !notes.is_empty() {
        return RecipeFile::default();
    }
    let mut file = sorted(entries, &places, order);
    (file.source.name, file.source.text) = (notes.file().to_owned(), notes.text().into());
    file
}

/// The index of each name.
fn places(entries: &[Entry], notes: &mut Notes<'_>) -> HashMap<String, usize> {
    let mut places = HashMap::with_capacity(entries.len());
    for (place, entry) in entries.iter().enumerate() {
        if places.insert(entry.key.name.clone(), place).is_some() {
            let what = format!("`{}` is declared twice", entry.key.name);
            notes.note(&entry.key.at, what, "blobs and recipes share their names; give it another one");
        }
    }
    places
}

/// The indexes of the entries that an entry reads.
fn reads(
    entry: &Entry,
    entries: &[Entry],
    places: &HashMap<String, usize>,
    notes: &mut Notes<'_>,
) -> Vec<usize> {
    let EntryContent::Recipe(call) = &entry.what else { return Vec::new() };
    let mut reads = Vec::with_capacity(call.inputs.len());
    let mut inside = Vec::new();
    for (at, input) in &call.inputs {
        let Input::Named(name) = input else { continue };
        match place_of(name, places) {
            Some((place, None)) => reads.push(place),
            Some((place, Some(_))) => {
                reads.push(place);
                inside.push((at, place));
            }
            None => {
                let near = notes.did_you_mean(name, places.keys().map(String::as_str));
                let help = near.unwrap_or_else(|| {
                    format!("write {} for a named reference of the store", quote(&format!("ref:{name}")))
                });
                notes.note(at, format!("nothing is called {} in this file", quote(name)), help);
            }
        }
    }
    for (at, place) in inside {
        let Entry { key, what, .. } = &entries[place];
        if !matches!(what, EntryContent::Blob(FileBytes::Folder(_))) {
            let what = format!("`{}` is not a folder of this file, so nothing is inside of it", key.name);
            notes.note(at, what, "a blob with `folder = ...` is one");
        }
    }
    reads
}

/// The index of a name, and the path for `name:path/inside`. A complete name takes precedence over a path.
fn place_of<'a>(name: &'a str, places: &HashMap<String, usize>) -> Option<(usize, Option<&'a str>)> {
    if let Some(place) = places.get(name) {
        return Some((*place, None));
    }
    let mut colons = name.match_indices(':');
    colons.find_map(|(at, _)| places.get(&name[..at]).map(|place| (*place, Some(&name[at + 1..]))))
}

/// Reports references that two entries would set.
fn references(entries: &[Entry], notes: &mut Notes<'_>) {
    let mut set: HashMap<&str, &str> = HashMap::new();
    for entry in entries {
        let Some(reference) = &entry.reference else { continue };
        if let Some(other) = set.insert(reference, &entry.key.name) {
            let what = format!("reference `{reference}` would be set twice, by `{other}` as well");
            notes.note(&entry.key.at, what, "give one of them another `ref`");
        }
    }
}

fn sorted(entries: &[Entry], places: &HashMap<String, usize>, order: Vec<usize>) -> RecipeFile {
    let mut file = RecipeFile::default();
    // The index of each entry among the blobs or the recipes of the result.
    let mut ends_at = vec![0; entries.len()];
    for place in order {
        let Entry { key, what, reference } = &entries[place];
        let (name, reference) = (key.name.clone(), reference.clone());
        match what {
            EntryContent::Blob(bytes) => {
                ends_at[place] = file.blobs.len();
                file.blobs.push(FileBlob { name, bytes: bytes.clone(), reference });
            }
            EntryContent::Recipe(call) => {
                ends_at[place] = file.recipes.len();
                let mut input = |at: &Span, input: &Input| match input {
                    Input::Reference(name) => {
                        file.source.references.entry(name.clone()).or_insert_with(|| at.clone());
                        FileInput::Reference(name.clone())
                    }
                    Input::Address(address) => FileInput::Address(*address),
                    Input::Named(name) => {
                        let (read, path) = place_of(name, places).expect("all names were looked up");
                        match (&entries[read].what, path) {
                            (EntryContent::Blob(_), Some(path)) => {
                                let inside = (ends_at[read], path.to_owned());
                                file.source.insides.entry(inside).or_insert_with(|| at.clone());
                                FileInput::Inside(ends_at[read], path.to_owned())
                            }
                            (EntryContent::Blob(_), None) => FileInput::Blob(ends_at[read]),
                            (EntryContent::Recipe(_), _) => FileInput::Recipe(ends_at[read]),
                        }
                    }
                };
                let inputs = call.inputs.iter().map(|(at, named)| input(at, named)).collect();
                let Some((_, function)) = call.function.clone() else { continue };
                file.recipes.push(FileRecipe { name, function, inputs, params: params(call), reference });
            }
        }
    }
    file
}

/// The parameters of a call.
pub(super) fn params(call: &Call) -> Params {
    call.params.iter().map(|(key, value)| (key.name.clone(), value.clone())).collect()
}
