//! An archive from a stranger who knows how to make a checksum: refused, or taken in and what its addresses say.

#![no_main]

#[path = "../../crates/content/tests/tests/archive/records.rs"]
mod records;

use anabranch_content::{Config, Error, Import, Store};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut archive = [records::FRONT, bytes].concat();
    records::seal(&mut archive);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        for trust_memos in [false, true] {
            let store = Store::in_memory(Config { cache_bytes: 0, ..Config::default() }).expect("a store");
            let terms = Import { trust_memos, ..Import::default() };
            match store.import(std::io::Cursor::new(archive.clone()), terms).await {
                Ok(_) => records::check(&store, &archive, trust_memos).await,
                Err(Error::Archive { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        }
    });
});
