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

/// A store in which even a small blob is a file.
fn store_of_files() -> Store {
    let config = Config { quota_bytes: Some(QUOTA), packed_most: 100, ..Config::default() };
    Store::in_memory(config).unwrap()
}

#[tokio::test]
async fn unfinished_writes_share_the_quota() {
    let store = store_of_files();
    let mut unfinished = Vec::new();
    let mut refused = None;
    for number in 0..20 {
        let mut writer = store.writer(Class::Acknowledged);
        match writer.write(random(number, 10_000)).await {
            Ok(()) => unfinished.push(writer),
            Err(error) => refused = Some(error),
        }
    }
    assert_eq!(unfinished.len(), 10, "the writes that fit");
    assert!(matches!(refused, Some(Error::Quota { used: QUOTA, quota: QUOTA })), "{refused:?}");

    // A write that is given up gives its room back; one that is finished is counted once.
    drop(unfinished.split_off(5));
    for writer in unfinished {
        writer.finish().await.unwrap();
    }
    let rest = QUOTA - store.stats().used_bytes;
    assert!(rest > 45_000, "{rest} bytes left");
    let mut writer = store.writer(Class::Derivable);
    writer.write(random(100, rest as usize - 1000)).await.unwrap();
    writer.finish().await.unwrap();
    let refused = store.put(random(101, 2000), Class::Acknowledged).await.err();
    check(&store, refused.as_ref());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_writers_stay_within_the_quota_and_leak_none_of_it() {
    let store = store_of_files();
    let (full, all_wrote) = (tokio::sync::Barrier::new(33), tokio::sync::Barrier::new(33));
    let (full, all_wrote) = (std::sync::Arc::new(full), std::sync::Arc::new(all_wrote));
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..32_u64 {
        let (store, full, all_wrote) = (store.clone(), full.clone(), all_wrote.clone());
        tasks.spawn(async move {
            let (mut writer, mut len) = (store.writer(Class::Acknowledged), 0);
            for piece in 0..10 {
                match writer.write(random(number * 10 + piece, 1000)).await {
                    Ok(()) => len += 1000,
                    Err(Error::Quota { .. }) => break,
                    Err(error) => panic!("{error}"),
                }
            }
            full.wait().await;
            // The half that is dropped here has room for the records of the other half.
            let kept = (number % 2 == 0).then_some(writer);
            all_wrote.wait().await;
            if let Some(writer) = kept {
                writer.finish().await.unwrap();
            }
            len
        });
    }
    full.wait().await;
    all_wrote.wait().await;
    let mut taken = 0;
    while let Some(task) = tasks.join_next().await {
        taken += task.unwrap();
    }
    assert!(taken <= QUOTA, "{taken} bytes of {QUOTA} were taken at once");
    let used = store.stats().used_bytes;
    store.put(random(1000, (QUOTA - used - 1000) as usize), Class::Acknowledged).await.unwrap();
}
