//! Sorting, with and without a limit.

use std::cmp::Ordering;

use anabranch_rows::{Batch, Cell, Column, Key, Order, Rows, SortKey};
use proptest::prelude::*;

use crate::random::{BOOL, FLOAT, INT, TEXT, rows};

fn by(key: Key, order: Order) -> SortKey {
    SortKey { key, order }
}

fn sorted(rows: &Rows, by: &[SortKey], limit: Option<usize>) -> Rows {
    rows.sorted(by, limit, &mut || false).unwrap()
}

fn active(rows: &Rows) -> Vec<usize> {
    rows.iter().collect()
}

#[test]
fn floats_with_nulls_last_and_ties_in_order() {
    let column = Column::floats([Some(0.4), Some(0.9), Some(-1.0), None, Some(0.4)]);
    let rows = Rows::new(Batch::new(vec![1, 2, 3, 4, 5]).with_column(FLOAT, column));
    assert_eq!(active(&sorted(&rows, &[by(FLOAT, Order::Ascending)], None)), [2, 0, 4, 1, 3]);
    assert_eq!(active(&sorted(&rows, &[by(FLOAT, Order::Descending)], None)), [1, 0, 4, 2, 3]);
}

#[test]
fn strings_descending_under_a_permuted_list() {
    let column = Column::texts([Some("US"), None, Some("CA"), Some("GB"), None, Some("US")]);
    let rows = Rows::new(Batch::new(vec![1, 2, 3, 4, 5, 6]).with_column(TEXT, column));
    let rows = rows.with_active(vec![5, 4, 3, 1, 0]);
    assert_eq!(active(&sorted(&rows, &[by(TEXT, Order::Descending)], None)), [5, 0, 3, 4, 1]);
}

#[test]
fn zeros_are_equal_and_large_ids_are_not_rounded() {
    let zeros =
        Rows::new(Batch::new(vec![1, 2, 3]).with_column(FLOAT, Column::floats([0.0, -0.0, -1.0].map(Some))));
    assert_eq!(active(&sorted(&zeros, &[by(FLOAT, Order::Ascending)], None)), [2, 0, 1]);
    let large = (1i64 << 53) + 1;
    let ids = Rows::new(Batch::new(vec![large, large - 1, i64::MAX, i64::MIN]));
    assert_eq!(active(&sorted(&ids, &[by(Key::ID, Order::Ascending)], None)), [3, 1, 0, 2]);
}

#[test]
fn nan_sorts_after_infinity() {
    let values = [Some(f64::NAN), Some(1.0), None, Some(f64::NAN), Some(f64::INFINITY)];
    let rows = Rows::new(Batch::new(vec![1, 2, 3, 4, 5]).with_column(FLOAT, Column::floats(values)));
    assert_eq!(active(&sorted(&rows, &[by(FLOAT, Order::Ascending)], None)), [1, 4, 0, 3, 2]);
}

#[test]
fn the_sort_ends_when_stop_returns_true() {
    let rows = Rows::new(Batch::new((0..100_000).rev().collect::<Vec<i64>>()));
    let mut calls = 0;
    let mut stop = || {
        calls += 1;
        calls > 10
    };
    assert!(rows.sorted(&[by(Key::ID, Order::Ascending)], None, &mut stop).is_none());
    assert_eq!(calls, 11);
}

#[test]
fn no_rows_need_no_columns() {
    assert!(sorted(&Rows::empty(), &[by(FLOAT, Order::Ascending)], Some(3)).is_empty());
}

/// Compares two values as the documentation of `Rows::sorted` says.
fn naive(a: Option<Cell<'_>>, b: Option<Cell<'_>>, order: Order) -> Ordering {
    let (a, b) = match (a, b) {
        (Some(a), Some(b)) => (a, b),
        (a, b) => return a.is_none().cmp(&b.is_none()),
    };
    let ascending = match (a, b) {
        (Cell::Int(a), Cell::Int(b)) => a.cmp(&b),
        (Cell::Float(a), Cell::Float(b)) => a.partial_cmp(&b).unwrap(),
        (Cell::Bool(a), Cell::Bool(b)) => a.cmp(&b),
        (Cell::Text(a), Cell::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
        _ => unreachable!("one column"),
    };
    if order == Order::Descending { ascending.reverse() } else { ascending }
}

fn naive_sorted(rows: &Rows, by: &[SortKey], limit: Option<usize>) -> Vec<usize> {
    let batch = rows.batch();
    let cell = |key: Key, row: usize| match key {
        Key::ID => Some(Cell::Int(batch.ids()[row])),
        key => batch.column(key).unwrap().get(row),
    };
    let mut active = active(rows);
    active.sort_by(|a, b| {
        let orders = by.iter().map(|by| naive(cell(by.key, *a), cell(by.key, *b), by.order));
        orders.fold(Ordering::Equal, Ordering::then)
    });
    active.truncate(limit.unwrap_or(usize::MAX));
    active
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]
    #[test]
    fn sorts_like_the_naive_sort(
        rows in prop_oneof![3 => rows(40), 1 => rows(900)],
        keys in proptest::collection::vec((prop::sample::select(vec![Key::ID, INT, FLOAT, BOOL, TEXT]), any::<bool>()), 0..4),
        limit in proptest::option::of(prop_oneof![0usize..12, 0usize..900]),
    ) {
        let has = |key: Key| key == Key::ID || rows.batch().column(key).is_some();
        let order = |descending| if descending { Order::Descending } else { Order::Ascending };
        let keys: Vec<SortKey> =
            keys.into_iter().filter(|(key, _)| has(*key)).map(|(key, down)| by(key, order(down))).collect();
        prop_assert_eq!(active(&sorted(&rows, &keys, limit)), naive_sorted(&rows, &keys, limit));
    }
}

/// Enough rows to pass every threshold of the sort.
#[test]
fn long_rows_sort_like_the_naive_sort() {
    let numbers = |seed: u64| {
        let mut state = seed;
        move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 40
        }
    };
    for modulus in [3, 100, 1 << 24] {
        let (mut a, mut b) = (numbers(1), numbers(2));
        let floats = (0..50_000).map(|_| Some((a() % modulus) as f64)).collect::<Vec<_>>();
        let ints = (0..50_000).map(|_| (b() % 7 != 0).then(|| b() as i64 % 10)).collect::<Vec<_>>();
        let batch = Batch::new((0..50_000).collect::<Vec<i64>>());
        let rows =
            Rows::new(batch.with_column(FLOAT, Column::floats(floats)).with_column(INT, Column::ints(ints)));
        let one = [by(FLOAT, Order::Descending)];
        let two = [by(INT, Order::Ascending), by(FLOAT, Order::Descending)];
        for keys in [&one[..], &two[..]] {
            for limit in [None, Some(1), Some(50), Some(300), Some(9_000)] {
                assert!(active(&sorted(&rows, keys, limit)) == naive_sorted(&rows, keys, limit), "{limit:?}");
            }
        }
    }
}
