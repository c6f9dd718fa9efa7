//! Captures of random requests answer the same again, to the byte, from nothing but their store.

use std::time::Duration;

use anabranch_content::{Config as StoreConfig, Store};
use anabranch_plan::RunOptions;
use anabranch_plan::captures::Replayer;
use anabranch_testkit::{Rng, Sim};

use crate::naive::{Asked, compile, make, world::World};

/// `ANABRANCH_CAPTURE_SEEDS` asks for more.
fn seeds() -> u64 {
    std::env::var("ANABRANCH_CAPTURE_SEEDS").map_or(1_000, |count| count.parse().unwrap())
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn captured_requests_answer_the_same_again() {
    let (runtime, replayer) = (runtime(), Replayer::default());
    let store = Store::in_memory(StoreConfig::default()).unwrap();
    let (mut answered, mut failed) = (0, 0);
    for seed in 0..seeds() {
        let (sim, mut rng) = (Sim::new(seed), Rng::new(seed));
        let (world, plan, mut asked) = (World::new(&mut rng), make::plan(&mut rng), Asked::new(&mut rng));
        asked.named = rng.percent(50);
        let plan = compile(&world, &plan, &sim, &mut rng);
        let deadline = rng.percent(10).then(|| sim.clock().now() + rng.micros(0..9_000));
        let threshold = rng.percent(30).then_some(Duration::ZERO);
        let options = RunOptions { deadline, inline_threshold: threshold, ..RunOptions::default() };
        let request = asked.request(plan.engine());
        let (answer, taken) = sim.block_on(plan.run_recorded(request, &options, 1 << 20));
        let replayed = runtime.block_on(async {
            let address = taken.unwrap().write(&store, None).await.unwrap();
            replayer.replay_from(&store, address).await.unwrap()
        });
        let expected = match &answer {
            Ok(answer) => {
                let mut bytes = Vec::new();
                answer.write_json(&plan.engine().registries().keys, &mut bytes);
                bytes
            }
            Err(error) => error.to_string().into_bytes(),
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(text(&replayed.bytes), text(&expected), "seed {seed}");
        assert!(replayed.same, "seed {seed}");
        let stats = |stats: anabranch_plan::Stats| (stats.trips, stats.commands);
        if let (Ok(answer), Ok(again)) = (&answer, &replayed.answer) {
            assert_eq!(stats(answer.stats), stats(again.stats), "seed {seed}");
        }
        *(if answer.is_ok() { &mut answered } else { &mut failed }) += 1;
    }
    assert!(answered > seeds() / 2 && failed > seeds() / 40, "{answered} answered, {failed} failed");
}
