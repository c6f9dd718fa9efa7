//! A little world to put into a store: a few blobs, derivations over them, and names.

use anabranch_content::{Address, Context};
use anabranch_testkit::Rng;
use bytes::Bytes;

use crate::kit::description;

pub(crate) const CONTEXT: Context<'static> = Context("anabranch tests 2026 crashes");

/// How long the blobs are. Up to [`PACKED`] bytes they are packed into the log.
pub(crate) const LENS: [usize; 14] = [0, 9, 100, 300, 511, 512, 513, 700, 1500, 2000, 40, 260, 3000, 5000];
pub(crate) const PACKED: usize = 512;
pub(crate) const DERIVATIONS: usize = 6;
pub(crate) const NAMES: [&str; 3] = ["feed/today", "feed/yesterday", "top"];

/// Something that has an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Thing {
    Blob(usize),
    Derivation(usize),
}

pub(crate) fn things() -> impl Iterator<Item = Thing> {
    (0..LENS.len()).map(Thing::Blob).chain((0..DERIVATIONS).map(Thing::Derivation))
}

impl Thing {
    pub(crate) fn address(self) -> Address {
        match self {
            Thing::Blob(blob) => Address::of(&bytes(blob)),
            Thing::Derivation(derivation) => Address::derive(CONTEXT, &described(derivation)),
        }
    }
}

/// The bytes of a blob.
pub(crate) fn bytes(blob: usize) -> Bytes {
    random(blob as u64, LENS[blob])
}

pub(crate) fn random(seed: u64, len: usize) -> Bytes {
    let mut rng = Rng::new(seed);
    let mut bytes: Vec<u8> = (0..len.div_ceil(8)).flat_map(|_| rng.bits().to_le_bytes()).collect();
    bytes.truncate(len);
    bytes.into()
}

/// What describes a derivation.
pub(crate) fn described(derivation: usize) -> Bytes {
    let inputs: Vec<Address> = inputs(derivation).into_iter().map(Thing::address).collect();
    description(random(1000 + derivation as u64, 30 + derivation), &inputs)
}

/// What a derivation reads. The odd ones read the one before.
pub(crate) fn inputs(derivation: usize) -> Vec<Thing> {
    let blobs = [derivation, derivation * 5 + 3].map(|blob| Thing::Blob(blob % LENS.len()));
    let before = (derivation % 2 == 1).then(|| Thing::Derivation(derivation - 1));
    blobs.into_iter().chain(before).collect()
}

/// One of two blobs that a derivation may come to.
pub(crate) fn output(derivation: usize, variant: usize) -> usize {
    (derivation * 2 + variant * 3 + 1) % LENS.len()
}
