//! Columns that a chat model fills.

use anabranch_document::{Fields, Key, Node, Notes, Tree};
use anabranch_text::quote;
use anabranch_value::Value;

use super::column::Parts;
use super::draft::Role;
use super::types::{CodeLang, LlmColumn, LlmOutput, Score, Trace};
use super::{template, value};

/// Reads the fields that only `llm-*` columns have.
pub(super) fn column(
    word: &str,
    fields: &mut Fields<'_>,
    parts: &mut Parts,
    notes: &mut Notes<'_>,
) -> Option<LlmColumn> {
    let prompt_node = fields.need("prompt", notes);
    let role = Role::Template("prompt");
    let prompt =
        prompt_node.and_then(|node| template::template(node, "prompt", role, &mut parts.references, notes));
    if let (Some(node), Some(prompt)) = (prompt_node, &prompt) {
        if prompt.source.trim().is_empty() {
            notes.hint(&node.at, "the prompt is empty", None);
        } else if prompt.template.variables().is_empty() {
            let what = format!("the prompt of {} reads no column: every row asks the same", fields.of());
            notes.warn(&node.at, what, "name columns in it as `{{ column }}`");
        }
        parts.braces = template::single_braces(node, &prompt.source, notes);
    }
    let role = Role::Template("system_prompt");
    let system_node = fields.get("system_prompt");
    let system =
        system_node.map(|node| template::template(node, "system_prompt", role, &mut parts.references, notes));
    let model_alias = alias(fields, notes);
    refuse(fields, notes);
    let with_trace = trace(fields, notes);
    let extract_reasoning_content = fields.bool("extract_reasoning_content", notes).unwrap_or(false);
    let output = output(word, fields, notes);
    Some(LlmColumn {
        prompt: prompt?,
        system_prompt: system.map_or(Some(None), |system| system.map(Some))?,
        model_alias: model_alias?,
        with_trace,
        extract_reasoning_content,
        output: output?,
    })
}

/// The alias of the model that fills the column.
pub(super) fn alias(fields: &mut Fields<'_>, notes: &mut Notes<'_>) -> Option<String> {
    let node = fields.need("model_alias", notes)?;
    let alias = notes.as_text(node, "model_alias")?;
    if alias.is_empty() {
        notes.hint(&node.at, "`model_alias` is empty", None);
        return None;
    }
    Some(alias.to_owned())
}

/// Refuses parts of DataDesigner that are not there yet.
fn refuse(fields: &mut Fields<'_>, notes: &mut Notes<'_>) {
    if let Some(node) = fields.get("tool_alias")
        && !matches!(&node.value, Tree::Text(text) if text.is_empty())
    {
        let help = "take `tool_alias` away, or run the tool before and bring its results in as a seed";
        notes.note(&node.at, "tools (MCP) are not taken yet: a model call has no tools", help);
    }
    if let Some(node) = fields.get("multi_modal_context")
        && !matches!(&node.value, Tree::List(items) if items.is_empty())
    {
        let help = "take `multi_modal_context` away, or describe the media in a text column";
        notes.note(&node.at, "images, audio and video in prompts are not taken yet: prompts are text", help);
    }
}

fn trace(fields: &mut Fields<'_>, notes: &mut Notes<'_>) -> Trace {
    // Older files say true or false.
    match fields.get("with_trace") {
        Some(Node { value: Tree::Bool(true), .. }) => Trace::AllMessages,
        Some(Node { value: Tree::Bool(false), .. }) => Trace::None,
        _ => {
            let words = [
                ("none", Trace::None),
                ("last_message", Trace::LastMessage),
                ("all_messages", Trace::AllMessages),
            ];
            fields.choice("with_trace", &words, notes).unwrap_or_default()
        }
    }
}

fn output(word: &str, fields: &mut Fields<'_>, notes: &mut Notes<'_>) -> Option<LlmOutput> {
    match word {
        "llm-code" => code_lang(fields, notes).map(|lang| LlmOutput::Code { lang }),
        "llm-structured" => {
            let node = fields.need("output_format", notes)?;
            schema(node, "output_format", notes).map(|schema| LlmOutput::Structured { schema })
        }
        "llm-judge" => {
            let node = fields.need("scores", notes)?;
            scores(node, notes).map(|scores| LlmOutput::Judge { scores })
        }
        _ => Some(LlmOutput::Text),
    }
}

