//! A process that dies while it appends: a kill loses nothing that was answered, a power cut nothing that was synced.

use std::sync::Arc;

use anabranch_content::Store;
use anabranch_testkit::{Crash, CrashDisk, Rng};

use super::driver::small;
use crate::derived::{derivation, made, value};
use crate::store::Hand;

fn value_of(number: u64) -> bytes::Bytes {
    value(number / 2)
}

/// Appends until the disk fails. Returns how many appends were answered, and how many of them before the last sync.
async fn work(disk: &CrashDisk) -> (u64, u64) {
    let (mut answered, mut synced) = (0, 0);
    let Ok(store) = Store::open_on(Arc::new(disk.clone()), small(&Hand::default())) else { return (0, 0) };
    for number in 0..30 {
        // Two derivations in a row have one value, and are appended together.
        let both = [2 * number, 2 * number + 1].map(|number| made(derivation(number), &value_of(number)));
        if store.append(value_of(2 * number), &both).await.is_err() {
            break;
        }
        answered = 2 * number + 2;
        if number % 6 == 5 && store.sync().await.is_ok() {
            synced = answered;
        }
    }
    (answered, synced)
}

#[tokio::test]
async fn appended_values_survive_a_kill_and_synced_ones_a_power_cut() {
    let mut rng = Rng::new(18);
    let (mut beyond, mut lost) = (0, 0);
    for call in (1..120).chain([u64::MAX]) {
        let disk = CrashDisk::new(rng.bits());
        disk.fail_from(call);
        let (answered, synced) = work(&disk).await;
        for crash in [Crash::Kill, Crash::Total, Crash::Power, Crash::Chaos] {
            let kept = if crash == Crash::Kill { answered } else { synced };
            let crashed = Arc::new(disk.crash(rng.bits(), crash));
            let store = Store::open_on(crashed, small(&Hand::default())).unwrap();
            for number in 0..60 {
                // A power cut may leave a memo and take its value.
                let got = match store.recall(&derivation(number)).await.unwrap() {
                    Some(memo) => store.get(&memo.output).await.unwrap(),
                    None => None,
                };
                match got {
                    Some(got) => {
                        assert_eq!(got, value_of(number), "call {call}, {crash:?}");
                        beyond += u64::from(number >= kept);
                    }
                    None => {
                        assert!(number >= kept, "call {call}, {crash:?}: {number} of {kept} is lost");
                        lost += 1;
                    }
                }
            }
        }
    }
    assert!(beyond > 0 && lost > 0, "{beyond} survived beyond the promise, {lost} were lost");
}
