//! The first get of a large value: its function streams over the blob, and the store hashes and writes the output.

use std::io;

use anabranch_recipe::{Address, Executor, FunctionId, Get, Recipe, Source, UnknownFunction};
use bytes::Bytes;
use futures_util::{StreamExt, stream};

use super::shapes::on_disk;
use super::turns::Turns;
use crate::content::callers::mix;
use crate::content::digits;
use crate::content::ground::Ground;
use crate::report::{Report, row};

const CHUNK: usize = 256 << 10;

/// What is measured: the put of the blob, and the first get of a function over it.
const WHATS: [&str; 3] = ["put of the blob", "identity", "bitwise_not"];

pub(super) fn report(report: &mut Report, ground: &Ground) -> io::Result<()> {
    report.heading("First get of a large value");
    let len = ground.sizes.blob;
    report.say(format_args!(
        "A blob of {} MiB is put as a stream, on disk, and synced. Then one recipe over it is computed by its first get, \
        whose value is not read. The value of `identity` is the blob, so the store checks the blob and drops the second \
        copy; that of `bitwise_not` is new. CPU is of all threads.\n",
        len >> 20
    ));
    let chunks: Vec<Bytes> = (0..len / CHUNK as u64).map(chunk).collect();
    let mut turns: [Turns; 3] = Default::default();
    for _ in 0..ground.sizes.turns.min(5) {
        let folder = ground.folder("large");
        let executor = on_disk(folder.path());
        ground.settle()?;
        let pieces = stream::iter(chunks.iter().cloned().map(Ok::<Bytes, io::Error>));
        let put = || ground.runtime.block_on(executor.put_stream(pieces.boxed()));
        let blob = turns[0].time(1, put).expect("the disk takes it").address;
        for (function, turns) in WHATS.iter().zip(&mut turns).skip(1) {
            ground.settle()?;
            first_get(ground, &executor, (function, blob, len), turns);
        }
        ground.close(executor.store().clone());
    }
    let mut rows = vec![row(["what", "MB/s", "us CPU per MB"])];
    let megabytes = len as f64 / 1e6;
    for (what, turns) in WHATS.iter().zip(&turns) {
        let rate = megabytes / (turns.wall() / 1e9);
        rows.push(row([what, &digits(rate), &digits(turns.cpu() / 1e3 / megabytes)]));
    }
    report.table(&rows);
    Ok(())
}

fn first_get(
    ground: &Ground,
    executor: &Executor,
    (function, blob, len): (&str, Address, u64),
    turns: &mut Turns,
) {
    let recipe = Recipe::new(FunctionId::new(function, "1.0.0"), vec![blob]);
    let added = ground.runtime.block_on(executor.add(&recipe, UnknownFunction::Refuse));
    let address = added.expect("the disk takes it").address;
    let got = turns.time(1, || ground.runtime.block_on(executor.get(&address, &Get::default())));
    let got = got.expect("it can be computed");
    assert_eq!((got.size, got.source), (len, Source::Computed(1)), "{function}");
}

fn chunk(number: u64) -> Bytes {
    let words = (0..CHUNK as u64 / 8).map(|word| mix(number << 32 | word).to_le_bytes());
    words.collect::<Vec<_>>().concat().into()
}