/// A language of code.
pub(super) fn code_lang(fields: &mut Fields<'_>, notes: &mut Notes<'_>) -> Option<CodeLang> {
    let node = fields.need("code_lang", notes)?;
    let word = notes.as_text(node, "code_lang")?;
    let found = CodeLang::new(word);
    if found.is_none() {
        let near = notes.did_you_mean(word, CodeLang::ALL);
        let help = near.unwrap_or_else(|| format!("languages are {}", CodeLang::ALL.join(", ")));
        notes.note(&node.at, format!("there is no language {}", quote(word)), help);
    }
    found
}

/// A JSON schema: a table whose `type` and `properties` look like a schema's.
pub(super) fn schema(node: &Node, name: &str, notes: &mut Notes<'_>) -> Option<Value> {
    let Tree::Table(table) = &node.value else {
        let what = format!("`{name}` is a JSON schema, this is {}", node.value.kind());
        notes.note(&node.at, what, "write `type: object` and `properties:` below it");
        return None;
    };
    let errors = notes.errors();
    if table.is_empty() {
        notes.note(
            &node.at,
            format!("`{name}` is an empty schema"),
            "write `type: object` and `properties:` below it",
        );
    }
    for (Key { name, at }, node) in table {
        match (name.as_str(), &node.value) {
            ("type", Tree::Text(word)) => {
                const TYPES: [&str; 7] =
                    ["object", "array", "string", "number", "integer", "boolean", "null"];
                if !TYPES.contains(&word.as_str()) {
                    let help = notes.did_you_mean(word, TYPES);
                    notes.hint(&node.at, format!("JSON schemas have no type {}", quote(word)), help);
                }
            }
            ("type", Tree::List(_)) | ("properties" | "$defs" | "definitions", Tree::Table(_)) => {}
            ("required", Tree::List(_)) => {}
            ("type" | "properties" | "$defs" | "definitions" | "required", other) => {
                notes.hint(at, format!("`{name}` of a JSON schema is not {}", other.kind()), None);
            }
            _ => {}
        }
    }
    let schema = value::value(node, notes);
    (notes.errors() == errors).then_some(schema)
}

fn scores(node: &Node, notes: &mut Notes<'_>) -> Option<Vec<Score>> {
    let items = notes.as_list(node, "scores")?;
    if items.is_empty() {
        notes.note(&node.at, "a judge needs a score", "give `name`, `description` and `options`");
    }
    let mut scores: Vec<Score> = Vec::new();
    for item in items {
        let Some(mut fields) = notes.fields(item, "a score") else { continue };
        let name_at = fields.get("name").map(|node| node.at.clone());
        let name = fields.need_text("name", notes).map(str::to_owned);
        if let Some(name) = &name {
            fields.rename(format!("score {}", quote(name)));
        }
        let description = fields.need_text("description", notes).map(str::to_owned);
        let options = fields.need("options", notes).and_then(|node| options(node, notes));
        fields.finish(notes);
        if let (Some(name), Some(at)) = (&name, name_at)
            && (name.is_empty() || scores.iter().any(|score| score.name == *name))
        {
            let what =
                if name.is_empty() { "a score has no name" } else { "a score of this name is there already" };
            notes.hint(&at, what, None);
        }
        if let (Some(name), Some(description), Some(options)) = (name, description, options) {
            scores.push(Score { name, description, options });
        }
    }
    (scores.len() == items.len() && !scores.is_empty()).then_some(scores)
}

fn options(node: &Node, notes: &mut Notes<'_>) -> Option<Vec<(Value, String)>> {
    let table = notes.as_table(node, "options", "descriptions by option")?;
    if table.is_empty() {
        notes.note(&node.at, "a score needs an option", "write `option: description` below it");
        return None;
    }
    let mut options = Vec::with_capacity(table.len());
    for (key, node) in table {
        if let Some(description) = notes.as_text(node, &key.name) {
            options.push((option(key, notes), description.to_owned()));
        }
    }
    (options.len() == table.len()).then_some(options)
}

/// A whole number if it is written as one, without quotes.
fn option(key: &Key, notes: &Notes<'_>) -> Value {
    let is_quoted = notes.text().get(key.at.clone()).is_some_and(|written| written.starts_with(['"', '\'']));
    match key.name.parse::<i64>() {
        Ok(number) if !is_quoted => Value::Int(number),
        _ => key.name.as_str().into(),
    }
}
