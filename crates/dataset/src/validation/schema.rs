//! The part of JSON Schema that verdicts are checked with: `type`, `required`, `properties`,
//! `additionalProperties: false`, `items`, `enum`, `const`, `anyOf`, `allOf` and `$ref` inside of the schema.

use anabranch_value::Value;

/// How many schemas may be inside of each other, which bounds circles of references.
const MAX_DEPTH: usize = 64;

/// The schema of one verdict.
#[derive(Clone, Debug)]
pub(super) struct Schema {
    root: Value,
    record: Value,
}

impl Schema {
    /// The schema of a record: that of the items of `data` if the schema describes the whole reply.
    pub(super) fn of_record(root: &Value) -> Schema {
        let schema = Schema { root: root.clone(), record: root.clone() };
        let data = root.get("properties").and_then(|properties| properties.get("data"));
        let items = data.map(|data| schema.resolve(data)).and_then(|data| data.get("items"));
        let record = items.cloned();
        Schema { record: record.unwrap_or_else(|| root.clone()), ..schema }
    }

    /// Whether a verdict fits; else the place and the reason.
    pub(super) fn check(&self, value: &Value) -> Result<(), String> {
        self.fits(&self.record, value, "", 0)
    }

    /// The schema that a reference names.
    fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        let mut schema = schema;
        for _ in 0..MAX_DEPTH {
            let Some(path) =
                schema.get("$ref").and_then(Value::as_text).and_then(|path| path.strip_prefix("#/"))
            else {
                return schema;
            };
            match path.split('/').try_fold(&self.root, |at, name| at.get(name)) {
                Some(found) => schema = found,
                None => return schema,
            }
        }
        schema
    }

    fn fits(&self, schema: &Value, value: &Value, place: &str, depth: usize) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err(format!("{}: the schema is nested too deep", shown(place)));
        }
        let schema = self.resolve(schema);
        self.kind(schema, value, place)?;
        let allowed = schema.get("enum").and_then(Value::as_list);
        let allowed = allowed.or(schema.get("const").map(std::slice::from_ref));
        if allowed.is_some_and(|allowed| !allowed.contains(value)) {
            return Err(format!(
                "{} is {}, which is not among the allowed values",
                shown(place),
                value.to_json()
            ));
        }
        for part in schema.get("allOf").and_then(Value::as_list).unwrap_or_default() {
            self.fits(part, value, place, depth + 1)?;
        }
        if let Some(any) = schema.get("anyOf").or(schema.get("oneOf")).and_then(Value::as_list)
            && !any.iter().any(|part| self.fits(part, value, place, depth + 1).is_ok())
        {
            return Err(format!("{} fits none of the alternatives", shown(place)));
        }
        match value {
            Value::Map(_) => self.fields(schema, value, place, depth),
            Value::List(items) => match schema.get("items") {
                Some(item) => items
                    .iter()
                    .enumerate()
                    .try_for_each(|(at, value)| self.fits(item, value, &format!("{place}[{at}]"), depth + 1)),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn kind(&self, schema: &Value, value: &Value, place: &str) -> Result<(), String> {
        let kinds = match schema.get("type") {
            Some(Value::List(kinds)) => kinds.to_vec(),
            Some(kind) => vec![kind.clone()],
            None => return Ok(()),
        };
        let fits = kinds.iter().filter_map(Value::as_text).any(|kind| match kind {
            "object" => value.as_map().is_some(),
            "array" => value.as_list().is_some(),
            "string" => value.as_text().is_some(),
            "number" => value.as_number().is_some(),
            "integer" => {
                matches!(value, Value::Int(_)) || matches!(value, Value::Float(float) if float.fract() == 0.0)
            }
            "boolean" => matches!(value, Value::Bool(_)),
            "null" => value.is_null(),
            _ => true,
        });
        let kinds = || kinds.iter().map(Value::to_json).collect::<Vec<_>>().join(" or ");
        if fits { Ok(()) } else { Err(format!("{} is {}, expected {}", shown(place), value.kind(), kinds())) }
    }

    fn fields(&self, schema: &Value, value: &Value, place: &str, depth: usize) -> Result<(), String> {
        let required = schema.get("required").and_then(Value::as_list).unwrap_or_default();
        if let Some(missing) =
            required.iter().filter_map(Value::as_text).find(|name| value.get(name).is_none())
        {
            return Err(format!("{} has no `{missing}`", shown(place)));
        }
        let properties = schema.get("properties");
        for (name, value) in value.as_map().into_iter().flatten() {
            match properties.and_then(|properties| properties.get(name)) {
                Some(property) => self.fits(property, value, &format!("{place}.{name}"), depth + 1)?,
                None if schema.get("additionalProperties") == Some(&Value::Bool(false)) => {
                    return Err(format!("{} has the unknown field `{name}`", shown(place)));
                }
                None => {}
            }
        }
        Ok(())
    }
}

fn shown(place: &str) -> String {
    if place.is_empty() { "the verdict".to_owned() } else { format!("`{}`", place.trim_start_matches('.')) }
}
