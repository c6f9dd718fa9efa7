//! Every decoder of what a disk or a stranger may have written, as functions of any bytes: for the fuzzers in `fuzz/`
//! and for the tests that run the same functions on a stable compiler. They panic when a decoder breaks a promise.

use bytes::Bytes;

use crate::fields::FieldReader;
use crate::log::{Fact, HEADER, Header, Record, Salt};
use crate::store::{decode_row, parse_format};
use crate::{Address, Value, files, index};

/// Decodes any bytes, and looks at what it gets.
pub type Decoder = fn(&[u8]);

/// All decoders by name.
pub const ALL: [(&str, Decoder); 12] = [
    ("address", address),
    ("canonical", canonical),
    ("record", record),
    ("fact", fact),
    ("row", row),
    ("format", format),
    ("file_name", files::fuzz),
    ("index_block", index::fuzz::block),
    ("index_leaf", index::fuzz::leaf),
    ("index_top", index::fuzz::top),
    ("index_filter", index::fuzz::filter),
    ("index_manifest", manifest),
];

/// A parsed address prints as the same text, in lower case.
fn address(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    if let Ok(address) = text.parse::<Address>() {
        assert_eq!(address.to_string(), text.to_ascii_lowercase());
    }
}

/// Bytes that decode to a value are the canonical encoding of that value.
fn canonical(bytes: &[u8]) {
    if let Ok(value) = Value::decode(bytes) {
        assert_eq!(value.encode().as_deref(), Ok(bytes));
    }
}

/// Bytes that decode to a record are the canonical encoding of that record.
fn record(bytes: &[u8]) {
    let bytes = Bytes::copy_from_slice(bytes);
    if let Some(record) = Record::decode_whole(Salt(0), &bytes) {
        let mut again = Vec::new();
        record.encode(Salt(0), &mut again);
        assert_eq!(again, bytes);
    }
}

/// The same behind the checksums, which a fuzzer hardly gets past. A fact in the form of format 1 is written in the form
/// of today, which reads the same.
fn fact(bytes: &[u8]) {
    let Some((kind, body)) = bytes.split_first() else { return };
    let Some(fact) = Fact::decode(*kind, &Bytes::copy_from_slice(body)) else { return };
    let mut again = Vec::new();
    let record = Record { at: crate::Time(0), class: crate::Class::Derivable, fact };
    record.encode(Salt(0), &mut again);
    let header = Header::decode(Salt(0), &again).expect("the header of a record");
    let (kind_now, written) = (again[1], Bytes::from(again).slice(HEADER..));
    assert_eq!(header.len, written.len());
    match kind_now == *kind {
        true => assert_eq!(written, body),
        false => assert_eq!(Fact::decode(kind_now, &written), Some(record.fact)),
    }
}

/// Rows of the index's tables: the first byte says of which.
fn row(bytes: &[u8]) {
    let mut take = FieldReader(bytes);
    if let Some(table) = take.u8() {
        decode_row(table, take.rest());
    }
}

fn format(bytes: &[u8]) {
    if let Ok(text) = str::from_utf8(bytes) {
        parse_format(text);
    }
}

fn manifest(bytes: &[u8]) {
    index::fuzz::footer(bytes);
    index::fuzz::manifest(bytes);
}
