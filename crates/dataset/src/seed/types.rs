//! Types of seed columns: inference and widening.

use anabranch_value::{Map, Value};

use super::column::{Column, Nulls, Texts};
use crate::column_type::ColumnType;

/// The type that holds the values of both: whole numbers become floats, numbers become text, other mixtures are JSON.
pub(super) fn join(a: ColumnType, b: ColumnType) -> ColumnType {
    use ColumnType::{Float, Int, Json, List, Struct, Text};
    match (a, b) {
        (a, b) if a == b => a,
        (a, b) if b == UNKNOWN => a,
        (a, b) if a == UNKNOWN => b,
        (Int, Float) | (Float, Int) => Float,
        (Int | Float, Text) | (Text, Int | Float) => Text,
        (List(a), List(b)) => List(Box::new(join_items(*a, *b))),
        (Struct(mut fields), Struct(others)) => {
            for (name, other) in others {
                match fields.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, known)) => *known = join_items(known.clone(), other),
                    None => fields.push((name, other)),
                }
            }
            Struct(fields)
        }
        _ => Json,
    }
}

/// The type of nulls inside of lists and maps until it is known. Maps without fields are JSON, so it is free for that.
const UNKNOWN: ColumnType = ColumnType::Struct(Vec::new());

/// Replaces unknown types by JSON.
pub(super) fn settled(column_type: ColumnType) -> ColumnType {
    match column_type {
        unknown if unknown == UNKNOWN => ColumnType::Json,
        ColumnType::List(item) => ColumnType::List(Box::new(settled(*item))),
        ColumnType::Struct(fields) => {
            ColumnType::Struct(fields.into_iter().map(|(name, field)| (name, settled(field))).collect())
        }
        other => other,
    }
}

/// Inside of lists and maps numbers do not become text: the mixture is kept as it is.
fn join_items(a: ColumnType, b: ColumnType) -> ColumnType {
    let mixed = (a == ColumnType::Text) != (b == ColumnType::Text) && a != UNKNOWN && b != UNKNOWN;
    if mixed { ColumnType::Json } else { join(a, b) }
}

/// The type of a JSON value; `None` for null.
pub(super) fn type_of(value: &Value) -> Option<ColumnType> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(_) => ColumnType::Bool,
        Value::Int(_) => ColumnType::Int,
        Value::Float(_) => ColumnType::Float,
        Value::Text(_) => ColumnType::Text,
        Value::List(items) => {
            let item = items.iter().filter_map(type_of).reduce(join_items).unwrap_or(UNKNOWN);
            ColumnType::List(Box::new(item))
        }
        // A map without fields cannot be a struct in Arrow's files.
        Value::Map(map) if map.is_empty() || map.len() > MAX_FIELDS => ColumnType::Json,
        Value::Map(map) => {
            let field = |(name, value): (&std::sync::Arc<str>, &Value)| {
                (name.to_string(), type_of(value).unwrap_or(UNKNOWN))
            };
            ColumnType::Struct(map.iter().map(field).collect())
        }
    })
}

/// The most fields of a struct; maps with more are JSON.
const MAX_FIELDS: usize = 200;

/// Keeps unions of many different maps from growing without end.
pub(super) fn bounded(column_type: ColumnType) -> ColumnType {
    match column_type {
        ColumnType::Struct(fields) if fields.len() > MAX_FIELDS => ColumnType::Json,
        other => other,
    }
}

/// A value in the form of a type that it was joined to.
pub(super) fn conform(value: Value, column_type: &ColumnType) -> Value {
    match (value, column_type) {
        (Value::Int(int), ColumnType::Float) => Value::Float(int as f64),
        (value @ (Value::Int(_) | Value::Float(_)), ColumnType::Text) => Value::from(value.to_json()),
        (Value::List(items), ColumnType::List(item)) => {
            Value::list(items.iter().map(|value| conform(value.clone(), item)))
        }
        (Value::Map(map), ColumnType::Struct(fields)) => {
            let field = |(name, field): &(String, ColumnType)| {
                let value = map.get(name.as_str()).cloned().unwrap_or_default();
                (std::sync::Arc::from(name.as_str()), conform(value, field))
            };
            Value::from(fields.iter().map(field).collect::<Map>())
        }
        (value, _) => value,
    }
}

/// The type of a CSV cell.
pub(super) fn type_of_text(text: &str) -> ColumnType {
    match text {
        "true" | "false" | "True" | "False" | "TRUE" | "FALSE" => return ColumnType::Bool,
        _ => {}
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, rest) = digits.split_at(digits.bytes().take_while(u8::is_ascii_digit).count());
    // Postcodes, phone numbers and ids: as numbers they would lose digits.
    if whole.is_empty() || whole.len() > 1 && whole.starts_with('0') || text.starts_with('+') {
        return ColumnType::Text;
    }
    if rest.is_empty() {
        return if whole.len() > MAX_DIGITS { ColumnType::Text } else { ColumnType::Int };
    }
    let (mantissa, exponent) = match rest.find(['e', 'E']) {
        Some(at) => (&rest[..at], Some(rest[at + 1..].strip_prefix(['-', '+']).unwrap_or(&rest[at + 1..]))),
        None => (rest, None),
    };
    let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let fraction = mantissa.strip_prefix('.');
    let well_formed = fraction.map_or(mantissa.is_empty(), all_digits) && exponent.is_none_or(all_digits);
    let digits = whole.len() + fraction.map_or(0, str::len);
    let finite = text.parse::<f64>().is_ok_and(f64::is_finite);
    if well_formed && finite && digits <= MAX_DIGITS { ColumnType::Float } else { ColumnType::Text }
}

/// Numbers with more digits stay text.
const MAX_DIGITS: usize = 18;

/// The type of a CSV column: of different types, unless they are numbers, it is text.
pub(super) fn join_texts(a: ColumnType, b: ColumnType) -> ColumnType {
    match join(a, b) {
        ColumnType::Json => ColumnType::Text,
        joined => joined,
    }
}

/// The cells of a CSV column as values of its type.
pub(super) fn typed(texts: Texts, column_type: &ColumnType) -> Column {
    fn cells<T: Default>(texts: &Texts, parse: impl Fn(&str) -> Option<T>) -> (Vec<T>, Nulls) {
        let mut nulls = Nulls::default();
        let cells = texts.iter().map(|text| {
            let cell = text.and_then(&parse);
            nulls.push(cell.is_none());
            cell.unwrap_or_default()
        });
        (cells.collect(), nulls)
    }
    match column_type {
        ColumnType::Bool => {
            let (cells, nulls) = cells(&texts, |text| Some(text.eq_ignore_ascii_case("true")));
            Column::Bool(cells, nulls)
        }
        ColumnType::Int => {
            let (cells, nulls) = cells(&texts, |text| text.parse().ok());
            Column::Int(cells, nulls)
        }
        ColumnType::Float => {
            let (cells, nulls) = cells(&texts, |text| text.parse().ok());
            Column::Float(cells, nulls)
        }
        _ => Column::Text(texts),
    }
}
