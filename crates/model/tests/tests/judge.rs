//! Judges' scores.

use anabranch_model::judge::{Score, read, schema};
use anabranch_model::{Schema, reply};
use anabranch_value::Value;
use expect_test::{Expect, expect};

fn scores() -> Vec<Score> {
    let score = |name: &str, options: Vec<(Value, String)>| Score {
        name: name.to_owned(),
        description: format!("How {name}."),
        options,
    };
    vec![
        score("Quality", (0..=4).map(|n| (Value::Int(n), format!("level {n}"))).collect()),
        score("Tone", ["Good", "Bad", "bad "].iter().map(|t| (Value::from(*t), String::new())).collect()),
    ]
}

fn check(quality: &str, tone: &str, expected: Expect) {
    let reply = format!(r#"{{"Quality":{{"reasoning":"r","score":{quality}}},"tone":{{"score":{tone}}}}}"#);
    let read = read(&scores(), &Value::from_json(&reply).unwrap());
    expected.assert_eq(&read.map_or_else(|problem| problem.to_string(), |value| value.to_json()));
}

#[test]
fn options_are_matched_leniently() {
    for (quality, tone) in
        [("4", "\"Good\""), ("4.0", "\" good \""), ("\"4\"", "\"GOOD\""), ("\"4.0\"", "\"Good\"")]
    {
        let good =
            expect![[r#"{"Quality":{"reasoning":"r","score":4},"Tone":{"reasoning":"","score":"Good"}}"#]];
        check(quality, tone, good);
    }
    check("true", "\"Good\"", expect!["`Quality.score` is true; expected one of: 0, 1, 2, 3, 4"]);
    check("4.5", "\"Good\"", expect!["`Quality.score` is 4.5; expected one of: 0, 1, 2, 3, 4"]);
    // Exact, though it is not the only one that matches.
    check(
        "0",
        "\"Bad\"",
        expect![[r#"{"Quality":{"reasoning":"r","score":0},"Tone":{"reasoning":"","score":"Bad"}}"#]],
    );
    check("0", "\"BAD\"", expect![[r#"`Tone.score` is "BAD"; expected one of: Good, Bad, bad "#]]);
}

#[test]
fn missing_scores_are_named_all_at_once() {
    let problem = read(&scores(), &Value::from_json("{}").unwrap()).unwrap_err();
    expect!["the score `Quality` is missing; the score `Tone` is missing"].assert_eq(&problem.to_string());
    let bare = Value::from_json(r#"{"Quality": 3, "Tone": "Good"}"#).unwrap();
    assert!(read(&scores(), &bare).is_ok());
}

#[test]
fn the_schema_asks_for_reasoning_and_an_option() {
    let schema = schema(&scores()[..1]);
    expect![[r#"{"type":"object","properties":{"Quality":{"type":"object","properties":{"reasoning":{"type":"string","description":"Why this option, in a few sentences."},"score":{"type":"integer","enum":[0,1,2,3,4],"description":"0: level 0; 1: level 1; 2: level 2; 3: level 3; 4: level 4"}},"required":["reasoning","score"],"additionalProperties":false,"description":"How Quality."}},"required":["Quality"],"additionalProperties":false}"#]].assert_eq(&schema.to_json());
    let fits =
        Schema::new(&schema).unwrap().fit(reply::json(r#"{"Quality":{"reasoning":"x","score":2}}"#).unwrap());
    assert!(fits.is_ok());
}
