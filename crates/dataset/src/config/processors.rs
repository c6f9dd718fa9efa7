//! Processors, and constraints on samplers.

use anabranch_document::{Fields, Node, Notes, Tree};
use anabranch_text::quote;

use super::draft::{Draft, DraftConstraint, DraftProcessor, Reference, Role};
use super::types::{Comparison, Constraint, ConstraintRhs, ProcessorConfig, ProcessorKind, TransformNode};
use super::{template, value};

/// Reads `processors`.
pub(super) fn processors(node: &Node, draft: &mut Draft, notes: &mut Notes<'_>) {
    for item in notes.as_list(node, "processors").unwrap_or_default() {
        let Some(mut fields) = notes.fields(item, "a processor") else { continue };
        let Some(found) = processor(&mut fields, notes) else { continue };
        if draft.processors.iter().any(|other| other.processor.name == found.processor.name) {
            let what = format!("processor {} is there already", quote(&found.processor.name));
            notes.note(&found.at, what, "give one of them another name");
        }
        draft.processors.push(found);
        fields.finish(notes);
    }
}

fn processor(fields: &mut Fields<'_>, notes: &mut Notes<'_>) -> Option<DraftProcessor> {
    let node = fields.need("name", notes);
    let name = node.and_then(|node| notes.as_text(node, "name")).map(str::to_owned);
    let at = node.map_or(fields.at().clone(), |node| node.at.clone());
    if let Some(name) = &name {
        if name.is_empty() || name.len() > 200 || name.starts_with('.') || name.contains(['/', '\\', '\0']) {
            notes.note(&at, format!("{} is not a name", quote(name)), "it names a folder of the output");
        }
        fields.rename(format!("processor {}", quote(name)));
    }
    // Older files say when; this is the only time for both kinds.
    fields.choice("build_stage", &[("post_batch", ())], notes);
    let word = fields.need_text("processor_type", notes)?;
    let type_at = fields.get("processor_type")?.at.clone();
    let (mut references, mut patterns) = (Vec::new(), Vec::new());
    let kind = match word {
        "drop_columns" => {
            fields.need("column_names", notes);
            let names = fields.texts("column_names", notes).unwrap_or_default();
            patterns = names.into_iter().map(|(name, at)| (name.to_owned(), at.clone())).collect();
            let column_names = patterns.iter().map(|(name, _)| name.clone()).collect();
            Some(ProcessorKind::DropColumns { column_names })
        }
        "schema_transform" => {
            let node = fields.need("template", notes)?;
            if !matches!(node.value, Tree::Table(_)) {
                notes.mismatch(node, "template", "a table of the new columns", None);
                return None;
            }
            transform(node, &mut references, notes)
                .map(|template| ProcessorKind::SchemaTransform { template })
        }
        other => {
            let known = ["drop_columns", "schema_transform"];
            let near = notes.did_you_mean(other, known);
            let help = near.unwrap_or_else(|| format!("processors are {}", known.join(", ")));
            notes.note(&type_at, format!("there is no processor {}", quote(other)), help);
            None
        }
    };
    Some(DraftProcessor { processor: ProcessorConfig { name: name?, kind: kind? }, at, references, patterns })
}

fn transform(node: &Node, references: &mut Vec<Reference>, notes: &mut Notes<'_>) -> Option<TransformNode> {
    Some(match &node.value {
        Tree::Text(_) => {
            let role = Role::Template("template");
            TransformNode::Text(template::template(node, "template", role, references, notes)?)
        }
        Tree::List(items) => {
            let items: Vec<_> = items.iter().map(|item| transform(item, references, notes)).collect();
            TransformNode::List(items.into_iter().collect::<Option<_>>()?)
        }
        Tree::Table(table) => {
            let entries: Vec<_> = table
                .iter()
                .map(|(key, node)| Some((key.name.clone(), transform(node, references, notes)?)))
                .collect();
            TransformNode::Map(entries.into_iter().collect::<Option<_>>()?)
        }
        _ => TransformNode::Fixed(value::value(node, notes)),
    })
}

/// Reads `constraints`.
pub(super) fn constraints(node: &Node, draft: &mut Draft, notes: &mut Notes<'_>) {
    for item in notes.as_list(node, "constraints").unwrap_or_default() {
        let Some(mut fields) = notes.fields(item, "a constraint") else { continue };
        draft.constraints.extend(constraint(&mut fields, notes));
        fields.finish(notes);
    }
}

fn constraint(fields: &mut Fields<'_>, notes: &mut Notes<'_>) -> Option<DraftConstraint> {
    let target = fields.need("target_column", notes);
    let target_column = target.and_then(|node| notes.as_text(node, "target_column"));
    let words =
        [("lt", Comparison::Lt), ("le", Comparison::Le), ("gt", Comparison::Gt), ("ge", Comparison::Ge)];
    fields.need("operator", notes);
    let operator = fields.choice("operator", &words, notes);
    let kinds = [("scalar_inequality", true), ("column_inequality", false)];
    let is_number = fields.choice("constraint_type", &kinds, notes);
    let node = fields.need("rhs", notes)?;
    let finite = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    let rhs = match (&node.value, is_number) {
        (Tree::Text(text), None) => finite(text).map_or_else(
            || Some(ConstraintRhs::Column(text.clone())),
            |number| Some(ConstraintRhs::Number(number)),
        ),
        (Tree::Text(text), Some(true)) => {
            let number = finite(text).map(ConstraintRhs::Number);
            if number.is_none() {
                notes.hint(
                    &node.at,
                    format!("`rhs` of a scalar constraint is a number, this is {}", quote(text)),
                    None,
                );
            }
            number
        }
        (_, Some(false)) => notes.as_text(node, "rhs").map(|text| ConstraintRhs::Column(text.to_owned())),
        _ => notes.as_float(node, "rhs").map(ConstraintRhs::Number),
    };
    let at = target?.at.clone();
    let constraint = Constraint {
        target_column: target_column?.to_owned(),
        operator: operator?,
        rhs: rhs?,
        place: notes.place(&at),
    };
    Some(DraftConstraint { constraint, target_at: at, rhs_at: node.at.clone() })
}
