//! The decoders on bytes that nobody wrote.

use proptest::collection::vec;
use proptest::prelude::*;

use super::{key, value};
use crate::index::block::Builder;
use crate::index::footer::Footer;
use crate::index::manifest::{ListedRun, Manifest};
use crate::index::span::Span;
use crate::index::top::TopLevel;
use crate::index::{LogCoverage, fuzz};
use crate::log::Position;

/// Changes of single bytes, and where to cut off.
fn mutations() -> impl Strategy<Value = (Vec<(usize, u8)>, usize)> {
    (vec((any::<usize>(), any::<u8>()), 0..4), prop_oneof![3 => Just(usize::MAX), 1 => any::<usize>()])
}

fn mutate(mut bytes: Vec<u8>, (changes, cut): &(Vec<(usize, u8)>, usize)) -> Vec<u8> {
    for (place, byte) in changes {
        let place = place % bytes.len();
        bytes[place] = *byte;
    }
    if *cut != usize::MAX {
        bytes.truncate(cut % bytes.len());
    }
    bytes
}

fn span() -> Span {
    Span { offset: 77, len: 4000, crc: 5 }
}

fn a_block(leaf: bool) -> Vec<u8> {
    let mut keys: Vec<_> = (0..20).map(key).collect();
    keys.sort();
    let mut block = Builder::new(usize::from(u16::MAX));
    for (number, key) in keys.iter().enumerate() {
        let value = if leaf { Box::from(span().encode()) } else { value(number, number) };
        block.add(key.as_bytes(), Some(&*value).filter(|_| leaf || number % 5 > 0));
    }
    block.take()
}

fn a_top() -> Vec<u8> {
    let mut keys: Vec<_> = (0..20).map(key).collect();
    keys.sort();
    let mut top = TopLevel::default();
    keys.into_iter().for_each(|key| top.add(key, span()));
    top.encode()
}

fn a_footer() -> Vec<u8> {
    let (first, last) = (key(1), key(2));
    Footer { number: 3, entries: 9, points: 4, first, last, top: span(), filter: span() }.encode()
}

fn a_manifest() -> Vec<u8> {
    let listed = |number| ListedRun { number, level: 2, bytes: 1 << 40, entries: 99, footer_crc: 7 };
    let covered =
        LogCoverage { position: Position { segment: 3, offset: 1 << 33 }, note: b"a note".to_vec() };
    Manifest { covered, runs: vec![listed(9), listed(4)] }.encode()
}

#[test]
fn what_was_encoded_decodes() {
    assert_eq!(Footer::decode(&a_footer()).unwrap().encode(), a_footer());
    assert_eq!(a_footer().len(), Footer::BYTES);
    assert_eq!(Manifest::decode(&a_manifest()).unwrap().encode(), a_manifest());
    assert_eq!(TopLevel::decode(&a_top()).unwrap().encode(), a_top());
    assert_eq!(Span::decode(&span().encode()), Ok(span()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_decode_or_not(bytes in vec(any::<u8>(), 0..300)) {
        for decode in [fuzz::block, fuzz::leaf, fuzz::top, fuzz::filter, fuzz::footer, fuzz::manifest] {
            decode(&bytes);
        }
    }

    #[test]
    fn changed_bytes_decode_or_not(change in mutations()) {
        fuzz::block(&mutate(a_block(false), &change));
        fuzz::leaf(&mutate(a_block(true), &change));
        fuzz::top(&mutate(a_top(), &change));
        fuzz::footer(&mutate(a_footer(), &change));
        fuzz::manifest(&mutate(a_manifest(), &change));
    }
}
