//! `core::union`.

use anabranch_rows::{Batch, Column, Rows};
use expect_test::expect;
use proptest::prelude::*;
use serde_json::json;

use crate::given::{Case, PlainRow, TEXT, keeping, keys, plain, rows};

proptest! {
    #[test]
    fn is_the_rows_of_all(
        first in rows(), second in rows(), third in rows(), dedupe: bool, wanted in keys(), most in 1usize..20,
    ) {
        let params = json!({"with": ["with", "with_1"], "dedupe": dedupe});
        let case = Case::new("core::union", &params, &[&first, &second, &third]);
        let mut expected: Vec<PlainRow> = Vec::new();
        for row in [&first, &second, &third].into_iter().flat_map(plain) {
            if !dedupe || expected.iter().all(|(id, _)| *id != row.0) {
                expected.push(row);
            }
        }
        let found = case.run();
        prop_assert!(found.is_dense());
        prop_assert_eq!(plain(&found), expected.clone());
        let expected: Vec<_> = keeping(expected, &wanted).into_iter().take(most).collect();
        prop_assert_eq!(plain(&case.only(&wanted).take(most).run()), expected);
    }
}

#[test]
fn each_id_once_and_missing_columns_null() {
    let first = Rows::new(Batch::new(vec![1, 2, 1]));
    let second = Rows::new(Batch::new(vec![2, 3]).with_column(TEXT, Column::texts(["US", "CA"].map(Some))));
    let union = Case::new("core::union", &json!({"with": ["with", "input"]}), &[&first, &second]).run();
    assert_eq!(union.ids().collect::<Vec<_>>(), [1, 2, 3]);
    let text = union.batch().column(TEXT).unwrap().as_text().unwrap();
    assert_eq!([text.get(0), text.get(1), text.get(2)], [None, None, Some("CA")]);
}

#[test]
fn what_is_wrong_is_named() {
    let case = Case::new("core::union", &json!({"with": []}), &[&Rows::empty()]);
    expect!["node `it` (core::union), with: it names no node, so there is nothing to add"]
        .assert_eq(&case.error());
}
