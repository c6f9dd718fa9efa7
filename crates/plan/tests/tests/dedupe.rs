//! `core::dedupe`.

use anabranch_rows::{Key, Rows};
use proptest::prelude::*;
use serde_json::json;

use crate::given::{Case, keeping, key, keys, plain, rows, value};

/// The rows of a list that no other of the same value comes before.
fn naive(rows: &Rows, by: Key, order: Vec<usize>) -> Vec<usize> {
    let mut kept: Vec<usize> = Vec::new();
    for row in order {
        let own = value(rows, by, row);
        if own.is_none() || kept.iter().all(|other| value(rows, by, *other) != own) {
            kept.push(row);
        }
    }
    kept
}

proptest! {
    #[test]
    fn keeps_one_of_each_value(rows in rows(), by in key(), last: bool, wanted in keys(), most in 1usize..9) {
        let keep = if last { "last" } else { "first" };
        let case = Case::new("core::dedupe", &json!({"by": by.0, "keep": keep}), &[&rows]);
        let kept = if last {
            let mut kept = naive(&rows, by, rows.iter().collect::<Vec<_>>().into_iter().rev().collect());
            kept.reverse();
            kept
        } else {
            naive(&rows, by, rows.iter().collect())
        };
        let kept: Vec<u32> = kept.into_iter().map(|row| row as u32).collect();
        let expected = plain(&rows.with_active(kept));
        prop_assert_eq!(&plain(&case.run()), &expected);
        let expected: Vec<_> = keeping(expected, &wanted).into_iter().take(most).collect();
        prop_assert_eq!(plain(&case.only(&wanted).take(most).run()), expected);
    }

    #[test]
    fn by_ids_if_nothing_is_said(rows in rows()) {
        let said = Case::new("core::dedupe", &json!({"by": 1, "keep": "first"}), &[&rows]).run();
        prop_assert_eq!(plain(&Case::new("core::dedupe", &json!({}), &[&rows]).run()), plain(&said));
    }
}
