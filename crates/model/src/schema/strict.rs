//! Schemas for the strict mode of servers.

use anabranch_value::Value;

/// Whether servers take a schema in strict mode: each object is closed and requires all of its properties.
pub(crate) fn is_strict(schema: &Value) -> bool {
    strict(schema, 0)
}

fn strict(schema: &Value, depth: usize) -> bool {
    const DEEPEST: usize = 64;
    if depth > DEEPEST {
        return false;
    }
    match schema {
        Value::List(parts) => parts.iter().all(|part| strict(part, depth + 1)),
        Value::Map(map) => {
            let is_object = map.get("type").and_then(Value::as_text) == Some("object");
            let properties = map.get("properties").and_then(Value::as_map);
            let required = map.get("required").and_then(Value::as_list).unwrap_or_default();
            let requires = |name: &str| required.iter().any(|required| required.as_text() == Some(name));
            let closed = map.get("additionalProperties") == Some(&Value::Bool(false));
            let fine = match properties {
                Some(properties) => closed && properties.keys().all(|name| requires(name)),
                None => !is_object,
            };
            let plain_data = ["enum", "const", "default", "examples", "required"];
            fine && map
                .iter()
                .filter(|(name, _)| !plain_data.contains(&&***name))
                .all(|(_, part)| strict(part, depth + 1))
        }
        _ => true,
    }
}
