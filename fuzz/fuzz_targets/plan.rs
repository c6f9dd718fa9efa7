//! A plan file from a stranger: read, or refused with places.

#![no_main]

use std::sync::LazyLock;

use anabranch_plan::{Problems, Registries};
use anabranch_plan::document::Document;
use anabranch_plan::op::Ops;
use libfuzzer_sys::fuzz_target;

static REGISTRIES: LazyLock<Registries> = LazyLock::new(|| {
    let keys = "key = [
        { key_id = 1, name = 'id', type = 'int', nullable = false, allow_write = false },
        { key_id = 2001, name = 'final_score', type = 'float', nullable = true },
        { key_id = 3001, name = 'country', type = 'string', nullable = true },
    ]";
    let endpoints = "endpoint = [{ endpoint_id = 'ep_0001', name = 'users', kind = 'redis', \
        resolver = { type = 'static', host = 'h', port = 1 } }]";
    let files = [("keys.toml", keys), ("endpoints.dev.toml", endpoints)];
    Registries::parse(files, None).expect("registries").0
});

fuzz_target!(|text: &str| {
    let mut problems = Problems::default();
    let document = Document::parse(text, &Ops::builtin(), &REGISTRIES, &mut problems);
    assert_eq!(document.is_some(), problems.is_fine());
});
