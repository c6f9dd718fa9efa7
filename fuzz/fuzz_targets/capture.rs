//! Parts of a capture from a stranger: read, or refused.

#![no_main]

use std::sync::LazyLock;

use anabranch_plan::Registries;
use anabranch_plan_inspect::capture::decoders;
use libfuzzer_sys::fuzz_target;

static REGISTRIES: LazyLock<Registries> = LazyLock::new(|| {
    let keys = "key = [{ key_id = 1, name = 'id', type = 'int', nullable = false, allow_write = false }]";
    let params = "param = [{ param_id = 1, name = 'weight', type = 'float', nullable = true }]";
    Registries::parse([("keys.toml", keys), ("params.toml", params)], None).expect("registries").0
});

fuzz_target!(|bytes: &[u8]| decoders::any(bytes, &REGISTRIES));
