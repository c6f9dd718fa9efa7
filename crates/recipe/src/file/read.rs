//! Converts a parsed tree to entries. Fields, types and values are checked here; names are resolved later.

use std::path::Path;

use anabranch_content::{Address, Store, Value};
use anabranch_document::{Key, Node, Notes, Span, Table, Tree};
use bytes::Bytes;

use super::named::{NamedPath, Whereabouts};
use super::{FileBytes, FilesOutside};
use crate::params_json::{BYTES_KEYS, bytes_from_text};
use crate::recipe::FunctionId;

/// A blob or a recipe, as declared.
pub(super) struct Entry {
    pub key: Key,
    pub what: EntryContent,
    pub reference: Option<String>,
}

pub(super) enum EntryContent {
    Blob(FileBytes),
    Recipe(Call),
}

/// The function and parameters of a recipe. Parts that were reported as wrong are left out.
pub(super) struct Call {
    pub function: Option<(Span, FunctionId)>,
    /// The position of the list of inputs, or of the recipe if there is no list.
    pub at: Span,
    pub inputs: Vec<(Span, Input)>,
    pub params: Vec<(Key, Value)>,
    /// Whether all inputs and parameters could be read.
    pub whole: bool,
}

pub(super) enum Input {
    Named(String),
    Reference(String),
    Address(Address),
}

/// The folder that files are relative to.
pub(super) struct Folder<'a> {
    pub path: &'a Path,
    pub outside: FilesOutside,
}

impl Folder<'_> {
    /// A file or a folder to read. The error is the problem and a hint.
    fn find(&self, name: &str, kind: Kind) -> Result<NamedPath, (String, &'static str)> {
        let relative = "files are relative to the recipe file";
        let within = (self.outside == FilesOutside::Refuse).then_some(self.path);
        let path = self.path.join(name);
        let shown = path.display().to_string();
        let missing = |error| (format!("`{shown}`: {error}"), relative);
        let named = NamedPath::new(path, within).map_err(missing)?;
        if named.whereabouts() == Whereabouts::Outside {
            let help = "move it beside the recipe file or below; if you trust the file, add it with --allow-files-outside";
            return Err((format!("`{shown}` is outside of the recipe file's folder"), help));
        }
        match std::fs::metadata(named.path()) {
            Ok(found) if found.is_file() && kind == Kind::File => Ok(named),
            Ok(found) if found.is_dir() && kind == Kind::Folder => Ok(named),
            Ok(found) if found.is_dir() => Err((
                format!("`{shown}`: not a file"),
                "write `folder = ...` for a folder with all that is in it",
            )),
            Ok(_) => Err((format!("`{shown}`: not a {}", kind.word()), relative)),
            Err(error) => Err(missing(error)),
        }
    }
}

/// The expected kind of a path's target.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Folder,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::File => "file",
            Kind::Folder => "folder",
        }
    }
}

/// The fields that can hold a blob's bytes.
const WAYS: [&str; 5] = ["text", "file", "folder", "base64", "hex"];

/// The prefix of an input that is a named reference of the store.
const REFERENCE: &str = "ref:";

/// The blobs and recipes of a file.
pub(super) fn entries(table: Table, folder: &Folder<'_>, notes: &mut Notes<'_>) -> Vec<Entry> {
    let mut entries = Vec::new();
    for (key, node) in table {
        let is_blob = match key.name.as_str() {
            "blob" => true,
            "recipe" => false,
            other => {
                notes.unknown(&key.at, other, &["blob", "recipe"], "a recipe file");
                continue;
            }
        };
        let Some(named) = as_table(node, &key.name, "entries by name", notes) else { continue };
        for (key, node) in named {
            check_name(&key, notes);
            // An invalid entry keeps its name, because others may read it.
            let fields = as_table(node, &key.name, "a table of fields", notes).unwrap_or_default();
            let (what, reference) = match is_blob {
                true => blob(&key, fields, folder, notes),
                false => recipe(&key, fields, notes),
            };
            entries.push(Entry { key, what, reference });
        }
    }
    entries
}

