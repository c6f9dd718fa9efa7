//! Code that the tests of expressions share: registries, and rows to compute with.

use std::sync::{Arc, LazyLock};

use anabranch_plan::expr::{Expr, Filter, Pred, Program, Scope};
use anabranch_plan::schema::Schema;
use anabranch_plan::{Problems, Registries, Scalar, Values};
use anabranch_rows::{Batch, Column, Key, Kind, Rows};
use serde_json::Value;

const KEYS: &str = r#"
key = [
  { key_id = 1, name = "id", type = "int", nullable = false, allow_write = false },
  { key_id = 10, name = "count", type = "int", nullable = true },
  { key_id = 11, name = "score", type = "float", nullable = true },
  { key_id = 12, name = "flag", type = "bool", nullable = true },
  { key_id = 13, name = "country", type = "string", nullable = true },
  { key_id = 14, name = "title", type = "string", nullable = true },
  { key_id = 15, name = "absent", type = "float", nullable = true },
  { key_id = 16, name = "weight", type = "float", nullable = true },
  { key_id = 20, name = "old_score", type = "float", nullable = true, status = "deprecated", replaced_by = 11 },
  { key_id = 21, name = "secret", type = "float", nullable = true, allow_read = false },
  { key_id = 22, name = "gone", type = "float", nullable = true, status = "blocked" },
  { key_id = 23, name = "features", type = "feature_bundle", nullable = true },
]
"#;

const PARAMS: &str = r#"
param = [
  { param_id = 1, name = "factor", type = "float", nullable = true },
  { param_id = 2, name = "limit", type = "int", nullable = true },
  { param_id = 3, name = "word", type = "string", nullable = true },
  { param_id = 4, name = "strict", type = "bool", nullable = true },
  { param_id = 5, name = "pattern", type = "string", nullable = true },
  { param_id = 6, name = "seen", type = "int_list", nullable = true },
  { param_id = 7, name = "muted", type = "string_list", nullable = true },
]
"#;

/// How many parameters there are, by place as listed.
pub(crate) const PARAM_COUNT: usize = 7;

pub(crate) fn registries() -> &'static Registries {
    static PARSED: LazyLock<Registries> =
        LazyLock::new(|| Registries::parse([("keys.toml", KEYS), ("params.toml", PARAMS)], None).unwrap().0);
    &PARSED
}

pub(crate) fn schema() -> Schema {
    Schema::new([
        (Key(10), Kind::Int),
        (Key(11), Kind::Float),
        (Key(12), Kind::Bool),
        (Key(13), Kind::Text),
        (Key(14), Kind::Text),
        (Key(16), Kind::Float),
        (Key(20), Kind::Float),
    ])
}

pub(crate) fn with_scope<T>(test: impl FnOnce(Scope<'_>) -> T) -> T {
    let (registries, schema) = (registries(), schema());
    test(Scope { keys: &registries.keys, params: &registries.params, schema: &schema })
}

pub(crate) fn program(json: &Value) -> Result<Program, Problems> {
    let mut problems = Problems::default();
    let expr = Expr::parse(json, "e1", &mut problems);
    let program = with_scope(|scope| Program::compile(&expr?, scope, "e1", &mut problems));
    program.ok_or(problems)
}

pub(crate) fn filter(json: &Value) -> Result<Filter, Problems> {
    let mut problems = Problems::default();
    let pred = Pred::parse(json, "p1", &mut problems);
    let filter = with_scope(|scope| Filter::compile(&pred?, scope, "p1", &mut problems));
    filter.ok_or(problems)
}

pub(crate) fn text(text: &str) -> Scalar {
    Scalar::Text(Arc::from(text))
}

pub(crate) fn no_params() -> Values {
    vec![None; PARAM_COUNT].into()
}

/// Parameters, null but for the one at a place.
pub(crate) fn param(place: usize, value: Scalar) -> Values {
    let mut params = no_params();
    params[place] = Some(value);
    params
}

/// Four rows: plain, null, large, odd.
pub(crate) fn rows() -> Rows {
    let large = (1i64 << 53) + 1;
    Rows::new(Batch::with_columns(
        vec![1, 2, large, -4],
        vec![
            (Key(10), Column::ints([Some(3), None, Some(large), Some(0)])),
            (Key(11), Column::floats([Some(0.5), None, Some(9_007_199_254_740_992.0), Some(-2.0)])),
            (Key(12), Column::bools([Some(true), None, Some(false), Some(true)])),
            (Key(13), Column::texts([Some("US"), None, Some("us"), Some("FR")])),
            (Key(14), Column::texts([Some("Straße"), None, Some(""), Some("US")])),
            (Key(16), Column::floats([1.0, 2.0, 3.0, 4.0].map(Some))),
            (Key(20), Column::floats([None; 4])),
        ],
    ))
}

/// The value of a row, `None` if it is null.
pub(crate) fn cell(column: &Column, row: usize) -> Option<Scalar> {
    (!column.is_null(row)).then(|| match column {
        Column::Int(array) => Scalar::Int(array.value(row)),
        Column::Float(array) => Scalar::Float(array.value(row)),
        Column::Bool(array) => Scalar::Bool(array.value(row)),
        Column::Text(column) => text(column.get(row).unwrap()),
    })
}
