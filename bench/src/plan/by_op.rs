//! Ops one at a time, on rows that are at hand, beside the same by hand.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::hint::black_box;
use std::io;
use std::sync::Arc;

use serde_json::{Value, json};

use super::aims::Aims;
use super::ours::{self, Ours};
use super::own_ops::{COUNT, country, score};
use super::plans::{COUNTRY, SCORE, node, text};
use super::turns::{Pace, fastest, repeat, take_turns};
use super::{digits, in_place};
use crate::report::{Report, row};

/// A plan that is measured, and the same work by hand.
type Case = (&'static str, String, fn(&[RowByHand]) -> Vec<i64>);

/// A row as a program by hand has it.
struct RowByHand {
    id: i64,
    score: f64,
    country: String,
}

pub(super) fn report(report: &mut Report, aims: &mut Aims, pace: Pace) -> io::Result<()> {
    let pace = pace.shorter(4);
    report.heading("Ops, one at a time");
    report.say("Nanoseconds a row, of 10,000 rows with a score and a country, one of a hundred.\n");
    let runtime = in_place()?;
    let given: Vec<RowByHand> =
        (1..=COUNT).map(|id| RowByHand { id, score: score(id), country: country(id) }).collect();
    let mut rows = vec![row(["op", "ours", "by hand", "ours to by hand"])];
    for (name, plan, by_hand) in cases() {
        let ours = Ours::new(&plan, Arc::new(ours::memory(&Arc::default())));
        let found: Vec<i64> = runtime.block_on(ours.answer()).candidates().map(|row| row.id).collect();
        assert_eq!(found, by_hand(&given), "{name}");
        let turns = take_turns(pace.rounds, 2, |contender| {
            runtime.block_on(repeat(pace.window, async || match contender {
                0 => drop(black_box(ours.answer().await)),
                _ => drop(black_box(by_hand(black_box(&given)))),
            }))
        });
        line(name, &turns, &mut rows, aims);
    }
    json_rows(&given, pace, &mut rows, aims)?;
    report.table(&rows);
    Ok(())
}

fn line(name: &str, turns: &[Vec<crate::watch::Share>], rows: &mut Vec<Vec<String>>, aims: &mut Aims) {
    let [ours, by_hand] = [0, 1].map(|at| fastest(&turns[at]).wall / COUNT as f64);
    let ratio = ours / by_hand;
    rows.push(row([name, &digits(ours), &digits(by_hand), &format!("{ratio:.1}x")]));
    aims.add(&format!("{name}: at most 1.5x of by hand"), format!("{ratio:.1}x"), ratio <= 1.5);
}

/// An answer as JSON text.
fn json_rows(
    given: &[RowByHand],
    pace: Pace,
    rows: &mut Vec<Vec<String>>,
    aims: &mut Aims,
) -> io::Result<()> {
    let runtime = in_place()?;
    let all = plan(&[node("rows", "bench::given", &[], json!({}))], "rows", json!(null));
    let ours = Ours::new(&all, Arc::new(ours::memory(&Arc::default())));
    let answer = runtime.block_on(ours.answer());
    let keys = ours.keys();
    let mut out = Vec::new();
    let turns = take_turns(pace.rounds, 2, |contender| {
        runtime.block_on(repeat(pace.window, async || match contender {
            0 => {
                out.clear();
                answer.write_json(&keys, &mut out);
                black_box(&out);
            }
            _ => drop(black_box(json_by_hand(given))),
        }))
    });
    line("JSON output", &turns, rows, aims);
    Ok(())
}

fn json_by_hand(given: &[RowByHand]) -> String {
    let mut text = String::with_capacity(given.len() * 64);
    for RowByHand { id, score, country } in given {
        let name = Value::from(country.as_str());
        let _ = write!(text, "{{\"id\":{id},\"final_score\":{score:?},\"country\":{name}}},");
    }
    text
}

fn cases() -> Vec<Case> {
    let rows = || node("rows", "bench::given", &[], json!({}));
    let key = |id: u32| json!({"op": "key_ref", "key_id": id});
    let equal =
        json!({"op": "cmp", "cmp": "==", "a": key(COUNTRY), "b": {"op": "const_string", "value": "C31"}});
    let regex =
        json!({"op": "regex", "key_id": COUNTRY, "pattern": {"kind": "literal", "value": "^C[0-4]5$"}});
    let low = json!({"op": "cmp", "cmp": "<=", "a": key(1), "b": {"op": "const_number", "value": 1000}});
    let filter = |id: &str| node(id, "core::filter", &["rows"], json!({"pred_id": "p"}));
    let join = json!({"with": "few", "kind": "inner", "columns": []});
    let model = json!({"intercept": 1.0, "weights": {"id": 0.25, "final_score": 0.5}});
    let model = json!({"out_key": SCORE, "kind": "linear", "model": model});
    let best = node("best", "core::topk", &["scored"], json!({"by": SCORE, "count": 50}));
    vec![
        ("filter by a string", plan(&[rows(), filter("f")], "f", equal), |rows| {
            rows.iter().filter(|row| row.country == "C31").map(|row| row.id).collect()
        }),
        ("filter by a regex", plan(&[rows(), filter("f")], "f", regex), |rows| {
            let matches = |text: &str| {
                let bytes = text.as_bytes();
                bytes.len() == 3 && (b'0'..=b'4').contains(&bytes[1]) && bytes[2] == b'5' && bytes[0] == b'C'
            };
            rows.iter().filter(|row| matches(&row.country)).map(|row| row.id).collect()
        }),
        (
            "join with 1,000 rows",
            plan(&[rows(), filter("few"), node("j", "core::join", &["rows"], join)], "j", low),
            |rows| {
                let few: HashMap<i64, usize> = rows
                    .iter()
                    .enumerate()
                    .filter(|(_, row)| row.id <= 1000)
                    .map(|(at, row)| (row.id, at))
                    .collect();
                rows.iter().filter(|row| few.contains_key(&row.id)).map(|row| row.id).collect()
            },
        ),
        (
            "dedupe by a string",
            plan(&[rows(), node("d", "core::dedupe", &["rows"], json!({"by": COUNTRY}))], "d", json!(null)),
            |rows| {
                let mut seen = HashSet::new();
                rows.iter().filter(|row| seen.insert(row.country.as_str())).map(|row| row.id).collect()
            },
        ),
        (
            "linear model, best 50",
            plan(&[rows(), node("scored", "core::model", &["rows"], model), best], "best", json!(null)),
            |rows| {
                let score = |row: &RowByHand| 1.0 + row.id as f64 * 0.25 + row.score * 0.5;
                let mut scored: Vec<(f64, i64)> = rows.iter().map(|row| (score(row), row.id)).collect();
                let falling = |a: &(f64, i64), b: &(f64, i64)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
                scored.select_nth_unstable_by(50, falling);
                scored.truncate(50);
                scored.sort_unstable_by(falling);
                scored.into_iter().map(|(_, id)| id).collect()
            },
        ),
    ]
}

#[allow(clippy::needless_pass_by_value, reason = "pieces of JSON read best one inside the other")]
fn plan(nodes: &[Value], output: &str, pred: Value) -> String {
    let preds = if pred.is_null() { json!({}) } else { json!({"p": pred}) };
    text("by_op", nodes, &[output], json!({}), preds)
}
