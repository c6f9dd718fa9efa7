//! `core::topk`.

use anabranch_rows::{Order, Rows, SortKey};
use expect_test::expect;
use proptest::prelude::*;
use serde_json::json;

use crate::given::{Case, keeping, key, keys, plain, rows};

proptest! {
    #[test]
    fn is_sort_and_take(
        rows in rows(), by in key(), order in prop::sample::select(vec!["asc", "desc"]), count in 1usize..9,
        wanted in keys(), most in 1usize..9,
    ) {
        let case = Case::new("core::topk", &json!({"by": by.0, "order": order, "count": count}), &[&rows]);
        let direction = if order == "asc" { Order::Ascending } else { Order::Descending };
        let sorted = rows.sorted(&[SortKey { key: by, order: direction }], None, &mut || false).unwrap();
        let expected = plain(&sorted.first(count));
        prop_assert_eq!(&plain(&case.run()), &expected);
        let expected: Vec<_> = keeping(expected, &wanted).into_iter().take(most).collect();
        prop_assert_eq!(plain(&case.only(&wanted).take(most).run()), expected);
    }
}

#[test]
fn what_is_wrong_is_named() {
    let check = |params, expected: expect_test::Expect| {
        expected.assert_eq(&Case::new("core::topk", &params, &[&Rows::empty()]).error());
    };
    check(
        json!({"by": 11, "count": 1}),
        expect![
            "node `it` (core::topk), by: the rows have no column `rank` here (a node before this one has to make it)"
        ],
    );
    check(json!({"by": 50, "count": 1}), expect!["node `it` (core::topk), by: key `secret` is not readable"]);
}
