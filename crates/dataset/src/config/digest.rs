//! Digests of the parts of a configuration that decide about values: of all of it, to check whether a build can be
//! continued, and of its parts, to name the edited part in a message.

use anabranch_document::{Key, Node, Table, Tree};

/// The sections that affect how a build runs and not its values. Models have their own digest.
const NOT_VALUES: [&str; 7] =
    ["run", "model_configs", "providers", "prices", "profilers", "library_version", "rows"];

/// An entry of a section that says how many values there are, not which.
fn is_amount(section: &str, name: &str) -> bool {
    matches!((section, name), ("accept", "max_candidates") | ("stages", "rows"))
}

/// The digest of a configuration's sections. Comments, layout and the order of fields do not change it.
pub(super) fn digest(sections: &Table) -> String {
    let mut hasher = blake3::Hasher::new();
    let values = sections.iter().filter(|(key, _)| !NOT_VALUES.contains(&&*key.name));
    table(&mut hasher, "", values);
    short(&hasher)
}

/// The digest of a column's fields without its name.
pub(super) fn definition(fields: &Table) -> String {
    let mut hasher = blake3::Hasher::new();
    table(&mut hasher, "values", fields.iter().filter(|(key, _)| key.name != "name"));
    short(&hasher)
}

/// Parameters that a sampler's random numbers do not depend on: the names of other columns, and weights, so that most
/// values stay when the weights are edited.
const NOT_DRAWN: [&str; 4] = ["weights", "category", "reference_column_name", "sampler_type"];

/// The digest of a sampler column's type and parameters. `1` and `1.0` are the same here, as are null and nothing.
pub(super) fn sampler(fields: &Table) -> String {
    let field = |name: &str| fields.iter().find(|(key, _)| key.name == name).map(|(_, node)| &node.value);
    let mut hasher = blake3::Hasher::new();
    text(&mut hasher, "sampler");
    value(&mut hasher, "values", field("sampler_type").unwrap_or(&Tree::Null));
    if let Some(Tree::Table(params)) = field("params") {
        let params: Table = params
            .iter()
            .filter(|(key, node)| !NOT_DRAWN.contains(&&*key.name) && !node.value.is_null())
            .map(|(key, node)| (key.clone(), with_floats(node)))
            .collect();
        table(&mut hasher, "values", params.iter());
    }
    short(&hasher)
}

/// The digest of texts.
pub(super) fn texts(texts: &[&str]) -> String {
    let mut hasher = blake3::Hasher::new();
    texts.iter().for_each(|found| text(&mut hasher, found));
    short(&hasher)
}

fn short(hasher: &blake3::Hasher) -> String {
    hasher.finalize().to_hex()[..16].to_owned()
}

/// The depth is bounded by the parser.
fn with_floats(node: &Node) -> Node {
    let value = match &node.value {
        Tree::Int(int) => Tree::Float(*int as f64),
        Tree::List(items) => Tree::List(items.iter().map(with_floats).collect()),
        Tree::Table(entries) => {
            Tree::Table(entries.iter().map(|(key, node)| (key.clone(), with_floats(node))).collect())
        }
        other => other.clone(),
    };
    Node { value, ..node.clone() }
}

fn table<'n>(hasher: &mut blake3::Hasher, section: &str, entries: impl Iterator<Item = &'n (Key, Node)>) {
    let mut entries: Vec<_> = entries.filter(|(key, _)| !is_amount(section, &key.name)).collect();
    entries.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
    length(hasher, entries.len());
    for (key, node) in entries {
        text(hasher, &key.name);
        // Only the sections at the root, and those of stages, are looked into for amounts.
        let inside = match (section, &*key.name) {
            ("" | "stages", name @ ("accept" | "stages")) => name,
            _ => "values",
        };
        value(hasher, inside, &node.value);
    }
}

/// The depth is bounded by the parser.
fn value(hasher: &mut blake3::Hasher, section: &str, found: &Tree) {
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
            items.iter().for_each(|item| value(hasher, section, &item.value));
        }
        Tree::Table(entries) => table(hasher.update(&[6]), section, entries.iter()),
    }
}

fn length(hasher: &mut blake3::Hasher, length: usize) {
    hasher.update(&(length as u64).to_le_bytes());
}

fn text(hasher: &mut blake3::Hasher, text: &str) {
    length(hasher, text.len());
    hasher.update(text.as_bytes());
}
