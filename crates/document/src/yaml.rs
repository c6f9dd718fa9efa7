//! YAML as a tree.

use std::fmt;

use anabranch_text::offset;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use crate::notes::Notes;
use crate::tree::{DEEPEST, Key, Limits, Node, Span, Table, Tree};

/// The value that a text is; null if it is empty.
pub(crate) fn parse(text: &str, limits: Limits, notes: &mut Notes<'_>) -> Option<Node> {
    match serde_saphyr::from_str_with_options::<Option<Yaml>>(text, options(limits)) {
        Ok(Some(Yaml(node))) => Some(node),
        Ok(None) => Some(Node { at: 0..0, value: Tree::Null }),
        Err(error) => {
            let at = error.location().map_or(0..0, |at| match at.span().byte_offset() {
                Some(_) => span(&at),
                None => {
                    let start = offset(text, at.line() as usize, at.column() as usize);
                    start..start
                }
            });
            notes.hint(&at, message(&error.without_snippet().to_string()), None);
            None
        }
    }
}

/// The reader's message for who wrote the file: not for who set up the reader, and without the place.
fn message(what: &str) -> &str {
    const OWN: [(&str, &str); 5] = [
        ("alias replay limit", "aliases repeat too many values"),
        ("budget breached: RecordedAnchor", "aliases repeat too many values"),
        ("budget breached: Nodes", "the file has too many values"),
        ("budget breached: Events", "the file has too many values"),
        ("multiple YAML documents", "the file has more than one document"),
    ];
    if let Some((_, own)) = OWN.iter().find(|(begin, _)| what.starts_with(begin)) {
        return own;
    }
    let what = what.rsplit_once(" at line ").map_or(what, |(what, _)| what);
    what.split_once(", set ").map_or(what, |(what, _)| what)
}

fn options(limits: Limits) -> serde_saphyr::Options {
    let mut options = serde_saphyr::Options::default();
    options.with_snippet = false;
    options.strict_booleans = true;
    let repeated = limits.nodes.min(1_000_000);
    options.alias_limits.max_total_replayed_events = repeated;
    if let Some(budget) = &mut options.budget {
        budget.max_nodes = limits.nodes;
        budget.max_events = 2 * limits.nodes;
        budget.max_depth = DEEPEST;
        budget.max_recorded_anchor_events = repeated;
        // Many entries may share one anchor. What they repeat is bounded by the number of values.
        budget.enforce_alias_anchor_ratio = false;
    }
    options
}

fn span(at: &serde_saphyr::Location) -> Span {
    let start = at.span().byte_offset().unwrap_or(0) as usize;
    let len = at.span().byte_len().unwrap_or(0) as usize;
    start..start + len
}

struct Yaml(Node);

impl<'de> Deserialize<'de> for Yaml {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Yaml, D::Error> {
        let spanned = Spanned::<YamlTree>::deserialize(deserializer)?;
        Ok(Yaml(Node { at: span(&spanned.referenced), value: spanned.value.0 }))
    }
}

struct YamlTree(Tree);

impl<'de> Deserialize<'de> for YamlTree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<YamlTree, D::Error> {
        deserializer.deserialize_any(TreeVisitor).map(YamlTree)
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
        Ok(i64::try_from(int).map_or(Tree::Big(int as f64), Tree::Int))
    }

    fn visit_i128<E>(self, int: i128) -> Result<Tree, E> {
        Ok(i64::try_from(int).map_or(Tree::Big(int as f64), Tree::Int))
    }

    fn visit_u128<E>(self, int: u128) -> Result<Tree, E> {
        Ok(i64::try_from(int).map_or(Tree::Big(int as f64), Tree::Int))
    }

    fn visit_f64<E>(self, float: f64) -> Result<Tree, E> {
        Ok(Tree::Float(float))
    }

    fn visit_str<E>(self, text: &str) -> Result<Tree, E> {
        Ok(Tree::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Tree, E> {
        Ok(Tree::Text(text))
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_none<E>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree, D::Error> {
        YamlTree::deserialize(deserializer).map(|YamlTree(tree)| tree)
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
