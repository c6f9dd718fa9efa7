//! A request from a stranger: read, or refused.

#![no_main]

use std::sync::LazyLock;

use anabranch_plan::{Registries, Request};
use libfuzzer_sys::fuzz_target;

static REGISTRIES: LazyLock<Registries> = LazyLock::new(|| {
    let keys = "key = [{ key_id = 1, name = 'id', type = 'int', nullable = false, allow_write = false }]";
    let params = "param = [
        { param_id = 1, name = 'weight', type = 'float', nullable = true },
        { param_id = 2, name = 'count', type = 'int', nullable = false, default = 3 },
        { param_id = 3, name = 'label', type = 'string', nullable = false },
        { param_id = 4, name = 'fast', type = 'bool', nullable = false },
    ]";
    Registries::parse([("keys.toml", keys), ("params.toml", params)], None).expect("registries").0
});

fuzz_target!(|bytes: &[u8]| {
    if let Ok(request) = Request::parse(bytes, &REGISTRIES) {
        let user = request.user_id();
        // The rows of string users have negative ids.
        assert_eq!(user.row_id() >= 1, user.as_int().is_some());
    }
});
