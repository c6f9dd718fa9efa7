//! Templates over one value `x`.

use std::sync::Arc;

use anabranch_template::{Bounds, Run, Template};
use anabranch_value::Value;

/// A template, `x` as JSON, and the rendered text.
pub(crate) type Row = (&'static str, &'static str, &'static str);

/// The rendered text, or `! ` and the error.
pub(crate) fn render(template: &str, x: &Value, bounds: Bounds) -> String {
    let compiled = match Template::compile(template) {
        Ok(template) => template,
        Err(error) => return format!("! {:?} {error}", template.get(error.place.clone()).unwrap_or("?")),
    };
    let values = compiled.variables().iter().map(|name| (name == "x").then(|| x.clone())).collect();
    let mut text = String::new();
    match Run::new(Arc::new(compiled), values, bounds).go_on(&mut text) {
        Ok(_) => text,
        Err(error) => format!("! {error}"),
    }
}

/// The same with `x` as JSON; other names are undefined.
pub(crate) fn of_json(template: &str, json: &str) -> String {
    render(template, &Value::from_json(json).expect("JSON"), Bounds::default())
}

#[track_caller]
pub(crate) fn all_render(rows: &[Row]) {
    let wrong = |(template, json, expected): &Row| {
        let got = of_json(template, json);
        (got != *expected).then(|| format!("{template}\n  expected {expected:?}\n  got      {got:?}"))
    };
    let wrong: Vec<String> = rows.iter().filter_map(wrong).collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
