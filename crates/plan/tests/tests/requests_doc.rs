//! `docs/requests.md`: its example runs, and its tables have every field.

use std::path::Path;

use anabranch_plan::project::DataFile;
use anabranch_plan::{Answer, Engine, Request, RowsFrom, Setup};
use serde_json::{Map, Value, json};

fn page() -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/requests.md");
    std::fs::read_to_string(file).unwrap()
}

/// The block of code behind this label.
fn block(page: &str, label: &str) -> Value {
    let (_, rest) = page.split_once(&format!("```json {label}\n")).unwrap();
    serde_json::from_str(rest.split_once("```").unwrap().0).unwrap()
}

/// The first words of a table's rows, in backticks.
fn first_column<'p>(page: &'p str, heading: &str) -> Vec<&'p str> {
    let (_, rest) = page.split_once(heading).unwrap();
    let rows = rest.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    rows.take_while(|line| line.starts_with('|')).map(|line| line.split('`').nth(1).unwrap()).collect()
}

fn engine() -> Engine {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/golden");
    let setup = Setup {
        registry: Some(folder.join("registry")),
        rows: RowsFrom::Data(vec![DataFile { file: folder.join("data.json"), pattern: None }]),
        ..Setup::default()
    };
    Engine::load(setup.config().unwrap().0).unwrap()
}

/// An answer as it is written, but for the id that is generated.
fn written(answer: &Answer, write: impl Fn(&Answer, &mut Vec<u8>)) -> Value {
    let mut bytes = Vec::new();
    write(answer, &mut bytes);
    let mut value: Value = serde_json::from_slice(&bytes).unwrap();
    value["engine_request_id"] = json!("...");
    value
}

#[tokio::test]
async fn the_example_runs() {
    let (page, engine) = (page(), engine());
    let plan = engine.compile(&block(&page, "plan").to_string(), ".".as_ref()).unwrap();
    let request = Request::parse(block(&page, "request").to_string(), engine.registries()).unwrap();
    let answer = plan.run(request).await.unwrap();
    let keys = &engine.registries().keys;
    let flat = written(&answer, |answer, out| answer.write_json(keys, out));
    assert_eq!(flat, block(&page, "answer"));
    let named = written(&answer, |answer, out| answer.write_json_by_output(keys, out));
    assert_eq!(named, block(&page, "by output"));
    let names = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let mut fields = [names(&flat), names(&named)].concat();
    fields.sort();
    fields.dedup();
    let mut listed = first_column(&page, "## Reference: fields of an answer");
    listed.sort_unstable();
    assert_eq!(listed, fields);
}

/// Every field of the table is taken with a value of its type, and no other field is.
#[test]
fn every_field_of_a_request_is_in_the_table() {
    let (page, engine) = (page(), engine());
    let parse = |request: &Map<String, Value>| {
        Request::parse(Value::Object(request.clone()).to_string(), engine.registries())
    };
    let listed = first_column(&page, "## Reference: fields of a request");
    let mut request = Map::new();
    for field in &listed {
        let value = match *field {
            "user_id" => json!(1),
            "candidates" => json!([1]),
            "param_overrides" => json!({}),
            _ => json!("text"),
        };
        request.insert((*field).to_owned(), value);
    }
    let parsed = parse(&request).unwrap();
    assert!(parsed.warnings.is_empty() && parsed.candidates().is_some() && parsed.plan.is_some());
    // The error of an unknown field names the closest one: none is left out of the table.
    for field in &listed {
        let mut wrong = request.clone();
        wrong.insert(format!("{field}x"), json!(1));
        let error = parse(&wrong).unwrap_err();
        assert!(error.detail.contains(&format!("did you mean `{field}`")), "{error}");
    }
    assert_eq!(listed.len(), 5);
}

#[test]
fn every_kind_of_refusal_is_in_the_table() {
    let (page, engine) = (page(), engine());
    let listed = first_column(&page, "`error` is one of:");
    let refused = ["{", "{}", r#"{"user_id": 1, "param_overrides": {"no": 1}}"#];
    let kinds = refused.map(|text| Request::parse(text, engine.registries()).unwrap_err().error);
    assert_eq!(listed, kinds);
}
