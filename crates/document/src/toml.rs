//! TOML as a tree.

use toml::de::{DeTable, DeValue};

use crate::notes::Notes;
use crate::tree::{Key, Node, Table, Tree};

/// The table that a text is; what can be read of it if some cannot.
pub(crate) fn parse(text: &str, notes: &mut Notes<'_>) -> Option<Node> {
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        notes.hint(&error.span().unwrap_or_default(), error.message().trim(), None);
    }
    Some(Node { at: 0..text.len(), value: Tree::Table(read_table(table.into_inner())) })
}

// How deep tables and lists can be in each other is the parser's bound.
fn read_table(table: DeTable<'_>) -> Table {
    let entry = |(name, value): (toml::Spanned<std::borrow::Cow<'_, str>>, toml::Spanned<DeValue<'_>>)| {
        let at = value.span();
        let key = Key { at: name.span(), name: name.into_inner().into_owned() };
        (key, Node { at, value: read(value.into_inner()) })
    };
    let mut table: Table = table.into_iter().map(entry).collect();
    table.sort_by_key(|(key, _)| key.at.start);
    table
}

fn read(value: DeValue<'_>) -> Tree {
    match value {
        DeValue::String(text) => Tree::Text(text.into_owned()),
        DeValue::Integer(int) => match i64::from_str_radix(int.as_str(), int.radix()) {
            Ok(int) => Tree::Int(int),
            Err(_) => {
                int.as_str().parse().map_or(Tree::Other("a whole number of more than 64 bits"), Tree::Big)
            }
        },
        DeValue::Float(float) => {
            float.as_str().parse().map_or(Tree::Other("a number that cannot be read"), Tree::Float)
        }
        DeValue::Boolean(truth) => Tree::Bool(truth),
        DeValue::Datetime(_) => Tree::Other("a date"),
        DeValue::Array(items) => {
            let node =
                |item: toml::Spanned<DeValue<'_>>| Node { at: item.span(), value: read(item.into_inner()) };
            Tree::List(items.into_iter().map(node).collect())
        }
        DeValue::Table(table) => Tree::Table(read_table(table)),
    }
}
