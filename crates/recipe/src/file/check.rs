//! Checks that functions exist and accept the inputs and parameters of the recipes, before anything is computed.

use anabranch_document::Notes;

use super::order::params;
use super::read::{Call, Entry, EntryContent};
use crate::executor::UnknownFunction;
use crate::function::{Fault, Function};
use crate::registry::{Functions, check_call};

/// Reports calls that would certainly fail.
pub(super) fn calls(
    entries: &[Entry],
    functions: &Functions,
    unknown: UnknownFunction,
    notes: &mut Notes<'_>,
) {
    for entry in entries {
        let EntryContent::Recipe(call) = &entry.what else { continue };
        let Some((at, id)) = &call.function else { continue };
        match functions.get(id) {
            Some(function) => self::call(call, function.as_ref(), notes),
            None if unknown == UnknownFunction::Accept => {}
            None => {
                let near = functions.near(id).map(|near| format!("did you mean `{near}`?"));
                let help = near.unwrap_or_else(|| "`anabranch recipe functions` lists them".to_owned());
                notes.note(at, format!("function `{id}` is not known here"), help);
            }
        }
    }
}

fn call(call: &Call, function: &dyn Function, notes: &mut Notes<'_>) {
    let signature = function.signature();
    let (mut left, mut inputs) = (params(call), call.inputs.len());
    // Each round reports one problem and removes its cause.
    loop {
        match check_call(function, inputs, &left) {
            Err(Fault::Param { name, problem }) => {
                let given = call.params.iter().find(|(key, _)| key.name == name);
                // A missing parameter may be one that was reported and left out before.
                if given.is_none() && !call.whole {
                    return;
                }
                let at = given.map_or(&call.at, |(key, _)| &key.at);
                let known = || signature.params.iter().map(|param| &*param.name);
                let is_unknown = problem.starts_with("unknown");
                let help = is_unknown.then(|| notes.did_you_mean(&name, known())).flatten();
                notes.hint(at, format!("`{}`: parameter `{name}`: {problem}", signature.id), help);
                if left.remove(&name).is_none() {
                    return;
                }
                // Without this return, the removed parameter would be reported as missing next.
                if signature.params.iter().any(|param| param.is_needed() && param.name == name) {
                    return;
                }
            }
            Err(Fault::Inputs { .. }) if !call.whole => return,
            Err(fault @ Fault::Inputs { takes, .. }) => {
                notes.hint(&call.at, format!("`{}`: {fault}", signature.id), None);
                inputs = takes.least;
            }
            Ok(()) | Err(_) => return,
        }
    }
}
