//! A process that dies while it writes derived values behind.

use std::sync::Arc;

use anabranch_content::{Class, Store};
use anabranch_testkit::{Crash, CrashDisk, Rng};

use super::driver::small;
use crate::derived::{derivation, derive, made, settle, value};
use crate::store::Hand;

/// Derives and puts until the disk fails; says how many puts were answered.
async fn work(disk: &CrashDisk) -> u64 {
    let mut acknowledged = 0;
    let Ok(store) = Store::open_on(Arc::new(disk.clone()), small(&Hand::default())) else { return 0 };
    for number in 0..60 {
        // Whether it is written is not known; two derivations come to one value.
        let _ = derive(&store, number).await;
        let _ = store.derived(made(derivation(1000 + number), &value(number)), None, value(number)).await;
        if number % 7 == 0 {
            let _ = settle(&store).await;
        }
        if number % 20 == 0 {
            match store.put(value(5000 + number), Class::Acknowledged).await {
                Ok(_) => acknowledged = number + 1,
                Err(_) => break,
            }
        }
    }
    acknowledged
}

#[tokio::test]
async fn no_memo_without_its_value_after_a_kill() {
    let mut rng = Rng::new(3);
    let (mut found, mut lost) = (0, 0);
    // The last one never dies.
    for call in (1..160).chain([u64::MAX]) {
        let disk = CrashDisk::new(rng.bits());
        disk.fail_from(call);
        let acknowledged = work(&disk).await;
        let crashed = Arc::new(disk.crash(rng.bits(), Crash::Kill));
        let store = Store::open_on(crashed, small(&Hand::default())).unwrap();
        for number in (0..60).chain(1000..1060) {
            let Some(memo) = store.recall(&derivation(number)).await.unwrap() else {
                lost += 1;
                continue;
            };
            let got = store.get(&memo.output).await.unwrap();
            assert_eq!(got, Some(value(number % 1000)), "call {call}: a memo without its value");
            found += 1;
        }
        for number in (0..acknowledged).step_by(20) {
            let address = anabranch_content::Address::of(&value(5000 + number));
            assert!(store.get(&address).await.unwrap().is_some(), "call {call}: {number} was acknowledged");
        }
    }
    assert!(found > 0 && lost > 0, "{found} found, {lost} lost");
}
