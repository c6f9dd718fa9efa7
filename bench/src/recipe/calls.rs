//! Values that were computed before, over gRPC, beside tonic alone.

use std::io;

use anabranch_recipe::Address;
use bytes::Bytes;

use super::echo::Echo;
use super::grpc_server::{Ask, Channels, GrpcServer};
use super::shapes::{Shape, get, on_disk};
use crate::content::callers::{Rate, SMALL, median, mix, serve_for};
use crate::content::ground::Ground;
use crate::content::{digits, verdict};
use crate::report::{Report, row};

const CALLERS: usize = 64;
const KEYS: usize = 1_000;

pub(super) fn report(report: &mut Report, ground: &Ground) -> io::Result<()> {
    report.heading("Cached gets over gRPC");
    report.say(format_args!(
        "{CALLERS} callers get one of {} values of 1 KiB, computed before, on disk. Server and client are one process, \
        each with a runtime of 2 workers; CPU is of both. `echo` is tonic with a service that answers 1 KiB from \
        memory. Times the echo: CPU of a call beside that of `echo, a stream`, which like a get answers a stream of \
        one message; and beside `echo, unary`.\n",
        digits(KEYS as f64)
    ));
    let folder = ground.folder("calls");
    let executor = on_disk(folder.path());
    let shape = Shape::pairs(KEYS, SMALL, 1);
    shape.add_to(&ground.runtime, &executor);
    let executed = executor.clone();
    ground.runtime.block_on(async {
        for address in shape.addresses() {
            get(&executed, address).await;
        }
    });
    let echo = GrpcServer::echo(Echo { chunk: Bytes::from(vec![0x5a; SMALL]), count: 1 })?;
    let recipes = GrpcServer::recipes(executor.clone())?;
    let mut rows = vec![row([
        "connections",
        "what",
        "a second",
        "us CPU each",
        "times the echo's stream",
        "times its unary",
        "aim",
        "met?",
    ])];
    for connections in [1, 8] {
        let [echo, recipes] = [&echo, &recipes].map(|served| served.connect(&ground.runtime, connections));
        let turns = measure(ground, shape.addresses(), [&echo, &echo, &recipes, &recipes]);
        for (ask, own) in ASKS.iter().zip(&turns) {
            let times =
                |floor: &[Rate]| median(own.iter().zip(floor).map(|(own, floor)| own.cpu / floor.cpu));
            let of_stream = times(&turns[1]);
            let (aim, met) = match ask {
                Ask::Deriva | Ask::Recipes => ("<= 1.25x", verdict(of_stream <= 1.25)),
                _ => ("", "-"),
            };
            rows.push(row([
                &connections.to_string(),
                ask.name(),
                &digits(median(own.iter().map(|rate| rate.per_second))),
                &digits(median(own.iter().map(|rate| rate.cpu))),
                &format!("{of_stream:.2}x"),
                &format!("{:.2}x", times(&turns[0])),
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

const ASKS: [Ask; 4] = [Ask::EchoUnary, Ask::EchoStream, Ask::Deriva, Ask::Recipes];

fn measure(ground: &Ground, addresses: &[Address], channels: [&Channels; 4]) -> [Vec<Rate>; 4] {
    let addresses: std::sync::Arc<[Address]> = addresses.into();
    let mut turns: [Vec<Rate>; 4] = Default::default();
    for turn in 0..=ground.sizes.turns {
        for ((ask, channels), turns) in ASKS.into_iter().zip(channels).zip(&mut turns) {
            let (channels, addresses) = (channels.clone(), addresses.clone());
            let rate = serve_for(&ground.runtime, CALLERS, (0, ground.sizes.window), move |number| {
                let channels = channels.clone();
                let address = addresses[(mix(number) % addresses.len() as u64) as usize];
                async move { assert_eq!(ask.call(&channels, number, address).await, SMALL as u64) }
            });
            // The first turn is for warming up.
            turns.extend((turn > 0).then_some(rate));
        }
    }
    turns
}
