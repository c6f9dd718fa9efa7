//! What the seed document asks of materialising, case by case.

use std::sync::Arc;

use anabranch_content::{Address, Admission, Cache, CacheSettings, Store, VerifiedBytes};
use anabranch_engine::Engine;
use anabranch_recipe::{Config, Error, Executor, Functions, Get, Source};
use anabranch_testkit::CrashDisk;
use futures_util::future::join_all;

use crate::world::{World, get, leaf, recipe, source};

#[tokio::test]
async fn a_leaf_is_its_bytes() {
    let executor = World::default().executor();
    let hello = leaf(&executor, "hello").await;
    assert_eq!(get(&executor, hello).await.unwrap(), "hello");
    assert_eq!(source(&executor, hello).await, Source::Blob);
}

#[tokio::test]
async fn what_is_remembered_is_not_computed() {
    let world = World::default();
    let executor = world.executor();
    let counted = recipe(&executor, "counted/1", &[]).await;
    assert_eq!(source(&executor, counted).await, Source::Computed(1));
    assert_eq!(source(&executor, counted).await, Source::Memo);
    assert_eq!(world.calls(), 1);
}

/// D9: a large identity is the blob that it reads, and no second copy is written.
#[tokio::test]
async fn a_large_identity_is_not_copied() {
    let disk = CrashDisk::new(9);
    let store = Store::open_on(Arc::new(disk.clone()), anabranch_content::Config::default()).unwrap();
    let engine = Engine::new(&anabranch_engine::Config::default()).unwrap();
    let executor = Executor::new(store, Functions::builtin(), engine, Config::default());
    let data = leaf(&executor, vec![7; 3 << 20]).await;
    let once = recipe(&executor, "identity", &[data]).await;
    let twice = recipe(&executor, "streaming_identity/1.0", &[once]).await;
    let written = || disk.call_log().iter().filter(|call| call.contains("incoming/")).count();
    let before = written();
    for same in [once, twice] {
        let got = executor.get(&same, &Get::default()).await.unwrap();
        assert_eq!((got.output, got.size, got.source), (data, 3 << 20, Source::Computed(1)));
    }
    assert_eq!(written(), before);
    assert_eq!(get(&executor, twice).await.unwrap(), vec![7; 3 << 20]);
    assert_eq!(source(&executor, once).await, Source::Memo);
}

#[tokio::test]
async fn identity_is_its_input() {
    let executor = World::default().executor();
    let data = leaf(&executor, "data").await;
    let same = recipe(&executor, "identity", &[data]).await;
    assert_eq!(get(&executor, same).await.unwrap(), "data");
}

#[tokio::test]
async fn inputs_come_in_their_order() {
    let executor = World::default().executor();
    let (hello, world) = (leaf(&executor, "hello").await, leaf(&executor, " world").await);
    let both = recipe(&executor, "concat", &[hello, world, hello]).await;
    assert_eq!(get(&executor, both).await.unwrap(), "hello worldhello");
}

#[tokio::test]
async fn a_chain_of_three() {
    let executor = World::default().executor();
    let mut tip = leaf(&executor, "through").await;
    for _ in 0..3 {
        tip = recipe(&executor, "identity", &[tip]).await;
    }
    assert_eq!(get(&executor, tip).await.unwrap(), "through");
}

#[tokio::test]
async fn a_diamond_comes_together() {
    let executor = World::default().executor();
    let (a, b) = (leaf(&executor, "a").await, leaf(&executor, "b").await);
    let both = recipe(&executor, "concat", &[a, b]).await;
    let one = recipe(&executor, "identity", &[a]).await;
    let joined = recipe(&executor, "concat", &[both, one]).await;
    assert_eq!(get(&executor, joined).await.unwrap(), "aba");
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let executor = World::default().executor();
    let nowhere = Address::of(b"nowhere");
    let error = get(&executor, nowhere).await.unwrap_err();
    assert!(matches!(error, Error::NotFound { address, .. } if address == nowhere), "{error}");
}

