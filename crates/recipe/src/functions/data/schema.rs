//! Checks JSON against a schema.

use jsonschema::{ValidationError, Validator};
use serde_json::Value as Json;

use super::parsed;
use crate::function::{Call, Fault};
use crate::functions::support::{Body, signature, whole};
use crate::registry::Functions;

/// The most violations that an error lists.
const LISTED: usize = 20;

pub(super) fn add(functions: &mut Functions) {
    functions.add(whole(
        signature(
            "schema_validate/1.0.0",
            "The input as it is, if it is JSON that the schema allows; else the error lists what is not, up to 20 \
             places. References lead to other parts of the schema, never to files or the network; formats are not \
             checked.",
        )
        .needs("schema", "a JSON Schema, as text; draft 2020-12 unless `$schema` says another")
        .nanos_per_kib(10_000),
        validating,
    ));
}

fn validating(call: &Call<'_>) -> Result<Body, Fault> {
    let refused = |problem: String| Fault::param("schema", problem);
    let schema: Json =
        serde_json::from_str(call.text("schema")?).map_err(|error| refused(format!("not JSON: {error}")))?;
    let validator =
        jsonschema::options().offline().build(&schema).map_err(|error| refused(described(&error)))?;
    Ok(Box::new(move |mut inputs| {
        let input = inputs.remove(0);
        validate(&validator, &parsed(0, &input)?)?;
        Ok(input)
    }))
}

fn validate(validator: &Validator, value: &Json) -> Result<(), Fault> {
    if validator.is_valid(value) {
        return Ok(());
    }
    let mut problem = String::from("the schema does not allow it");
    let mut errors = validator.iter_errors(value);
    for error in errors.by_ref().take(LISTED) {
        problem.push_str("; ");
        problem.push_str(&described(&error));
    }
    if errors.next().is_some() {
        problem.push_str("; and more");
    }
    Err(Fault::input(0, problem))
}

/// Where and what, as far as a message has room: a violation names the whole value.
fn described(error: &ValidationError<'_>) -> String {
    const MOST: usize = 300;
    let mut text = format!("at {:?}: {error}", error.instance_path().as_str());
    if text.len() > MOST {
        text.truncate(text.floor_char_boundary(MOST));
        text.push_str("...");
    }
    text
}
