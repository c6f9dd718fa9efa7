//! Whatever takes room asks for it.

use anabranch_content::{Address, Class, Config, Cost, Error, NewMemo, Store};

use super::CONTEXT;
use crate::crash::world::random;
use crate::kit::{description, put_derivation};

const QUOTA: u64 = 100_000;

/// More than fit, of anything that takes a hundred bytes.
const MANY: u64 = 2000;

fn store() -> Store {
    Store::in_memory(Config { quota_bytes: Some(QUOTA), ..Config::default() }).unwrap()
}

/// Something was refused for want of room, and what was not is within the quota.
fn check(store: &Store, refused: Option<&Error>) {
    let used = store.stats().used_bytes;
    assert!(matches!(refused, Some(Error::Quota { .. })), "{refused:?}, {used} bytes of {QUOTA} in use");
    assert!(used <= QUOTA, "{used} bytes of {QUOTA} in use");
}

#[tokio::test]
async fn derivations_ask_for_room() {
    let store = store();
    let mut refused = None;
    for number in 0..50 {
        let described = description(random(number, 10_000), &[]);
        refused = put_derivation(&store, CONTEXT, described).await.err().or(refused);
    }
    check(&store, refused.as_ref());
}

#[tokio::test]
async fn many_derivations_at_once_ask_for_room() {
    let store = store();
    let described: Vec<_> = (0..50).map(|number| description(random(number, 10_000), &[])).collect();
    let refused = crate::kit::put_derivations(&store, CONTEXT, &described).await.err();
    check(&store, refused.as_ref());
}

#[tokio::test]
async fn memos_ask_for_room() {
    let store = store();
    let output = store.put("output", Class::Acknowledged).await.unwrap().address;
    let mut refused = None;
    for number in 0..MANY {
        let derivation = Address::of(&number.to_le_bytes());
        let made = NewMemo { derivation, output, size: 6, cost: Cost::default(), inputs: &[] };
        refused = store.remember(made, Class::Acknowledged).await.err();
        if refused.is_some() {
            break;
        }
    }
    check(&store, refused.as_ref());
}

#[tokio::test]
async fn names_ask_for_room() {
    let store = store();
    let address = store.put("named", Class::Acknowledged).await.unwrap().address;
    let mut refused = None;
    for number in 0..MANY {
        refused = store.name(&format!("name {number}"), Some(address)).await.err();
        if refused.is_some() {
            break;
        }
    }
    check(&store, refused.as_ref());
}

#[tokio::test]
async fn an_import_asks_for_room() {
    for len in [1000, 200_000] {
        let full = Store::in_memory(Config::default()).unwrap();
        let mut addresses = Vec::new();
        for number in 0..300_000 / len as u64 {
            let put = full.put(random(number, len), Class::Acknowledged).await.unwrap();
            addresses.push(put.address);
        }
        let described = description(random(1, 90_000), &[]);
        addresses.push(put_derivation(&full, CONTEXT, described).await.unwrap());
        let archive = crate::archive::exported(&full, &addresses).await;
        let store = store();
        let refused =
            store.import(std::io::Cursor::new(archive), anabranch_content::Import::default()).await.err();
        check(&store, refused.as_ref());
    }
}
