//! From names to places: who reads whom, and each recipe behind those it reads.

use std::collections::HashMap;

use super::problem::Notes;
use super::read::{Call, Entry, Input, What};
use super::{FileBlob, FileInput, FileRecipe, RecipeFile};
use crate::recipe::Params;
use crate::registry::nearest;

/// The file with its names looked up; what is wrong with them is noted.
pub(super) fn linked(entries: &[Entry], notes: &mut Notes<'_>) -> RecipeFile {
    let places = places(entries, notes);
    let reads: Vec<Vec<usize>> = entries.iter().map(|entry| reads(entry, &places, notes)).collect();
    let order = in_order(&reads);
    if order.len() < entries.len() {
        tell_cycles(entries, &reads, &order, notes);
        return RecipeFile::default();
    }
    references(entries, notes);
    if !notes.is_empty() {
        return RecipeFile::default();
    }
    sorted(entries, &places, order)
}

/// Where each name stands.
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

/// Names of files up to so many entries are searched for one that was meant.
const SEARCHED: usize = 10_000;

/// The entries that an entry reads.
fn reads(entry: &Entry, places: &HashMap<String, usize>, notes: &mut Notes<'_>) -> Vec<usize> {
    let What::Recipe(call) = &entry.what else { return Vec::new() };
    let mut reads = Vec::with_capacity(call.inputs.len());
    for (at, input) in &call.inputs {
        let Input::Named(name) = input else { continue };
        match places.get(name) {
            Some(place) => reads.push(*place),
            None => {
                let search = notes.are_told() && places.len() <= SEARCHED;
                let near = search.then(|| nearest(name, places.keys().map(String::as_str))).flatten();
                let help = match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("write `ref:{name}` for a named reference of the store"),
                };
                notes.note(at, format!("nothing is called `{name}` in this file"), help);
            }
        }
    }
    reads
}

/// Each entry behind those it reads, otherwise as declared; those that read themselves are missing, and whoever reads
/// them.
fn in_order(reads: &[Vec<usize>]) -> Vec<usize> {
    let mut readers: Vec<Vec<usize>> = vec![Vec::new(); reads.len()];
    let mut waiting: Vec<usize> = reads.iter().map(Vec::len).collect();
    for (place, inputs) in reads.iter().enumerate() {
        inputs.iter().for_each(|input| readers[*input].push(place));
    }
    let mut order: Vec<usize> = (0..reads.len()).filter(|place| waiting[*place] == 0).collect();
    let mut next = 0;
    while let Some(&place) = order.get(next) {
        next += 1;
        for &reader in &readers[place] {
            waiting[reader] -= 1;
            if waiting[reader] == 0 {
                order.push(reader);
            }
        }
    }
    order
}

/// So many names of a cycle are told.
const CYCLE_TOLD: usize = 8;

/// Notes one cycle for each group of entries that has one.
fn tell_cycles(entries: &[Entry], reads: &[Vec<usize>], order: &[usize], notes: &mut Notes<'_>) {
    let mut is_free = vec![false; entries.len()];
    order.iter().for_each(|place| is_free[*place] = true);
    // Who is not free reads another one that is not: to follow those leads into a cycle.
    let mut walked: Vec<Option<usize>> = vec![None; entries.len()];
    for start in (0..entries.len()).filter(|place| !is_free[*place]) {
        let mut path = Vec::new();
        let mut place = start;
        while walked[place].is_none() {
            walked[place] = Some(start);
            path.push(place);
            let bound = reads[place].iter().find(|input| !is_free[**input]);
            place = *bound.expect("an entry that is not free reads one that is not");
        }
        if walked[place] != Some(start) {
            continue;
        }
        let begins = path.iter().position(|on_path| *on_path == place).expect("the walk came back to it");
        let cycle = &path[begins..];
        let name = |place: &usize| format!("`{}`", entries[*place].key.name);
        let mut names: Vec<String> = cycle.iter().take(CYCLE_TOLD).map(name).collect();
        if cycle.len() > CYCLE_TOLD {
            names.push(format!("{} more", cycle.len() - CYCLE_TOLD));
        }
        names.push(name(&place));
        let what = format!("a recipe cannot read itself: {}", names.join(" reads "));
        notes.note(&entries[place].key.at, what, "take one of these inputs away");
    }
}

/// Notes references that two entries would set.
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
    // Where an entry ends up among the blobs or the recipes.
    let mut ends_at = vec![0; entries.len()];
    for place in order {
        let Entry { key, what, reference } = &entries[place];
        let (name, reference) = (key.name.clone(), reference.clone());
        match what {
            What::Blob(bytes) => {
                ends_at[place] = file.blobs.len();
                file.blobs.push(FileBlob { name, bytes: bytes.clone(), reference });
            }
            What::Recipe(call) => {
                ends_at[place] = file.recipes.len();
                let input = |input: &Input| match input {
                    Input::Reference(name) => FileInput::Reference(name.clone()),
                    Input::Address(address) => FileInput::Address(*address),
                    Input::Named(name) => match &entries[places[name]].what {
                        What::Blob(_) => FileInput::Blob(ends_at[places[name]]),
                        What::Recipe(_) => FileInput::Recipe(ends_at[places[name]]),
                    },
                };
                let inputs = call.inputs.iter().map(|(_, named)| input(named)).collect();
                let Some((_, function)) = call.function.clone() else { continue };
                file.recipes.push(FileRecipe { name, function, inputs, params: params(call), reference });
            }
        }
    }
    file
}

/// A call's parameters.
pub(super) fn params(call: &Call) -> Params {
    call.params.iter().map(|(key, value)| (key.name.clone(), value.clone())).collect()
}
