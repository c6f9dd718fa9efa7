//! Templates, compiled at their place in the file.

use std::sync::Arc;

use anabranch_document::{Node, Notes, Span, place_in_scalar};
use anabranch_template::Template;

use super::draft::{Reference, Role};
use super::types::TemplateText;

/// The most names in single braces that are looked at in one prompt.
const BRACES_MOST: usize = 20;

/// Compiles the template that a field holds and gathers the names that it reads.
pub(super) fn template(
    node: &Node,
    name: &'static str,
    role: Role,
    references: &mut Vec<Reference>,
    notes: &mut Notes<'_>,
) -> Option<TemplateText> {
    let source = notes.as_text(node, name)?;
    compiled(source, &node.at, Template::compile(source), references, role, notes)
}

/// Compiles a condition: a bare expression, or a template.
pub(super) fn condition(
    source: &str,
    at: &Span,
    role: Role,
    references: &mut Vec<Reference>,
    notes: &mut Notes<'_>,
) -> Option<TemplateText> {
    let is_template = source.contains("{{") || source.contains("{%");
    let template = if is_template { Template::compile(source) } else { Template::expression(source) };
    compiled(source, at, template, references, role, notes)
}

fn compiled(
    source: &str,
    at: &Span,
    template: Result<Template, anabranch_template::Error>,
    references: &mut Vec<Reference>,
    role: Role,
    notes: &mut Notes<'_>,
) -> Option<TemplateText> {
    match template {
        Ok(template) => {
            let source: Arc<str> = source.into();
            references.extend(template.variables().iter().map(|name| Reference {
                name: name.clone(),
                at: at.clone(),
                role,
                source: Some(source.clone()),
            }));
            Some(TemplateText { template: Arc::new(template), source, place: notes.place(at) })
        }
        Err(error) if notes.is_full() => {
            notes.hint(at, error.message, None);
            None
        }
        Err(error) => {
            let start = error.place.start.min(source.len());
            match in_file(source, at, start..error.place.end.max(start), notes) {
                Some(place) => notes.hint(&place, error.message, None),
                None => {
                    let (line, _) = anabranch_text::position(source, start);
                    notes.hint(at, format!("line {line} of the template: {}", error.message), None);
                }
            }
            None
        }
    }
}

/// In longer texts no place is looked for.
const LONGEST_SEARCHED: usize = 64 << 10;

/// The bytes of the file that bytes of a template's source come from.
fn in_file(source: &str, at: &Span, part: Span, notes: &Notes<'_>) -> Option<Span> {
    if source.len() > LONGEST_SEARCHED {
        return None;
    }
    let text = notes.text();
    let start = place_in_scalar(text, at, source, part.start)?;
    let end = place_in_scalar(text, at, source, part.end).filter(|end| *end > start);
    Some(start..end.unwrap_or(start + 1))
}

/// The place of a reference: of its first use in a template, if that can be found.
pub(super) fn place_of(reference: &Reference, notes: &Notes<'_>) -> Span {
    let place =
        reference.source.as_ref().filter(|source| source.len() <= LONGEST_SEARCHED).and_then(|source| {
            let start = use_of(source, &reference.name)?;
            in_file(source, &reference.at, start..start + reference.name.len(), notes)
        });
    place.unwrap_or_else(|| reference.at.clone())
}

/// The position at which a template first uses a name, found without its syntax tree.
fn use_of(source: &str, name: &str) -> Option<usize> {
    if !source.contains("{{") && !source.contains("{%") {
        return word_in(source, name);
    }
    let mut from = 0;
    loop {
        let rest = &source[from..];
        let open = [rest.find("{{"), rest.find("{%")].into_iter().flatten().min()?;
        let inside = &rest[open..];
        let close =
            [inside.find("}}"), inside.find("%}")].into_iter().flatten().min().unwrap_or(inside.len());
        if let Some(found) = word_in(&inside[..close], name) {
            return Some(from + open + found);
        }
        from += open + close.max(2);
    }
}

/// The position of a name as a word that is neither a field nor quoted.
fn word_in(text: &str, name: &str) -> Option<usize> {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    text.match_indices(name).map(|(at, _)| at).find(|at| {
        let (before, after) = (&text[..*at], &text[at + name.len()..]);
        !before.ends_with(is_word) && !before.ends_with(['.', '"', '\'']) && !after.starts_with(is_word)
    })
}

/// Names in single braces, as an f-string of Python has them, with their places. Lone braces are nothing.
pub(super) fn single_braces(node: &Node, source: &str, notes: &Notes<'_>) -> Vec<(String, Span)> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(open) = source[from..].find('{').map(|open| from + open) {
        let rest = &source[open + 1..];
        let width =
            rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(rest.len());
        let (name, after) = rest.split_at(width);
        let is_single = !source[..open].ends_with('{') && after.starts_with('}') && !after.starts_with("}}");
        if is_single && !name.is_empty() && !name.starts_with(|first: char| first.is_numeric()) {
            let at = in_file(source, &node.at, open..open + width + 2, notes).unwrap_or(node.at.clone());
            found.push((name.to_owned(), at));
            if found.len() == BRACES_MOST {
                break;
            }
        }
        from = open + 1;
    }
    found
}
