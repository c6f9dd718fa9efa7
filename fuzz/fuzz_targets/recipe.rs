//! A recipe's encoding from a stranger: refused, or the one encoding of its recipe.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| anabranch_recipe::decoders::recipe(bytes));
