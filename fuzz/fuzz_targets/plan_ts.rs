//! A plan in TypeScript from a stranger: described, or refused with places, within its limits.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| anabranch_plan_ts::fuzz::any(text));
