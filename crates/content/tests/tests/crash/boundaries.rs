//! A process that dies at any of its writes.

use anabranch_content::{Class, Error};
use anabranch_testkit::{Crash, CrashDisk, Rng};

use super::driver::{Driver, Op};
use super::times;
use super::world::{LENS, Thing};

const CRASHES: [Crash; 4] = [Crash::Kill, Crash::Total, Crash::Power, Crash::Chaos];

const A: Class = Class::Acknowledged;
const D: Class = Class::Derivable;

/// All kinds of operations, some of them twice.
pub(crate) const WORK: [Op; 74] = [
    Op::Put(1, A),
    Op::Put(9, A),
    Op::Put(2, D),
    Op::Stream(8, D),
    Op::Stream(3, A),
    Op::Describe(0),
    Op::Put(4, D),
    Op::Remember(0, 0, A),
    Op::Pin(Thing::Derivation(0)),
    Op::Name(0, Some(Thing::Blob(9))),
    Op::Put(0, A),
    Op::Put(5, A),
    Op::Put(8, A),
    Op::Describe(1),
    Op::Remember(1, 0, D),
    Op::Get(3),
    Op::Pin(Thing::Derivation(1)),
    Op::Forward(100),
    Op::Put(1, A),
    Op::Put(2, A),
    Op::Name(0, Some(Thing::Derivation(1))),
    Op::Stream(13, A),
    Op::Put(6, A),
    Op::Put(7, D),
    Op::Hold(Thing::Blob(7)),
    Op::Unpin(Thing::Derivation(0)),
    Op::Collect,
    Op::Put(10, A),
    Op::Clean,
    Op::Get(9),
    Op::Put(4, A),
    Op::Put(5, D),
    Op::Name(1, Some(Thing::Blob(10))),
    Op::Name(0, None),
    Op::Put(11, A),
    Op::Describe(2),
    Op::Put(5, A),
    Op::Remember(2, 0, A),
    Op::Invalidate(2),
    Op::Remember(2, 0, A),
    Op::Put(12, D),
    Op::Pin(Thing::Blob(12)),
    Op::Put(12, A),
    Op::Forward(100),
    Op::Put(12, A),
    Op::Put(13, D),
    Op::LetGo,
    Op::Name(0, Some(Thing::Derivation(2))),
    Op::Name(0, Some(Thing::Blob(0))),
    Op::Collect,
    Op::Stream(6, A),
    Op::Put(7, A),
    Op::Describe(3),
    Op::Put(7, A),
    Op::Remember(3, 0, D),
    Op::Put(10, D),
    Op::Remember(3, 1, A),
    Op::Clean,
    Op::Unpin(Thing::Blob(12)),
    Op::Unpin(Thing::Derivation(1)),
    Op::Put(2, A),
    Op::Pin(Thing::Derivation(3)),
    Op::Put(3, A),
    Op::Get(2),
    Op::Collect,
    Op::Put(8, A),
    Op::Put(9, D),
    Op::Describe(4),
    Op::Put(9, A),
    Op::Remember(4, 0, A),
    Op::Clean,
    Op::Put(13, A),
    Op::Name(2, Some(Thing::Derivation(4))),
    Op::Get(13),
];

/// Works until all is done, whatever fails once the disk does.
pub(crate) async fn work(driver: &mut Driver) -> Result<(), Error> {
    driver.open()?;
    let mut failed = Ok(());
    for op in WORK {
        failed = failed.and(driver.step(op).await);
    }
    let closed = driver.close().await;
    failed.and(closed)
}

/// The store works: it takes something, collects, closes, and has it all when it is opened again.
async fn works(mut driver: Driver) {
    driver.step(Op::Put(9, A)).await.unwrap();
    driver.step(Op::Get(9)).await.unwrap();
    driver.step(Op::Collect).await.unwrap();
    driver.close().await.unwrap();
    driver.recover(Crash::Total).await;
    driver.scrub().await;
    assert!(driver.store().opened().clean);
    assert_eq!(driver.store().opened().replayed, 0);
}

/// The next process puts everything again, straight on: all of it is there then, whatever the crash tore.
async fn goes_on(mut driver: Driver, crash: Crash) {
    driver.go_on(crash);
    for blob in 0..LENS.len() {
        driver.step(Op::Put(blob, A)).await.unwrap();
    }
    driver.stop();
    let mut found = driver.crashed(0, Crash::Total);
    found.recover(Crash::Total).await;
}

async fn die_at(call: u64, seed: u64, crashes: &[Crash]) {
    let mut driver = Driver::new(CrashDisk::new(seed));
    driver.disk.fail_from(call);
    // What fails is in the model.
    let _ = work(&mut driver).await;
    driver.stop();
    for crash in crashes {
        let mut found = driver.crashed(seed, *crash);
        found.recover(*crash).await;
        works(found).await;
        // What the others leave is whole or gone.
        if matches!(crash, Crash::Power | Crash::Chaos) {
            goes_on(driver.crashed(seed, *crash), *crash).await;
        }
    }
}

#[tokio::test]
async fn a_process_may_die_at_any_write() {
    let mut driver = Driver::new(CrashDisk::new(0));
    work(&mut driver).await.unwrap();
    let calls = driver.disk.calls();
    println!("{calls} calls");
    let mut rng = Rng::new(1);
    for call in 1..=calls + 3 {
        for _ in 0..times() {
            let seed = rng.bits();
            println!("call {call} seed {seed}");
            die_at(call, seed, &CRASHES).await;
        }
    }
}
