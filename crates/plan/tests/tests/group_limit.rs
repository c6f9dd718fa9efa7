//! `core::group_limit`.

use anabranch_rows::Rows;
use expect_test::expect;
use proptest::prelude::*;
use serde_json::json;

use crate::given::{Case, Plain, keeping, key, keys, plain, rows, value};

proptest! {
    #[test]
    fn keeps_so_many_of_each_value(
        rows in rows(), by in key(), count in 1usize..4, wanted in keys(), most in 1usize..9,
    ) {
        let case = Case::new("core::group_limit", &json!({"by": by.0, "count": count}), &[&rows]);
        let mut seen: Vec<Option<Plain>> = Vec::new();
        let kept: Vec<u32> = rows
            .iter()
            .filter(|row| {
                let own = value(&rows, by, *row);
                seen.push(own.clone());
                own.is_none() || seen.iter().filter(|other| **other == own).count() <= count
            })
            .map(|row| row as u32)
            .collect();
        let expected = plain(&rows.with_active(kept));
        prop_assert_eq!(&plain(&case.run()), &expected);
        let expected: Vec<_> = keeping(expected, &wanted).into_iter().take(most).collect();
        prop_assert_eq!(plain(&case.only(&wanted).take(most).run()), expected);
    }
}

#[test]
fn what_is_wrong_is_named() {
    let case = Case::new("core::group_limit", &json!({"by": 13, "count": 0}), &[&Rows::empty()]);
    expect!["node `it` (core::group_limit), count: must be a whole number from 1, not 0"]
        .assert_eq(&case.error());
}