fn check_name(key: &Key, notes: &mut Notes<'_>) {
    let name = &key.name;
    if !Store::is_name(name) {
        notes.note(&key.at, format!("{name:?} is not a name"), "1 to 255 bytes without control characters");
    } else if name.starts_with(REFERENCE) || name.parse::<Address>().is_ok() {
        let what = format!("`{name}` would be read as something else where it is an input");
        notes.note(&key.at, what, "names are neither 64 hex digits nor begin with `ref:`");
    }
}

fn blob(
    key: &Key,
    fields: Table,
    folder: &Folder<'_>,
    notes: &mut Notes<'_>,
) -> (EntryContent, Option<String>) {
    const ONE_OF: &str = "`text`, `file`, `folder`, `base64` or `hex`";
    let (mut found, mut count, mut reference) = (None, 0, None);
    for (field, node) in fields {
        if field.name == "ref" {
            reference = as_reference(key, node, notes);
            continue;
        }
        if !WAYS.contains(&field.name.as_str()) {
            notes.unknown(&field.at, &field.name, &[&WAYS[..], &["ref"]].concat(), "a blob");
            continue;
        }
        count += 1;
        if count > 1 {
            let what = format!("`{}` has its bytes twice", key.name);
            notes.note(&field.at, what, format!("give one of {ONE_OF}"));
        }
        if let Some(text) = notes.as_text(&node, &field.name) {
            found = bytes(&field.name, text, &node.at, folder, notes);
        }
    }
    if count == 0 {
        notes.note(&key.at, format!("blob `{}` has no bytes", key.name), format!("give one of {ONE_OF}"));
    }
    (EntryContent::Blob(found.unwrap_or(FileBytes::Here(Bytes::new()))), reference)
}

fn bytes(how: &str, text: &str, at: &Span, folder: &Folder<'_>, notes: &mut Notes<'_>) -> Option<FileBytes> {
    match how {
        "text" => Some(FileBytes::Here(text.to_owned().into())),
        "file" | "folder" => {
            let kind = if how == "file" { Kind::File } else { Kind::Folder };
            match folder.find(text, kind) {
                Ok(named) => {
                    Some(if kind == Kind::File { FileBytes::At(named) } else { FileBytes::Folder(named) })
                }
                Err((problem, help)) => {
                    notes.note(at, problem, help);
                    None
                }
            }
        }
        how => decoded(how, text, at, notes).map(FileBytes::Here),
    }
}

/// Decodes bytes from hex or base64.
fn decoded(how: &str, text: &str, at: &Span, notes: &mut Notes<'_>) -> Option<Bytes> {
    bytes_from_text(how, text).map_err(|problem| notes.hint(at, problem, None)).ok()
}

fn recipe(key: &Key, fields: Table, notes: &mut Notes<'_>) -> (EntryContent, Option<String>) {
    let mut call =
        Call { function: None, at: key.at.clone(), inputs: Vec::new(), params: Vec::new(), whole: true };
    let (mut reference, mut has_function) = (None, false);
    for (field, node) in fields {
        match field.name.as_str() {
            "function" => {
                has_function = true;
                let text = notes.as_text(&node, "function");
                call.function = text.and_then(|text| as_function(text, node.at.clone(), notes));
            }
            "inputs" => {
                call.at = node.at.clone();
                inputs(node, &mut call, notes);
            }
            "params" => params(node, &mut call, notes),
            "ref" => reference = as_reference(key, node, notes),
            other => {
                notes.unknown(&field.at, other, &["function", "inputs", "params", "ref"], "a recipe");
            }
        }
    }
    if !has_function {
        let help = "write `function = \"name/version\"`; `anabranch recipe functions` lists them";
        notes.note(&key.at, format!("recipe `{}` has no function", key.name), help);
    }
    (EntryContent::Recipe(call), reference)
}

fn as_function(text: &str, at: Span, notes: &mut Notes<'_>) -> Option<(Span, FunctionId)> {
    match text.parse() {
        Ok(function) => Some((at, function)),
        Err(malformed) => {
            notes.hint(&at, malformed.to_string(), None);
            None
        }
    }
}