#[tokio::test]
async fn a_function_that_is_not_there_is_named() {
    let executor = World::default().executor();
    let odd = recipe(&executor, "identitty", &[]).await;
    let error = get(&executor, odd).await.unwrap_err();
    let said = "function `identitty/1.0.0` is not known here; did you mean `identity/1.0.0`?";
    assert_eq!(error.to_string(), said);
}

#[tokio::test]
async fn a_result_is_in_the_memo() {
    let executor = World::default().executor();
    let data = leaf(&executor, "data").await;
    let same = recipe(&executor, "identity", &[data]).await;
    assert!(executor.store().recall(&same).await.unwrap().is_none());
    get(&executor, same).await.unwrap();
    assert_eq!(executor.store().recall(&same).await.unwrap().unwrap().output, data);
}

#[tokio::test]
async fn ten_who_ask_for_the_same_share_it() {
    let world = World::default();
    let executor = world.executor();
    let gated = recipe(&executor, "gated/1", &[]).await;
    let slow = recipe(&executor, "identity", &[gated]).await;
    let asked = join_all((0..10).map(|_| get(&executor, slow)));
    let opened = async {
        tokio::task::yield_now().await;
        world.open();
    };
    let (answers, ()) = futures_util::future::join(asked, opened).await;
    assert!(answers.into_iter().all(|answer| answer.unwrap().is_empty()));
    assert_eq!(world.calls(), 1);
}

#[tokio::test]
async fn ten_who_ask_for_different_things_all_get_them() {
    let executor = World::default().executor();
    let mut wanted = Vec::new();
    for number in 0..10 {
        let text = format!("number {number}");
        let own = leaf(&executor, text.clone()).await;
        wanted.push((recipe(&executor, "identity", &[own]).await, text));
    }
    let answers = join_all(wanted.iter().map(|(address, _)| get(&executor, *address))).await;
    for (answer, (_, text)) in answers.into_iter().zip(&wanted) {
        assert_eq!(answer.unwrap(), *text);
    }
}

#[tokio::test]
async fn a_chain_of_fifty() {
    let executor = World::default().executor();
    let mut tip = leaf(&executor, "deep").await;
    for _ in 0..50 {
        tip = recipe(&executor, "concat", &[tip]).await;
    }
    // Each has an equal input, so that one call serves them all.
    assert_eq!(source(&executor, tip).await, Source::Computed(1));
    assert_eq!(get(&executor, tip).await.unwrap(), "deep");
}

#[test]
fn a_hundred_threads_use_one_cache() {
    let cache = Cache::new(CacheSettings { bytes: 1 << 20 });
    let text = |number: usize| format!("value {}", number % 10);
    std::thread::scope(|scope| {
        for number in 0..50 {
            let cache = &cache;
            scope.spawn(move || {
                let address = Address::of(text(number).as_bytes());
                let value = VerifiedBytes::check(address, text(number).into()).unwrap();
                assert!(!matches!(cache.admit(value, 1_000_000), Admission::Refused(_)));
            });
            scope.spawn(move || {
                let got = cache.get(&Address::of(text(number).as_bytes()));
                assert!(got.is_none_or(|got| got == text(number)));
            });
        }
    });
    for number in 0..10 {
        assert_eq!(cache.get(&Address::of(text(number).as_bytes())).unwrap(), text(number));
    }
}

/// Three of five values twice, two unknown ones once: six hits of eight looks.
#[test]
fn hits_are_counted_as_they_are() {
    let cache = Cache::new(CacheSettings { bytes: 1 << 20 });
    let addresses: Vec<Address> = (0..5u8)
        .map(|number| {
            let address = Address::of(&[number]);
            cache.admit(VerifiedBytes::check(address, vec![number].into()).unwrap(), 1_000_000);
            address
        })
        .collect();
    for address in addresses[..3].iter().chain(&addresses[..3]) {
        assert!(cache.get(address).is_some());
    }
    assert!(cache.get(&Address::of(b"unknown")).is_none());
    assert!(cache.get(&Address::of(b"as well")).is_none());
    let stats = cache.stats();
    assert_eq!((stats.hits, stats.hits + stats.misses), (6, 8));
}
