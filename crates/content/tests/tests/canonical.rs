//! One encoding a value, one value an encoding; and the addresses that come of it.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]
#![allow(clippy::needless_pass_by_value, reason = "an `expect!` is written where it is used")]

mod address;
mod near;

use std::fmt::Write;

use anabranch_content::{Address, Context, Fault, TooDeep, Value};
use expect_test::{Expect, expect};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::allocated::largest_of;
use near::neighbours;

const CONTEXT: Context<'_> = Context("anabranch 2026 tests of the canonical encoding");

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn map<const N: usize>(pairs: [(&str, Value); N]) -> Value {
    Value::Map(pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    })
}

fn unhex(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        hex.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn golden() -> [Value; 16] {
    [
        Value::Null,
        Value::Bool(false),
        Value::Bool(true),
        Value::Int(0),
        Value::Int(-2),
        Value::Float(1.5),
        Value::Float(-0.0),
        Value::Float(f64::NAN),
        text(""),
        text("héllo"),
        Value::Bytes(vec![0, 255].into()),
        Value::Address(Address::of(b"")),
        Value::List(vec![]),
        Value::List(vec![Value::Int(i64::MIN), Value::List(vec![Value::Null]), text("a")]),
        map([]),
        map([
            ("é", Value::Null),
            ("a", map([("x", Value::Bool(true)), ("", text("y"))])),
            ("Z", Value::Int(1)),
        ]),
    ]
}

/// These may never change: they are in every address of a derivation that anybody has kept.
#[test]
fn encodings_and_addresses_stay_what_they_are() {
    let mut table = String::new();
    for value in golden() {
        let address = value.derive(CONTEXT).unwrap();
        writeln!(table, "{value:?}\n  {}\n  {address}", hex(&value.encode().unwrap())).unwrap();
    }
    expect![[r#"
        Null
          0100
          1656b880b60fa59c1070d59a8f0e034f6d76a540403d65d120b8fb5eeb2a07b8
        Bool(false)
          0101
          f41ea59e8971a1967d78687b59e71d230df082357dfa4d8b9bca4c6c9a67ba56
        Bool(true)
          0102
          ba298c2a6f37d39479d62e78b824a02341ad9256543549be5e0ae85d9dab86b3
        Int(0)
          01030000000000000000
          b0a83adb55b5aa6efac8125c58b7b5dc19dc389d7c495879df876d20cd012ac0
        Int(-2)
          0103fffffffffffffffe
          90b12ae3276e0e619588632ec0bd11d06c475ef9efc9bb4fcb2ead71330e82f3
        Float(1.5)
          01043ff8000000000000
          951b65a7fba73b3698783fc068ea40fe03e7065be2939969bdc8b8e7d2beb0d3
        Float(-0.0)
          01048000000000000000
          0f79a0db3053ee55883c1b020b827a4603157c5072b4757cd21b3ed3b08b3bd2
        Float(NaN)
          01047ff8000000000000
          e72f7674ed18916f36131cbac407c69f3d2c76364eace4b9d784064070c13397
        Text("")
          01050000000000000000
          90e567a5b21554cc5974a8afe5fe854ce7d3127bb93d12b432e93768c867ad5e
        Text("héllo")
          0105000000000000000668c3a96c6c6f
          a299c6c587c32ef22339ffbbd06dd8d3336330cd1c3f7229072b3cf238f391e3
        Bytes(b"\0\xff")
          0106000000000000000200ff
          f23a7ee98e58283b8e61acca0cdc472c6d3ff4308d8bac6bfcd0089ceeaf6671
        Address(af1349b9f5f9…)
          0107af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262
          1c8c662952cf8811c3a412b1091d6f8d350a2563a6c993db60ab2f763c4cdeaa
        List([])
          01080000000000000000
          a368738d2e2b578abfd3d9f4b1102bdf2050178d2c7cab3beaaa3f18a944309c
        List([Int(-9223372036854775808), List([Null]), Text("a")])
          010800000000000000030380000000000000000800000000000000010005000000000000000161
          164f5d31428a196b58ef5d8ee2967ce146a87859ac2e188767cdef022e5ccaef
        Map({})
          01090000000000000000
          6271e75e8ae03c4b77a20fcfcf713d623f2845d6226af65c4bd3376d42345780
        Map({"Z": Int(1), "a": Map({"": Text("y"), "x": Bool(true)}), "é": Null})
          0109000000000000000300000000000000015a030000000000000001000000000000000161090000000000000002000000000000000005000000000000000179000000000000000178020000000000000002c3a900
          7c33f5f10e2c773a20875f4671a889ef3b52446308c108e28763580131025605
    "#]].assert_eq(&table);
}

fn check_refused(encoding: &str, expect: Expect) {
    expect.assert_eq(&Value::decode(&unhex(encoding)).unwrap_err().to_string());
}

#[test]
fn what_the_encoder_does_not_write_is_refused() {
    check_refused("", expect!["byte 0 of the encoding: the value that starts here goes past the end"]);
    check_refused("02 00", expect!["byte 0 of the encoding: the version is 2, not 1"]);
    check_refused("01", expect!["byte 1 of the encoding: the value that starts here goes past the end"]);
    check_refused("01 00 00", expect!["byte 2 of the encoding: the value has ended before"]);
    check_refused("01 0a", expect!["byte 1 of the encoding: there is no kind of value 10"]);
    check_refused(
        "01 03 00000000000000",
        expect!["byte 2 of the encoding: the value that starts here goes past the end"],
    );
    check_refused(
        "01 04 7ff8000000000001",
        expect!["byte 2 of the encoding: the bits are of a NaN that is never written"],
    );
    check_refused(
        "01 04 fff8000000000000",
        expect!["byte 2 of the encoding: the bits are of a NaN that is never written"],
    );
    check_refused(
        "01 05 0000000000000002 61",
        expect!["byte 2 of the encoding: the value that starts here goes past the end"],
    );
    check_refused("01 05 0000000000000003 61ff61", expect!["byte 11 of the encoding: the text is not UTF-8"]);
    check_refused(
        "01 06 ffffffffffffffff 61",
        expect!["byte 2 of the encoding: the value that starts here goes past the end"],
    );
    check_refused(
        "01 08 0000000000000002 00",
        expect!["byte 2 of the encoding: the value that starts here goes past the end"],
    );
    let rising = "0000000000000001 61 00 0000000000000001 62 00";
    assert!(Value::decode(&unhex(&format!("01 09 0000000000000002 {rising}"))).is_ok());
    let falling = "0000000000000001 62 00 0000000000000001 61 00";
    check_refused(
        &format!("01 09 0000000000000002 {falling}"),
        expect!["byte 20 of the encoding: the key is not above the one before it"],
    );
    let double = "0000000000000001 61 00 0000000000000001 61 00";
    check_refused(
        &format!("01 09 0000000000000002 {double}"),
        expect!["byte 20 of the encoding: the key is not above the one before it"],
    );
}

#[test]
fn a_length_is_not_believed() {
    for tag in [5, 6, 8, 9] {
        for length in (0..64).map(|shift| u64::MAX >> shift).chain((6..64).map(|shift| 1 << shift)) {
            let mut hostile = vec![1, tag];
            hostile.extend(length.to_be_bytes());
            hostile.extend([0; 32]);
            let (decoded, largest) = largest_of(|| Value::decode(&hostile));
            if length > 32 {
                let error = decoded.unwrap_err();
                assert_eq!((error.offset, error.fault), (2, Fault::End), "kind {tag}, length {length}");
                assert_eq!(largest, 0, "kind {tag}, length {length}");
            }
        }
    }
}

/// So many lists around null.
fn nested(depth: usize) -> Value {
    (0..depth).fold(Value::Null, |value, _| Value::List(vec![value]))
}

fn nested_encoding(depth: usize) -> Vec<u8> {
    let mut encoding = vec![1];
    for _ in 0..depth {
        encoding.push(8);
        encoding.extend(1u64.to_be_bytes());
    }
    encoding.push(0);
    encoding
}

#[test]
fn depth_has_a_limit() {
    let deepest = nested(Value::DEPTH_LIMIT).encode().unwrap();
    assert_eq!(deepest, nested_encoding(Value::DEPTH_LIMIT));
    assert_eq!(Value::decode(&deepest), Ok(nested(Value::DEPTH_LIMIT)));

    let deeper = map([("key", nested(Value::DEPTH_LIMIT))]);
    let mut before = b"before".to_vec();
    assert_eq!(deeper.encode_into(&mut before), Err(TooDeep));
    assert_eq!(before, b"before");
    assert_eq!(deeper.derive(CONTEXT), Err(TooDeep));
    for depth in [Value::DEPTH_LIMIT + 1, 1_000_000] {
        let error = Value::decode(&nested_encoding(depth)).unwrap_err();
        assert_eq!((error.offset, error.fault), (1 + 9 * Value::DEPTH_LIMIT, Fault::Depth));
    }
}

#[test]
fn equality_is_that_of_encodings() {
    let other_nan = f64::from_bits(0xfff0_0000_0000_0001);
    assert_eq!(Value::Float(other_nan), Value::Float(f64::NAN));
    assert_eq!(Value::Float(other_nan).encode(), Value::Float(f64::NAN).encode());
    assert_ne!(Value::Float(0.0), Value::Float(-0.0));
    assert_ne!(Value::Int(1), Value::Float(1.0));
}

/// Few letters and numbers, so that two values often have parts in common.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (-2i64..3).prop_map(Value::Int),
        any::<i64>().prop_map(Value::Int),
        any::<u64>().prop_map(|bits| Value::Float(f64::from_bits(bits))),
        prop::sample::select(vec![0.0, -0.0, 1.0, f64::NAN, -f64::NAN, f64::INFINITY]).prop_map(Value::Float),
        "[a-cé]{0,3}".prop_map(Value::Text),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(|bytes| Value::Bytes(bytes.into())),
        any::<[u8; 32]>().prop_map(|bytes| Value::Address(Address::from_bytes(bytes))),
    ];
    leaf.prop_recursive(5, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::List),
            prop::collection::btree_map("[a-cé]{0,2}", inner, 0..5).prop_map(Value::Map),
        ]
    })
}

