//! The decoders, on any bytes: they must not panic, and what decodes must encode to the same bytes.

use super::block::{Block, Builder};
use super::filter::Filter;
use super::footer::Footer;
use super::manifest::Manifest;
use super::top::{Leaf, TopLevel};

/// Decodes a block, and looks in it for every key it has.
pub(crate) fn block(bytes: &[u8]) {
    let Ok(block) = Block::parse(bytes) else { return };
    let is_whole = block.check().is_ok();
    let mut builder = Builder::new(bytes.len());
    for number in 0..block.count() {
        let Ok((key, value)) = block.entry(number) else { continue };
        let found = block.find(key);
        if is_whole {
            assert_eq!(found, Ok(Some(value)));
            builder.add(key, value);
        }
    }
    assert!(!is_whole || builder.take() == bytes, "a whole block is what a builder makes");
}

/// Decodes a leaf, and looks in it for every key it has.
pub(crate) fn leaf(bytes: &[u8]) {
    let Ok(leaf) = Leaf::parse(bytes) else { return };
    let is_whole = leaf.check().is_ok();
    for number in 0..leaf.count() {
        let Ok((first, _)) = leaf.child(number) else { continue };
        let found = leaf.find(first);
        assert!(!is_whole || found == Ok(Some(number)), "a whole leaf finds its blocks");
    }
}

/// Decodes a top.
pub(crate) fn top(bytes: &[u8]) {
    let Ok(top) = TopLevel::decode(bytes) else { return };
    assert_eq!(top.encode(), bytes);
    for (number, (first, _)) in top.leaves().iter().enumerate() {
        assert_eq!(top.find(first), Some(number));
    }
}

/// Decodes a filter.
pub(crate) fn filter(bytes: &[u8]) {
    let Ok(mut filter) = Filter::decode(bytes) else { return };
    assert_eq!(filter.as_bytes(), bytes);
    filter.add(bytes);
    assert!(bytes.is_empty() || filter.may_have(bytes), "a filter has what was added");
}

/// Decodes a footer, as it stands and with its checksum set right.
pub(crate) fn footer(bytes: &[u8]) {
    for bytes in [bytes.to_vec(), with_checksum(bytes)] {
        if let Ok(footer) = Footer::decode(&bytes) {
            assert_eq!(footer.encode(), bytes);
        }
    }
}

/// Decodes a manifest, as it stands and with its checksum set right.
pub(crate) fn manifest(bytes: &[u8]) {
    for bytes in [bytes.to_vec(), with_checksum(bytes)] {
        if let Ok(manifest) = Manifest::decode(&bytes) {
            assert_eq!(manifest.encode(), bytes);
        }
    }
}

/// The same bytes with the checksum of the others at their end, so that fuzzing gets behind it.
fn with_checksum(bytes: &[u8]) -> Vec<u8> {
    let rest = &bytes[..bytes.len().saturating_sub(4)];
    [rest, &crc32fast::hash(rest).to_le_bytes()].concat()
}
