//! The decoders of captures as functions of any bytes: for the fuzzers in `fuzz/`, and for the tests that run the same
//! functions on a stable compiler. They panic when a decoder breaks a promise.

use super::parts::{Contents, Outcome, decode_request};
use super::replies::Replies;
use anabranch_plan::Registries;

/// Bytes that decode are the one encoding of their value.
pub fn any(bytes: &[u8], registries: &Registries) {
    if let Ok(contents) = Contents::decode(bytes) {
        assert_eq!(contents.encode(), bytes);
    }
    if let Ok(outcome) = Outcome::decode(bytes) {
        assert_eq!(Outcome::decode(&outcome.encode()).as_ref(), Ok(&outcome));
    }
    // A parameter that these registries lack does not matter.
    let _ = decode_request(bytes, registries);
    if let Ok(replies) = Replies::decode(bytes) {
        let again = Replies::decode(&replies.encode()).expect("what was encoded decodes");
        assert_eq!(again.encode(), replies.encode());
    }
}