fn inputs(node: Node, call: &mut Call, notes: &mut Notes<'_>) {
    let items = match node.value {
        Tree::List(items) => items,
        other => {
            let what = format!("`inputs` is a list of names, this is {}", other.kind());
            notes.note(&node.at, what, "write [\"name\"]");
            call.whole = false;
            return;
        }
    };
    for item in items {
        let Some(text) = notes.as_text(&item, "an input") else {
            call.whole = false;
            continue;
        };
        let input = match (text.strip_prefix(REFERENCE), text.parse()) {
            (Some(name), _) => Input::Reference(name.to_owned()),
            (None, Ok(address)) => Input::Address(address),
            (None, Err(_)) => Input::Named(text.to_owned()),
        };
        call.inputs.push((item.at, input));
    }
}

fn params(node: Node, call: &mut Call, notes: &mut Notes<'_>) {
    let Some(table) = as_table(node, "params", "parameters by name", notes) else {
        call.whole = false;
        return;
    };
    for (key, node) in table {
        match value(node, notes) {
            Some(value) => call.params.push((key, value)),
            None => call.whole = false,
        }
    }
}

/// Converts a parameter. The parser limits the nesting of lists and tables.
fn value(node: Node, notes: &mut Notes<'_>) -> Option<Value> {
    Some(match node.value {
        Tree::Bool(truth) => Value::Bool(truth),
        Tree::Int(int) => Value::Int(int),
        Tree::Float(float) => Value::Float(float),
        Tree::Text(text) => Value::Text(text),
        Tree::List(items) => {
            Value::List(items.into_iter().map(|item| value(item, notes)).collect::<Option<_>>()?)
        }
        Tree::Table(table) => table_value(table, notes)?,
        other @ (Tree::Null | Tree::Big(_) | Tree::Other(_)) => {
            let help = if other.is_null() { "leave it out instead" } else { "write it as text, in quotes" };
            notes.note(&node.at, format!("a parameter cannot be {}", other.kind()), help);
            return None;
        }
    })
}

/// Converts `{ base64 = "..." }` and `{ hex = "..." }` to bytes, and other tables to maps. `{ "$map" = { ... } }` is the
/// inner table as a map, whatever its keys are.
fn table_value(mut table: Table, notes: &mut Notes<'_>) -> Option<Value> {
    if let [(key, node)] = &mut table[..] {
        match &mut node.value {
            Tree::Text(text) if BYTES_KEYS.contains(&key.name.as_str()) => {
                return decoded(&key.name, text, &node.at, notes).map(Value::Bytes);
            }
            Tree::Table(inner) if key.name == "$map" => table = std::mem::take(inner),
            _ => {}
        }
    }
    let entry = |(key, node): (Key, Node)| Some((key.name, value(node, notes)?));
    table.into_iter().map(entry).collect::<Option<_>>().map(Value::Map)
}

/// Converts a `ref` field: `ref = true` stands for the entry's own name, `ref = "other"` for another name.
fn as_reference(key: &Key, node: Node, notes: &mut Notes<'_>) -> Option<String> {
    match node.value {
        Tree::Bool(true) => Some(key.name.clone()),
        Tree::Bool(false) => None,
        Tree::Text(name) if name.parse::<Address>().is_ok() => {
            notes.note(&node.at, format!("`{name}` would be read as an address"), "choose another name");
            None
        }
        Tree::Text(name) if Store::is_name(&name) => Some(name),
        other => {
            let what = format!("`ref` is true or a name of 1 to 255 bytes, this is {}", other.kind());
            notes.note(&node.at, what, "`ref = true` names it as it is called here");
            None
        }
    }
}

fn as_table(node: Node, name: &str, holds: &str, notes: &mut Notes<'_>) -> Option<Table> {
    notes.as_table(&node, &format!("`{name}`"), holds)?;
    match node.value {
        Tree::Table(table) => Some(table),
        _ => None,
    }
}
