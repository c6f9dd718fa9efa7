//! Stages: columns that are generated together, the rows that they keep, and the steps behind them.

use anabranch_document::{Fields, Node, Notes, Tree};
use anabranch_text::quote;

use super::draft::{Draft, DraftColumn, DraftStage, Reference, Role};
use super::graph::Names;
use super::template::place_of;
use super::types::{Accept, StageConfig, StepConfig};
use super::{column, derived, steps, template};

/// The most rows of a stage, and the most stages.
const ROWS_MOST: i64 = 1_000_000_000_000;
const STAGES_MOST: usize = 50;

/// Reads `stages`, each with its own columns.
pub(super) fn stages(node: &Node, draft: &mut Draft, notes: &mut Notes<'_>) {
    let Some(items) = notes.as_list(node, "stages") else { return };
    if items.len() > STAGES_MOST {
        notes.note(&node.at, format!("there are more than {STAGES_MOST} stages"), "put columns together");
        return;
    }
    for item in items {
        let Some(mut fields) = notes.fields(item, "a stage") else { continue };
        let name = name(&mut fields, notes);
        if let Some(name) = &name {
            fields.rename(format!("stage {}", quote(name)));
            if draft.stages.iter().any(|other| other.stage.name == *name) {
                let what = format!("stage {} is there already", quote(name));
                notes.note(fields.at(), what, "give one of them another name");
            }
        }
        if let Some(columns) = fields.need("columns", notes) {
            read_columns(columns, draft, notes);
        }
        stage(&mut fields, name.unwrap_or_default(), draft, notes);
        fields.finish(notes);
    }
    if items.is_empty() {
        notes.note(&node.at, "there is no stage", "add one with `name` and `columns`");
    }
}

/// Reads the columns of the next stage.
pub(super) fn read_columns(node: &Node, draft: &mut Draft, notes: &mut Notes<'_>) {
    let Some(items) = notes.as_list(node, "columns") else { return };
    if !column::are_few(items.len() + draft.columns.len(), node, notes) {
        return;
    }
    let stage = draft.stages.len();
    for item in items {
        if let Some(mut found) = column::column(item, notes) {
            found.column.iter_mut().for_each(|column| column.stage = stage);
            draft.columns.push(DraftColumn { stage, written_stage: stage, ..found });
        }
    }
}

/// Reads the rest of a stage: `rows`, `accept`, `steps`.
pub(super) fn stage(fields: &mut Fields<'_>, name: String, draft: &mut Draft, notes: &mut Notes<'_>) {
    let mut references = Vec::new();
    let rows = derived::whole(fields, "rows", 1, ROWS_MOST, notes).map(|rows| rows as u64);
    let accept = fields.get("accept").and_then(|node| accept(node, &mut references, notes));
    let steps = fields.get("steps").map(|node| steps::steps(node, &mut references, notes));
    let stage = StageConfig { name, rows, accept, steps: steps.unwrap_or_default() };
    draft.stages.push(DraftStage { stage, references });
}

fn name(fields: &mut Fields<'_>, notes: &mut Notes<'_>) -> Option<String> {
    let node = fields.need("name", notes)?;
    let name = notes.as_text(node, "name")?;
    let is_plain = |letter: char| letter.is_alphanumeric() || "_- ".contains(letter);
    if name.is_empty() || name.len() > 100 || !name.chars().all(is_plain) {
        let help = "it names a folder: letters, digits, `-`, `_` and spaces, at most 100 bytes";
        notes.note(&node.at, format!("{} is not a name of a stage", quote(name)), help);
        return None;
    }
    Some(name.to_owned())
}

/// A condition, several of them, or a table of these and a bound of candidates.
fn accept(node: &Node, references: &mut Vec<Reference>, notes: &mut Notes<'_>) -> Option<Accept> {
    let mut max_candidates = None;
    let conditions = match &node.value {
        Tree::Table(_) => {
            let mut fields = notes.fields(node, "`accept`")?;
            let when = fields.need("when", notes);
            max_candidates =
                derived::whole(&mut fields, "max_candidates", 1, ROWS_MOST, notes).map(|found| found as u64);
            fields.finish(notes);
            when?
        }
        _ => node,
    };
    let several = std::slice::from_ref(conditions);
    let conditions = if let Tree::List(items) = &conditions.value { items } else { several };
    if conditions.is_empty() {
        notes.note(&node.at, "`accept` has no condition", "write one: `accept: score >= 4`");
    }
    let before = references.len();
    let mut when = Vec::new();
    for condition in conditions {
        let source = notes.as_text(condition, "accept")?;
        when.push(template::condition(source, &condition.at, Role::Template("accept"), references, notes)?);
    }
    if references.len() == before {
        notes.note(&node.at, "`accept` reads no column", "write it as `score >= 4`, or name a column");
    }
    Some(Accept { when, max_candidates })
}

/// Splits stages behind columns that may change the number of rows, and puts a stage behind steps that come last: all
/// steps stand between two stages then. `order` has the columns in their order of dependency.
pub(super) fn split(draft: &mut Draft, order: &[usize]) {
    let written = std::mem::take(&mut draft.stages);
    for (number, DraftStage { mut stage, references }) in written.into_iter().enumerate() {
        let rows = stage.rows.take();
        let first = draft.stages.len();
        for place in order {
            let found = &mut draft.columns[*place];
            if found.written_stage != number {
                continue;
            }
            found.stage = draft.stages.len();
            let Some(column) = &mut found.column else { continue };
            column.stage = found.stage;
            if column.resizes() {
                let mut columns = vec![column.name.clone()];
                columns.extend(column.side_effects());
                let steps = vec![StepConfig::Explode { columns }];
                let part = StageConfig { name: column.name.clone(), rows: None, accept: None, steps };
                draft.stages.push(DraftStage { stage: part, references: Vec::new() });
            }
        }
        draft.stages.push(DraftStage { stage, references });
        draft.stages[first].stage.rows = rows;
    }
    if draft.stages.last().is_some_and(|last| !last.stage.steps.is_empty()) {
        let stage = StageConfig { name: "output".to_owned(), ..StageConfig::default() };
        draft.stages.push(DraftStage { stage, references: Vec::new() });
    }
}

/// Reports columns that a stage reads before they are filled.
pub(super) fn check_order(draft: &Draft, names: &Names, notes: &mut Notes<'_>) {
    let stage_of = |name: &str| {
        let column = names.get(name)?.column()?;
        Some((draft.columns[column].stage, &draft.columns[column].name))
    };
    let columns = draft.columns.iter().map(|column| (column.stage, &column.references));
    let stages = draft.stages.iter().enumerate().map(|(number, stage)| (number, &stage.references));
    for (stage, references) in columns.chain(stages) {
        for reference in references {
            if let Some((later, column)) = stage_of(&reference.name).filter(|(later, _)| *later > stage) {
                let what = format!(
                    "{} is filled in stage {}, which comes later",
                    quote(column),
                    quote(&draft.stages[later].stage.name)
                );
                notes.note(&place_of(reference, notes), what, "move the column, or read another one");
            }
        }
    }
}
