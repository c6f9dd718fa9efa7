//! The outputs of a plan: the nodes whose rows are the answer, and their names.

use anabranch_text::{Problem, Problems, quote};
use serde_json::Value;

use super::names::Names;
use crate::json::show;

/// The indexes of the nodes, and a name for each. An entry is the id of a node, or an object with a `node` and a
/// `name`. Problems are reported.
pub(super) fn read(list: &[Value], names: &Names<'_>, problems: &mut Problems) -> (Vec<usize>, Vec<String>) {
    if list.is_empty() {
        let help = "name the nodes whose rows are the answer";
        problems.error(Problem::new("outputs", "must not be empty").help(help));
    }
    let mut places = Vec::with_capacity(list.len());
    let mut named: Vec<String> = Vec::with_capacity(list.len());
    for value in list {
        let Some((id, name)) = entry(value, problems) else { continue };
        let Some(place) = names.node(id, "outputs", problems) else { continue };
        match name {
            Some(name) if named.iter().any(|other| other == name) => {
                problems.error(Problem::new("outputs", format!("two outputs are called {}", quote(name))));
            }
            Some(name) => named.push(name.to_owned()),
            None => named.push(free(id, &named)),
        }
        places.push(place);
    }
    (places, named)
}

/// The id of an output's node, and its name if it has one.
fn entry<'v>(value: &'v Value, problems: &mut Problems) -> Option<(&'v str, Option<&'v str>)> {
    let mut wrong = |what: String| {
        problems.error(Problem::new("outputs", what));
        None
    };
    let members = match value {
        Value::String(id) => return Some((id, None)),
        Value::Object(members) => members,
        other => return wrong(format!("must be ids of nodes, not {}", show(other))),
    };
    if let Some(other) = members.keys().find(|name| !["node", "name"].contains(&name.as_str())) {
        return wrong(format!("an output has a `node` and a `name`, not {}", quote(other)));
    }
    match (members.get("node"), members.get("name")) {
        (Some(Value::String(_)), Some(Value::String(name))) if name.is_empty() => {
            wrong("the name of an output must not be empty".to_owned())
        }
        (Some(Value::String(id)), Some(Value::String(name))) => Some((id, Some(name))),
        (Some(Value::String(id)), None) => Some((id, None)),
        _ => wrong("an output is an object with the strings `node` and `name`".to_owned()),
    }
}

/// The id of a node as a name; a node that is an output twice has a number behind its second name.
fn free(id: &str, taken: &[String]) -> String {
    let numbered = (2..).map(|number: u32| format!("{id}_{number}"));
    let mut all = std::iter::once(id.to_owned()).chain(numbered);
    all.find(|name| !taken.contains(name)).expect("there are more numbers than names")
}
