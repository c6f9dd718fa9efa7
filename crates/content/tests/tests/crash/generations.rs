//! Random work on a store that crashes again and again.

use anabranch_content::Class;
use anabranch_testkit::{Crash, CrashDisk, Rng};

use super::driver::{Driver, Op};
use super::times;
use super::world::{DERIVATIONS, LENS, NAMES, Thing};

/// How a process ends.
#[derive(Clone, Copy, Debug)]
enum End {
    Closed,
    Crashed(Crash),
}

const ENDS: [End; 6] = [
    End::Closed,
    End::Crashed(Crash::Kill),
    End::Crashed(Crash::Total),
    End::Crashed(Crash::Power),
    End::Crashed(Crash::Chaos),
    End::Crashed(Crash::Chaos),
];

pub(crate) fn any_op(rng: &mut Rng) -> Op {
    let blob = rng.within(0..LENS.len() as u64) as usize;
    let derivation = rng.within(0..DERIVATIONS as u64) as usize;
    let class = *rng.choose(&[Class::Acknowledged, Class::Derivable]);
    let thing = *rng.choose(&[Thing::Blob(blob), Thing::Derivation(derivation)]);
    let variant = rng.within(0..2) as usize;
    match rng.within(0..100) {
        0..25 => Op::Put(blob, class),
        25..30 => Op::Stream(blob, class),
        30..38 => Op::Get(blob),
        38..46 => Op::Describe(derivation),
        46..52 => Op::Remember(derivation, variant, class),
        52..58 => Op::Derive(derivation, variant),
        58..61 => Op::Invalidate(derivation),
        61..67 => Op::Pin(thing),
        67..73 => Op::Unpin(thing),
        73..80 => Op::Name(rng.within(0..NAMES.len() as u64) as usize, rng.percent(80).then_some(thing)),
        80..84 => Op::Hold(thing),
        84..86 => Op::LetGo,
        86..91 => Op::Collect,
        91..95 => Op::Clean,
        _ => Op::Forward(rng.within(1..100)),
    }
}

async fn live(seed: u64) {
    let mut rng = Rng::new(seed);
    let mut driver = Driver::new(CrashDisk::new(seed));
    driver.config.recent_bytes = *rng.choose(&[300, 1024, 4096]);
    driver.config.io_threads = rng.within(1..3) as usize;
    driver.config.cache_bytes = *rng.choose(&[0, 1 << 20]);
    driver.config.gone_kept = std::time::Duration::from_secs(*rng.choose(&[0, 100]));
    let mut before = Crash::Kill;
    for generation in 0..6 {
        driver.disk.set_cached_percent(50);
        // A look at everything heals what a crash tore. Most processes go straight on.
        if generation % 3 == 0 {
            driver.recover(before).await;
            driver.scrub().await;
        } else {
            driver.go_on(before);
        }
        if rng.percent(60) {
            driver.disk.fail_from(driver.disk.calls() + rng.within(1..400));
        }
        for _ in 0..rng.within(10..80) {
            // What fails is in the model.
            let _ = driver.step(any_op(&mut rng)).await;
        }
        let end = *rng.choose(&ENDS);
        before = match end {
            End::Closed => {
                // On a disk that died this is an error, and a kill.
                let _ = driver.close().await;
                Crash::Kill
            }
            End::Crashed(crash) => crash,
        };
        driver.stop();
        driver = driver.crashed(rng.bits(), before);
        // The index is made anew from the log, and says the same.
        if rng.percent(20) {
            driver.lose_index();
        }
    }
    driver.recover(before).await;
}

#[tokio::test]
async fn generations_of_processes_crash_on_one_disk() {
    for seed in 0..60 * times() {
        println!("seed {seed}");
        live(seed).await;
    }
}
