//! A JSON body of HTTP from a stranger: refused, or recipes within the memory of a body.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| anabranch_server::decoders::recipes_body(bytes));
