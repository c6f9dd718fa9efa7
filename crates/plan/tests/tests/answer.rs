//! How answers are written.

use anabranch_plan::{Answer, Registries, RequestId, Scalar, Stats};
use anabranch_rows::{Batch, Column, Key, Rows};
use expect_test::expect;

fn registries() -> Registries {
    let keys = "
        key = [
            { key_id = 1, name = 'id', type = 'int', nullable = false, allow_write = false },
            { key_id = 10, name = 'seen', type = 'bool', nullable = true },
            { key_id = 11, name = 'age', type = 'int', nullable = true },
            { key_id = 12, name = 'country', type = 'string', nullable = true },
            { key_id = 13, name = 'score \"a\"', type = 'float', nullable = true },
            { key_id = 14, name = 'rank', type = 'float', nullable = true },
        ]";
    Registries::parse([("keys.toml", keys)], None).unwrap().0
}

fn answer(outputs: Vec<Rows>) -> Answer {
    let output_names = (0..outputs.len()).map(|at| format!("out {at}")).collect();
    Answer {
        output_names,
        request_id: RequestId::Given("r \"1\"\n".to_owned()),
        engine_request_id: RequestId::Given("e".to_owned()),
        outputs,
        ledger: Vec::new(),
        stats: Stats::default(),
    }
}

fn written(answer: &Answer) -> String {
    let mut out = Vec::new();
    answer.write_json(&registries().keys, &mut out);
    let text = String::from_utf8(out).unwrap();
    serde_json::from_str::<serde_json::Value>(&text).unwrap();
    text
}

#[test]
fn kinds_in_order_and_nulls_left_out() {
    let batch = Batch::with_columns(
        vec![3, i64::MIN, i64::MAX],
        vec![
            (Key(14), Column::floats([Some(0.1 + 0.2), Some(-0.0), Some(1e300)])),
            (Key(13), Column::floats([Some(3.0), None, Some(5e-324)])),
            (Key(12), Column::texts([Some("US"), None, Some("\"\\\u{1}é\u{2028}")])),
            (Key(11), Column::ints([Some(9_007_199_254_740_993), None, None])),
            (Key(10), Column::bools([Some(true), None, Some(false)])),
            (Key(99), Column::ints([Some(1), None, None])),
        ],
    );
    let rows = Rows::new(batch);
    let other = Rows::new(Batch::new(vec![7]));
    let answer = answer(vec![rows.with_active(vec![2, 0]), other, rows.with_active(vec![1])]);
    expect![[r#"{"request_id":"r \"1\"\n","engine_request_id":"e","candidates":[{"id":9223372036854775807,"fields":{"score \"a\"":5e-324,"rank":1e+300,"country":"\"\\\u0001é ","seen":false}},{"id":3,"fields":{"score \"a\"":3.0,"rank":0.30000000000000004,"country":"US","age":9007199254740993,"99":1,"seen":true}},{"id":7,"fields":{}},{"id":-9223372036854775808,"fields":{"rank":-0.0}}],"ledger":[]}"#]].assert_eq(&written(&answer));
    let candidates: Vec<_> = answer
        .candidates()
        .map(|candidate| (candidate.id, candidate.get(Key(14)), candidate.get(Key(12))))
        .collect();
    assert_eq!(candidates[1], (3, Some(Scalar::Float(0.1 + 0.2)), Some(Scalar::Text("US".into()))));
    assert_eq!(candidates[2], (7, None, None));
    assert_eq!(candidates[3], (i64::MIN, Some(Scalar::Float(0.0)), None));
}

#[test]
fn outputs_by_name() {
    let rows = Rows::new(Batch::with_columns(vec![1, 2], vec![(Key(11), Column::ints([Some(5), None]))]));
    let answer = answer(vec![rows, Rows::empty(), Rows::new(Batch::new(vec![1]))]);
    let mut out = Vec::new();
    answer.write_json_by_output(&registries().keys, &mut out);
    expect![[r#"{"request_id":"r \"1\"\n","engine_request_id":"e","outputs":{"out 0":[{"id":1,"fields":{"age":5}},{"id":2,"fields":{}}],"out 1":[],"out 2":[{"id":1,"fields":{}}]},"ledger":[]}"#]].assert_eq(str::from_utf8(&out).unwrap());
    assert_eq!(answer.output("out 0").unwrap().ids().collect::<Vec<_>>(), [1, 2]);
    assert!(answer.output("out 1").unwrap().is_empty() && answer.output("out 3").is_none());
    let of: Vec<(i64, usize)> = answer.candidates().map(|row| (row.id, row.output)).collect();
    assert_eq!(of, [(1, 0), (2, 0), (1, 2)]);
}

#[test]
fn nothing() {
    expect![[r#"{"request_id":"r \"1\"\n","engine_request_id":"e","candidates":[],"ledger":[]}"#]]
        .assert_eq(&written(&answer(Vec::new())));
    expect![[r#"{"request_id":"r \"1\"\n","engine_request_id":"e","candidates":[],"ledger":[]}"#]]
        .assert_eq(&written(&answer(vec![Rows::empty(), Rows::empty()])));
}
