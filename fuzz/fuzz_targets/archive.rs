//! An archive from a stranger: refused, or taken in.

#![no_main]

use anabranch_content::{Config, Error, Store};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let bytes = [b"anabranch archive 1\n", bytes].concat();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let store = Store::in_memory(Config::default()).expect("a store");
        match store.import(std::io::Cursor::new(bytes)).await {
            Ok(_) | Err(Error::Archive { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    });
});
