//! Functions of JSON, CSV, YAML and TOML.

mod tree;
mod json;
mod records;
mod csv;
mod yaml;
mod toml;
mod toml_memory;
mod select;
mod schema;
mod equal;
mod schema_rules;
mod template;

use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeSeed as _;
use serde_json::Value as Json;

use self::tree::TreeBudget;
use crate::budget::CallBudget;
use crate::function::Fault;
use crate::functions::output::{Output, OutputLimit};
use crate::registry::Functions;

pub(super) fn add(functions: &mut Functions) {
    json::add(functions);
    csv::add(functions);
    yaml::add(functions);
    toml::add(functions);
    select::add(functions);
    schema::add(functions);
    template::add(functions);
}

/// Parses a whole input as JSON.
fn parsed(input: usize, bytes: &[u8], budget: &CallBudget) -> Result<Json, Fault> {
    let read = |tree: &TreeBudget<'_>| {
        let mut reader = serde_json::Deserializer::from_slice(bytes);
        let value = tree.seed().deserialize(&mut reader)?;
        reader.end()?;
        Ok(value)
    };
    let wrong = |error: serde_json::Error| Fault::input(input, format!("not JSON: {error}"));
    TreeBudget::new(budget).read(read, wrong)
}

/// A value as JSON without white space.
fn compact(value: &Json, budget: &Arc<CallBudget>) -> Result<Bytes, Fault> {
    let mut made = Output::new(OutputLimit::ANY, budget);
    write_json(&mut made, value)?;
    Ok(made.into_bytes())
}

/// Writes JSON without white space.
fn write_json(made: &mut Output, value: &impl Serialize) -> Result<(), Fault> {
    serde_json::to_writer(&mut *made, value).map_err(|_| made.fault())
}
