//! The first get of a large value: its function streams over the blob, and the store hashes and writes the output, unless
//! that is the input.

use std::collections::HashMap;
use std::io;
use std::iter::once;

use anabranch_recipe::{Address, Executor, FunctionId, Functions, Get, Recipe, Source, UnknownFunction};
use bytes::Bytes;
use futures_util::{StreamExt, stream};

use super::baseline::{Baseline, Leaves};
use super::echo::Echo;
use super::grpc_server::{Ask, GrpcServer};
use super::shapes::on_disk;
use super::turns::Turns;
use crate::content::callers::mix;
use crate::content::ground::Ground;
use crate::content::{digits, verdict};
use crate::report::{Report, row};

const CHUNK: usize = 256 << 10;

/// The length of Deriva's messages.
const DERIVAS_CHUNK: usize = 64 << 10;

/// What is measured: the put of the blob, the first get of a function over it in process, and the first get of `identity`
/// over gRPC, with its floor.
const WHATS: [&str; 5] =
    ["put of the blob", "identity", "bitwise_not", "identity, over gRPC", "identity, plainly, over gRPC"];

/// The places of the last two.
const OVER_GRPC: usize = 3;
const PLAINLY: usize = 4;

/// The first get of `identity` takes at most so many times the CPU time of the plain one.
const CPU_MOST: f64 = 1.5;

pub(super) fn report(report: &mut Report, ground: &Ground) -> io::Result<()> {
    report.heading("First get of a large value");
    let len = ground.sizes.blob;
    report.say(format_args!(
        "A blob of {} MiB is put as a stream, on disk, and synced. Then one recipe over it is computed by its first get, \
        whose value is read to its end. The value of `identity` is the blob: it is not written again, only remembered, \
        and what is read is verified. That of `bitwise_not` is new. Over gRPC, `identity` is asked for by Deriva's `Get`. \
        `plainly` is what Deriva does: it reads the file in one piece and verifies nothing, hands the bytes to the \
        function on another thread, keeps them in a cache in memory, and streams as many bytes from memory in messages \
        of 64 KiB. CPU is of all threads, of the client, too.\n",
        len >> 20
    ));
    let chunks: Vec<Bytes> = (0..len / CHUNK as u64).map(chunk).collect();
    let plain = PlainServer::start(ground, &chunks, len)?;
    let mut turns: [Turns; 5] = Default::default();
    for _ in 0..ground.sizes.turns.min(5) {
        let folder = ground.folder("large");
        let executor = on_disk(folder.path());
        ground.settle()?;
        let pieces = stream::iter(chunks.iter().cloned().map(Ok::<Bytes, io::Error>));
        let put = || ground.runtime.block_on(executor.put_stream(pieces.boxed()));
        let blob = turns[0].time(1, put).expect("the disk takes it").address;
        for (function, turns) in WHATS[..OVER_GRPC].iter().zip(&mut turns).skip(1) {
            ground.settle()?;
            first_get(ground, &executor, (function, blob, len), turns);
        }
        ground.settle()?;
        first_get_over_grpc(ground, &executor, (blob, len), &mut turns[OVER_GRPC])?;
        ground.settle()?;
        plain.first_get(ground, len, &mut turns[PLAINLY]);
        ground.close(executor.store().clone());
    }
    let mut rows = vec![row(["what", "MB/s", "us CPU per MB", "CPU of plainly", "aim", "met?"])];
    let megabytes = len as f64 / 1e6;
    for (place, (what, own)) in WHATS.iter().zip(&turns).enumerate() {
        let rate = megabytes / (own.wall() / 1e9);
        let (ratio, aim, met) = match place {
            OVER_GRPC => {
                let ratio = own.cpu_times(&turns[PLAINLY]);
                (format!("{ratio:.2}x"), "<= 1.5x", verdict(ratio <= CPU_MOST))
            }
            _ => (String::new(), "", "-"),
        };
        rows.push(row([what, &digits(rate), &digits(own.cpu() / 1e3 / megabytes), &ratio, aim, met]));
    }
    report.table(&rows);
    Ok(())
}

fn add(ground: &Ground, executor: &Executor, recipe: &Recipe) -> Address {
    let added = ground.runtime.block_on(executor.add(recipe, UnknownFunction::Refuse));
    added.expect("the disk takes it").address
}

fn first_get(
    ground: &Ground,
    executor: &Executor,
    (function, blob, len): (&str, Address, u64),
    turns: &mut Turns,
) {
    let address = add(ground, executor, &Recipe::new(FunctionId::new(function, "1.0.0"), vec![blob]));
    let (source, read) = turns.time(1, || {
        ground.runtime.block_on(async {
            let mut got = executor.get(&address, &Get::default()).await.expect("it can be computed");
            let mut read = 0;
            while let Some(piece) = got.next().await {
                read += piece.expect("the value is whole").len() as u64;
            }
            (got.source, read)
        })
    });
    assert_eq!((read, source), (len, Source::Computed(1)), "{function}");
}

/// Another name of `identity`, so that its value is not remembered yet.
fn first_get_over_grpc(
    ground: &Ground,
    executor: &Executor,
    (blob, len): (Address, u64),
    turns: &mut Turns,
) -> io::Result<()> {
    let identity = Recipe::new(FunctionId::new("streaming_identity", "1.0"), vec![blob]);
    let address = add(ground, executor, &identity);
    let server = GrpcServer::recipes(executor.clone())?;
    let channels = server.connect(&ground.runtime, 1);
    let read = turns.time(1, || ground.runtime.block_on(Ask::Deriva.call(&channels, 0, address)));
    assert_eq!(read, len);
    Ok(())
}

/// `identity` as Deriva computes and streams it.
struct PlainServer {
    echo: GrpcServer,
    folder: crate::content::ground::Scratch,
    recipe: Recipe,
}

impl PlainServer {
    fn start(ground: &Ground, chunks: &[Bytes], len: u64) -> io::Result<PlainServer> {
        let leaf = Bytes::from(chunks.concat());
        let blob = Address::of(&leaf);
        let folder = ground.folder("plain");
        Leaves::in_files(folder.path(), once((blob, leaf)))?;
        let chunk = Bytes::from(vec![0x5a; DERIVAS_CHUNK]);
        let echo = GrpcServer::echo(Echo { chunk, count: len as usize / DERIVAS_CHUNK })?;
        let recipe = Recipe::new(FunctionId::new("identity", "1.0.0"), vec![blob]);
        Ok(PlainServer { echo, folder, recipe })
    }

    fn first_get(&self, ground: &Ground, len: u64, turns: &mut Turns) {
        let address = self.recipe.address().expect("it is a recipe");
        let recipes = HashMap::from([(address, self.recipe.clone())]);
        let leaves = Leaves::Files(self.folder.path().to_owned());
        let baseline = Baseline::new(Functions::builtin(), leaves, recipes);
        let channels = self.echo.connect(&ground.runtime, 1);
        let (value, read) = turns.time(1, || {
            ground.runtime.block_on(async {
                let value = baseline.materialise(address).await.expect("it can be computed");
                (value, Ask::EchoStream.call(&channels, 0, address).await)
            })
        });
        assert_eq!((value.len() as u64, read), (len, len));
    }
}

fn chunk(number: u64) -> Bytes {
    let words = (0..CHUNK as u64 / 8).map(|word| mix(number << 32 | word).to_le_bytes());
    words.collect::<Vec<_>>().concat().into()
}
