//! A derivation that came to something else than before is told.

use std::sync::{Arc, Mutex};

use anabranch_content::{Address, Class, Config, Cost, NewMemo, Store};
use anabranch_testkit::CrashDisk;
use bytes::Bytes;

use crate::faults::open;

fn made(derivation: Address, value: &Bytes) -> NewMemo<'static> {
    let (output, size) = (Address::of(value), value.len() as u64);
    NewMemo { derivation, output, size, cost: Cost::default(), inputs: &[] }
}

/// Events of that kind, as they print.
type EventLines = Arc<Mutex<Vec<String>>>;

fn listening() -> (Config, EventLines) {
    let told = EventLines::default();
    let listener = {
        let told = Arc::clone(&told);
        move |event: &anabranch_content::Event| {
            let event = format!("{event:?}");
            if event.starts_with("Diverged") {
                told.lock().unwrap().push(event);
            }
        }
    };
    (Config { listener: Some(Arc::new(listener)), ..Config::default() }, told)
}

fn check(told: &EventLines, derivation: Address, before: &Bytes, now: &Bytes) {
    let told = std::mem::take(&mut *told.lock().unwrap());
    let (before, now) = (Address::of(before), Address::of(now));
    assert_eq!(
        told,
        [format!("Diverged {{ derivation: {derivation:?}, before: {before:?}, now: {now:?} }}")]
    );
}

async fn remember(store: &Store, derivation: Address, value: &Bytes) {
    store.put(value.clone(), Class::Acknowledged).await.unwrap();
    store.remember(made(derivation, value), Class::Acknowledged).await.unwrap();
}

#[tokio::test]
async fn a_memo_with_another_output_is_told() {
    let (one, two, derivation) = (Bytes::from("one"), Bytes::from("two"), Address::of(b"derivation"));
    let (disk, (config, told)) = (CrashDisk::new(1), listening());
    let store = open(&disk, &config);
    remember(&store, derivation, &one).await;
    remember(&store, derivation, &one).await;
    assert_eq!(*told.lock().unwrap(), [""; 0], "it came to the same");
    remember(&store, derivation, &two).await;
    check(&told, derivation, &one, &two);
    store.close().await.unwrap();
    let store = open(&disk, &config);
    remember(&store, derivation, &one).await;
    check(&told, derivation, &two, &one);
}

/// Forgetting what it came to is how to allow for something else.
#[tokio::test]
async fn another_output_after_an_invalidation_is_not_told() {
    let (one, two, derivation) = (Bytes::from("one"), Bytes::from("two"), Address::of(b"derivation"));
    let (config, told) = listening();
    let store = Store::in_memory(config).unwrap();
    remember(&store, derivation, &one).await;
    store.invalidate(&[derivation]).await.unwrap();
    remember(&store, derivation, &two).await;
    assert_eq!(*told.lock().unwrap(), [""; 0]);
}

#[tokio::test]
async fn a_derived_value_that_is_another_than_before_is_told() {
    let (one, two, derivation) = (Bytes::from("one"), Bytes::from("two"), Address::of(b"derivation"));
    let (config, told) = listening();
    let store = Store::in_memory(config).unwrap();
    store.derived(made(derivation, &one), None, one.clone()).await.unwrap();
    store.derived(made(derivation, &two), None, two.clone()).await.unwrap();
    // An answer says that what was derived before is written.
    store.invalidate(&[]).await.unwrap();
    check(&told, derivation, &one, &two);
}
