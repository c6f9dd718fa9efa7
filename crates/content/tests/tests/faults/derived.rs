//! A disk that does not take what was to be written behind.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use anabranch_content::{Address, Config, Error, Event, Store};
use anabranch_testkit::CrashDisk;

use super::hooked::{Call, HookedDisk};
use crate::derived::{derivation, derive, settle, value};

/// A store whose log refuses calls of one kind while the flag is up, and the failures it told.
fn open(refused: Call) -> (Store, Arc<AtomicBool>, Arc<Mutex<Vec<&'static str>>>) {
    let flag = Arc::new(AtomicBool::new(false));
    let up = Arc::clone(&flag);
    let disk = HookedDisk::new(&CrashDisk::new(1), move |call, path| {
        match call == refused && path.starts_with("log") && up.load(Ordering::Relaxed) {
            true => Err(io::ErrorKind::StorageFull.into()),
            false => Ok(()),
        }
    });
    let told: Arc<Mutex<Vec<&'static str>>> = Arc::default();
    let tell = Arc::clone(&told);
    let listener = move |event: &Event| {
        if let Event::Failed { doing, .. } = event {
            tell.lock().unwrap().push(doing);
        }
    };
    let config = Config { listener: Some(Arc::new(listener)), ..Config::default() };
    (Store::open_on(Arc::new(disk), config).unwrap(), flag, told)
}

#[tokio::test]
async fn what_could_not_be_written_is_not_known_any_more() {
    let (store, flag, told) = open(Call::Write);
    derive(&store, 1).await.unwrap();
    settle(&store).await.unwrap();
    flag.store(true, Ordering::Relaxed);
    derive(&store, 2).await.unwrap();
    // Nothing is removed, but the answer comes behind what was derived.
    let _ = settle(&store).await;
    assert_eq!(store.recall(&derivation(2)).await.unwrap(), None);
    assert_eq!(store.get(&Address::of(&value(2))).await.unwrap(), None);
    assert_eq!(*told.lock().unwrap(), ["write derived values"]);
    assert!(store.recall(&derivation(1)).await.unwrap().is_some());
    assert!(store.get(&Address::of(&value(1))).await.unwrap().is_some());
    // Once there is room again it is taken again.
    flag.store(false, Ordering::Relaxed);
    derive(&store, 2).await.unwrap();
    settle(&store).await.unwrap();
    assert!(store.recall(&derivation(2)).await.unwrap().is_some());
    assert_eq!(store.get(&Address::of(&value(2))).await.unwrap(), Some(value(2)));
}

#[tokio::test]
async fn a_broken_log_takes_nothing_more() {
    let (store, flag, _) = open(Call::Sync);
    flag.store(true, Ordering::Relaxed);
    derive(&store, 1).await.unwrap();
    assert!(settle(&store).await.is_err());
    let refused = derive(&store, 2).await;
    assert!(matches!(refused, Err(Error::Broken(_))), "{refused:?}");
    assert_eq!(store.recall_now(&derivation(2)), None);
}
