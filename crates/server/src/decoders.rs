//! The parser of JSON request bodies as a function of arbitrary bytes, for the fuzzers in `fuzz/` and for the tests
//! that run the same function on a stable compiler.

use anabranch_recipe::{JsonBudget, ParamsAsJson, ParamsFromJson};
use serde::de::DeserializeSeed;

use crate::http::json::{OneOrMany, WrittenRecipe, read};

/// The memory limit of a body.
const MEMORY: usize = 1 << 20;

/// Parses the recipes of a body. They are refused with a message, or their functions and parameters are equal after a
/// round trip. Panics if they are not.
pub fn recipes_body(bytes: &[u8]) {
    match read(bytes, MEMORY) {
        Ok(OneOrMany::One(written)) => check(&written),
        Ok(OneOrMany::Many(list)) => list.iter().for_each(check),
        Err(failure) => assert!(!failure.message.is_empty()),
    }
}

fn check(written: &WrittenRecipe) {
    let function = written.function.to_string();
    assert_eq!(function.parse().as_ref(), Ok(&written.function));
    let text = serde_json::to_string(&ParamsAsJson(&written.params)).expect("parameters can be written");
    let budget = JsonBudget::new(usize::MAX);
    let again = ParamsFromJson(&budget).deserialize(&mut serde_json::Deserializer::from_str(&text));
    assert_eq!(again.expect("what is written can be read"), written.params);
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// The stored inputs of the fuzz target, and each of them with one byte changed, for every byte.
    #[test]
    fn kept_inputs_of_the_fuzzer_are_read_or_refused() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/recipes_body");
        let kept: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
        assert!(kept.len() > 1, "there are no inputs");
        for path in kept {
            let bytes = std::fs::read(path).unwrap();
            super::recipes_body(&bytes);
            for at in 0..bytes.len() {
                for other in b"\"[{$0-n\xff" {
                    let mut bytes = bytes.clone();
                    bytes[at] = *other;
                    super::recipes_body(&bytes);
                }
            }
        }
    }
}
