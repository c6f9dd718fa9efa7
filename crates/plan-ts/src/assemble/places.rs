//! Finds the locations in the sources of problems that the loader reports for plan JSON.

use anabranch_plan::Problem;
use anabranch_plan::op::{Ops, ParamKind};
use serde_json::Value;

use super::{AssembledPlan, OF_PLAN, call_at, method, table, value_at};
use crate::job::{At, JobOutput, NodeRecord, PlanRecord};
use crate::sources::Sources;
use crate::surface;

/// Converts the loader's problems of plan JSON to problems of the sources.
pub(crate) struct Places<'a> {
    pub(crate) made: &'a JobOutput,
    pub(crate) plan: &'a PlanRecord,
    pub(crate) assembled: &'a AssembledPlan,
    pub(crate) ops: &'a Ops,
    pub(crate) sources: &'a Sources,
}

/// A place in plan JSON, as the loader writes it: ``node `n2` (core::vm), expr_id `e0`.a.b``.
#[derive(Debug, PartialEq)]
struct Place<'p> {
    node: Option<&'p str>,
    /// A field of the node, or of the plan.
    field: Option<&'p str>,
    /// The entry of a table.
    entry: Option<&'p str>,
    /// The path in the entry.
    path: Vec<&'p str>,
}

/// The location in the sources, and the message.
struct PlacedProblem {
    at: Option<At>,
    what: String,
    help: Option<&'static str>,
}

const CONDITION: &str = "a condition is true or false: compare it, as in `x > 0`; to take something else instead of null write `x ?? y`";

impl Places<'_> {
    /// A problem with its location in the sources, unless it was already reported. `faults` is whether anything was
    /// reported.
    pub(crate) fn find(&self, problem: &Problem, faults: bool) -> Option<Problem> {
        let place = Place::parse(&problem.place);
        if let Some(found) = self.of_capability(problem) {
            return Some(found);
        }
        let found = match self.node_of(&place) {
            Some((number, node)) => self.of_node(number, node, &place, &problem.what)?,
            // Code that did not finish has no name or outputs, and the reason was reported.
            None if faults && place.field.is_some_and(|field| self.is_missing(field)) => return None,
            None => self.of_plan(&place, problem),
        };
        let at = found.at.or_else(|| call_at(self.made, self.plan.site));
        let help = problem.help.clone().or_else(|| found.help.map(str::to_owned));
        Some(self.sources.problem(at, found.what, help))
    }

    /// A problem of a capability, where the plan requires it.
    fn of_capability(&self, problem: &Problem) -> Option<Problem> {
        let of = |(id, ..): &&(String, Value, Option<u32>)| match problem.place.strip_prefix("extensions.") {
            Some(place) => place.strip_prefix(id.as_str()).is_some_and(|rest| !rest.starts_with(is_part)),
            None => problem.place == "capabilities_required" && problem.what.contains(&format!("`{id}`")),
        };
        let (id, _, site) = self.plan.capabilities.iter().find(of)?;
        let path =
            problem.place.strip_prefix("extensions.").and_then(|place| place.strip_prefix(id.as_str()));
        let path = path.map(|path| path.trim_start_matches('.')).filter(|path| !path.is_empty());
        let path = path.map(|path| format!(", `{path}`")).unwrap_or_default();
        let what = format!("`requireCapability`{path}: {}", problem.what);
        Some(self.sources.problem(call_at(self.made, *site), what, problem.help.clone()))
    }

    /// The node of a place. For an entry of a table, the first node that has it.
    fn node_of(&self, place: &Place<'_>) -> Option<(usize, &NodeRecord)> {
        let number = match place.node {
            Some(id) => self.numbered(id)?,
            None => *self.assembled.by_entry.get(place.entry?)?,
        };
        Some((number, self.plan.nodes.get(number)?))
    }

    /// The node that the loader means: it shortens long ids.
    fn numbered(&self, written: &str) -> Option<usize> {
        let by_id = &self.assembled.by_id;
        by_id.get(written).copied().or_else(|| {
            let start = written.strip_suffix("...")?;
            by_id.iter().filter(|(id, _)| id.starts_with(start)).map(|(_, number)| *number).min()
        })
    }

    fn of_node(
        &self,
        number: usize,
        node: &NodeRecord,
        place: &Place<'_>,
        what: &str,
    ) -> Option<PlacedProblem> {
        let spec = self.ops.get(&node.op)?.spec();
        let op = method(spec);
        // A problem of the rows that a call is made on is a problem of the call.
        let Some(field) = place.field.filter(|field| *field != "inputs") else {
            let at = call_at(self.made, node.site);
            return Some(PlacedProblem { at, what: format!("`{op}`: {what}"), help: None });
        };
        let param = match place.entry {
            // An entry of a table without its node: any parameter that has it.
            Some(entry) if place.node.is_none() => {
                let id = |name: &str| self.param(number, name).is_some_and(|value| value == entry);
                spec.params.iter().find(|param| id(param.name))
            }
            _ => spec.params.iter().find(|param| param.name == field),
        };
        let Some(param) = param else {
            let universal = surface::UNIVERSAL.iter().find(|(_, name)| *name == field);
            if universal.is_some_and(|(_, name)| self.assembled.told.contains(&(number, *name))) {
                return None;
            }
            let option = universal.map_or(field, |(option, _)| option);
            let at = value_at(self.made, node.site, option);
            return Some(PlacedProblem { at, what: format!("`{op}`, `{option}`: {what}"), help: None });
        };
        if self.assembled.told.contains(&(number, param.name)) {
            return None;
        }
        let names = [Some(surface::option(param)), surface::alias(spec, param).map(str::to_owned)];
        let given = |name: &&String| node.options.get(name.as_str()).is_some_and(|value| !value.is_null());
        let name = names.iter().flatten().find(given).cloned().unwrap_or_else(|| surface::option(param));
        if place.entry.is_some() {
            let (site, implied) =
                node.options.get(&name).map_or((None, false), |value| inside(value, param.kind, &place.path));
            let at = site.and_then(|site| call_at(self.made, Some(site)));
            let at = at.or_else(|| value_at(self.made, node.site, &name));
            return Some(PlacedProblem { at, what: what.to_owned(), help: implied.then_some(CONDITION) });
        }
        let at = value_at(self.made, node.site, &name);
        Some(PlacedProblem { at, what: format!("`{op}`, `{name}`: {what}"), help: None })
    }

    fn of_plan(&self, place: &Place<'_>, problem: &Problem) -> PlacedProblem {
        let (at, of) = match OF_PLAN.iter().find(|(_, field)| Some(*field) == place.field) {
            Some((option, _)) => (value_at(self.made, self.plan.site, option), format!("`{option}`")),
            None => (None, problem.place.clone()),
        };
        PlacedProblem { at, what: format!("{of}: {}", problem.what), help: None }
    }

    /// True if the plan has nothing there.
    fn is_missing(&self, field: &str) -> bool {
        match field {
            "outputs" => self.plan.outputs.is_empty(),
            field => !self.assembled.json.contains_key(field),
        }
    }

    fn param(&self, number: usize, name: &str) -> Option<&Value> {
        self.assembled.json.get("nodes")?.get(number)?.get("params")?.get(name)
    }
}

