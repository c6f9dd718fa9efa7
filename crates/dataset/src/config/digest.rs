//! A digest of what a configuration says about values, so that a build knows whether it can be continued.

use anabranch_document::{Node, Table, Tree};

/// Sections that say how a build runs, not what its values are. Models have a digest of their own.
const NOT_VALUES: [&str; 6] = ["run", "model_configs", "providers", "prices", "profilers", "library_version"];

/// The digest of a configuration's sections. Comments, layout and the order of fields do not change it.
pub(super) fn digest(sections: &Table) -> String {
    let mut hasher = blake3::Hasher::new();
    let values = sections.iter().filter(|(key, _)| !NOT_VALUES.contains(&&*key.name));
    table(&mut hasher, values);
    hasher.finalize().to_hex()[..16].to_owned()
}

fn table<'n>(
    hasher: &mut blake3::Hasher,
    entries: impl Iterator<Item = &'n (anabranch_document::Key, Node)>,
) {
    let mut entries: Vec<_> = entries.collect();
    entries.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
    length(hasher, entries.len());
    for (key, node) in entries {
        text(hasher, &key.name);
        value(hasher, &node.value);
    }
}

/// The depth is bounded by the parser.
fn value(hasher: &mut blake3::Hasher, found: &Tree) {
    match found {
        Tree::Null | Tree::Other(_) => _ = hasher.update(&[0]),
        Tree::Bool(truth) => _ = hasher.update(&[1, u8::from(*truth)]),
        Tree::Int(int) => _ = hasher.update(&[2]).update(&int.to_le_bytes()),
        Tree::Float(float) | Tree::Big(float) => {
            _ = hasher.update(&[3]).update(&float.to_bits().to_le_bytes());
        }
        Tree::Text(found) => text(hasher.update(&[4]), found),
        Tree::List(items) => {
            length(hasher.update(&[5]), items.len());
            items.iter().for_each(|item| value(hasher, &item.value));
        }
        Tree::Table(entries) => table(hasher.update(&[6]), entries.iter()),
    }
}

fn length(hasher: &mut blake3::Hasher, length: usize) {
    hasher.update(&(length as u64).to_le_bytes());
}

fn text(hasher: &mut blake3::Hasher, text: &str) {
    length(hasher, text.len());
    hasher.update(text.as_bytes());
}
