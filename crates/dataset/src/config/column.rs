//! Columns: their common fields, and their kinds.

use anabranch_document::{Fields, Node, Notes, Tree};
use anabranch_text::quote;
use anabranch_value::Value;

use super::draft::{DraftColumn, Reference, Role};
use super::types::{Column, ColumnKind, Dtype, OnRowError, Skip};
use super::{COLUMNS_MOST, custom, derived, digest, identity, llm, sampler, template, value};

/// All column types, for "did you mean".
const TYPES: [&str; 9] = [
    "sampler",
    "llm-text",
    "llm-code",
    "llm-structured",
    "llm-judge",
    "expression",
    "validation",
    "embedding",
    "custom",
];

/// The parts of a column that depend on its kind.
#[derive(Default)]
pub(super) struct Parts {
    pub references: Vec<Reference>,
    pub braces: Vec<(String, anabranch_document::Span)>,
    pub spots: Vec<(&'static str, anabranch_document::Span)>,
}

/// Reads one column; `None` if it has no name, or is to be left out.
pub(super) fn column(node: &Node, notes: &mut Notes<'_>) -> Option<DraftColumn> {
    let mut fields = notes.fields(node, "a column")?;
    let (name, at) = name(&mut fields, notes)?;
    fields.rename(format!("column {}", quote(&name)));
    let definition = fields.table();
    let mut parts = Parts::default();
    let column_type = fields.need_text("column_type", notes);
    let word = column_type.unwrap_or_default();
    if word == "seed-dataset" {
        notes.warn(
            &at,
            format!("column {} is left out", quote(&name)),
            "columns of the seed are there by themselves",
        );
        return None;
    }
    let errors = notes.errors();
    let drop = fields.bool("drop", notes).unwrap_or(false);
    let propagate_skip = fields.bool("propagate_skip", notes).unwrap_or(true);
    let on_error = on_error(&mut fields, notes);
    let resizes = resizes(&mut fields, word, notes);
    let skip = skip(&mut fields, word, &mut parts, notes);
    let mut kind = kind(word, &mut fields, &mut parts, notes);
    if let Some(ColumnKind::Custom(custom)) = &mut kind {
        custom.resizes = resizes;
    }
    let skip = match (&kind, skip) {
        (Some(ColumnKind::Expression { dtype, .. }), Some(skip)) => coerce_skip(skip, *dtype, &parts, notes),
        (_, skip) => skip,
    };
    if column_type.is_some_and(|word| TYPES.contains(&word)) {
        fields.finish(notes);
    }
    let column = kind.filter(|_| notes.errors() == errors).map(|kind| Column {
        name: name.clone(),
        stage: 0,
        drop,
        skip,
        propagate_skip,
        on_error,
        identity: identity::identity(&kind, definition),
        digest: digest::definition(definition),
        twin: 0,
        kind,
        place: notes.place(&at),
    });
    let side_effects = column.as_ref().map(Column::side_effects).unwrap_or_default();
    let Parts { references, braces, spots } = parts;
    let (written_stage, stage) = (0, 0);
    Some(DraftColumn { name, at, column, references, braces, side_effects, spots, written_stage, stage })
}

fn name(fields: &mut Fields<'_>, notes: &mut Notes<'_>) -> Option<(String, anabranch_document::Span)> {
    let node = fields.need("name", notes)?;
    let name = notes.as_text(node, "name")?;
    if name.is_empty() || name.len() > 255 || name.chars().any(char::is_control) {
        notes.note(
            &node.at,
            format!("{} is not a name", quote(name)),
            "1 to 255 bytes without control characters",
        );
        return None;
    }
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    if !name.chars().all(is_word) || name.starts_with(|first: char| first.is_numeric()) {
        let what = format!("templates cannot read column {} by its name", quote(name));
        notes.warn(&node.at, what, "letters, digits and `_` can be read, with no digit in front");
    }
    Some((name.to_owned(), node.at.clone()))
}

fn on_error(fields: &mut Fields<'_>, notes: &mut Notes<'_>) -> OnRowError {
    let words = [
        ("drop_row", OnRowError::DropRow),
        ("keep_null", OnRowError::KeepNull),
        ("fail_run", OnRowError::FailRun),
    ];
    fields.choice("on_error", &words, notes).unwrap_or_default()
}

/// Only a program can make several rows out of one: all else has one value per row.
fn resizes(fields: &mut Fields<'_>, word: &str, notes: &mut Notes<'_>) -> bool {
    let Some(node) = fields.get("allow_resize") else { return false };
    let resizes = notes.as_bool(node, "allow_resize") == Some(true);
    if resizes && word != "custom" {
        let what = format!("a column of type `{word}` has one value per row");
        let help = "take `allow_resize` away; `steps:` behind the columns change the number of rows: filter, dedupe, \
                    explode, sample, sort";
        notes.note(&node.at, what, help);
    }
    resizes
}

/// Notes that there are too many columns.
pub(super) fn are_few(count: usize, node: &Node, notes: &mut Notes<'_>) -> bool {
    if count > COLUMNS_MOST {
        let what =
            format!("there are {}, more than {COLUMNS_MOST}", anabranch_text::count(count as u64, "column"));
        notes.note(&node.at, what, "split the dataset, or gather values in columns of type `llm-structured`");
    }
    count <= COLUMNS_MOST
}

fn skip(fields: &mut Fields<'_>, word: &str, parts: &mut Parts, notes: &mut Notes<'_>) -> Option<Skip> {
    let node = fields.get("skip")?;
    let mut fields = notes.fields(node, "`skip`")?;
    let at = fields.at().clone();
    if word == "sampler" {
        notes.note(
            &at,
            "samplers cannot be skipped",
            "use `conditional_params`, or skip the columns that read it",
        );
    }
    let when = fields.need("when", notes);
    let value_node = fields.get("value");
    let value = value_node.map_or(Some(Value::Null), |node| value::scalar(node, "value", notes));
    if let Some(node) = value_node {
        parts.spots.push(("skip.value", node.at.clone()));
    }
    fields.finish(notes);
    let when = when?;
    let source = match &when.value {
        Tree::Bool(truth) => truth.to_string(),
        _ => notes.as_text(when, "when")?.to_owned(),
    };
    let before = parts.references.len();
    let template = template::condition(&source, &when.at, Role::Skip, &mut parts.references, notes)?;
    if parts.references.len() == before {
        notes.note(&when.at, "the condition reads no column", "write it as `{{ column == \"value\" }}`");
    }
    Some(Skip { when: template, value: value? })
}

/// The value of a skipped expression has the expression's type.
fn coerce_skip(skip: Skip, dtype: Dtype, parts: &Parts, notes: &mut Notes<'_>) -> Option<Skip> {
    let value = derived::coerce(&skip.value, dtype);
    if value.is_none()
        && let Some((_, at)) = parts.spots.iter().find(|(name, _)| *name == "skip.value")
    {
        let what =
            format!("the value {} does not fit `dtype: {}`", skip.value.to_json(), derived::word(dtype));
        notes.hint(at, what, None);
    }
    Some(Skip { value: value?, ..skip })
}

fn kind(word: &str, fields: &mut Fields<'_>, parts: &mut Parts, notes: &mut Notes<'_>) -> Option<ColumnKind> {
    match word {
        "sampler" => sampler::column(fields, parts, notes).map(ColumnKind::Sampler),
        "llm-text" | "llm-code" | "llm-structured" | "llm-judge" => {
            llm::column(word, fields, parts, notes).map(ColumnKind::Llm)
        }
        "expression" => derived::expression(fields, parts, notes),
        "validation" => derived::validation(fields, parts, notes).map(ColumnKind::Validation),
        "embedding" => derived::embedding(fields, parts, notes),
        "custom" => custom::column(fields, parts, notes).map(ColumnKind::Custom),
        other => {
            let at = fields.get("column_type")?.at.clone();
            if other == "image" {
                let help = "generate text instead, and make the images from it in a step of its own";
                notes.note(&at, "columns of type `image` are not taken yet: cells hold no images", help);
            } else if matches!(fields.get("column_type"), Some(Node { value: Tree::Text(_), .. })) {
                let near = notes.did_you_mean(other, TYPES);
                let help = near.unwrap_or_else(|| format!("column types are {}", TYPES.join(", ")));
                notes.note(&at, format!("there is no column type {}", quote(other)), help);
            }
            None
        }
    }
}
