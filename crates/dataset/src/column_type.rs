//! The declared type of a column.

use std::sync::Arc;

use anabranch_value::{Map, Value};

/// The declared type of a column: the same in every file of a dataset. Every value may be null.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnType {
    Bool,
    Int,
    Float,
    Text,
    /// A value of any shape, stored as JSON text.
    Json,
    List(Box<ColumnType>),
    /// A map with these fields, in order. Any of them may be null.
    Struct(Vec<(String, ColumnType)>),
}

impl ColumnType {
    /// The value as one of this type, without loss: a whole float becomes an int, an int a float, and any value text
    /// where text is declared. Fields that are not declared are an error.
    pub fn fit(&self, value: Value) -> Result<Value, String> {
        match (self, value) {
            (_, Value::Null) => Ok(Value::Null),
            (ColumnType::Json, value) => Ok(value),
            (ColumnType::Bool, value @ Value::Bool(_)) => Ok(value),
            (ColumnType::Int, value @ Value::Int(_)) => Ok(value),
            (ColumnType::Int, Value::Float(float)) if float.fract() == 0.0 && float.abs() < 9e15 => {
                Ok(Value::Int(float as i64))
            }
            (ColumnType::Int, Value::Bool(truth)) => Ok(Value::Int(truth.into())),
            (ColumnType::Float, value @ Value::Float(_)) => Ok(value),
            (ColumnType::Float, Value::Int(int)) => Ok(Value::Float(int as f64)),
            (ColumnType::Text, value @ Value::Text(_)) => Ok(value),
            (ColumnType::Text, value) => Ok(value.to_json().into()),
            (ColumnType::List(item), Value::List(values)) => fit_list(item, &values),
            (ColumnType::Struct(fields), Value::Map(map)) => fit_struct(fields, &map),
            (_, value) => Err(format!("expected {}, found {}", self.name(), value.kind())),
        }
    }

    /// The type in words, for messages.
    pub fn name(&self) -> &'static str {
        match self {
            ColumnType::Bool => "true or false",
            ColumnType::Int => "a whole number",
            ColumnType::Float => "a number",
            ColumnType::Text => "text",
            ColumnType::Json => "any value",
            ColumnType::List(_) => "a list",
            ColumnType::Struct(_) => "a map",
        }
    }

    /// The type of the values that a JSON schema allows, or [`ColumnType::Json`] where a column cannot be typed: several
    /// alternatives, maps with any fields, references to itself.
    pub fn of_schema(schema: &Value) -> ColumnType {
        schema_type(schema, schema, 0)
    }
}

fn fit_list(item: &ColumnType, values: &[Value]) -> Result<Value, String> {
    values
        .iter()
        .map(|value| item.fit(value.clone()))
        .collect::<Result<Arc<[Value]>, String>>()
        .map(Value::List)
}

fn fit_struct(fields: &[(String, ColumnType)], map: &Map) -> Result<Value, String> {
    if let Some(name) = map.keys().find(|name| !fields.iter().any(|(field, _)| **field == ***name)) {
        return Err(format!("field `{name}` is not declared"));
    }
    let field = |(name, field_type): &(String, ColumnType)| {
        let value = map.get(name.as_str()).cloned().unwrap_or_default();
        let value = field_type.fit(value).map_err(|what| format!("field `{name}`: {what}"))?;
        Ok((Arc::from(name.as_str()), value))
    };
    fields.iter().map(field).collect::<Result<Map, String>>().map(Value::from)
}

/// The maximum depth at which a schema is followed.
const MAX_DEPTH: usize = 20;

fn schema_type(root: &Value, schema: &Value, depth: usize) -> ColumnType {
    if depth > MAX_DEPTH {
        return ColumnType::Json;
    }
    if let Some(reference) = schema.get("$ref").and_then(Value::as_text) {
        return match resolve(root, reference) {
            Some(schema) => schema_type(root, schema, depth + 1),
            None => ColumnType::Json,
        };
    }
    if let Some(alternatives) = ["anyOf", "oneOf"].iter().find_map(|name| schema.get(name)?.as_list()) {
        let is_null = |schema: &&Value| schema.get("type").and_then(Value::as_text) == Some("null");
        let mut types = alternatives
            .iter()
            .filter(|schema| !is_null(schema))
            .map(|schema| schema_type(root, schema, depth + 1));
        let Some(first) = types.next() else { return ColumnType::Json };
        return if types.all(|other| other == first) { first } else { ColumnType::Json };
    }
    let name = match schema.get("type") {
        Some(Value::Text(name)) => Some(&**name),
        // `[string, null]` is text that may be null.
        Some(Value::List(names)) => {
            let mut names = names.iter().filter_map(Value::as_text).filter(|name| *name != "null");
            names.next().filter(|_| names.next().is_none())
        }
        _ => None,
    };
    match name {
        Some("string") => ColumnType::Text,
        Some("integer") => ColumnType::Int,
        Some("number") => ColumnType::Float,
        Some("boolean") => ColumnType::Bool,
        Some("array") => match schema.get("items") {
            Some(items @ Value::Map(_)) => ColumnType::List(Box::new(schema_type(root, items, depth + 1))),
            _ => ColumnType::Json,
        },
        Some("object") => struct_type(root, schema, depth),
        _ => schema.get("enum").and_then(Value::as_list).map_or(ColumnType::Json, enum_type),
    }
}

fn struct_type(root: &Value, schema: &Value, depth: usize) -> ColumnType {
    let is_open = matches!(schema.get("additionalProperties"), Some(Value::Map(_) | Value::Bool(true)))
        || schema.get("patternProperties").is_some();
    match schema.get("properties").and_then(Value::as_map) {
        Some(fields) if !fields.is_empty() && !is_open => ColumnType::Struct(
            fields
                .iter()
                .map(|(name, field)| (name.to_string(), schema_type(root, field, depth + 1)))
                .collect(),
        ),
        _ => ColumnType::Json,
    }
}

fn enum_type(values: &[Value]) -> ColumnType {
    let types = values.iter().filter(|value| !value.is_null()).map(|value| match value {
        Value::Text(_) => ColumnType::Text,
        Value::Int(_) => ColumnType::Int,
        Value::Float(_) => ColumnType::Float,
        Value::Bool(_) => ColumnType::Bool,
        _ => ColumnType::Json,
    });
    let mut types = types;
    let Some(first) = types.next() else { return ColumnType::Json };
    if types.all(|other| other == first) { first } else { ColumnType::Json }
}

/// The part of a schema that `#/$defs/Name` refers to.
fn resolve<'s>(root: &'s Value, reference: &str) -> Option<&'s Value> {
    let path = reference.strip_prefix("#/")?;
    path.split('/').try_fold(root, |value, name| value.get(&name.replace("~1", "/").replace("~0", "~")))
}
