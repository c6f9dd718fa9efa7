//! A value that was computed before.

use std::io;

use anabranch_recipe::{Address, Executor};
use tokio::runtime::{Builder, Runtime};

use super::baseline::Baseline;
use super::shapes::{Shape, get, in_memory, on_disk};
use super::turns::{Turns, micros};
use crate::content::callers::{SMALL, mix};
use crate::content::ground::Ground;
use crate::content::{digits, verdict};
use crate::counting::count;
use crate::report::{Report, row};

const KEYS: usize = 1_000;
const GETS: u64 = 200_000;

pub(super) fn report(report: &mut Report, ground: &Ground) -> io::Result<()> {
    report.heading("A memo hit in process");
    report.say(format_args!(
        "A get of one of {} values of 1 KiB, each computed before, in random order by one task on tokio's \
        current-thread runtime. `store alone` recalls the memo and gets the blob, without an executor.\n",
        digits(KEYS as f64)
    ));
    let folder = ground.folder("hits");
    let shape = Shape::pairs(KEYS, SMALL, 1);
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let executors = [in_memory(), on_disk(folder.path())];
    let baseline = shape.baseline();
    for executor in &executors {
        shape.add_to(&runtime, executor);
    }
    let keys = Keys { runtime: &runtime, addresses: shape.addresses() };
    keys.warm_up(&executors, &baseline);
    let mut turns: [Turns; 4] = Default::default();
    for turn in 0..=ground.sizes.turns {
        turns[0].time(GETS, || keys.through(&executors[0]));
        turns[1].time(GETS, || keys.through(&executors[1]));
        turns[2].time(GETS, || keys.store_alone(&executors[0]));
        turns[3].time(GETS, || keys.of_baseline(&baseline));
        if turn == 0 {
            turns.iter_mut().for_each(Turns::forget);
        }
    }
    let allocations = [
        count(|| keys.through(&executors[0])).1,
        count(|| keys.through(&executors[1])).1,
        count(|| keys.store_alone(&executors[0])).1,
        count(|| keys.of_baseline(&baseline)).1,
    ];
    let mut rows =
        vec![row(["what", "us each", "us CPU each", "of the baseline", "allocations", "aim", "met?"])];
    let names = ["get, in memory", "get, on disk", "store alone, in memory", "baseline, cached"];
    for (place, ((name, own), counted)) in names.iter().zip(&turns).zip(allocations).enumerate() {
        let (aim, met) = match place {
            0 | 1 => ("<= 1 us", verdict(own.wall() <= 1_000.0)),
            _ => ("", "-"),
        };
        let ratio = format!("{:.2}x", own.times(&turns[3]));
        let allocations = format!("{:.1}", counted.calls as f64 / GETS as f64);
        rows.push(row([name, &micros(own.wall()), &micros(own.cpu()), &ratio, &allocations, aim, met]));
    }
    report.table(&rows);
    for executor in executors {
        ground.close(executor.store().clone());
    }
    Ok(())
}

struct Keys<'a> {
    runtime: &'a Runtime,
    addresses: &'a [Address],
}

impl Keys<'_> {
    fn warm_up(&self, executors: &[Executor], baseline: &Baseline) {
        self.runtime.block_on(async {
            for address in self.addresses {
                for executor in executors {
                    get(executor, address).await;
                }
                baseline.materialise(*address).await.expect("it can be computed");
            }
        });
    }

    fn random(&self) -> impl Iterator<Item = &Address> {
        (0..GETS).map(|number| &self.addresses[(mix(number) % self.addresses.len() as u64) as usize])
    }

    fn through(&self, executor: &Executor) {
        self.runtime.block_on(async {
            for address in self.random() {
                assert_eq!(get(executor, address).await.len(), SMALL);
            }
        });
    }

    fn store_alone(&self, executor: &Executor) {
        let store = executor.store();
        self.runtime.block_on(async {
            for address in self.random() {
                let memo = store.recall_now(address).expect("it is remembered");
                let bytes = store.get(&memo.output).await.expect("the store is whole");
                assert_eq!(bytes.expect("it is there").len(), SMALL);
            }
        });
    }

    fn of_baseline(&self, baseline: &Baseline) {
        self.runtime.block_on(async {
            for address in self.random() {
                assert_eq!(baseline.materialise(*address).await.expect("it is cached").len(), SMALL);
            }
        });
    }
}
