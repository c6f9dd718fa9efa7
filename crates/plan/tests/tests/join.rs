//! `core::join`.

use anabranch_rows::{Batch, Column, Key, Rows};
use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::given::{
    BOOL, Case, FLOAT, INT, OTHER_INT, OTHER_TEXT, PlainRow, TEXT, keeping, keys, plain, rows, value,
};

/// The right side: ids, `other_views`, `other_country`, `country`.
fn right(rows: &Rows) -> Rows {
    let column = |key: Key| rows.batch().column(key).unwrap().clone();
    let columns = vec![(OTHER_INT, column(INT)), (OTHER_TEXT, column(TEXT)), (TEXT, column(TEXT))];
    rows.with_batch(Batch::with_columns(rows.batch().ids().clone(), columns))
}

/// Each pair in turn, as one would write it down.
fn naive(left: &Rows, right: &Rows, on: (Key, Key), kind: &str, brought: &[Key]) -> Vec<PlainRow> {
    let mut made = Vec::new();
    for row in left.iter() {
        let own = value(left, on.0, row);
        let matches: Vec<usize> =
            right.iter().filter(|other| own.is_some() && value(right, on.1, *other) == own).collect();
        let of_left = |keys: &[Key]| {
            let values = keys.iter().filter_map(|key| Some((*key, value(left, *key, row)?)));
            (left.batch().ids()[row], values.collect::<Vec<_>>())
        };
        let all = [INT, FLOAT, BOOL, TEXT];
        match kind {
            "semi" if !matches.is_empty() => made.push(of_left(&all)),
            "anti" if matches.is_empty() => made.push(of_left(&all)),
            "semi" | "anti" => {}
            _ => {
                let kept: Vec<Key> = all.into_iter().filter(|key| !brought.contains(key)).collect();
                for other in &matches {
                    let (id, mut values) = of_left(&kept);
                    values.extend(brought.iter().filter_map(|key| Some((*key, value(right, *key, *other)?))));
                    values.sort_by_key(|(key, _)| *key);
                    made.push((id, values));
                }
                if matches.is_empty() && kind == "left" {
                    made.push(of_left(&kept));
                }
            }
        }
    }
    made
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn matches_like_the_naive_join(
        left in rows(), other in rows(),
        kind in prop::sample::select(vec!["inner", "left", "semi", "anti"]),
        on in prop::sample::select(vec![
            (Key::ID, Key::ID), (INT, OTHER_INT), (TEXT, OTHER_TEXT), (TEXT, TEXT), (Key::ID, OTHER_INT), (INT, Key::ID),
        ]),
        brought in prop::sample::subsequence(vec![OTHER_INT, OTHER_TEXT, TEXT], 0..=3),
        wanted in keys(), most in 1usize..20,
    ) {
        let right = right(&other);
        let mut params = json!({"with": "with", "kind": kind, "on": on.0.0, "on_right": on.1.0});
        if matches!(kind, "inner" | "left") {
            params["columns"] = brought.iter().map(|key| key.0).collect();
            params["overwrite"] = json!(true);
        }
        let case = Case::new("core::join", &params, &[&left, &right]);
        let expected = naive(&left, &right, on, kind, &brought);
        prop_assert_eq!(&plain(&case.run()), &expected);
        let expected: Vec<_> = keeping(expected, &wanted).into_iter().take(most).collect();
        prop_assert_eq!(plain(&case.only(&wanted).take(most).run()), expected);
    }
}

#[test]
fn all_columns_by_id_if_nothing_is_said() {
    let left = Rows::new(Batch::new(vec![3, 1, 2]));
    let right = Rows::new(
        Batch::new(vec![1, 3, 1]).with_column(OTHER_INT, Column::ints([Some(10), Some(30), Some(11)])),
    );
    let joined = Case::new("core::join", &json!({"with": "with", "kind": "left"}), &[&left, &right]).run();
    assert_eq!(joined.ids().collect::<Vec<_>>(), [3, 1, 1, 2]);
    let views = joined.batch().column(OTHER_INT).unwrap().as_int().unwrap();
    assert_eq!(views.iter().collect::<Vec<_>>(), [Some(30), Some(10), Some(11), None]);
}

#[test]
fn what_is_wrong_is_named() {
    let left = Rows::new(
        Batch::new(vec![1])
            .with_column(INT, Column::ints([Some(1)]))
            .with_column(TEXT, Column::texts([Some("a")])),
    );
    let right = Rows::new(Batch::new(vec![1]).with_column(TEXT, Column::texts([Some("a")])));
    let check = |mut params: Value, expected: Expect| {
        params["with"] = json!("with");
        expected.assert_eq(&Case::new("core::join", &params, &[&left, &right]).error());
    };
    check(
        json!({"kind": "left"}),
        expect![
            "node `it` (core::join), columns: both sides have a column `country` (list the `columns` to bring without it, or replace it with `overwrite: true`)"
        ],
    );
    check(
        json!({"kind": "inner", "on": 10}),
        expect![[r#"
        node `it` (core::join), on: the rows of `with` do not have this column (`on_right` names the one to match with)
        node `it` (core::join), columns: both sides have a column `country` (list the `columns` to bring without it, or replace it with `overwrite: true`)"#]],
    );
    check(
        json!({"kind": "semi", "on": 10, "on_right": 13, "columns": []}),
        expect![[r#"
        node `it` (core::join), on_right: the input's column is int and that of `with` is string (both sides must be of the same kind)
        node `it` (core::join), columns: kinds `semi` and `anti` bring no columns (kind `inner` or `left` does)"#]],
    );
    check(
        json!({"kind": "left", "columns": ["id", "views", "contry", 5.5, true]}),
        expect![[r#"
        node `it` (core::join), columns[0]: ids are those of the input; match by another column to use those of `with`
        node `it` (core::join), columns[1]: the rows of `with` have no column `views`
        node `it` (core::join), columns[2]: there is no key `contry` (did you mean `country`?)
        node `it` (core::join), columns[3]: there is no key `5.5`
        node `it` (core::join), columns[4]: neither the name nor the number of a key"#]],
    );
    check(
        json!({"kind": "left", "columns": "country"}),
        expect!["node `it` (core::join), columns: not a list of keys"],
    );
    check(
        json!({"kind": "left", "columns": [13, "country"], "overwrite": true}),
        expect!["node `it` (core::join), columns[1]: key `country` is listed twice"],
    );
}
