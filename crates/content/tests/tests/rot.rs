//! Damage at rest: any byte of any file may change, any file may be cut or gone. What comes out is right, an error that
//! says what is wrong, or missing with a report; never wrong, and never missing without a word.

use std::sync::Arc;

use anabranch_content::{Address, Class, Config, Context, Cost, Error, Made, Store};
use anabranch_testkit::{CrashDisk, Rng};
use bytes::Bytes;

const CONTEXT: Context<'static> = Context("anabranch tests 2026 rot");

/// What was put, all of it acknowledged.
struct Held {
    blobs: Vec<Bytes>,
    derivation: Address,
    output: Address,
}

fn config() -> Config {
    Config { packed_most: 300, segment_bytes: 4096, cache_bytes: 0, io_threads: 1, ..Config::default() }
}

/// A store with one of everything.
async fn fill(disk: &CrashDisk) -> (Store, Held) {
    let store = Store::open_on(Arc::new(disk.clone()), config()).unwrap();
    let blobs: Vec<Bytes> = [10, 200, 300, 301, 900].map(|len| Bytes::from(vec![len as u8; len])).into();
    for bytes in &blobs {
        store.put(bytes.clone(), Class::Acknowledged).await.unwrap();
    }
    let input = Address::of(&blobs[0]);
    let derivation = store.put_derivation(CONTEXT, vec![1, 2, 3], &[input]).await.unwrap();
    let output = Address::of(&blobs[1]);
    let made = Made { derivation, output, size: 200, cost: Cost::default(), inputs: &[input] };
    store.remember(made, Class::Acknowledged).await.unwrap();
    store.pin(&derivation).await.unwrap();
    store.name("a name", Some(output)).await.unwrap();
    (store, Held { blobs, derivation, output })
}

/// Opens a damaged disk and asks for everything.
async fn look(disk: &CrashDisk, held: &Held, what: &str) {
    let store = match Store::open_on(Arc::new(disk.clone()), config()) {
        Ok(store) => store,
        Err(Error::Format { .. } | Error::Newer { .. }) => return,
        Err(other) => panic!("{what}: {other:?}"),
    };
    let opened = store.opened().clone();
    // With a word: damage that opening found, or that a look found, or that a scrub finds.
    let mut told = opened.rebuilt.is_some() || !opened.unreadable.is_empty();
    let mut missing = Vec::new();
    for bytes in &held.blobs {
        let address = Address::of(bytes);
        match store.get(&address).await {
            Ok(Some(found)) => assert_eq!(found, bytes, "{what}"),
            Ok(None) => missing.push(address),
            Err(Error::Corrupt { .. } | Error::Index { .. }) => told = true,
            Err(other) => panic!("{what}: {other:?}"),
        }
    }
    match store.recall(&held.derivation).await {
        Ok(Some(memo)) => assert_eq!(memo.output, held.output, "{what}"),
        Ok(None) => missing.push(held.derivation),
        Err(Error::Index { .. }) => told = true,
        Err(other) => panic!("{what}: {other:?}"),
    }
    match store.derivation(&held.derivation).await {
        Ok(Some(found)) => assert_eq!(found.bytes, &[1, 2, 3][..], "{what}"),
        Ok(None) => missing.push(held.derivation),
        Err(Error::Corrupt { .. } | Error::Index { .. }) => told = true,
        Err(other) => panic!("{what}: {other:?}"),
    }
    match store.named("a name").await {
        Ok(Some(named)) => assert_eq!(named, held.output, "{what}"),
        Ok(None) => missing.push(held.output),
        Err(Error::Index { .. }) => told = true,
        Err(other) => panic!("{what}: {other:?}"),
    }
    match store.pins(None, 9).await {
        Ok(pins) if pins == [held.derivation] => {}
        Ok(pins) => missing.extend(pins.is_empty().then_some(held.derivation)),
        Err(Error::Index { .. }) => told = true,
        Err(other) => panic!("{what}: {other:?}"),
    }
    assert!(missing.is_empty() || told, "{what}: missing without a word: {missing:?}");
    // What is damaged can be put again, unless it is the index, which is made anew first.
    if told && store.put(held.blobs[0].clone(), Class::Acknowledged).await.is_ok() {
        assert_eq!(
            store.get(&Address::of(&held.blobs[0])).await.unwrap(),
            Some(held.blobs[0].clone()),
            "{what}"
        );
    }
}

/// A store closed in order, and one whose process died.
async fn disks() -> Vec<(&'static str, CrashDisk, Held)> {
    let closed = CrashDisk::new(1);
    let (store, held) = fill(&closed).await;
    store.close().await.unwrap();
    let died = CrashDisk::new(2);
    let (store, also_held) = fill(&died).await;
    let dead = died.crash(3, anabranch_testkit::Crash::Kill);
    drop(store);
    vec![("closed", closed, held), ("died", dead, also_held)]
}

#[tokio::test]
async fn any_byte_may_change() {
    let mut rng = Rng::new(11);
    for (how, disk, held) in disks().await {
        for (path, len) in disk.files() {
            let mut offset = 0;
            while offset < len {
                let copy = disk.snapshot();
                let mask = *rng.choose(&[1, 0x80, 0xff]);
                copy.flip(&path, offset, mask);
                look(&copy, &held, &format!("{how}: {} at {offset} by {mask}", path.display())).await;
                offset += rng.within(1..4);
            }
        }
    }
}

#[tokio::test]
async fn any_file_may_be_cut_or_gone() {
    for (how, disk, held) in disks().await {
        // The end of a log that was not closed may be anywhere: a cut there is what a crash leaves.
        let last =
            disk.files().into_iter().map(|(path, _)| path).filter(|path| path.starts_with("log")).max();
        for (path, len) in
            disk.files().into_iter().filter(|(path, _)| how == "closed" || last.as_ref() != Some(path))
        {
            for cut in [0, 1, len / 3, len / 2, len.saturating_sub(1)] {
                let copy = disk.snapshot();
                copy.truncate(&path, cut);
                look(&copy, &held, &format!("{how}: {} cut at {cut}", path.display())).await;
            }
            let copy = disk.snapshot();
            copy.remove_file(&path);
            look(&copy, &held, &format!("{how}: {} gone", path.display())).await;
        }
    }
}
