//! An archive from a stranger who knows how to make a checksum: refused, or taken in and what its addresses say.

#![no_main]

#[path = "../../crates/content/tests/tests/archive/records.rs"]
mod records;

use anabranch_content::{Address, Config, Error, Import, Store};
use anabranch_recipe::decoders::deriva_address;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut archive = [records::FRONT, bytes].concat();
    records::seal(&mut archive);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        for trust_memos in [false, true] {
            let store = Store::in_memory(Config { cache_bytes: 0, ..Config::default() }).expect("a store");
            let terms = Import { trust_memos, alias_of: Some(deriva_address), ..Import::default() };
            match store.import(std::io::Cursor::new(archive.clone()), terms).await {
                Ok(_) => {
                    records::check(&store, &archive, trust_memos).await;
                    check_aliases(&store, &archive).await;
                }
                Err(Error::Archive { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        }
    });
});

/// Each alias that was taken in is the one of its derivation.
async fn check_aliases(store: &Store, archive: &[u8]) {
    let derivations = records::records(archive).into_iter().filter(|record| record.kind == records::DERIVATION);
    for record in derivations {
        let Some(address) = archive[record.body].first_chunk().map(|bytes| Address::from_bytes(*bytes)) else {
            continue;
        };
        let found = store.derivation(&address).await.expect("a derivation").expect("one that was taken in");
        if let Some(alias) = found.alias {
            assert_eq!(deriva_address(&found), Some(alias), "the alias of {address}");
            assert_eq!(store.alias(&alias).await.expect("an alias"), Some(address));
        }
    }
}
