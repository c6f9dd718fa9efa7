//! The decoders of replies as functions of arbitrary bytes, for tests and fuzzing. An untrusted reply is decoded or
//! refused, and never causes a panic.

use std::sync::Arc;

use anabranch_rows::{Key, Kind};

use super::{Field, Read};

/// Reads of every kind.
fn reads() -> [Read; 4] {
    let field = |name: &str, kind| Field { name: name.into(), key: Key(2000), kind };
    let one: Arc<[Field]> = Arc::new([field("age", Kind::Int)]);
    let kinds = [("age", Kind::Int), ("score", Kind::Float), ("vip", Kind::Bool), ("country", Kind::Text)];
    let all: Arc<[Field]> = kinds.map(|(name, kind)| field(name, kind)).into();
    [Read::Fields(one), Read::Fields(all), Read::List { limit: 5 }, Read::Scored { limit: 5 }]
}

/// Decodes `bytes` as replies of a Redis, and of an HTTP server, in pieces of a length that the first byte says.
pub fn any(bytes: &[u8]) {
    let Some((first, bytes)) = bytes.split_first() else { return };
    let piece = usize::from(*first).max(1);
    for read in reads() {
        super::redis::decode_any(bytes, piece, &read);
        super::http::decode_any(bytes, piece, &read);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_reply_is_a_panic(
            words in prop::collection::vec(prop::sample::select(vec![
                "*", "$", "1", "2", "5", "\r\n", "-ERR no\r\n", "-WRONGTYPE\r\n", "-MOVED 1 a:1\r\n", "_\r\n", "*2\r\n",
                "*4\r\n", "$1\r\n7\r\n", ",1.5\r\n", ":3\r\n", "$-1\r\n", "|1\r\n", ">1\r\n", "%1\r\n", "{", "}", "[", "]", ",",
                "\"rows\":", "\"lists\":", "\"age\":", "null", "{\"id\":1,\"score\":2}", "\"x\"", "\"score\":1",
            ]), 0..30),
            first in any::<u8>(),
        ) {
            let bytes: Vec<u8> = [&[first], words.concat().as_bytes()].concat();
            super::any(&bytes);
        }
    }
}
