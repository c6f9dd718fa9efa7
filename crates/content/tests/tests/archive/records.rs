//! The records of an archive by their bytes, and whether a store that took them in has what their addresses say. The
//! fuzzer of archives (`fuzz/fuzz_targets/archive.rs`) has this file, too.

use std::ops::Range;

use anabranch_content::{Address, Context, Store, Value};

pub(crate) const FRONT: &[u8] = b"anabranch archive 2\n";

/// How long the header before a record's body is.
const HEADER: usize = 24;

const BLOB: u8 = 1;
const FILE: u8 = 2;
/// A derivation as format 1 had it, with a list of inputs beside its bytes.
pub(crate) const OLD_DERIVATION: u8 = 4;
pub(crate) const DERIVATION: u8 = 10;
pub(crate) const MEMO: u8 = 5;
/// A name; the last one has no history, and ends the archive.
pub(crate) const NAME: u8 = 8;

/// A record of an archive.
#[derive(Clone, Debug)]
pub(crate) struct ArchiveRecord {
    pub(crate) kind: u8,
    /// Where its header begins.
    start: usize,
    pub(crate) body: Range<usize>,
}

/// The records of an archive, as far as their lengths lead from one to the next.
pub(crate) fn records(archive: &[u8]) -> Vec<ArchiveRecord> {
    let (mut found, mut start) = (Vec::new(), FRONT.len());
    while let Some(header) = archive.get(start..start.saturating_add(HEADER)) {
        let len = u32::from_le_bytes(header[4..8].try_into().expect("four bytes")) as usize;
        let (kind, body) = (header[1], start + HEADER..start + HEADER + len);
        let Some(bytes) = archive.get(body.clone()) else { break };
        found.push(ArchiveRecord { kind, start, body: body.clone() });
        start = match (kind, bytes.get(40..48)) {
            (NAME, _) if bytes.ends_with(&[0; 4]) => break,
            // A file's bytes are behind its record.
            (FILE, Some(len)) => {
                let len = u64::from_le_bytes(len.try_into().expect("eight bytes"));
                body.end.saturating_add(usize::try_from(len).unwrap_or(usize::MAX))
            }
            _ => body.end,
        };
    }
    found
}

/// Makes the checksums right, whatever the records say.
pub(crate) fn seal(archive: &mut [u8]) {
    for ArchiveRecord { start, body, .. } in records(archive) {
        let crc = crc32fast::hash(&archive[body]);
        archive[start + 16..start + 20].copy_from_slice(&crc.to_le_bytes());
        let crc = crc32fast::hash(&archive[start..start + 20]);
        archive[start + 20..start + HEADER].copy_from_slice(&crc.to_le_bytes());
    }
}

/// The addresses in a canonical value, in their order.
pub(crate) fn addresses_in(value: &Value) -> Vec<Address> {
    match value {
        Value::Address(address) => vec![*address],
        Value::List(values) => values.iter().flat_map(addresses_in).collect(),
        Value::Map(values) => values.values().flat_map(addresses_in).collect(),
        _ => Vec::new(),
    }
}

/// A store took this archive in: what it has of it is what the addresses say, and it has memos only if it trusts.
pub(crate) async fn check(store: &Store, archive: &[u8], trust_memos: bool) {
    assert!(trust_memos || store.stats().memos == 0, "memos that nobody trusts");
    for (name, address) in store.names().await.expect("names") {
        let known = store.status(&address).await.expect("a status");
        assert!(known.blob.is_some() || known.derivation || known.memo.is_some(), "{name} leads to nothing");
    }
    for ArchiveRecord { kind, body, .. } in records(archive) {
        let Some(address) = archive[body].first_chunk().map(|bytes| Address::from_bytes(*bytes)) else {
            continue;
        };
        match kind {
            BLOB | FILE => {
                let bytes = store.get(&address).await.expect("a blob that was taken in").expect("the same");
                assert_eq!(Address::of(&bytes), address);
            }
            DERIVATION | OLD_DERIVATION => {
                let found = store.derivation(&address).await.expect("a derivation that was taken in");
                let found = found.expect("a derivation that was taken in");
                assert_eq!(Address::derive(Context(&found.context), &found.bytes), address);
                let value = Value::decode(&found.bytes).expect("canonical bytes");
                assert_eq!(found.inputs, addresses_in(&value), "{address} says it reads something else");
            }
            MEMO => {
                let Some(memo) = store.recall(&address).await.expect("a memo") else { continue };
                assert!(trust_memos, "a memo of {address} that nobody trusts");
                let output = store.size(&memo.output).await.expect("a memo's output");
                assert_eq!(output, Some(memo.size), "the memo of {address} says how long its output is");
            }
            _ => {}
        }
    }
}
