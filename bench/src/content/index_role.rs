//! The store's index by itself, beside redb and fjall in the same role: batches in the background, lookups, rebuild.

use std::io;
use std::os::unix::fs::MetadataExt;

use super::callers::{Rate, median, mix, ratio};
use super::ground::{Ground, Scratch, for_each_file};
use super::{digits, percent};
use crate::counting;
use crate::indexes::{self, Contender, Entry, Kind};
use crate::report::{Report, row};
use crate::watch::Watch;

/// Entries that become durable together.
const BATCH: usize = 25_000;
/// Lookups of a turn.
const ASKED: u64 = 100_000;
/// Lookups before the first turn, so that caches hold what they can.
const WARM_UP: u64 = 400_000;
const TURNS: usize = 5;

const LARGE_CACHE: u64 = 1 << 30;
const SMALL_CACHE: u64 = 16 << 20;

pub(super) fn report(report: &mut Report, ground: &Ground) -> io::Result<()> {
    report.heading("The index by itself, in its role");
    report.say(format_args!("{LEGEND}"));
    let sizes: &[u64] = if ground.sizes.quick { &[50_000] } else { &[100_000, 1_000_000] };
    for size in sizes {
        one_size(report, ground, *size)?;
    }
    Ok(())
}

const LEGEND: &str = "The index follows the log in the background: entries (33-byte keys as even as hashes, 117-byte \
    values laid out as a memo's row) arrive in batches of 25,000, and each batch ends with one durable point. Inserts \
    include all merges and compactions, waited for. Our index does that work on the inserting thread, redb has one \
    thread, fjall has threads of its own. redb gets the entries of a batch in key order. Rebuild: all entries at once \
    from memory, one durable point at the end; redb and fjall (by `start_ingestion`, past its journal) get them sorted \
    in memory, and the sorting counts; ours takes them as they come. Bytes are blocks on the disk after closing. \
    Lookups are in random order by one thread in an index that was closed and opened again, files in the system's \
    memory; redb reads in one transaction. `memory` is what opening and 400,000 lookups left allocated. `of ours` is \
    the median of the turns' ratios.";

fn one_size(report: &mut Report, ground: &Ground, size: u64) -> io::Result<()> {
    let mut entries = indexes::entries(0..size);
    let mut folders = Vec::new();
    let mut inserts: [Vec<Rate>; 3] = Default::default();
    let mut builds: [Vec<Rate>; 3] = Default::default();
    for _ in 0..TURNS {
        for (place, kind) in Kind::ALL.into_iter().enumerate() {
            // As they arrived: a contender may have sorted them.
            entries.copy_from_slice(&indexes::entries(0..size));
            builds[place].push(fill(ground, kind, "built", |index| index.build(&mut entries), size)?.0);
            entries.copy_from_slice(&indexes::entries(0..size));
            // Removes the folder of the turn before.
            folders.retain(|(other, _)| *other != kind);
            let (rate, folder) =
                fill(ground, kind, kind.name(), |index| insert_all(index, &mut entries), size)?;
            inserts[place].push(rate);
            folders.push((kind, folder));
        }
    }
    drop(entries);
    report.say(format_args!("\n### {} entries\n", digits(size as f64)));
    write_table(report, (&inserts, &builds), size, &folders)?;
    report.say("");
    lookups(report, size, &folders);
    Ok(())
}

/// Has a new index do something with all entries, and closes it.
fn fill(
    ground: &Ground,
    kind: Kind,
    name: &str,
    work: impl FnOnce(&mut dyn Contender) -> indexes::Result<()>,
    size: u64,
) -> io::Result<(Rate, Scratch)> {
    let folder = ground.folder(name);
    ground.settle()?;
    let mut index = kind.open(folder.path(), LARGE_CACHE).map_err(io::Error::other)?;
    let watch = Watch::start();
    work(&mut *index).map_err(io::Error::other)?;
    index.settle().map_err(io::Error::other)?;
    let spent = watch.stop();
    Ok((Rate::of(size, spent), folder))
}

fn insert_all(index: &mut dyn Contender, entries: &mut [Entry]) -> indexes::Result<()> {
    entries.chunks_mut(BATCH).try_for_each(|batch| index.insert(batch))
}

