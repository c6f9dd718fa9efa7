//! Functions of JSON, CSV, YAML and TOML.

mod json;
mod records;
mod csv;
mod yaml;
mod toml;
mod select;
mod template;

use bytes::Bytes;
use serde_json::Value as Json;

use crate::function::Fault;
use crate::registry::Functions;

pub(super) fn add(functions: &mut Functions) {
    json::add(functions);
    csv::add(functions);
    yaml::add(functions);
    toml::add(functions);
    select::add(functions);
    template::add(functions);
}

/// A whole input as JSON.
fn parsed(input: usize, bytes: &[u8]) -> Result<Json, Fault> {
    serde_json::from_slice(bytes).map_err(|error| Fault::input(input, format!("not JSON: {error}")))
}

/// JSON without white space.
fn compact(value: &Json) -> Bytes {
    serde_json::to_vec(value).expect("text takes any value").into()
}
