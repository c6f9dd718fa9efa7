//! The tree, whatever the file is written in.

use std::ops::Range;
use std::path::Path;

use anabranch_text::size;

use crate::notes::Notes;
use crate::{json, toml, yaml};

/// Where bytes of a file are.
pub type Span = Range<usize>;

/// A value, and where it stands.
#[derive(Clone, Debug)]
pub struct Node {
    pub at: Span,
    pub value: Tree,
}

/// The value of a [`Node`].
#[derive(Clone, Debug)]
pub enum Tree {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    /// A whole number that needs more than 64 bits, rounded.
    Big(f64),
    Text(String),
    List(Vec<Node>),
    Table(Table),
    /// A value that no reader has a use for, in words.
    Other(&'static str),
}

/// Values by name, in the order of the file. No name is there twice.
pub type Table = Vec<(Key, Node)>;

/// A name in a table.
#[derive(Clone, Debug)]
pub struct Key {
    pub at: Span,
    pub name: String,
}

impl Tree {
    /// The kind of the value, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Tree::Null => "null",
            Tree::Bool(_) => "true or false",
            Tree::Int(_) | Tree::Float(_) => "a number",
            Tree::Big(_) => "a whole number of more than 64 bits",
            Tree::Text(_) => "text",
            Tree::List(_) => "a list",
            Tree::Table(_) => "a table",
            Tree::Other(what) => what,
        }
    }

    /// Whether it is [`Tree::Null`].
    pub fn is_null(&self) -> bool {
        matches!(self, Tree::Null)
    }
}

/// The language of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Toml,
    Yaml,
    Json,
}

impl Format {
    /// The format that a file's name ends in: `.toml`, `.yaml`, `.yml` or `.json`.
    pub fn of(path: &Path) -> Option<Format> {
        match path.extension()?.to_str()? {
            "toml" => Some(Format::Toml),
            "yaml" | "yml" => Some(Format::Yaml),
            "json" => Some(Format::Json),
            _ => None,
        }
    }
}

/// How much a file may hold.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub bytes: usize,
    /// Values, those that YAML's aliases repeat included.
    pub nodes: usize,
}

/// How deep tables and lists may be in each other.
pub(crate) const DEEPEST: usize = 64;

impl Default for Limits {
    fn default() -> Limits {
        Limits { bytes: 64 << 20, nodes: 16_000_000 }
    }
}

/// The value that the text of `notes` is: null if it is empty, none if it cannot be read.
pub fn parse(format: Format, limits: Limits, notes: &mut Notes<'_>) -> Option<Node> {
    let text = notes.text();
    if text.len() > limits.bytes {
        let (found, most) = (size::format(text.len() as u64), size::format(limits.bytes as u64));
        notes.note(
            &(0..0),
            format!("the file has {found}, more than {most}"),
            "split it, or keep large values elsewhere",
        );
        return None;
    }
    match format {
        Format::Toml => toml::parse(text, notes),
        Format::Yaml => yaml::parse(text, limits, notes),
        Format::Json => json::parse(text, limits, notes),
    }
}
