//! Random work on a few derivations, beside a map that does the same.

use std::collections::HashMap;
use std::sync::Arc;

use anabranch_content::{Address, Class, Config, Disk, Memory, Store};
use anabranch_testkit::Rng;

use super::{derivation, made, value};

async fn live(seed: u64) {
    let mut rng = Rng::new(seed);
    let disk: Arc<dyn Disk> = Arc::new(Memory::new());
    let config = Config {
        cache_bytes: *rng.choose(&[0, 1 << 20]),
        recent_bytes: *rng.choose(&[300, 4096, 1 << 20]),
        ..Config::default()
    };
    let mut store = Store::open_on(Arc::clone(&disk), config.clone()).unwrap();
    let mut known: HashMap<u64, Address> = HashMap::new();
    for _ in 0..400 {
        let number = rng.within(0..8);
        let value = value(rng.within(0..5));
        let made = made(derivation(number), &value);
        match rng.within(0..100) {
            0..30 => {
                store.derived(made, None, value).await.unwrap();
                known.insert(number, made.output);
            }
            30..40 => {
                store.put(value, Class::Derivable).await.unwrap();
                store.remember(made, Class::Derivable).await.unwrap();
                known.insert(number, made.output);
            }
            40..55 => {
                let count = store.invalidate(&[derivation(number)]).await.unwrap();
                assert_eq!(count, usize::from(known.remove(&number).is_some()), "seed {seed}");
            }
            55..57 => {
                store.close().await.unwrap();
                store = Store::open_on(Arc::clone(&disk), config.clone()).unwrap();
            }
            _ => {
                let memo = store.recall(&derivation(number)).await.unwrap();
                assert_eq!(memo.as_ref().map(|memo| &memo.output), known.get(&number), "seed {seed}");
                if let Some(memo) = memo {
                    let got = store.get(&memo.output).await.unwrap().unwrap();
                    assert_eq!(Address::of(&got), memo.output);
                }
            }
        }
    }
}

#[tokio::test]
async fn what_is_recalled_is_what_was_said_last() {
    for seed in 0..30 {
        live(seed).await;
    }
}
