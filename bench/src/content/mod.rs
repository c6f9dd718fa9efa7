//! The content store beside its floors: what the disk, a bare loop or a plain map do with the same work.
//!
//! Contender and floor take turns on the same disk; a figure is the median of the turns, and a ratio the median of the
//! turns' ratios. `ANABRANCH_BENCH_QUICK=1` takes small sizes and keeps no file: to try the bench, not the store.

pub(crate) mod ground;
pub(crate) mod callers;
pub(crate) mod floor;
mod redb_peer;
mod puts;
mod cached;
pub(crate) mod large;
mod dependents;
mod grown;
mod hits;
mod opening;
mod index_role;

use std::io;

use ground::Ground;

use crate::report::Report;

pub(crate) fn bench() -> io::Result<()> {
    let ground = Ground::new("content")?;
    let mut report = Report::new("content");
    report.say(format_args!("{LEGEND} {}", ground.describe()?));
    // Before the others, whose memory the allocator keeps: this one looks at how much the process grows.
    large::report(&mut report, &ground)?;
    puts::report(&mut report, &ground)?;
    cached::report(&mut report, &ground)?;
    let memos = dependents::report(&mut report, &ground)?;
    let blobs = grown::report(&mut report, &ground, &memos)?;
    hits::report(&mut report, &ground, &memos)?;
    opening::report(&mut report, &ground, &memos, &blobs)?;
    drop((memos, blobs));
    index_role::report(&mut report, &ground)?;
    match ground.sizes.quick {
        true => Ok(()),
        false => report.keep(),
    }
}

/// The part about the index alone, in a file of its own.
pub(crate) fn index_alone() -> io::Result<()> {
    let ground = Ground::new("content-index")?;
    let mut report = Report::new("content --only index");
    report.say(ground.describe()?);
    index_role::report(&mut report, &ground)?;
    match ground.sizes.quick {
        true => Ok(()),
        false => report.keep(),
    }
}

const LEGEND: &str = "Medians of turns that contender and floor take one after another; ratios are of the same turn. \
    Callers are tasks on tokio's runtime with 2 workers, each waiting for its answer before it asks again. The store \
    has its default settings. CPU is of all threads, in user and kernel mode.";

pub(crate) fn verdict(met: bool) -> &'static str {
    if met { "yes" } else { "NO" }
}

pub(crate) fn percent(ratio: f64) -> String {
    format!("{:.0}%", 100.0 * ratio)
}

/// A number with as many decimals as it deserves, and a comma every three digits.
pub(crate) fn digits(number: f64) -> String {
    match number {
        ..9.95 => format!("{number:.1}"),
        ..999.5 => format!("{number:.0}"),
        _ => {
            let text = format!("{number:.0}");
            let (front, rest) = text.split_at((text.len() - 1) % 3 + 1);
            let groups = rest.as_bytes().chunks(3).map(|group| String::from_utf8_lossy(group).into_owned());
            std::iter::once(front.to_owned()).chain(groups).collect::<Vec<_>>().join(",")
        }
    }
}
