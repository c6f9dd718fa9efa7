//! A reply of a strange Redis or HTTP server: read, or refused.

#![no_main]

use anabranch_plan::source::decoders;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| decoders::any(bytes));
