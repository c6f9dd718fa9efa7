//! Compares the decoder with the parser of the crate `redis`, on any values and any splits of their bytes.

use proptest::prelude::*;
use redis::Value as Peer;

use super::super::sink::{Sink, Value};
use super::*;

const PLENTY: usize = 1 << 20;

/// Decodes the replies in `bytes`, which come in pieces that end at `cuts`.
fn decode(bytes: &[u8], cuts: &[usize]) -> Result<Vec<Value>, ProtocolError> {
    let (mut decoder, mut sink) = (Decoder::default(), Sink::values());
    decoder.begin(PLENTY);
    let mut start = 0;
    let ends = cuts.iter().map(|cut| cut % (bytes.len() + 1)).chain([bytes.len()]);
    let mut ends: Vec<usize> = ends.collect();
    ends.sort_unstable();
    for end in ends {
        loop {
            let (used, complete) = decoder.feed(&bytes[start..end], &mut sink)?;
            start += used;
            if !complete || start == end {
                break;
            }
        }
    }
    Ok(sink.into_values())
}

/// The peer's form of a reply, converted to ours.
fn of_peer(value: Peer) -> Value {
    let list = |values: Vec<Peer>| Value::List(values.into_iter().map(of_peer).collect());
    match value {
        Peer::Nil => Value::Null,
        Peer::Int(value) => Value::Int(value),
        Peer::BulkString(bytes) | Peer::BigNumber(bytes) => Value::Text(bytes),
        Peer::SimpleString(text) | Peer::VerbatimString { text, .. } => Value::Text(text.into_bytes()),
        Peer::Okay => Value::Text(b"OK".to_vec()),
        Peer::Array(values) | Peer::Set(values) => list(values),
        Peer::Map(pairs) => list(pairs.into_iter().flat_map(|(key, value)| [key, value]).collect()),
        Peer::Attribute { data, .. } => of_peer(*data),
        Peer::Double(value) => Value::Double(value),
        Peer::Boolean(value) => Value::Bool(value),
        Peer::ServerError(error) => Value::Error(match error.details() {
            Some(details) => format!("{} {details}", error.code()),
            None => error.code().to_owned(),
        }),
        other => panic!("{other:?} answers no command"),
    }
}

