//! Expressions looked at by themselves: of a plan with errors, the loader does not get to all of them.

use anabranch_plan::expr::{Expr, Filter, Pred, Program, Scope};
use anabranch_plan::registry::KeyKind;
use anabranch_plan::schema::Schema;
use anabranch_plan::{Problem, Problems, Registries};
use serde_json::{Map, Value};

/// The errors of the tables' entries, wherever they are used: as if rows had all columns.
pub(crate) fn wrong_kinds(json: &Map<String, Value>, registries: &Registries) -> Vec<Problem> {
    let column = |kind| match kind {
        KeyKind::Column(kind) => Some(kind),
        KeyKind::FeatureBundle => None,
    };
    let columns = registries.keys.iter().filter_map(|entry| Some((entry.key, column(entry.kind)?)));
    let schema = Schema::new(columns);
    let scope = Scope { keys: &registries.keys, params: &registries.params, schema: &schema };
    let mut problems = Problems::default();
    let entries = |table: &'static str| {
        let entries = json.get(table).and_then(Value::as_object).into_iter().flatten();
        entries.map(move |(id, entry)| (format!("{table}.{id}"), entry))
    };
    for (place, entry) in entries("expr_table") {
        let expr = Expr::parse(entry, &place, &mut problems);
        expr.and_then(|expr| Program::compile(&expr, scope, &place, &mut problems));
    }
    for (place, entry) in entries("pred_table") {
        let pred = Pred::parse(entry, &place, &mut problems);
        pred.and_then(|pred| Filter::compile(&pred, scope, &place, &mut problems));
    }
    problems.errors
}
