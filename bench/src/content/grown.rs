//! Puts and memos on an empty store and on a large one, beside redb.

use std::io;

use anabranch_content::Class;

use super::callers::{Outputs, Rate, median, put, ratio, serve_all};
use super::dependents::Memos;
use super::ground::{Ground, Scratch};
use super::puts::{put_for, remember_for};
use super::redb_peer::Redb;
use super::{digits, percent, verdict};
use crate::report::{Report, row};

const CALLERS: usize = 64;

/// Numbers from here on are in no store yet.
const FREE: u64 = 1 << 40;

/// Returns the closed store with many blobs.
pub(super) fn report(report: &mut Report, ground: &Ground, memos: &Memos) -> io::Result<Scratch> {
    let entries = ground.sizes.entries;
    report.heading(&format!("From an empty store and from one of {} entries", digits(entries as f64)));
    report.say(format_args!(
        "Durable puts of 1 KiB and durable memos from {CALLERS} callers; an empty store is a new one each turn. redb \
        4.4 inserts {CALLERS} values of a memo's size in a transaction, from one thread.\n"
    ));
    let blobs = fill(ground);
    let mut rows = vec![row(["what", "empty, a second", "large, a second", "large / empty", "aim", "met?"])];
    rows.push(line("puts", &put_turns(ground, &blobs)?, Some(0.8)));
    rows.push(line("memos", &remember_turns(ground, memos)?, Some(0.8)));
    rows.push(line("redb", &redb_turns(ground)?, None));
    report.table(&rows);
    Ok(blobs)
}

struct Turns {
    empty: Vec<Rate>,
    large: Vec<Rate>,
}

fn line(what: &str, turns: &Turns, aim: Option<f64>) -> Vec<String> {
    let rate = |rates: &[Rate]| digits(median(rates.iter().map(|rate| rate.per_second)));
    let ratio = ratio(&turns.large, &turns.empty);
    vec![
        what.to_owned(),
        rate(&turns.empty),
        rate(&turns.large),
        percent(ratio),
        aim.map(|aim| format!(">= {}", percent(aim))).unwrap_or_default(),
        aim.map_or("-", |aim| verdict(ratio >= aim)).to_owned(),
    ]
}

fn fill(ground: &Ground) -> Scratch {
    let folder = ground.folder("blobs");
    let store = folder.open();
    let to = store.clone();
    serve_all(&ground.runtime, 4096, 0..ground.sizes.entries, move |number| {
        let store = to.clone();
        async move { put(&store, number, Class::Derivable).await }
    });
    ground.close(store);
    folder
}

fn put_turns(ground: &Ground, blobs: &Scratch) -> io::Result<Turns> {
    let large = blobs.open();
    let turns = by_turns(ground, |first, folder| {
        let empty = folder.open();
        let rate = put_for(ground, &empty, CALLERS, first);
        ground.close(empty);
        (rate, put_for(ground, &large, CALLERS, first))
    });
    ground.close(large);
    turns
}

fn remember_turns(ground: &Ground, memos: &Memos) -> io::Result<Turns> {
    let large = memos.folder.open();
    let turns = by_turns(ground, |first, folder| {
        let empty = folder.open();
        let outputs = Outputs::put(&ground.runtime, &empty);
        let rate = remember_for(ground, (&empty, &outputs), CALLERS, first);
        ground.close(empty);
        (rate, remember_for(ground, (&large, &memos.outputs), CALLERS, first))
    });
    ground.close(large);
    turns
}

fn redb_turns(ground: &Ground) -> io::Result<Turns> {
    let file = ground.folder("large.redb");
    let large = Redb::create(file.path());
    large.insert(0..ground.sizes.entries);
    by_turns(ground, |first, file| {
        let empty = Redb::create(file.path());
        let insert = |redb: &Redb| redb.insert_for(CALLERS as u64, first, ground.sizes.window);
        (insert(&empty), insert(&large))
    })
}

/// Each turn has a path of its own for what is empty.
fn by_turns(ground: &Ground, mut turn: impl FnMut(u64, &Scratch) -> (Rate, Rate)) -> io::Result<Turns> {
    let mut turns = Turns { empty: Vec::new(), large: Vec::new() };
    for number in 0..ground.sizes.turns as u64 {
        let path = ground.folder("empty");
        ground.settle()?;
        let (empty, large) = turn(FREE + (number << 32), &path);
        turns.empty.push(empty);
        turns.large.push(large);
    }
    Ok(turns)
}
