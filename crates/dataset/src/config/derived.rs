//! Columns that are computed from others: expressions, validations and embeddings.

use std::time::Duration;

use anabranch_document::{Fields, Node, Notes, Span};
use anabranch_text::quote;
use anabranch_value::Value;

use super::column::Parts;
use super::draft::{Reference, Role};
use super::types::{ColumnKind, Dtype, RemoteValidator, ValidationColumn, Validator};
use super::{llm, template};

const DTYPES: [(&str, Dtype); 4] =
    [("int", Dtype::Int), ("float", Dtype::Float), ("str", Dtype::Str), ("bool", Dtype::Bool)];

/// The word for a type.
pub(super) fn word(dtype: Dtype) -> &'static str {
    DTYPES.iter().find(|(_, known)| *known == dtype).map_or("str", |(word, _)| word)
}

/// Reads the fields that only expressions have.
pub(super) fn expression(
    fields: &mut Fields<'_>,
    parts: &mut Parts,
    notes: &mut Notes<'_>,
) -> Option<ColumnKind> {
    let node = fields.need("expr", notes);
    let role = Role::Template("expr");
    let expr = node.and_then(|node| template::template(node, "expr", role, &mut parts.references, notes));
    let dtype = fields.choice("dtype", &DTYPES, notes).unwrap_or_default();
    let (node, expr) = (node?, expr?);
    if expr.source.trim().is_empty() {
        notes.hint(&node.at, "the expression is empty", None);
        return None;
    }
    if expr.template.variables().is_empty() && !expr.source.contains("{{") {
        let what = "the expression is the same text in every row";
        notes.warn(&node.at, what, "expressions stand in double braces: `{{ price * 2 }}`");
    }
    Some(ColumnKind::Expression { expr, dtype })
}

/// Converts a value to a type; null stays null. `None` if it does not fit.
pub(super) fn coerce(value: &Value, dtype: Dtype) -> Option<Value> {
    let number = match value {
        Value::Text(text) => text.trim().parse::<f64>().ok(),
        Value::Bool(truth) => Some(f64::from(u8::from(*truth))),
        other => other.as_number(),
    }
    .filter(|number| number.is_finite());
    match (dtype, value) {
        (_, Value::Null) => Some(Value::Null),
        (Dtype::Str, Value::Text(_)) | (Dtype::Int, Value::Int(_)) => Some(value.clone()),
        (Dtype::Str, other) => Some(other.to_json().into()),
        (Dtype::Int, _) => {
            number.filter(|number| number.abs() < 9e18).map(|number| Value::Int(number.trunc() as i64))
        }
        (Dtype::Float, _) => number.map(Value::Float),
        (Dtype::Bool, Value::Text(text)) if number.is_none() => match text.trim().to_lowercase().as_str() {
            "true" => Some(Value::Bool(true)),
            "false" => Some(Value::Bool(false)),
            _ => None,
        },
        (Dtype::Bool, _) => number.map(|number| Value::Bool(number.trunc() != 0.0)),
    }
}

/// Reads the fields that only embeddings have.
pub(super) fn embedding(
    fields: &mut Fields<'_>,
    parts: &mut Parts,
    notes: &mut Notes<'_>,
) -> Option<ColumnKind> {
    let node = fields.need("target_column", notes);
    let target = node.and_then(|node| Some((notes.as_text(node, "target_column")?.to_owned(), &node.at)));
    let model_alias = llm::alias(fields, notes);
    let (target_column, at) = target?;
    parts.references.push(target_reference("target_column", &target_column, at));
    Some(ColumnKind::Embedding { target_column, model_alias: model_alias? })
}

/// The reference of a field to a column.
pub(super) fn target_reference(field: &'static str, name: &str, at: &Span) -> Reference {
    Reference { name: name.to_owned(), at: at.clone(), role: Role::Target(field), source: None }
}

/// Reads the fields that only validations have.
pub(super) fn validation(
    fields: &mut Fields<'_>,
    parts: &mut Parts,
    notes: &mut Notes<'_>,
) -> Option<ValidationColumn> {
    let targets_node = fields.need("target_columns", notes);
    let targets = fields.texts("target_columns", notes).unwrap_or_default();
    if let Some(node) = targets_node
        && targets.is_empty()
    {
        notes.hint(&node.at, "a validation needs a target column", None);
    }
    for (name, at) in &targets {
        parts.references.push(target_reference("target_columns", name, at));
    }
    let batch_size = whole(fields, "batch_size", 1, 100_000, notes).unwrap_or(10) as usize;
    let word = fields.need_text("validator_type", notes);
    let type_at = fields.get("validator_type").map(|node| node.at.clone());
    let params = fields.get("validator_params");
    let validator = match word? {
        "code" => code(params, fields, notes),
        "remote" => remote(params, fields, notes),
        other => {
            let at = type_at?;
            if other == "local_callable" {
                let help = "serve the function over HTTP and use `validator_type: remote`, or make it a `custom` column";
                notes.note(
                    &at,
                    "validators of type `local_callable` are not taken: a file holds no Python function",
                    help,
                );
            } else {
                let near = notes.did_you_mean(other, ["code", "remote"]);
                let help = near.unwrap_or_else(|| "validators are code, remote".to_owned());
                notes.note(&at, format!("there is no validator {}", quote(other)), help);
            }
            None
        }
    };
    let target_columns = targets.into_iter().map(|(name, _)| name.to_owned()).collect();
    Some(ValidationColumn { target_columns, batch_size, validator: validator? })
}

