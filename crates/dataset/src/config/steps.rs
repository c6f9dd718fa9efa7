//! Steps between stages, which change the number or the order of rows.

use anabranch_document::{Fields, Node, Notes, Span, Tree};
use anabranch_text::quote;

use super::derived::target_reference;
use super::draft::{Reference, Role};
use super::template;
use super::types::{SampleSize, SortKey, StepConfig};

const STEPS_MOST: usize = 100;
const NAMES: [&str; 5] = ["filter", "dedupe", "explode", "sample", "sort"];

/// Reads `steps`: a list of tables with one entry each.
pub(super) fn steps(node: &Node, references: &mut Vec<Reference>, notes: &mut Notes<'_>) -> Vec<StepConfig> {
    let items = notes.as_list(node, "steps").unwrap_or_default();
    if items.len() > STEPS_MOST {
        notes.note(&node.at, format!("there are more than {STEPS_MOST} steps"), "put some of them together");
        return Vec::new();
    }
    items.iter().filter_map(|item| step(item, references, notes)).collect()
}

fn step(node: &Node, references: &mut Vec<Reference>, notes: &mut Notes<'_>) -> Option<StepConfig> {
    let help = "a step is one of `filter: score >= 4`, `dedupe: [question]`, `explode: questions`, `sample: 100`, \
                `sort: [score desc]`";
    let Tree::Table(table) = &node.value else {
        notes.note(&node.at, "a step is a table with one entry", help);
        return None;
    };
    let [(key, value)] = &table[..] else {
        notes.note(&node.at, "a step is a table with one entry", help);
        return None;
    };
    match &*key.name {
        "filter" => {
            let source = notes.as_text(value, "filter")?;
            let before = references.len();
            let when = template::condition(source, &value.at, Role::Template("filter"), references, notes)?;
            if references.len() == before {
                notes.note(&value.at, "the condition reads no column", "write it as `score >= 4`");
            }
            Some(StepConfig::Filter { when })
        }
        "dedupe" => {
            let by = names(value, "dedupe", references, notes)?;
            Some(StepConfig::Dedupe { by })
        }
        "explode" => {
            let columns = names(value, "explode", references, notes)?;
            Some(StepConfig::Explode { columns })
        }
        "sample" => sample(value, notes).map(|size| StepConfig::Sample { size }),
        "sort" => sort(value, references, notes).map(|by| StepConfig::Sort { by }),
        other => {
            let near = notes.did_you_mean(other, NAMES);
            let help = near.unwrap_or_else(|| help.to_owned());
            notes.note(&key.at, format!("there is no step {}", quote(other)), help);
            None
        }
    }
}

/// The name of a column, or a list of names.
fn names(
    node: &Node,
    field: &'static str,
    references: &mut Vec<Reference>,
    notes: &mut Notes<'_>,
) -> Option<Vec<String>> {
    let several = std::slice::from_ref(node);
    let items = if let Tree::List(items) = &node.value { items } else { several };
    if items.is_empty() {
        notes.note(&node.at, format!("`{field}` names no column"), "name one");
        return None;
    }
    let mut names: Vec<String> = Vec::new();
    for item in items {
        let name = notes.as_text(item, field)?;
        is_new(&names, name, &item.at, notes)?;
        references.push(target_reference(field, name, &item.at));
        names.push(name.to_owned());
    }
    Some(names)
}

/// Reports a duplicate name.
fn is_new(names: &[String], name: &str, at: &Span, notes: &mut Notes<'_>) -> Option<()> {
    if names.iter().any(|other| other == name) {
        notes.note(at, format!("{} is there already", quote(name)), "name each column once");
        return None;
    }
    Some(())
}

/// A number of rows, or a share of them.
fn sample(node: &Node, notes: &mut Notes<'_>) -> Option<SampleSize> {
    let wrong = |at: &Span, notes: &mut Notes<'_>| {
        let help = "write `sample: 100`, `sample: {rows: 100}` or `sample: {share: 0.1}`";
        notes.note(at, "`sample` is a number of rows, or a share between 0 and 1", help);
        None
    };
    match &node.value {
        Tree::Int(rows) if *rows > 0 => Some(SampleSize::Rows(*rows as u64)),
        Tree::Table(_) => {
            let mut fields: Fields<'_> = notes.fields(node, "`sample`")?;
            let (rows, share) = (fields.int("rows", notes), fields.float("share", notes));
            fields.finish(notes);
            match (rows, share) {
                (Some(rows), None) if rows > 0 => Some(SampleSize::Rows(rows as u64)),
                (None, Some(share)) if share > 0.0 && share <= 1.0 => Some(SampleSize::Share(share)),
                _ => wrong(&node.at, notes),
            }
        }
        _ => wrong(&node.at, notes),
    }
}

/// Keys such as `score`, `score desc` or `{by: score, order: desc}`.
fn sort(node: &Node, references: &mut Vec<Reference>, notes: &mut Notes<'_>) -> Option<Vec<SortKey>> {
    let several = std::slice::from_ref(node);
    let items = if let Tree::List(items) = &node.value { items } else { several };
    let mut keys = Vec::new();
    for item in items {
        let key = if matches!(item.value, Tree::Table(_)) {
            let mut fields = notes.fields(item, "a key of `sort`")?;
            let column = fields.need_text("by", notes);
            let descending = fields.choice("order", &[("asc", false), ("desc", true)], notes);
            fields.finish(notes);
            SortKey { column: column?.to_owned(), descending: descending.unwrap_or(false) }
        } else {
            let text = notes.as_text(item, "sort")?;
            match text.rsplit_once(' ') {
                Some((column, "asc")) => SortKey { column: column.trim().to_owned(), descending: false },
                Some((column, "desc")) => SortKey { column: column.trim().to_owned(), descending: true },
                _ => SortKey { column: text.to_owned(), descending: false },
            }
        };
        let names: Vec<String> = keys.iter().map(|key: &SortKey| key.column.clone()).collect();
        is_new(&names, &key.column, &item.at, notes)?;
        references.push(target_reference("sort", &key.column, &item.at));
        keys.push(key);
    }
    if keys.is_empty() {
        notes.note(&node.at, "`sort` names no column", "name one: `sort: [score desc]`");
        return None;
    }
    Some(keys)
}