fn write_table(
    report: &mut Report,
    (inserts, builds): (&[Vec<Rate>; 3], &[Vec<Rate>; 3]),
    size: u64,
    folders: &[(Kind, Scratch)],
) -> io::Result<()> {
    let mut rows = vec![row([
        "index",
        "inserts a second",
        "of ours",
        "us CPU each",
        "bytes an entry",
        "rebuild, ms",
        "speed, of ours",
        "rebuild, ms CPU",
    ])];
    for (place, (kind, folder)) in folders.iter().enumerate() {
        let of = |rates: &[Rate], figure: fn(&Rate) -> f64| median(rates.iter().map(figure));
        let (insert, build) = (&inserts[place], &builds[place]);
        rows.push(vec![
            kind.name().to_owned(),
            digits(of(insert, |rate| rate.per_second)),
            percent(ratio(insert, &inserts[0])),
            format!("{:.2}", of(insert, |rate| rate.cpu)),
            digits(disk_bytes(folder)? as f64 / size as f64),
            digits(size as f64 * 1e3 / of(build, |rate| rate.per_second)),
            percent(ratio(build, &builds[0])),
            digits(size as f64 * of(build, |rate| rate.cpu) / 1e3),
        ]);
    }
    report.table(&rows);
    Ok(())
}

fn disk_bytes(folder: &Scratch) -> io::Result<u64> {
    let mut bytes = 0;
    for_each_file(folder.path(), &mut |file| {
        bytes += file.metadata()?.blocks() * 512;
        Ok(())
    })?;
    Ok(bytes)
}

/// An index that is asked, and what came of it.
struct AskedIndex {
    name: String,
    index: Box<dyn Contender>,
    memory: usize,
    hits: Vec<Rate>,
    misses: Vec<Rate>,
}

fn lookups(report: &mut Report, size: u64, folders: &[(Kind, Scratch)]) {
    let caches = [(LARGE_CACHE, "1 GiB"), (SMALL_CACHE, "16 MiB")];
    let mut rows = vec![row([
        "index",
        "cache",
        "hits a second",
        "of ours",
        "us CPU",
        "misses a second",
        "of ours",
        "memory",
    ])];
    for (cache, cache_name) in caches {
        let mut all: Vec<AskedIndex> =
            folders.iter().map(|(kind, folder)| open(*kind, folder, cache, size)).collect();
        for turn in 0..TURNS as u64 {
            for asked in &mut all {
                let numbers = ASKED * turn..ASKED * (turn + 1);
                let watch = Watch::start();
                ask(&*asked.index, numbers.clone().map(|place| mix(place) % size), true);
                asked.hits.push(Rate::of(ASKED, watch.stop()));
                let watch = Watch::start();
                ask(&*asked.index, numbers.map(|place| place | 1 << 61), false);
                asked.misses.push(Rate::of(ASKED, watch.stop()));
            }
        }
        for asked in &all {
            let rate = |rates: &[Rate]| digits(median(rates.iter().map(|rate| rate.per_second)));
            let is_ours = asked.name == Kind::Ours.name();
            rows.push(vec![
                asked.name.clone(),
                if is_ours { "none" } else { cache_name }.to_owned(),
                rate(&asked.hits),
                percent(ratio(&asked.hits, &all[0].hits)),
                format!("{:.2}", median(asked.hits.iter().map(|rate| rate.cpu))),
                rate(&asked.misses),
                percent(ratio(&asked.misses, &all[0].misses)),
                format!("{} MiB", digits(asked.memory as f64 / f64::from(1 << 20))),
            ]);
        }
    }
    report.table(&rows);
}

fn open(kind: Kind, folder: &Scratch, cache: u64, size: u64) -> AskedIndex {
    let (index, counted) = counting::count(|| {
        let index = kind.open(folder.path(), cache).expect("an index opens");
        ask(&*index, (0..WARM_UP).map(|place| mix(place) % size), true);
        index
    });
    let name = kind.name().to_owned();
    AskedIndex { name, index, memory: counted.kept, hits: Vec::new(), misses: Vec::new() }
}

fn ask(index: &dyn Contender, numbers: impl Iterator<Item = u64>, expected: bool) {
    for number in numbers {
        let mut is_right = false;
        let found = index
            .look(&indexes::key(number), &mut |value| is_right = value[21..53] == indexes::key(number)[1..]);
        assert_eq!(found.expect("an index answers"), expected, "{number}");
        assert_eq!(is_right, expected, "{number}");
    }
}
