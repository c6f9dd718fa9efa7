//! Conversion from and to Arrow record batches.

use std::sync::Arc;

use anabranch_rows::{Error, Key, Rows};
use arrow_array::types::Int8Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Float32Array, Int32Array, Int64Array, LargeStringArray, RecordBatch,
    StringArray, StringViewArray, TimestampSecondArray, UInt64Array,
};
use proptest::prelude::*;

use crate::random::{FLOAT, INT, Plain, TEXT, keys, plain_rows, rows};

fn key(name: &str) -> Option<Key> {
    name.strip_prefix("key_").and_then(|number| number.parse().ok()).map(Key)
}

fn read(columns: Vec<(&str, ArrayRef)>) -> Result<Rows, Error> {
    Rows::from_arrow(&RecordBatch::try_from_iter(columns).unwrap(), key)
}

#[test]
fn narrower_types_are_widened() {
    let ids: ArrayRef = Arc::new(Int32Array::from(vec![7, 8]));
    let floats: ArrayRef = Arc::new(Float32Array::from(vec![Some(0.5), None]));
    let ints: ArrayRef = Arc::new(UInt64Array::from(vec![Some(3), None]));
    let rows = read(vec![("id", ids.clone()), ("key_11", floats), ("key_10", ints)]).unwrap();
    let expected = (7, vec![Some(Plain::Int(3)), Some(Plain::Float(0.5)), None, None]);
    assert_eq!(plain_rows(&rows), [expected, (8, vec![None; 4])]);
    assert_eq!(keys(&rows), [INT.0, FLOAT.0]);
    let texts: [ArrayRef; 4] = [
        Arc::new(StringArray::from(vec!["US", "CA"])),
        Arc::new(LargeStringArray::from(vec!["US", "CA"])),
        Arc::new(StringViewArray::from(vec!["US", "CA"])),
        Arc::new(vec!["US", "CA"].into_iter().collect::<DictionaryArray<Int8Type>>()),
    ];
    for text in texts {
        let rows = read(vec![("id", ids.clone()), ("key_13", text)]).unwrap();
        let text = rows.batch().column(TEXT).unwrap().as_text().unwrap();
        assert_eq!([text.get(0), text.get(1)], [Some("US"), Some("CA")]);
    }
}

#[test]
fn errors_name_the_column_and_the_row() {
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![7, 8]));
    let check = |columns, expected: &str| assert_eq!(read(columns).unwrap_err().to_string(), expected);
    check(vec![("key_10", ids.clone())], "the record batch has no column `id`; add one of 64-bit integers");
    let nulls: ArrayRef = Arc::new(Int64Array::from(vec![Some(7), None]));
    check(vec![("id", nulls)], "column `id`, row 1: the id is null; every row needs one");
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["7", "8"]));
    check(vec![("id", texts)], "column `id` has the type Utf8; ids must be integers");
    check(
        vec![("id", ids.clone()), ("views", ids.clone())],
        "column `views` is not a registered key; leave it out or register it",
    );
    check(
        vec![("id", ids.clone()), ("key_10", ids.clone()), ("key_010", ids.clone())],
        "column `key_010` has the key 10, and so has another column; leave one of them out",
    );
    let times: ArrayRef = Arc::new(TimestampSecondArray::from(vec![1, 2]));
    check(
        vec![("id", ids.clone()), ("key_10", times)],
        "column `key_10` has the type Timestamp(s); columns must be integers, floats, booleans or strings",
    );
    let large: ArrayRef = Arc::new(UInt64Array::from(vec![1, u64::MAX]));
    check(
        vec![("id", ids), ("key_10", large)],
        "column `key_10`, row 1: 18446744073709551615 is above the largest 64-bit signed integer",
    );
}

proptest! {
    #[test]
    fn a_conversion_there_and_back_changes_nothing(rows in rows(30)) {
        let batch = rows.to_arrow(|key| format!("key_{key}"));
        let back = Rows::from_arrow(&batch, key).unwrap();
        prop_assert_eq!(plain_rows(&back), plain_rows(&rows));
        prop_assert_eq!(keys(&back), keys(&rows));
    }
}