/// The site of the innermost part of an expression along a path, and whether it is a comparison that is not in the
/// source. A value of the other kind is wrapped in plan JSON, which the sources do not show.
fn inside(value: &Value, kind: ParamKind, path: &[&str]) -> (Option<u32>, bool) {
    let Some(mut ir) = value.get("ir") else { return (None, false) };
    let site = |ir: &Value| ir.get("at").and_then(Value::as_u64).and_then(|site| u32::try_from(site).ok());
    let around = match (value.get("$").and_then(Value::as_str), kind) {
        (Some("pred"), ParamKind::Expr) => Some("cond"),
        (Some("expr"), ParamKind::Pred) => Some("a"),
        _ => None,
    };
    let implied = |ir: &Value| ir.get(table::IMPLIED).is_some();
    let mut found = (site(ir), implied(ir) || (around == Some("a") && path.is_empty()));
    for part in path.iter().skip(usize::from(around.is_some() && path.first().copied() == around)) {
        let Some(next) = ir.get(part) else { break };
        ir = next;
        found = (site(ir).or(found.0), implied(ir));
    }
    found
}

fn is_part(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

impl<'p> Place<'p> {
    fn parse(text: &'p str) -> Place<'p> {
        let mut place = Place { node: None, field: None, entry: None, path: Vec::new() };
        if let Some(rest) = text.strip_prefix("node `") {
            let (id, rest) = rest.split_once('`').unwrap_or((rest, ""));
            place.node = Some(id);
            place.rest(rest.split_once(", ").map_or("", |(_, rest)| rest));
        } else if let Some((table, rest)) = text.split_once("_table.") {
            let _ = table;
            let mut parts = rest.split('.');
            (place.field, place.entry) = (Some("table"), parts.next());
            place.path = parts.collect();
        } else {
            place.rest(text);
        }
        place
    }

    fn rest(&mut self, text: &'p str) {
        let end = text.find([' ', '.', '[', ',']).unwrap_or(text.len());
        let (field, rest) = text.split_at(end);
        self.field = Some(field).filter(|field| !field.is_empty());
        let Some((entry, path)) = rest.strip_prefix(" `").and_then(|rest| rest.split_once('`')) else {
            return;
        };
        self.entry = Some(entry);
        self.path = path.split('.').filter(|part| !part.is_empty()).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::Place;

    #[test]
    fn places_as_the_loader_writes_them() {
        let check = |text, node, field, entry, path: &[&str]| {
            assert_eq!(Place::parse(text), Place { node, field, entry, path: path.to_vec() }, "{text}");
        };
        check("node `n2` (core::vm), expr_id `e0`.a.b", Some("n2"), Some("expr_id"), Some("e0"), &["a", "b"]);
        check("node `n2` (core::vm), out_key", Some("n2"), Some("out_key"), None, &[]);
        check("node `n2`, inputs", Some("n2"), Some("inputs"), None, &[]);
        check("node `n2` (core::vm)", Some("n2"), None, None, &[]);
        check("node `n2` (core::lookup), fields[0].name", Some("n2"), Some("fields"), None, &[]);
        check("expr_table.e1.a.x", None, Some("table"), Some("e1"), &["a", "x"]);
        check("plan_name", None, Some("plan_name"), None, &[]);
        check("line 3, column 4", None, Some("line"), None, &[]);
    }
}
