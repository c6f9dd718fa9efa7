//! Random rows: ops keep their promises and agree with the plainest code for the same thing.

use anabranch_rows::{Batch, Column, Rows};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::kit::{AGE, COUNTRY, SCORE, case, store};

/// Rows with columns of several kinds, some of them active, in any order.
fn any_rows() -> impl Strategy<Value = Rows> {
    let row = (
        -3..4i64,
        proptest::option::of(-2..3i32),
        proptest::option::of("[ab]{0,1}"),
        proptest::option::of(0..3i64),
        any::<bool>(),
        any::<u32>(),
    );
    vec(row, 0..40).prop_map(|rows| {
        let batch = Batch::new(rows.iter().map(|row| row.0).collect::<Vec<_>>())
            .with_column(SCORE, Column::floats(rows.iter().map(|row| row.1.map(f64::from))))
            .with_column(COUNTRY, Column::texts(rows.iter().map(|row| row.2.as_deref())))
            .with_column(AGE, Column::ints(rows.iter().map(|row| row.3)));
        let mut active: Vec<u32> = (0..rows.len() as u32).filter(|row| rows[*row as usize].4).collect();
        active.sort_by_key(|row| rows[*row as usize].5);
        match active.len() % 5 {
            0 => Rows::new(batch),
            _ => Rows::new(batch).with_active(active),
        }
    })
}

fn scores(rows: &Rows) -> Vec<Option<i64>> {
    let column = rows.batch().column(SCORE).unwrap().as_float().unwrap();
    rows.iter().map(|row| column.iter().nth(row).unwrap().map(|score| score as i64)).collect()
}

/// Every op that computes, on the same rows; `Case::rows` checks the contracts and the columns.
fn all_keep_their_contracts(rows: &Rows, other: &Rows, first: Option<u32>) {
    let pred = json!({"op": "cmp", "cmp": ">=", "a": {"op": "key_ref", "key_id": 1001},
        "b": {"op": "const_number", "value": 0.0}});
    let expr = json!({"op": "coalesce", "a": {"op": "key_ref", "key_id": 1001},
        "b": {"op": "const_number", "value": 0.0}});
    let nodes: [(&str, Value); 11] = [
        ("core::vm", json!({"out_key": 2001, "expr_id": "e"})),
        ("core::filter", json!({"pred_id": "p"})),
        ("core::sort", json!({"by": 1001})),
        ("core::sort", json!({"by": 3001, "order": "desc"})),
        ("core::sort", json!({"by": 5001})),
        ("core::take", json!({"count": 3})),
        ("core::boost", json!({"out_key": 1001, "pred_id": "p", "factor": 3.0})),
        ("core::fill", json!({"keys": ["score", "final"], "value": 7})),
        ("core::fill", json!({"keys": ["language"]})),
        ("test::sleep", json!({"duration_ms": 1})),
        ("core::concat", json!({"rhs": "r"})),
    ];
    for (op, params) in nodes {
        let mut case = case(op, params).expr(&expr).pred(&pred).input(rows);
        if op == "core::concat" {
            case = case.input(other);
        }
        if let Some(first) = first {
            case = case.first(first);
        }
        case.rows().unwrap();
    }
}

proptest! {
    #[test]
    fn contracts_hold(rows in any_rows(), other in any_rows(), first in proptest::option::of(1..9u32)) {
        all_keep_their_contracts(&rows, &other, first);
    }

    #[test]
    fn sort_is_a_stable_sort(rows in any_rows(), first in proptest::option::of(1..9u32), down: bool) {
        let order = if down { "desc" } else { "asc" };
        let mut sort = case("core::sort", json!({"by": 1001, "order": order})).input(&rows);
        if let Some(first) = first {
            sort = sort.first(first);
        }
        let mut expected: Vec<(Option<i64>, usize)> = scores(&rows).into_iter().zip(rows.iter()).collect();
        expected.sort_by_key(|(score, _)| (score.is_none(), score.map(|score| if down { -score } else { score })));
        expected.truncate(first.map_or(usize::MAX, |first| first as usize));
        let sorted = sort.rows().unwrap();
        prop_assert_eq!(sorted.iter().collect::<Vec<_>>(), expected.iter().map(|(_, row)| *row).collect::<Vec<_>>());
    }

    #[test]
    fn concat_is_one_after_the_other(rows in any_rows(), other in any_rows()) {
        let both = case("core::concat", json!({"rhs": "r"})).input(&rows).input(&other).rows().unwrap();
        prop_assert_eq!(both.ids().collect::<Vec<_>>(), rows.ids().chain(other.ids()).collect::<Vec<_>>());
        let cells = |rows: &Rows| -> Vec<String> {
            let columns = rows.batch().columns();
            rows.iter().map(|row| format!("{:?}", columns.iter().map(|(_, column)| column.get(row)).collect::<Vec<_>>())).collect()
        };
        prop_assert_eq!(cells(&both), [cells(&rows), cells(&other)].concat());
    }

    #[test]
    fn fill_and_lookup_leave_other_rows_alone(rows in any_rows()) {
        let filled = case("core::fill", json!({"keys": ["age"], "value": 9})).input(&rows).rows().unwrap();
        let age = |rows: &Rows, row: usize| rows.batch().column(AGE).unwrap().get(row).map(|cell| cell.to_string());
        let active: Vec<usize> = rows.iter().collect();
        for row in 0..rows.batch().len() {
            let expected = age(&rows, row).or_else(|| active.contains(&row).then(|| "9".to_owned()));
            prop_assert_eq!(age(&filled, row), expected);
        }
        let users: Vec<(String, Value)> = (0..4i64).map(|id| (format!("u:{id}"), json!({"age": id * 10}))).collect();
        let users: Vec<(&str, Value)> = users.iter().map(|(key, user)| (key.as_str(), user.clone())).collect();
        let params = json!({"endpoint": "", "key": "u:{id}", "fields": ["age"], "overwrite": true});
        let looked = case("core::lookup", params).input(&rows).store(store(&users)).rows().unwrap();
        for row in 0..rows.batch().len() {
            let id = rows.batch().ids()[row];
            let expected = (active.contains(&row) && id >= 0).then(|| (id * 10).to_string());
            prop_assert_eq!(age(&looked, row), expected);
        }
    }
}
