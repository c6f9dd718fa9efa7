//! TOML and YAML as one kind of tree that knows where everything stands.

use std::fmt;

use anabranch_text::offset;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;
use toml::de::{DeTable, DeValue};

use super::FileFormat;
use super::problem::{Notes, Span};

/// A value, and where it stands.
#[derive(Debug)]
pub(super) struct Node {
    pub at: Span,
    pub value: Tree,
}

#[derive(Debug)]
pub(super) enum Tree {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Table(Table),
    /// Something that recipe files have no use for, in words.
    Other(&'static str),
}

/// Values by name, as they are written.
pub(super) type Table = Vec<(Key, Node)>;

/// A name in a table.
#[derive(Debug)]
pub(super) struct Key {
    pub at: Span,
    pub name: String,
}

impl Tree {
    /// What it is, in words.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Tree::Bool(_) => "true or false",
            Tree::Int(_) | Tree::Float(_) => "a number",
            Tree::Text(_) => "text",
            Tree::List(_) => "a list",
            Tree::Table(_) => "a table",
            Tree::Other(what) => what,
        }
    }
}

/// The table that a text is.
pub(super) fn parse(text: &str, format: FileFormat, notes: &mut Notes<'_>) -> Table {
    let mut table = match format {
        FileFormat::Toml => parse_toml(text, notes),
        FileFormat::Yaml => parse_yaml(text, notes),
    };
    table.sort_by_key(|(key, _)| key.at.start);
    table
}

fn parse_toml(text: &str, notes: &mut Notes<'_>) -> Table {
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        notes.hint(&error.span().unwrap_or_default(), error.message().trim(), None);
    }
    toml_table(table.into_inner())
}

// How deep tables and lists can be in each other is the parser's bound.
fn toml_table(table: DeTable<'_>) -> Table {
    let entry = |(name, value): (toml::Spanned<std::borrow::Cow<'_, str>>, toml::Spanned<DeValue<'_>>)| {
        let at = value.span();
        let key = Key { at: name.span(), name: name.into_inner().into_owned() };
        (key, Node { at, value: toml_tree(value.into_inner()) })
    };
    let mut table: Table = table.into_iter().map(entry).collect();
    table.sort_by_key(|(key, _)| key.at.start);
    table
}

fn toml_tree(value: DeValue<'_>) -> Tree {
    match value {
        DeValue::String(text) => Tree::Text(text.into_owned()),
        DeValue::Integer(int) => match i64::from_str_radix(int.as_str(), int.radix()) {
            Ok(int) => Tree::Int(int),
            Err(_) => Tree::Other("a whole number of more than 64 bits"),
        },
        DeValue::Float(float) => {
            float.as_str().parse().map_or(Tree::Other("a number that cannot be read"), Tree::Float)
        }
        DeValue::Boolean(truth) => Tree::Bool(truth),
        DeValue::Datetime(_) => Tree::Other("a date"),
        DeValue::Array(items) => {
            let node = |item: toml::Spanned<DeValue<'_>>| Node {
                at: item.span(),
                value: toml_tree(item.into_inner()),
            };
            Tree::List(items.into_iter().map(node).collect())
        }
        DeValue::Table(table) => Tree::Table(toml_table(table)),
    }
}

/// The most values of a YAML file; nesting is bounded by the reader's own 64.
const YAML_NODES: usize = 16_000_000;

fn parse_yaml(text: &str, notes: &mut Notes<'_>) -> Table {
    let mut options = serde_saphyr::Options::default();
    options.with_snippet = false;
    options.strict_booleans = true;
    if let Some(budget) = &mut options.budget {
        budget.max_nodes = YAML_NODES;
        budget.max_events = 2 * YAML_NODES;
    }
    match serde_saphyr::from_str_with_options::<Option<Yaml>>(text, options) {
        Ok(Some(Yaml(Node { value: Tree::Table(table), .. }))) => table,
        Ok(None) => Table::new(),
        Ok(Some(Yaml(node))) => {
            let what = format!("a recipe file is a table, this is {}", node.value.kind());
            notes.note(&node.at, what, "write `blob:` and `recipe:` with entries below them");
            Table::new()
        }
        Err(error) => {
            let at = error.location().map_or(0..0, |at| match at.span().byte_offset() {
                Some(_) => span(&at),
                None => {
                    let start = offset(text, at.line() as usize, at.column() as usize);
                    start..start
                }
            });
            let what = error.without_snippet().to_string();
            // The place is said already, and how to set up the reader is not for who wrote the file.
            let what = what.rsplit_once(" at line ").map_or(what.as_str(), |(what, _)| what);
            let what = what.split_once(", set ").map_or(what, |(what, _)| what);
            notes.hint(&at, what, None);
            Table::new()
        }
    }
}

fn span(at: &serde_saphyr::Location) -> Span {
    let start = at.span().byte_offset().unwrap_or(0) as usize;
    let len = at.span().byte_len().unwrap_or(0) as usize;
    start..start + len
}

struct Yaml(Node);

impl<'de> Deserialize<'de> for Yaml {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Yaml, D::Error> {
        let spanned = Spanned::<Tree>::deserialize(deserializer)?;
        Ok(Yaml(Node { at: span(&spanned.referenced), value: spanned.value }))
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Tree, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value")
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Tree, E> {
        Ok(Tree::Bool(truth))
    }

    fn visit_i64<E>(self, int: i64) -> Result<Tree, E> {
        Ok(Tree::Int(int))
    }

    fn visit_u64<E>(self, int: u64) -> Result<Tree, E> {
        Ok(i64::try_from(int).map_or(Tree::Other("a whole number of more than 64 bits"), Tree::Int))
    }

    fn visit_f64<E>(self, float: f64) -> Result<Tree, E> {
        Ok(Tree::Float(float))
    }

    fn visit_str<E>(self, text: &str) -> Result<Tree, E> {
        Ok(Tree::Text(text.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Other("null"))
    }

    fn visit_none<E>(self) -> Result<Tree, E> {
        Ok(Tree::Other("null"))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree, D::Error> {
        Tree::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Tree, A::Error> {
        let mut list = Vec::new();
        while let Some(Yaml(node)) = items.next_element()? {
            list.push(node);
        }
        Ok(Tree::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Tree, A::Error> {
        let mut table = Table::new();
        while let Some(key) = entries.next_key::<Spanned<String>>()? {
            let Yaml(node) = entries.next_value()?;
            table.push((Key { at: span(&key.referenced), name: key.value }, node));
        }
        Ok(Tree::Table(table))
    }
}
