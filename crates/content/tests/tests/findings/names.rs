//! Names: a name that is set to its own value keeps its history, and a caller can say which value it expects.

use anabranch_content::{Address, Class, Config, Error, Store};
use anabranch_testkit::CrashDisk;

#[tokio::test]
async fn a_name_set_to_its_own_value_keeps_its_history() {
    let store = Store::in_memory(Config { history_kept: 3, ..Config::default() }).unwrap();
    let [first, second] = [
        store.put("first", Class::Acknowledged).await.unwrap().address,
        store.put("second", Class::Acknowledged).await.unwrap().address,
    ];
    assert!(store.name("report", Some(first)).await.unwrap());
    assert!(store.name("report", Some(second)).await.unwrap());
    for _ in 0..16 {
        assert!(!store.name("report", Some(second)).await.unwrap());
    }
    let history = store.history("report").await.unwrap();
    assert_eq!(history.iter().map(|it| it.address).collect::<Vec<_>>(), [Some(first), Some(second)]);
    assert!(!store.name("never set", None).await.unwrap());
    assert!(store.history("never set").await.unwrap().is_empty());
}

#[tokio::test]
async fn a_name_changes_only_from_the_expected_value() {
    let store = Store::in_memory(Config::default()).unwrap();
    let [first, second] = [
        store.put("first", Class::Acknowledged).await.unwrap().address,
        store.put("second", Class::Acknowledged).await.unwrap().address,
    ];
    assert!(store.name_if("report", Some(first), None).await.unwrap());
    let conflict = store.name_if("report", Some(second), None).await.unwrap_err();
    assert!(
        matches!(conflict, Error::NameConflict { expected: None, found: Some(found), .. } if found == first)
    );
    assert_eq!(
        conflict.to_string(),
        format!(
            "\"report\" points to {first}, but no address was expected; read the name again before changing it"
        )
    );
    let conflict = store.name_if("report", None, Some(second)).await.unwrap_err();
    assert!(!conflict.is_transient());
    assert!(store.name_if("report", Some(second), Some(first)).await.unwrap());
    assert!(store.name_if("report", None, Some(second)).await.unwrap());
    assert_eq!(store.named("report").await.unwrap(), None);
    assert!(store.name_if("report", Some(first), None).await.unwrap(), "a dropped name is not set");
}

/// Of callers that race for one change, one wins and the others learn of it.
#[tokio::test(flavor = "multi_thread")]
async fn one_of_many_wins_a_race_for_a_name() {
    let store = Store::in_memory(Config::default()).unwrap();
    let mut racers = Vec::new();
    for number in 0..16u8 {
        let store = store.clone();
        racers.push(async move {
            let mine = Address::of(&[number]);
            store.name_if("turn", Some(mine), None).await.is_ok()
        });
    }
    let won = futures_util::future::join_all(racers).await;
    assert_eq!(won.into_iter().filter(|won| *won).count(), 1);
}

/// All names, read in pages of this many.
async fn paged(store: &Store, most: usize) -> Vec<(String, Address)> {
    let mut names: Vec<(String, Address)> = Vec::new();
    loop {
        let after = names.last().map_or("", |(name, _)| name).to_owned();
        let page = store.names_after(&after, most).await.unwrap();
        assert!(page.len() <= most);
        if page.is_empty() {
            return names;
        }
        names.extend(page);
    }
}

#[tokio::test]
async fn pages_of_names_are_in_order_and_up_to_date() {
    check_pages(Config::default()).await;
}

/// In a store with more names than it keeps the order of, each page reads them all.
#[tokio::test]
async fn pages_of_more_names_than_are_kept_are_in_order_and_up_to_date() {
    check_pages(Config { names_kept: 3, ..Config::default() }).await;
    check_pages(Config { names_kept: 20, ..Config::default() }).await;
}

async fn check_pages(config: Config) {
    let store = Store::in_memory(config).unwrap();
    assert!(store.names_after("", 10).await.unwrap().is_empty());
    let addresses: Vec<Address> = (0..3_u8).map(|number| Address::of(&[number])).collect();
    let mut expected = std::collections::BTreeMap::new();
    for step in 0..300_usize {
        let name = format!("name {}", step * 37 % 50);
        match step % 7 {
            0 => _ = store.name(&name, None).await.unwrap(),
            1 => _ = store.forget_name(&name).await.unwrap(),
            _ => _ = store.name(&name, Some(addresses[step % 3])).await.unwrap(),
        }
        match step % 7 {
            0 | 1 => _ = expected.remove(&name),
            _ => _ = expected.insert(name, addresses[step % 3]),
        }
        if step % 13 == 0 {
            let expected: Vec<_> = expected.clone().into_iter().collect();
            assert_eq!(paged(&store, 1 + step % 60).await, expected, "{step}");
            assert_eq!(store.names().await.unwrap(), expected, "{step}");
        }
    }
}

#[tokio::test]
async fn a_change_of_a_name_that_is_given_up_is_in_the_next_page_or_never() {
    let store = Store::in_memory(Config::default()).unwrap();
    let address = Address::of(b"one");
    store.name("kept", Some(address)).await.unwrap();
    assert_eq!(store.names_after("", 10).await.unwrap().len(), 1);
    for number in 0..50 {
        let name = format!("given up {number}");
        let mut change = Box::pin(store.name(&name, Some(address)));
        let waker = std::task::Waker::noop();
        let _ = change.as_mut().poll(&mut std::task::Context::from_waker(waker));
        drop(change);
        let page = store.names_after("", 1000).await.unwrap();
        assert_eq!(page, store.names().await.unwrap());
    }
}

#[tokio::test]
async fn a_page_of_names_reads_no_other_names() {
    use crate::faults::hooked::{Call, HookedDisk};
    use std::sync::atomic::{AtomicUsize, Ordering};

    let disk = CrashDisk::new(1);
    let store = Store::open_on(std::sync::Arc::new(disk.clone()), Config::default()).unwrap();
    let address = Address::of(b"one");
    for number in 0..200 {
        store.name(&format!("name {number:03}"), Some(address)).await.unwrap();
    }
    store.close().await.unwrap();
    let reads = std::sync::Arc::new(AtomicUsize::new(0));
    let counted = std::sync::Arc::clone(&reads);
    let hooked = HookedDisk::new(&disk, move |call, path| {
        let is_read = call == Call::Read && path.starts_with("index");
        counted.fetch_add(usize::from(is_read), Ordering::Relaxed);
        Ok(())
    });
    let store = Store::open_on(std::sync::Arc::new(hooked), Config::default()).unwrap();
    let first = store.names_after("", 10).await.unwrap();
    assert_eq!(first.len(), 10);
    let before = reads.load(Ordering::Relaxed);
    assert!(before > 0, "the names are on the disk");
    for page in 1..20 {
        let names = store.names_after(&format!("name {:03}", page * 10 - 1), 10).await.unwrap();
        assert_eq!(names[0].0, format!("name {:03}", page * 10));
    }
    assert_eq!(reads.load(Ordering::Relaxed), before, "further pages read nothing");
}
