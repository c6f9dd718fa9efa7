//! Whatever takes room asks for it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use anabranch_content::{Address, Class, Config, Cost, Error, Event, NewMemo, Store};
use bytes::Bytes;
use futures_util::FutureExt as _;

use super::CONTEXT;
use crate::crash::world::random;
use crate::derived::made;
use crate::kit::{description, put_derivation};
use crate::store::Hand;

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
async fn pins_ask_for_room() {
    let store = store();
    let mut refused = None;
    for number in 0..MANY {
        refused = store.pin(&Address::of(&number.to_le_bytes())).await.err();
        if refused.is_some() {
            break;
        }
    }
    check(&store, refused.as_ref());
}

#[tokio::test]
async fn appended_values_ask_for_room() {
    let store = store();
    let mut refused = None;
    for number in 0..MANY {
        let value = Bytes::from(number.to_string());
        let derivation = Address::of(format!("derivation {number}").as_bytes());
        refused = store.append(value.clone(), &[made(derivation, &value)]).await.err();
        if refused.is_some() {
            break;
        }
    }
    check(&store, refused.as_ref());
}

#[tokio::test]
async fn an_import_asks_for_room_for_the_list_of_its_names() {
    let full = Store::in_memory(Config::default()).unwrap();
    let address = full.put("named", Class::Acknowledged).await.unwrap().address;
    for number in 0..MANY {
        full.name(&format!("name {number}"), Some(address)).await.unwrap();
    }
    let archive = crate::archive::exported(&full, &[address]).await;
    let store = store();
    let refused =
        store.import(std::io::Cursor::new(archive), anabranch_content::Import::default()).await.err();
    check(&store, refused.as_ref());
    assert_eq!(store.names().await.unwrap(), [], "a name is listed before it is set");
}

/// Values that double, as those of `concat` of the same input twice, end at the quota.
#[tokio::test]
async fn derived_values_that_double_end_at_the_quota() {
    for quota_grace in [Duration::ZERO, Duration::from_secs(300)] {
        for packed_most in [100, 64 << 10] {
            let config = Config { quota_bytes: Some(QUOTA), quota_grace, packed_most, ..Config::default() };
            let store = Store::in_memory(config).unwrap();
            let mut refused = None;
            for number in 0..20 {
                let value = random(number, 64 << number);
                let derivation = Address::of(format!("derivation {number}").as_bytes());
                refused = store.derived(made(derivation, &value), None, value).await.err();
                if refused.is_some() {
                    break;
                }
            }
            store.written().await.unwrap();
            check(&store, refused.as_ref());
        }
    }
}

/// Nothing is evicted for bytes that could not fit an empty store.
#[tokio::test]
async fn bytes_that_can_never_fit_evict_nothing() {
    let config = Config { quota_bytes: Some(QUOTA), quota_grace: Duration::ZERO, ..Config::default() };
    let store = Store::in_memory(config).unwrap();
    for number in 0..50 {
        store.put(random(number, 1000), Class::Derivable).await.unwrap();
    }
    for class in [Class::Acknowledged, Class::Derivable] {
        let refused = store.put(random(100, QUOTA as usize + 1), class).await.err();
        check(&store, refused.as_ref());
    }
    let mut writer = store.writer(Class::Acknowledged);
    let refused = writer.write(random(100, QUOTA as usize + 1)).await.err();
    check(&store, refused.as_ref());
    assert_eq!(store.stats().blobs, 50);
}

/// A name that waits for room does not hold up the changes of other names.
#[tokio::test]
async fn a_name_that_waits_for_room_keeps_no_other_waiting() {
    let (hand, is_armed) = (Hand::default(), Arc::new(AtomicBool::new(false)));
    let (blocked, is_blocked) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let (armed, may_go_on) = (Arc::clone(&is_armed), Mutex::new(may_go_on));
    let is_late = Arc::new(AtomicBool::new(false));
    let late = Arc::clone(&is_late);
    let listener = move |event: &Event| {
        if matches!(event, Event::OverQuota { .. }) && armed.swap(false, Ordering::Relaxed) {
            blocked.send(()).unwrap();
            let released = may_go_on.lock().unwrap().recv_timeout(Duration::from_secs(60));
            late.store(released.is_err(), Ordering::Relaxed);
        }
    };
    let config = Config { quota_bytes: Some(QUOTA), listener: Some(Arc::new(listener)), ..hand.config() };
    let store = Store::in_memory(config).unwrap();
    let address = Address::of(b"named");
    for number in 1000..1000 + MANY {
        if store.name(&format!("name {number}"), Some(address)).await.is_err() {
            break;
        }
    }
    // The last round that made no room is long ago: the next name waits for another.
    hand.forward(Duration::from_secs(10));
    is_armed.store(true, Ordering::Relaxed);
    let mut waits = store.name("waiting", Some(address)).boxed();
    assert!((&mut waits).now_or_never().is_none());
    is_blocked.recv().unwrap();
    assert!(store.forget_name("name 1000").await.unwrap());
    assert!(!is_late.load(Ordering::Relaxed), "it waited for the room of another name");
    go_on.send(()).unwrap();
    let _ = waits.await;
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
    let (full, all_wrote) = (Arc::new(full), Arc::new(all_wrote));
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