/// A small change to bytes: which, where, and with what.
fn mutate(bytes: &mut Vec<u8>, (kind, at, byte): (u8, Index, u8)) {
    if bytes.is_empty() {
        return;
    }
    let at = at.index(bytes.len());
    match kind {
        0 => bytes[at] ^= 1 << (byte % 8),
        1 => bytes[at] = byte,
        2 => bytes.insert(at, byte),
        3 => drop(bytes.remove(at)),
        4 => bytes.truncate(at),
        5 => bytes.extend_from_within(at..),
        _ => bytes.swap(at, usize::from(byte) % at.max(1)),
    }
}

fn check_total(bytes: &[u8]) -> Result<(), TestCaseError> {
    match Value::decode(bytes) {
        Ok(value) => prop_assert_eq!(value.encode().unwrap(), bytes),
        Err(error) => prop_assert!(error.offset <= bytes.len()),
    }
    Ok(())
}

proptest! {
    #[test]
    fn decoding_undoes_encoding(value in any_value()) {
        let mut encoding = b"before".to_vec();
        value.encode_into(&mut encoding).unwrap();
        prop_assert_eq!(&encoding[6..], value.encode().unwrap());
        prop_assert_eq!(Value::decode(&encoding[6..]).unwrap(), value);
    }

    #[test]
    fn different_values_have_different_encodings(one in any_value(), other in any_value(), pick in any::<Index>()) {
        let mut values = neighbours(&one);
        let further = neighbours(&values[pick.index(values.len())]);
        values.extend(further);
        values.extend([one, other]);
        let encodings: Vec<_> = values.iter().map(|value| value.encode().unwrap()).collect();
        for (value, encoding) in values.iter().zip(&encodings) {
            for (other, other_encoding) in values.iter().zip(&encodings) {
                prop_assert_eq!(value == other, encoding == other_encoding, "{:?} and {:?}", value, other);
            }
        }
    }

    #[test]
    fn any_bytes_are_refused_or_encoded_the_same(
        bytes in prop::collection::vec(prop_oneof![4 => Just(0u8), 4 => 0u8..10, 1 => any::<u8>()], 0..80),
    ) {
        check_total(&bytes)?;
        check_total(&[&[1], bytes.as_slice()].concat())?;
    }

    #[test]
    fn changed_encodings_are_refused_or_encoded_the_same(
        value in any_value(),
        changes in prop::collection::vec((0u8..7, any::<Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = value.encode().unwrap();
        for change in changes {
            mutate(&mut bytes, change);
            check_total(&bytes)?;
        }
    }

    #[test]
    fn no_encoding_is_a_blob_with_its_derivations_address(value in any_value()) {
        let blob = Address::of(&value.encode().unwrap());
        let derivation = value.derive(CONTEXT).unwrap();
        prop_assert_ne!(blob, derivation);
        prop_assert_ne!(derivation, value.derive(Context("another")).unwrap());
    }
}
