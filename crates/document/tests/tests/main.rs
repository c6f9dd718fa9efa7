//! Trees and their places, problems, and hostile files.

mod tree;
mod scalar;
mod fields;

use anabranch_document::{Format, Limits, Node, Notes, Problems, Tree, parse};

/// The tree of a text in one line with the text at each scalar's place, or the problems.
fn shown(format: Format, text: &str) -> String {
    match parsed(format, text, Limits::default()) {
        Ok(node) => show(&node, text),
        Err(problems) => problems.to_string(),
    }
}

fn parsed(format: Format, text: &str, limits: Limits) -> Result<Node, Problems> {
    let mut notes = Notes::new("file", text);
    let root = parse(format, limits, &mut notes);
    notes.none_or(root).map(|root| root.expect("nothing is wrong"))
}

fn show(node: &Node, text: &str) -> String {
    let at = text.get(node.at.clone()).unwrap_or("(no place)");
    match &node.value {
        Tree::List(items) => {
            format!("[{}]", items.iter().map(|item| show(item, text)).collect::<Vec<_>>().join(", "))
        }
        Tree::Table(table) => {
            let entry = |(key, node): &(anabranch_document::Key, Node)| {
                format!("{}<{}>: {}", key.name, &text[key.at.clone()], show(node, text))
            };
            format!("{{{}}}", table.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
        scalar => format!("{scalar:?}<{at}>"),
    }
}
