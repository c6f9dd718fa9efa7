//! Memos recalled from a store that was just opened, beside redb.

use std::fs::File;
use std::io;
use std::time::Instant;

use anabranch_content::Store;
use rustix::fs::Advice;
use tokio::runtime::{Builder, Runtime};

use super::callers::{address, median, mix};
use super::dependents::Memos;
use super::ground::{Ground, Scratch, for_each_file};
use super::redb_peer::Redb;
use super::{digits, verdict};
use crate::report::{Report, row};

/// How many are asked for in a turn.
const ASKED: u64 = 50_000;
/// The same where each waits for the disk.
const ASKED_COLD: u64 = 2_000;
const AT_ONCE: usize = 1_000;

pub(super) fn report(report: &mut Report, ground: &Ground, memos: &Memos) -> io::Result<()> {
    report.heading("Memos recalled from disk");
    report.say(format_args!(
        "A store of {} memos, closed and opened again, so that all are in the index's files; asked in random order by \
        one task on tokio's current-thread runtime. The system has the files in memory, but for the last row. redb 4.4 \
        has values of the same size and a cache of its own (1 GiB).\n",
        digits(ground.sizes.entries as f64)
    ));
    let peer = ground.folder("hits.redb");
    Redb::create(peer.path()).insert(0..ground.sizes.entries);
    let redb = Redb::open(peer.path());
    let store = memos.folder.open();
    let runtime = Builder::new_current_thread().build()?;
    let asked = AskedStore { runtime: &runtime, store: &store, entries: ground.sizes.entries };
    let mut turns: Vec<[f64; 5]> = Vec::new();
    // The first turn is for warming up.
    for turn in 0..=ground.sizes.turns as u64 {
        let figures = [
            asked.one_by_one(turn, ASKED),
            asked.many(turn),
            asked.unknown(turn),
            asked.of_redb(&redb, turn, 1),
            asked.of_redb(&redb, turn, AT_ONCE),
        ];
        turns.extend((turn > 0).then_some(figures));
    }
    forget_files(&memos.folder)?;
    let cold = asked.one_by_one(0, ASKED_COLD);
    ground.close(store);
    let [one, many, unknown, redb_one, redb_many] =
        std::array::from_fn(|place| median(turns.iter().map(|figures| figures[place])));
    let line = |what: &str, micros: f64, aim: &str, met: &str| row([what, &digits_of(micros), aim, met]);
    report.table(&[
        row(["what", "us each", "aim", "met?"]),
        line("recall", one, "<= 10 us", verdict(one <= 10.0)),
        line("recall_many, 1,000 at once", many, "", "-"),
        line("recall of what is not there", unknown, "", "-"),
        line("redb, a transaction each", redb_one, "", "-"),
        line("redb, a transaction for 1,000", redb_many, "", "-"),
        line("recall, the index's files not in memory", cold, "", "-"),
    ]);
    Ok(())
}

fn digits_of(micros: f64) -> String {
    format!("{micros:.2}")
}

struct AskedStore<'a> {
    runtime: &'a Runtime,
    store: &'a Store,
    entries: u64,
}

impl AskedStore<'_> {
    /// Microseconds a recall.
    fn one_by_one(&self, turn: u64, count: u64) -> f64 {
        self.each(count, async {
            for number in self.numbers(turn, count) {
                let memo = self.store.recall(&address(number)).await.expect("the index is whole");
                assert!(memo.is_some(), "a memo is not there");
            }
        })
    }

    fn many(&self, turn: u64) -> f64 {
        let addresses: Vec<_> = self.numbers(turn, ASKED).map(address).collect();
        self.each(ASKED, async {
            for addresses in addresses.chunks(AT_ONCE) {
                let memos = self.store.recall_many(addresses).await.expect("the index is whole");
                assert!(memos.iter().all(Option::is_some), "a memo is not there");
            }
        })
    }

    fn unknown(&self, turn: u64) -> f64 {
        self.each(ASKED, async {
            for number in self.numbers(turn, ASKED) {
                let memo = self.store.recall(&address(number | 1 << 61)).await.expect("the index is whole");
                assert!(memo.is_none(), "a memo is there that nobody made");
            }
        })
    }

    fn of_redb(&self, redb: &Redb, turn: u64, at_once: usize) -> f64 {
        let numbers: Vec<u64> = self.numbers(turn, ASKED).collect();
        self.each(ASKED, async {
            numbers.chunks(at_once).for_each(|numbers| redb.get(numbers.iter().copied()));
        })
    }

    fn numbers(&self, turn: u64, count: u64) -> impl Iterator<Item = u64> + use<> {
        let entries = self.entries;
        (turn * count..(turn + 1) * count).map(move |place| mix(place) % entries)
    }

    fn each(&self, count: u64, work: impl Future<Output = ()>) -> f64 {
        let began = Instant::now();
        self.runtime.block_on(work);
        began.elapsed().as_secs_f64() * 1e6 / count as f64
    }
}

/// Asks the system to drop the index's files from its memory.
fn forget_files(folder: &Scratch) -> io::Result<()> {
    for_each_file(&folder.path().join("index"), &mut |path| {
        Ok(rustix::fs::fadvise(File::open(path)?, 0, None, Advice::DontNeed)?)
    })
}
