//! The seed: rows that exist before anything is generated.

use std::path::PathBuf;

use anabranch_document::{Fields, Node, Notes, Span};
use anabranch_text::quote;

use super::types::{SeedConfig, SeedOrder, SeedSelection, SeedSource};

/// Reads the seed, and the place of its source.
pub(super) fn seed(node: &Node, notes: &mut Notes<'_>) -> Option<(SeedConfig, Span)> {
    let mut fields = notes.fields(node, "`seed_config`")?;
    let source_node = fields.need("source", notes);
    let source = source_node.and_then(|node| source(node, notes));
    let words = [("ordered", SeedOrder::Ordered), ("shuffle", SeedOrder::Shuffle)];
    let order = fields.choice("sampling_strategy", &words, notes).unwrap_or_default();
    let selection_node = fields.get("selection_strategy");
    let selection = selection_node.map(|node| selection(node, notes));
    fields.finish(notes);
    let (source, at) = source?;
    Some((
        SeedConfig { source, order, selection: selection.map_or(Some(None), |found| found.map(Some))? },
        at,
    ))
}

fn source(node: &Node, notes: &mut Notes<'_>) -> Option<(SeedSource, Span)> {
    let mut fields = notes.fields(node, "a seed's source")?;
    let type_node = fields.need("seed_type", notes)?;
    let word = notes.as_text(type_node, "seed_type")?;
    let refused = match word {
        "local" | "directory" | "file_contents" => None,
        "hf" => Some((
            "datasets of Hugging Face are not read over the network yet",
            "download the files and use `seed_type: local`",
        )),
        "df" => Some(("a data frame is not in the file", "save it as parquet and use `seed_type: local`")),
        "agent_rollout" => Some((
            "traces of agents are not read yet",
            "write them as JSON lines and use `seed_type: local`, or read the files with `file_contents`",
        )),
        other => {
            let known = ["local", "directory", "file_contents"];
            let near = notes.did_you_mean(other, known);
            let help = near.unwrap_or_else(|| format!("seed types are {}", known.join(", ")));
            notes.note(&type_node.at, format!("there is no seed type {}", quote(other)), help);
            return None;
        }
    };
    if let Some((what, help)) = refused {
        notes.note(&type_node.at, format!("seeds of type `{word}` are not taken: {what}"), help);
        return None;
    }
    let path_node = fields.need("path", notes)?;
    let path = PathBuf::from(notes.as_text(path_node, "path")?);
    if path.as_os_str().is_empty() {
        notes.hint(&path_node.at, "`path` is empty", None);
        return None;
    }
    let source = kind(word, path, &mut fields, notes);
    // DataDesigner accepts any other field here.
    for (key, _) in fields.unknown() {
        let what = format!("a seed of type `{word}` has no {}", quote(&key.name));
        notes.warn(&key.at, what, "it is left out");
    }
    Some((source, path_node.at.clone()))
}

fn kind(word: &str, path: PathBuf, fields: &mut Fields<'_>, notes: &mut Notes<'_>) -> SeedSource {
    if word == "local" {
        return SeedSource::Local { path };
    }
    let file_pattern = fields.text("file_pattern", notes).unwrap_or("*").to_owned();
    let recursive = fields.bool("recursive", notes).unwrap_or(true);
    if word == "directory" {
        return SeedSource::Directory { path, file_pattern, recursive };
    }
    let encoding = fields.text("encoding", notes).unwrap_or("utf-8").to_owned();
    SeedSource::FileContents { path, file_pattern, recursive, encoding }
}

fn selection(node: &Node, notes: &mut Notes<'_>) -> Option<SeedSelection> {
    let mut fields = notes.fields(node, "`selection_strategy`")?;
    let at = fields.at().clone();
    let is_partition = fields.get("index").is_some() || fields.get("num_partitions").is_some();
    let names: [&'static str; 2] = if is_partition { ["index", "num_partitions"] } else { ["start", "end"] };
    let mut count = |name: &'static str, notes: &mut Notes<'_>| {
        let node = fields.need(name, notes)?;
        let found = notes.as_int(node, name)?;
        let count = u64::try_from(found).ok();
        if count.is_none() {
            notes.hint(&node.at, format!("`{name}` is 0 or more, this is {found}"), None);
        }
        count
    };
    let (first, second) = (count(names[0], notes), count(names[1], notes));
    fields.finish(notes);
    let (first, second) = (first?, second?);
    if is_partition {
        if first >= second {
            notes.note(&at, format!("there is no block {first} of {second}"), "`index` counts from 0");
            return None;
        }
        return Some(SeedSelection::Partition { index: first, num_partitions: second });
    }
    if first > second {
        notes.hint(&at, format!("`start` {first} is behind `end` {second}"), None);
        return None;
    }
    Some(SeedSelection::IndexRange { start: first, end: second })
}

/// The columns that a seed has regardless of its content.
pub(super) fn fixed_columns(source: &SeedSource) -> Option<Vec<String>> {
    let names = ["source_kind", "source_path", "relative_path", "file_name", "content"];
    let count = match source {
        SeedSource::Local { .. } => return None,
        SeedSource::Directory { .. } => 4,
        SeedSource::FileContents { .. } => 5,
    };
    Some(names[..count].iter().map(|name| (*name).to_owned()).collect())
}
