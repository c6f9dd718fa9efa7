//! Durable puts and memos, beside the disk alone and a bare group commit.

use std::io;

use anabranch_content::{Class, Store};

use super::callers::{Outputs, Rate, blob, median, own_input, put, ratio, serve_for};
use super::floor::{DiskAlone, GroupCommit};
use super::ground::Ground;
use super::{digits, percent, verdict};
use crate::report::{Report, row};

pub(super) fn report(report: &mut Report, ground: &Ground) -> io::Result<()> {
    report.heading("Durable puts and memos");
    report.say(ABOUT);
    let mut rows = vec![row([
        "callers",
        "what",
        "a second",
        "us CPU each",
        "of disk alone",
        "of bare loop",
        "aim",
        "met?",
    ])];
    for callers in [1, 64, 4096] {
        let turns = measure(ground, callers)?;
        for (name, ours) in [
            ("disk alone", &turns.disk),
            ("bare loop", &turns.bare),
            ("put", &turns.puts),
            ("memo", &turns.memos),
        ] {
            let of_bare = ratio(ours, &turns.bare);
            let is_ours = matches!(name, "put" | "memo");
            rows.push(vec![
                callers.to_string(),
                name.to_owned(),
                digits(median(ours.iter().map(|rate| rate.per_second))),
                digits(median(ours.iter().map(|rate| rate.cpu))),
                percent(ratio(ours, &turns.disk)),
                percent(of_bare),
                if is_ours { ">= 70% of bare" } else { "" }.to_owned(),
                if is_ours { verdict(of_bare >= 0.7) } else { "-" }.to_owned(),
            ]);
        }
    }
    report.table(&rows);
    Ok(())
}

const ABOUT: &str = "Blobs of 1 KiB; memos of one input each, whose outputs were put before. `disk alone`: one thread \
    without callers writes as many KiB as there are callers and syncs, in a loop. `bare loop`: the same callers hand \
    1 KiB to one thread that gathers, writes, syncs and answers: no hash, no checksum, no index.\n";

struct Turns {
    disk: Vec<Rate>,
    bare: Vec<Rate>,
    puts: Vec<Rate>,
    memos: Vec<Rate>,
}

fn measure(ground: &Ground, callers: usize) -> io::Result<Turns> {
    let files = ["disk", "bare"].map(|name| ground.folder(name));
    let mut disk = DiskAlone::new(files[0].path(), callers)?;
    let bare = GroupCommit::new(files[1].path())?;
    let folders = ["puts", "memos"].map(|name| ground.folder(name));
    let [puts, memos] = folders.each_ref().map(|folder| folder.open());
    let outputs = Outputs::put(&ground.runtime, &memos);
    let mut turns = Turns { disk: vec![], bare: vec![], puts: vec![], memos: vec![] };
    for turn in 0..ground.sizes.turns as u64 {
        let first = turn << 32;
        ground.settle()?;
        turns.disk.push(disk.write_for(ground.sizes.window)?);
        let caller = bare.caller();
        turns.bare.push(serve_for(&ground.runtime, callers, (first, ground.sizes.window), move |number| {
            let answer = caller(blob(number));
            async move { answer.await.expect("the writer answers") }
        }));
        turns.puts.push(put_for(ground, &puts, callers, first));
        turns.memos.push(remember_for(ground, (&memos, &outputs), callers, first));
    }
    ground.close(puts);
    ground.close(memos);
    Ok(turns)
}

/// Durable puts for a turn.
pub(super) fn put_for(ground: &Ground, store: &Store, callers: usize, first: u64) -> Rate {
    let store = store.clone();
    serve_for(&ground.runtime, callers, (first, ground.sizes.window), move |number| {
        let store = store.clone();
        async move { put(&store, number, Class::Acknowledged).await }
    })
}

/// Durable memos for a turn.
pub(super) fn remember_for(
    ground: &Ground,
    (store, outputs): (&Store, &Outputs),
    callers: usize,
    first: u64,
) -> Rate {
    let (store, outputs) = (store.clone(), outputs.clone());
    serve_for(&ground.runtime, callers, (first, ground.sizes.window), move |number| {
        let (store, outputs) = (store.clone(), outputs.clone());
        async move { outputs.remember(&store, number, own_input(number)).await }
    })
}
