//! Plans beside the same work by hand, by polars, and as it is often done.

mod plans;
mod data;
mod server;
mod turns;
mod by_hand;
mod cpu;
mod ours;
mod polars_peer;
mod aims;
mod over_redis;
mod pipelines;
mod embedded;
mod offload;

use std::io;
use std::time::Duration;

use aims::Aims;
use tokio::runtime::{Builder, Runtime};
use turns::Pace;

pub(crate) use polars_peer::{ARGUMENT as POLARS_PEER, be_a_peer};

use crate::report::Report;

pub(crate) fn bench() -> io::Result<()> {
    let pace = Pace { rounds: 7, window: Duration::from_millis(250) };
    let mut report = Report::new("plan");
    measure(&mut report, pace)?;
    report.keep()
}

/// Small turns, and no file kept: to try the bench, not the plans.
pub(crate) fn try_out() -> io::Result<()> {
    measure(&mut Report::new("plan"), Pace { rounds: 2, window: Duration::from_millis(20) })
}

fn measure(report: &mut Report, pace: Pace) -> io::Result<()> {
    let short = Pace { window: pace.window / 10, ..pace };
    let mut aims = Aims::default();
    embedded::report(report, &mut aims, short)?;
    pipelines::report(report, &mut aims, Pace { window: pace.window / 4, ..pace })?;
    offload::report(report, short)?;
    over_redis::report(report, &mut aims, pace)?;
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
