//! Recipes beside their floors, and beside a plain executor that recurses with boxed futures.
//!
//! All contenders take turns; a figure is the median of the turns, a ratio the median of the turns' ratios.
//! `ANABRANCH_BENCH_QUICK=1` takes small sizes and keeps no file: to try the bench, not the executor.

mod turns;
mod shapes;
mod baseline;
mod hits;
mod blocking;
mod nodes;
mod wide;
mod puts;
mod echo;
mod grpc_server;
mod calls;
mod streams;
mod large;
mod depth;
mod files;

use std::io;

use crate::content::ground::Ground;
use crate::report::Report;

/// The parts, in the order they are made in, under the names that `--only` knows.
const PARTS: [(&str, Part); 10] = [
    ("hits", hits::report),
    ("blocking", blocking::report),
    ("nodes", nodes::report),
    ("wide", wide::report),
    ("puts", puts::report),
    ("calls", calls::report),
    ("streams", streams::report),
    ("large", large::report),
    ("depth", depth::report),
    ("files", files::report),
];

type Part = fn(&mut Report, &Ground) -> io::Result<()>;

/// Measures all parts and keeps the report, or one part and keeps nothing.
pub(crate) fn bench(only: Option<&str>) -> io::Result<()> {
    let parts: Vec<Part> = PARTS
        .iter()
        .filter(|(name, _)| only.is_none_or(|only| only == *name))
        .map(|(_, part)| *part)
        .collect();
    if parts.is_empty() {
        let names = PARTS.map(|(name, _)| name).join(", ");
        return Err(io::Error::other(format!(
            "there is no part {:?}; it may be {names}",
            only.unwrap_or("")
        )));
    }
    let ground = Ground::new("recipe")?;
    let mut report = Report::new("recipe");
    report.say(format_args!("{LEGEND} {}", ground.describe()?));
    for part in parts {
        part(&mut report, &ground)?;
    }
    match ground.sizes.quick || only.is_some() {
        true => Ok(()),
        false => report.keep(),
    }
}

const LEGEND: &str = "Medians of turns that contender and floor take one after another; ratios are of the same turn. \
    `baseline` is the executor of the design this crate began from, written plainly: recursion with boxed futures, a \
    cache behind tokio's RwLock, one table of computations under way, inputs joined with try_join_all, every function \
    on a thread of spawn_blocking, leaves and recipes in maps in memory. It runs the same functions. CPU is of all \
    threads, in user and kernel mode. The executor has its default settings; `on disk` and `in memory` say where its \
    store is.";
