//! Selections, and copies of the selected rows.

use std::sync::Arc;

use anabranch_rows::{Batch, Column, Key, Kind, Rows};
use proptest::prelude::*;

use crate::random::{keys, plain_rows, rows};

#[test]
fn first_and_active_share_the_batch() {
    let all = Rows::new(Batch::new(vec![1, 2, 3, 4]));
    let some = all.with_active(vec![3, 1, 0]);
    let two = some.first(2);
    assert!(Arc::ptr_eq(all.batch(), two.batch()));
    assert_eq!(two.ids().collect::<Vec<_>>(), [4, 2]);
    assert_eq!(all.first(9).len(), 4);
    assert!(all.first(4).is_dense() && !all.first(3).is_dense() && !some.is_dense());
}

#[test]
fn a_column_of_nulls_has_no_values() {
    for kind in [Kind::Int, Kind::Float, Kind::Bool, Kind::Text] {
        let column = Column::all_null(kind, 3);
        assert_eq!((column.kind(), column.len()), (kind, 3));
        assert!((0..3).all(|row| column.get(row).is_none()));
    }
}

#[test]
fn a_column_of_the_ids_key_is_refused() {
    let batch = Batch::new(vec![1]);
    let with = std::panic::catch_unwind(|| batch.with_column(Key::ID, Column::ints([Some(1)])));
    assert!(with.is_err());
}

proptest! {
    #[test]
    fn first_returns_a_prefix(rows in rows(40), count in 0usize..50) {
        let expected: Vec<_> = plain_rows(&rows).into_iter().take(count).collect();
        prop_assert_eq!(plain_rows(&rows.first(count)), expected);
    }

    #[test]
    fn compact_keeps_the_active_rows(rows in rows(40)) {
        let dense = rows.compact();
        prop_assert!(dense.is_dense());
        prop_assert_eq!(plain_rows(&dense), plain_rows(&rows));
        prop_assert_eq!(keys(&dense), keys(&rows));
    }

    #[test]
    fn gather_copies_the_given_rows(
        rows in rows(20),
        picks in proptest::collection::vec(proptest::option::of(any::<prop::sample::Index>()), 0..30),
    ) {
        let len = rows.batch().len();
        for (_, column) in rows.batch().columns() {
            let picked: Vec<Option<u32>> =
                picks.iter().map(|pick| pick.filter(|_| len > 0).map(|pick| pick.index(len) as u32)).collect();
            let gathered = column.gather_or_null(picked.iter().copied());
            prop_assert_eq!(gathered.kind(), column.kind());
            for (at, row) in picked.iter().enumerate() {
                prop_assert_eq!(gathered.get(at), row.and_then(|row| column.get(row as usize)));
            }
            let certain: Vec<u32> = picked.into_iter().flatten().collect();
            let gathered = column.gather(&certain);
            prop_assert_eq!(gathered.len(), certain.len());
            for (at, row) in certain.iter().enumerate() {
                prop_assert_eq!(gathered.get(at), column.get(*row as usize));
            }
        }
    }
}

#[test]
fn few_active_rows_are_copied_before_a_column_is_added() {
    let ids = (0..1000).collect::<Vec<i64>>();
    let all = Rows::new(Batch::new(ids).with_column(Key(7), Column::ints((0..1000).map(Some))));
    assert!(Arc::ptr_eq(all.to_extend().batch(), all.batch()));
    assert_eq!(all.values_to_extend(), 1000);
    let half = all.with_active((0..500).collect::<Vec<u32>>());
    assert!(Arc::ptr_eq(half.to_extend().batch(), half.batch()));
    // Ids, one column and the new one: three values per row, against 1000 values of a column.
    let few = all.with_active((0..333).rev().collect::<Vec<u32>>());
    assert_eq!((few.to_extend().batch().len(), few.values_to_extend()), (333, 999));
    assert_eq!(plain_rows(&few.to_extend()), plain_rows(&few));
    assert!(!all.with_active((0..334).collect::<Vec<u32>>()).is_sparse());
    let short = Rows::new(Batch::new(vec![1, 2, 3])).with_active(vec![1]);
    assert!(!short.is_sparse(), "a short batch is not worth a copy");
}
