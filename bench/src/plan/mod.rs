//! Plans beside the same work by hand, by polars, and as it is often done.

mod plans;
mod data;
mod server;
mod turns;
mod by_hand;
mod cpu;
mod own_ops;
mod ours;
mod polars_peer;
mod aims;
mod over_redis;
mod redis_rs;
mod floor;
mod driver;
mod hedge;
mod guarded;
mod pipelines;
mod embedded;
mod by_op;
mod offload;
mod typescript;
mod served;

use std::io;
use std::time::Duration;

pub(crate) use aims::Aims;
pub(crate) use served::ServedProject;
use tokio::runtime::{Builder, Runtime};
use turns::Pace;

use crate::report::Report;

const PACE: Pace = Pace { rounds: 7, window: Duration::from_millis(250) };

pub(crate) fn bench() -> io::Result<()> {
    let mut report = Report::new("plan");
    measure(&mut report, PACE, &PARTS)?;
    report.keep()
}

/// Small turns, and no file kept: to try the bench, not the plans.
pub(crate) fn try_out() -> io::Result<()> {
    measure(&mut Report::new("plan"), Pace { rounds: 2, window: Duration::from_millis(20) }, &PARTS)
}

/// One part of it, and no file kept: to look closer.
pub(crate) fn one_part(name: &str) -> io::Result<()> {
    let part = PARTS.iter().find(|(part, _)| *part == name);
    let names = PARTS.map(|(part, _)| part).join(", ");
    let part = part.ok_or_else(|| io::Error::other(format!("no part `{name}`; there are {names}")))?;
    measure(&mut Report::new("plan"), PACE, &[*part])
}

type Part = (&'static str, fn(&mut Report, &mut Aims, Pace) -> io::Result<()>);

const PARTS: [Part; 9] = [
    ("memory", embedded::report),
    ("cpu", pipelines::report),
    ("ops", by_op::report),
    ("offload", offload::report),
    ("redis", over_redis::report),
    ("driver", driver::report),
    ("hedge", hedge::report),
    ("guarded", guarded::report),
    ("typescript", typescript::report),
];

fn measure(report: &mut Report, pace: Pace, parts: &[Part]) -> io::Result<()> {
    let mut aims = Aims::default();
    for (_, part) in parts {
        part(report, &mut aims, pace)?;
    }
    aims.report(report);
    Ok(())
}

/// A runtime that is the calling thread.
fn in_place() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// A number with as many decimals as it deserves.
fn digits(number: f64) -> String {
    match number {
        ..9.95 => format!("{number:.1}"),
        _ => format!("{number:.0}"),
    }
}
