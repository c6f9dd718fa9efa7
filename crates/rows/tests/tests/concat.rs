//! Concatenation.

use anabranch_rows::{Batch, Column, Rows};
use proptest::prelude::*;

use crate::random::{TEXT, keys, plain_rows, rows};

#[test]
fn dictionaries_merge_in_order() {
    let part = |ids: [i64; 4], texts: [&str; 4]| {
        Rows::new(Batch::new(ids.to_vec()).with_column(TEXT, Column::texts(texts.map(Some))))
    };
    let left = part([1, 2, 3, 4], ["US", "CA", "US", "CA"]);
    let right = part([5, 6, 7, 8], ["CA", "FR", "CA", "FR"]);
    let both = Rows::concat(&[&left, &right]);
    let text = both.batch().column(TEXT).unwrap().as_text().unwrap();
    assert_eq!(text.dictionary().iter().collect::<Vec<_>>(), ["US", "CA", "FR"]);
    assert_eq!(&text.codes().values()[..], [0, 1, 0, 1, 1, 2, 1, 2]);
    assert_eq!(both.ids().collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn equal_dictionaries_are_kept() {
    let left = Rows::new(Batch::new(vec![1, 2]).with_column(TEXT, Column::texts(["US", "CA"].map(Some))));
    let twice = Rows::concat(&[&left, &left.with_active(vec![1])]);
    let dictionary = |rows: &Rows| rows.batch().column(TEXT).unwrap().as_text().unwrap().dictionary().clone();
    assert!(dictionary(&twice).ptr_eq(&dictionary(&left)));
    assert_eq!(twice.ids().collect::<Vec<_>>(), [1, 2, 2]);
}

#[test]
fn no_parts_make_no_rows() {
    assert!(Rows::concat(&[]).is_empty());
}

proptest! {
    #[test]
    fn concat_is_the_parts_in_order(parts in proptest::collection::vec(rows(30), 0..4), again in any::<bool>()) {
        let mut parts: Vec<&Rows> = parts.iter().collect();
        if again && let Some(first) = parts.first() {
            parts.push(first);
        }
        let all = Rows::concat(&parts);
        prop_assert!(all.is_dense());
        let expected: Vec<_> = parts.iter().flat_map(|part| plain_rows(part)).collect();
        prop_assert_eq!(plain_rows(&all), expected);
        let mut expected: Vec<u32> = parts.iter().flat_map(|part| keys(part)).collect();
        expected.sort_unstable();
        expected.dedup();
        prop_assert_eq!(keys(&all), expected);
    }
}
