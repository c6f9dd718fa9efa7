//! The engine beside its peers, what it promises, and what a trip to another thread costs.

mod shapes;
mod work;
mod contender;
mod bare;
mod ours;
mod tokio_tasks;
mod blocking;
mod boxed;
mod dagrs_peer;
mod aims;
mod flow;
mod scores;
mod offload;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use bare::Bare;
use blocking::BlockingTasks;
use boxed::BoxedFutures;
use contender::measure;
use dagrs_peer::Dagrs;
use ours::{Ours, PooledEngine};
use shapes::{SHAPES, Shape};
use tokio_tasks::TokioTasks;
use work::Kind;

use crate::report::Report;
use crate::watch::Share;

pub(crate) fn bench() -> io::Result<()> {
    let mut report = Report::new("engine");
    aims::report(&mut report);
    offload::report(&mut report);
    report.heading("Beside others");
    report.say(LEGEND);
    compare(&mut report, "Inline nodes", Kind::Inline, &EVERYWHERE);
    compare(&mut report, "Async nodes (pending once)", Kind::Async, &EVERYWHERE);
    compare(
        &mut report,
        "CPU nodes (a job of about 200 ns)",
        Kind::Cpu,
        &[&EVERYWHERE[..], &CPU_ONLY].concat(),
    );
    report.keep()
}

const LEGEND: &str = "Nanoseconds a node: wall / CPU (of all threads), and wall time as a multiple of ours. The \
    fastest of several batches after a warm-up; building graphs, policies and engines is not timed, making a run is.\n\
    `bare`: a loop over counters. `tasks`: a tokio task a node, spawned by a countdown, on 1 and 2 threads. `boxed`: \
    recursive boxed `Shared` futures. `dagrs`: version 0.9.0. `blocking`: a `spawn_blocking` a node. All but `tasks \
    x2` on tokio's current-thread runtime. `pooled`: ours with every job forced to the CPU pool, chains fused.";

/// A column: its heading, and how to measure a cell.
type Column = (&'static str, fn(&Arc<Shape>, Kind) -> Result<Share, &'static str>);

const EVERYWHERE: [Column; 6] = [
    ("ours", measure::<Ours>),
    ("bare", measure::<Bare>),
    ("tasks x1", measure::<TokioTasks<1>>),
    ("tasks x2", measure::<TokioTasks<2>>),
    ("boxed", measure::<BoxedFutures>),
    ("dagrs", measure::<Dagrs>),
];
const CPU_ONLY: [Column; 2] = [("pooled", measure::<PooledEngine>), ("blocking", measure::<BlockingTasks>)];

fn compare(report: &mut Report, title: &str, kind: Kind, columns: &[Column]) {
    let heading = ["graph", "nodes"].into_iter().chain(columns.iter().map(|column| column.0));
    let mut rows = vec![heading.map(str::to_owned).collect::<Vec<_>>()];
    let mut left_out: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for make in SHAPES {
        for nodes in [10, 1_000, 100_000] {
            let shape = Arc::new(make(nodes));
            let mut row = vec![shape.name.to_owned(), nodes.to_string()];
            let mut ours = None;
            for (name, measure) in columns {
                row.push(match measure(&shape, kind) {
                    Ok(share) => cell(share, *ours.get_or_insert(share.wall)),
                    Err(reason) => {
                        let graph = format!("{} of {nodes}", shape.name);
                        left_out.entry((name, reason)).or_default().push(graph);
                        "-".to_owned()
                    }
                });
            }
            rows.push(row);
        }
    }
    report.say(format_args!("\n{title}:\n"));
    report.table(&rows);
    for ((name, reason), graphs) in left_out {
        report.say(format_args!("\n`{name}` without {}: {reason}.", graphs.join(", ")));
    }
}

fn cell(share: Share, ours: f64) -> String {
    format!("{} / {} ({}x)", digits(share.wall), digits(share.cpu), digits(share.wall / ours))
}

/// A number with as many decimals as it deserves.
fn digits(number: f64) -> String {
    match number {
        ..9.95 => format!("{number:.1}"),
        _ => format!("{number:.0}"),
    }
}
