//! A template from a stranger: fails or renders within its bounds.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| anabranch_recipe::decoders::template(bytes));
