//! A large value over gRPC, beside tonic alone: how fast, and in how much memory.

use std::{fs, io};

use anabranch_recipe::{Address, Executor, FunctionId, Recipe, UnknownFunction};
use bytes::Bytes;
use futures_util::{StreamExt, stream};

use super::echo::Echo;
use super::grpc_server::{Ask, Channels, GrpcServer};
use super::shapes::on_disk;
use crate::content::callers::{Rate, median, mix, ratio, serve_all};
use crate::content::ground::Ground;
use crate::content::{digits, percent, verdict};
use crate::counting::count;
use crate::report::{Report, row};

const CHUNK: usize = 256 << 10;

/// Memory may grow by so much, whatever the value's size.
const MEMORY_MOST: f64 = (128 << 20) as f64;

pub(super) fn report(report: &mut Report, ground: &Ground) -> io::Result<()> {
    report.heading("Large gets over gRPC");
    let blob = ground.sizes.blob;
    report.say(format_args!(
        "Gets of `identity` of a blob of {} MiB, computed before, on disk. `echo` is tonic with a service that streams \
        as many bytes from memory, 256 KiB a message. Server and client are one process; memory is what it grows by at \
        most, as the allocator was asked for it and as the system counts it. The store's cache holds no value so \
        large.\n",
        blob >> 20
    ));
    let folder = ground.folder("streams");
    let executor = on_disk(folder.path());
    let address = put(ground, &executor, blob);
    let chunk = Bytes::from(vec![0x5a; CHUNK]);
    let echo = GrpcServer::echo(Echo { chunk, count: blob as usize / CHUNK })?;
    let recipes = GrpcServer::recipes(executor.clone())?;
    let mut rows = vec![row([
        "at once",
        "what",
        "MB/s",
        "ms CPU each",
        "of echo",
        "heap, MiB",
        "resident, MiB",
        "aim",
        "met?",
    ])];
    for callers in [1, 8] {
        let [echo, recipes] = [&echo, &recipes].map(|served| served.connect(&ground.runtime, callers));
        let channels = [&echo, &recipes, &recipes];
        let large = Large { ground, address, blob, callers };
        let memory = large.memory(channels)?;
        let turns = large.measure(channels);
        for (place, (ask, own)) in ASKS.iter().zip(&turns).enumerate() {
            let of_echo = ratio(own, &turns[0]);
            let [heap, resident] = memory[place];
            let (aim, met) = match place {
                0 => ("", "-"),
                _ => (">= 80%, <= 128 MiB", verdict(of_echo >= 0.8 && heap <= MEMORY_MOST)),
            };
            let rate = median(own.iter().map(|rate| rate.per_second)) * blob as f64 / 1e6;
            rows.push(row([
                &callers.to_string(),
                ask.name(),
                &digits(rate),
                &digits(median(own.iter().map(|rate| rate.cpu)) / 1e3),
                &percent(of_echo),
                &digits(heap / f64::from(1 << 20)),
                &digits(resident / f64::from(1 << 20)),
                aim,
                met,
            ]));
        }
    }
    report.table(&rows);
    drop((echo, recipes));
    ground.close(executor.store().clone());
    Ok(())
}

const ASKS: [Ask; 3] = [Ask::EchoStream, Ask::Deriva, Ask::Recipes];

/// Puts the blob and computes the recipe over it.
fn put(ground: &Ground, executor: &Executor, bytes: u64) -> Address {
    let chunk = |number: u64| {
        let words = (0..CHUNK as u64 / 8).map(|word| mix(number << 32 | word).to_le_bytes());
        Ok::<Bytes, io::Error>(words.collect::<Vec<_>>().concat().into())
    };
    let chunks = stream::iter((0..bytes / CHUNK as u64).map(chunk));
    ground.runtime.block_on(async {
        let blob = executor.put_stream(chunks.boxed()).await.expect("the disk takes it").address;
        let recipe = Recipe::new(FunctionId::new("identity", "1.0.0"), vec![blob]);
        let added = executor.add(&recipe, UnknownFunction::Refuse).await.expect("the disk takes it");
        let got = executor.get(&added.address, &Default::default()).await.expect("it can be computed");
        assert_eq!(got.size, bytes);
        added.address
    })
}

struct Large<'a> {
    ground: &'a Ground,
    address: Address,
    blob: u64,
    callers: usize,
}

impl Large<'_> {
    /// Each caller gets it once.
    fn once(&self, ask: Ask, channels: &Channels) -> Rate {
        let (channels, address, blob) = (channels.clone(), self.address, self.blob);
        serve_all(&self.ground.runtime, self.callers, 0..self.callers as u64, move |number| {
            let channels = channels.clone();
            async move { assert_eq!(ask.call(&channels, number, address).await, blob) }
        })
    }

    fn measure(&self, channels: [&Channels; 3]) -> [Vec<Rate>; 3] {
        let mut turns: [Vec<Rate>; 3] = Default::default();
        for turn in 0..=self.ground.sizes.turns.min(5) {
            for ((ask, channels), turns) in ASKS.into_iter().zip(channels).zip(&mut turns) {
                let rate = self.once(ask, channels);
                turns.extend((turn > 0).then_some(rate));
            }
        }
        turns
    }

    /// What heap and process grow by, at most.
    fn memory(&self, channels: [&Channels; 3]) -> io::Result<[[f64; 2]; 3]> {
        let mut grown = [[0.0; 2]; 3];
        for ((ask, channels), grown) in ASKS.into_iter().zip(channels).zip(&mut grown) {
            // Sets the high-water mark back to what is resident now.
            fs::write("/proc/self/clear_refs", "5")?;
            let before = crate::content::large::status("VmRSS:")?;
            let (_, counted) = count(|| self.once(ask, channels));
            *grown = [counted.peak as f64, crate::content::large::status("VmHWM:")? - before];
        }
        Ok(grown)
    }
}