/// The parameters of a validator, which may repeat its type.
fn validator_fields<'n>(
    word: &str,
    params: Option<&'n Node>,
    fields: &Fields<'_>,
    notes: &mut Notes<'_>,
) -> Option<Fields<'n>> {
    let Some(node) = params else {
        notes.hint(fields.at(), format!("{} needs `validator_params`", fields.of()), None);
        return None;
    };
    let mut fields = notes.fields(node, &format!("a validator of type `{word}`"))?;
    if let Some(node) = fields.get("validator_type")
        && notes.as_text(node, "validator_type").is_some_and(|inner| inner != word)
    {
        notes.hint(&node.at, format!("the column has `validator_type: {word}`"), None);
    }
    Some(fields)
}

fn code(params: Option<&Node>, fields: &Fields<'_>, notes: &mut Notes<'_>) -> Option<Validator> {
    let mut fields = validator_fields("code", params, fields, notes)?;
    let at = fields.get("code_lang").map(|node| node.at.clone());
    let lang = llm::code_lang(&mut fields, notes);
    fields.finish(notes);
    let lang = lang?;
    if lang.0 != "python" && !lang.0.starts_with("sql:") {
        let what = format!("there is no validator for `{}`", lang.0);
        notes.note(
            &at?,
            what,
            "`python` and the dialects of SQL (`sql:ansi`) can be validated; use `remote` for others",
        );
        return None;
    }
    Some(Validator::Code { lang })
}

fn remote(params: Option<&Node>, fields: &Fields<'_>, notes: &mut Notes<'_>) -> Option<Validator> {
    let mut fields = validator_fields("remote", params, fields, notes)?;
    let node = fields.need("endpoint_url", notes);
    let url = node.and_then(|node| url(node, "endpoint_url", notes));
    let output_schema =
        fields.get("output_schema").and_then(|node| llm::schema(node, "output_schema", notes));
    let mut number = |name: &'static str, least: f64, most: f64, usual: f64, notes: &mut Notes<'_>| {
        let Some(node) = fields.get(name) else { return usual };
        match notes.as_float(node, name) {
            Some(found) if (least..=most).contains(&found) => found,
            Some(found) => {
                notes.hint(
                    &node.at,
                    format!("`{name}` is between {least} and {most}, this is {found}"),
                    None,
                );
                usual
            }
            None => usual,
        }
    };
    let timeout = Duration::from_secs_f64(number("timeout", 0.001, 86_400.0, 30.0, notes));
    let retry_backoff = number("retry_backoff", 1.0, 1_000.0, 2.0, notes);
    let max_retries = whole(&mut fields, "max_retries", 0, 1_000, notes).unwrap_or(3) as u32;
    let max_parallel_requests =
        whole(&mut fields, "max_parallel_requests", 1, 10_000, notes).unwrap_or(4) as u32;
    fields.finish(notes);
    let endpoint_url = url?;
    Some(Validator::Remote(RemoteValidator {
        endpoint_url,
        output_schema,
        timeout,
        max_retries,
        retry_backoff,
        max_parallel_requests,
    }))
}

/// A whole number between bounds.
pub(super) fn whole(
    fields: &mut Fields<'_>,
    name: &'static str,
    least: i64,
    most: i64,
    notes: &mut Notes<'_>,
) -> Option<i64> {
    let node = fields.get(name)?;
    let found = notes.as_int(node, name)?;
    if !(least..=most).contains(&found) {
        notes.hint(&node.at, format!("`{name}` is between {least} and {most}, this is {found}"), None);
        return None;
    }
    Some(found)
}

/// An address of HTTP.
pub(super) fn url(node: &Node, name: &str, notes: &mut Notes<'_>) -> Option<String> {
    let url = notes.as_text(node, name)?;
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    if !rest
        .is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/') && !rest.contains(char::is_whitespace))
    {
        let what = format!("{} is not an address of HTTP", quote(url));
        notes.note(&node.at, what, "it begins with `http://` or `https://` and a host");
        return None;
    }
    Some(url.to_owned())
}
