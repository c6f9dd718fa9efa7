//! A parameter in JSON: refused, or the same after it was written and read again.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| anabranch_recipe::decoders::params_json(bytes));
