//! A recipe file from a stranger, as TOML and as YAML: refused with problems, or whole.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| anabranch_recipe::decoders::recipe_file(bytes));
