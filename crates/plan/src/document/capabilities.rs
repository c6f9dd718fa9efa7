//! The capabilities that a plan requires, and its extensions.

use anabranch_text::{Problem, Problems, quote};
use serde_json::{Map, Value};

use crate::fields::Fields;
use crate::json::show;
use crate::registry::Registries;

const FIELD: &str = "capabilities_required";

/// Reads `capabilities_required`: sorted, each once, each supported.
pub(super) fn required(top: &mut Fields<'_, '_>, registries: &Registries) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    for value in top.optional::<&[Value]>(FIELD).unwrap_or_default() {
        let Some(id) = value.as_str() else {
            top.error(FIELD, format!("must be strings, not {}", show(value)));
            continue;
        };
        match ids.last() {
            Some(last) if last == id => top.error(FIELD, format!("{} is there twice", quote(id))),
            Some(last) if last.as_str() > id => {
                let what = format!("must be sorted, but {} comes after {}", quote(id), quote(last));
                top.error(FIELD, what);
            }
            _ => {}
        }
        match registries.capabilities.iter().find(|capability| capability.id == id) {
            Some(capability) if capability.supported => {}
            Some(_) => top.error(FIELD, format!("{} is registered but not supported yet", quote(id))),
            None => {
                let what = format!("{} is not supported: no such capability is registered", quote(id));
                let known = registries.capabilities.iter().map(|capability| capability.id.as_str());
                let help = top.problems.did_you_mean(id, known);
                let problem = Problem::new(top.place(FIELD), what);
                top.problems.error(Problem { help, ..problem });
            }
        }
        ids.push(id.to_owned());
    }
    ids
}

/// Checks the extensions of a plan or node: each belongs to a required capability and looks as that says.
pub(super) fn check_extensions(
    place: &str,
    extensions: &Map<String, Value>,
    required: &[String],
    registries: &Registries,
    problems: &mut Problems,
) {
    for (id, payload) in extensions {
        let place = format!("{place}extensions.{}", quote(id).trim_matches('`'));
        if !required.contains(id) {
            let help = format!("add it to {FIELD}");
            problems.error(Problem::new(place, "the plan does not require this capability").help(help));
            continue;
        }
        let Some(capability) = registries.capabilities.iter().find(|capability| capability.id == *id) else {
            continue;
        };
        match &capability.payload {
            Some(shape) => shape.check(payload, &place, problems),
            None if payload.is_null() => {}
            None => {
                let what = format!("this capability takes no payload, but has {}", show(payload));
                problems.error(Problem::new(place, what).help("leave the key out"));
            }
        }
    }
}
