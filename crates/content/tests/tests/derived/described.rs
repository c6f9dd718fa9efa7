//! Many descriptions in one trip.

use anabranch_content::{Address, Class, Config, Context, Error, Store};
use anabranch_testkit::{Crash, CrashDisk};
use bytes::Bytes;
use std::sync::Arc;

use crate::crash::driver::small;
use crate::kit::{description, put_derivation, put_derivations};
use crate::store::Hand;

const CONTEXT: Context<'static> = Context("anabranch tests 2026 described");

/// A chain: each reads the one before.
fn chain(count: u64) -> Vec<(Bytes, [Address; 1])> {
    let mut before = Address::of(b"the first");
    let mut chain = Vec::new();
    for number in 0..count {
        let bytes = description(format!("step {number}"), &[before]);
        let address = Address::derive(CONTEXT, &bytes);
        chain.push((bytes, [before]));
        before = address;
    }
    chain
}

fn described(chain: &[(Bytes, [Address; 1])]) -> Vec<Bytes> {
    chain.iter().map(|(bytes, _)| bytes.clone()).collect()
}

#[tokio::test]
async fn descriptions_are_durable_before_the_answer() {
    // More than one part.
    let chain = chain(5000);
    let disk = CrashDisk::new(1);
    let store = Store::open_on(Arc::new(disk.clone()), Config::default()).unwrap();
    let puts = put_derivations(&store, CONTEXT, &described(&chain)).await.unwrap();
    let crashed = disk.crash(1, Crash::Total);
    assert_eq!(puts.len(), chain.len());
    let store = Store::open_on(Arc::new(crashed), Config::default()).unwrap();
    for (put, (bytes, inputs)) in puts.iter().zip(&chain) {
        assert_eq!(put.address, Address::derive(CONTEXT, bytes));
        assert_eq!((put.len, put.new), (bytes.len() as u64, true));
        let found = store.derivation(&put.address).await.unwrap().unwrap();
        assert_eq!((found.context.as_str(), &found.bytes), (CONTEXT.0, bytes));
        assert_eq!(found.inputs, inputs);
        assert_eq!(store.dependents(&inputs[0], None, 2).await.unwrap(), [put.address]);
    }
}

#[tokio::test]
async fn what_is_described_already_is_not_new() {
    let store = Store::in_memory(Config::default()).unwrap();
    let chain = chain(10);
    let one = put_derivation(&store, CONTEXT, chain[3].0.clone()).await.unwrap();
    let twice = [described(&chain), described(&chain[..2])].concat();
    let puts = put_derivations(&store, CONTEXT, &twice).await.unwrap();
    let old: Vec<usize> = (0..puts.len()).filter(|number| !puts[*number].new).collect();
    assert_eq!(old, [3, 10, 11]);
    assert_eq!((puts[3].address, puts[10]), (one, anabranch_content::Put { new: false, ..puts[0] }));
    assert_eq!(store.stats().derivations, 10);
    assert!(put_derivations(&store, CONTEXT, &[]).await.unwrap().is_empty());
    let large = [description(vec![0; 20 << 20], &[])];
    let refused = put_derivations(&store, CONTEXT, &large).await;
    assert!(matches!(refused, Err(Error::TooLarge { .. })), "{refused:?}");
}

#[tokio::test]
async fn a_process_that_dies_leaves_whole_descriptions_or_none() {
    let chain = chain(40);
    let mut all_or_some = [0, 0];
    // The last one never dies.
    for call in (1..60).chain([u64::MAX]) {
        let disk = CrashDisk::new(call);
        disk.fail_from(call);
        let mut kept = 0;
        if let Ok(store) = Store::open_on(Arc::new(disk.clone()), small(&Hand::default())) {
            for part in chain.chunks(10) {
                kept += put_derivations(&store, CONTEXT, &described(part)).await.map_or(0, |puts| puts.len());
            }
        }
        let crashed = Arc::new(disk.crash(call, Crash::Kill));
        let store = Store::open_on(crashed, small(&Hand::default())).unwrap();
        let mut found = 0;
        for (number, (bytes, inputs)) in chain.iter().enumerate() {
            let derivation = store.derivation(&Address::derive(CONTEXT, bytes)).await.unwrap();
            assert!(derivation.is_some() || number >= kept, "call {call}: {number} was answered");
            found += usize::from(derivation.is_some());
            assert!(derivation.is_none_or(|found| found.bytes == *bytes && found.inputs == inputs));
        }
        all_or_some[usize::from(found < chain.len())] += 1;
        store.put("it works", Class::Acknowledged).await.unwrap();
    }
    assert!(all_or_some.iter().all(|count| *count > 0), "{all_or_some:?}");
}