/// A reply of any kind, as bytes.
fn replies() -> impl Strategy<Value = Vec<u8>> {
    let line = "[a-zA-Z0-9 .:-]{0,12}";
    let text = prop::collection::vec(any::<u8>(), 0..20);
    let with_length = |kind: char, bytes: Vec<u8>| {
        [format!("{kind}{}\r\n", bytes.len()).into_bytes(), bytes, b"\r\n".to_vec()].concat()
    };
    let leaf = prop_oneof![
        any::<i64>().prop_map(|value| format!(":{value}\r\n").into_bytes()),
        any::<i64>().prop_map(move |value| with_length('$', value.to_string().into_bytes())),
        text.prop_map(move |bytes| with_length('$', bytes)),
        "[a-z]{0,9}".prop_map(move |text| with_length('=', format!("txt:{text}").into_bytes())),
        line.prop_map(|text| format!("+{text}\r\n").into_bytes()),
        "[A-Z]{1,9} [a-z]{1,9}".prop_map(|text| format!("-{text}\r\n").into_bytes()),
        (-1e12..1e12f64).prop_map(|value| format!(",{value}\r\n").into_bytes()),
        "[1-9][0-9]{20,30}".prop_map(|text| format!("({text}\r\n").into_bytes()),
        prop::sample::select(vec!["#t\r\n", "#f\r\n", "_\r\n", "$-1\r\n", "*-1\r\n", "*0\r\n", "%0\r\n"])
            .prop_map(|text| text.as_bytes().to_vec()),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        let values = prop::collection::vec(inner, 0..6);
        (values, prop::sample::select(vec!['*', '~', '%'])).prop_map(|(values, kind)| {
            let whole = if kind == '%' { values.len() / 2 * 2 } else { values.len() };
            let count = if kind == '%' { whole / 2 } else { whole };
            [format!("{kind}{count}\r\n").into_bytes(), values[..whole].concat()].concat()
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reads_what_the_peer_reads(
        parts in prop::collection::vec(replies(), 1..4),
        cuts in prop::collection::vec(any::<usize>(), 0..8),
    ) {
        let expected: Vec<Value> =
            parts.iter().map(|part| of_peer(redis::parse_redis_value(part).unwrap())).collect();
        prop_assert_eq!(decode(&parts.concat(), &cuts).unwrap(), expected);
    }

    /// Damaged bytes have the same result at every split, and never cause a panic.
    #[test]
    fn splits_do_not_matter(
        reply in replies(),
        place in any::<usize>(),
        byte in any::<u8>(),
        cuts in prop::collection::vec(any::<usize>(), 0..8),
    ) {
        let mut bytes = reply;
        let at = place % bytes.len();
        bytes[at] = byte;
        let (whole, split) = (decode(&bytes, &[]), decode(&bytes, &cuts));
        prop_assert_eq!(whole.is_err(), split.is_err());
        if let (Ok(whole), Ok(split)) = (whole, split) {
            prop_assert_eq!(format!("{whole:?}"), format!("{split:?}"));
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let _ = decode(&bytes, &[]);
    }
}

#[test]
fn pushes_and_attributes_are_skipped() {
    let text = |word: &str| Value::Text(word.as_bytes().to_vec());
    let bytes = b">2\r\n+message\r\n*1\r\n:1\r\n*2\r\n|1\r\n+ttl\r\n:9\r\n$1\r\na\r\n$1\r\nb\r\n";
    assert_eq!(decode(bytes, &[]).unwrap(), [Value::List(vec![text("a"), text("b")])]);
    for cut in 0..bytes.len() {
        assert_eq!(decode(bytes, &[cut]).unwrap().len(), 1, "{cut}");
    }
}

#[test]
fn bounds_are_checked_before_anything_is_allocated() {
    let refused = |bytes: &str| decode(bytes.as_bytes(), &[]).unwrap_err().0.into_owned();
    for giant in ["*2147483647\r\n", "%999999999999\r\n", "~349526\r\n", "$1048577\r\n", "=999999999999\r\n"]
    {
        assert!(refused(giant).contains("left"), "{giant}");
    }
    assert!(refused("$99999999999999999999\r\n").contains("64 bits"));
    assert!(refused(&"*1\r\n".repeat(17)).contains("16 levels"));
    assert!(refused(&format!("+{}", "x".repeat(MAX_LINE + 1))).contains("does not end"));
    for streamed in ["$?\r\n", "*?\r\n", ";4\r\n", ".\r\n", "$-2\r\n", "_x\r\n", "#x\r\n", ":\r\n", ",x\r\n"]
    {
        refused(streamed);
    }
}

#[test]
fn a_trip_has_a_bound_on_its_bytes() {
    let (mut decoder, mut sink) = (Decoder::default(), Sink::values());
    decoder.begin(20);
    assert_eq!(decoder.feed(b"$5\r\nabcde\r\n", &mut sink).unwrap(), (11, true));
    decoder.feed(b"$5\r\nabcde\r\n", &mut sink).unwrap_err();
}

#[test]
fn ids_of_any_length_are_read_fast_or_left_to_the_decoder() {
    let read = |text: &str| {
        let (mut left, mut ids) = (1, Vec::new());
        let used = take_ids(format!("${}\r\n{text}\r\n", text.len()).as_bytes(), &mut left, &mut ids);
        (used > 0).then(|| ids[0])
    };
    for len in 1..=20 {
        let digits: String = "9876543210123456789".chars().cycle().take(len).collect();
        assert_eq!(read(&digits), digits.parse().ok().filter(|_| len <= 18), "{digits}");
        for at in 0..len {
            for other in ["/", ":", "-", "\u{0}", "\r", "a", "\u{7f}"] {
                let mut text = digits.clone();
                text.replace_range(at..=at, other);
                assert_eq!(read(&text), None, "{text:?}");
            }
        }
    }
    for bad in ["$5\r\n12345\r", "$5\r\n1234\r\n\r", "$5\r\n123456\n", "$0\r\n\r\n", "$-1\r\n"] {
        assert_eq!(take_ids(bad.as_bytes(), &mut 1, &mut Vec::new()), 0, "{bad:?}");
    }
}
