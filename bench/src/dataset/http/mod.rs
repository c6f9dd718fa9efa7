//! Builds over HTTP, each contender against the same scripted server.

mod recipe;
mod child;
mod server;
mod bare;
mod ours;
mod by_column;
mod designer;
mod case;
mod aims;

use std::io;
use std::path::Path;

use aims::Aims;
use anabranch_dataset::JournalPlace;
use case::{Case, Contender, Ground, Turns};
use child::{Job, Server, measured};
use designer::Designer;

use super::Scale;
use crate::report::{Report, row};

const PLAIN: Case = Case { rows: 10_000, latency_ms: 0, parallel: 64, limit: None, retry_after: None };
const LIMITED: Case = Case { rows: 300, latency_ms: 500, parallel: 64, limit: Some(32), retry_after: None };

/// The cases, and the turns of each contender.
const CASES: [(Case, usize); 6] = [
    (PLAIN, 5),
    (Case { parallel: 256, ..PLAIN }, 5),
    (Case { latency_ms: 20, ..PLAIN }, 3),
    (Case { latency_ms: 20, parallel: 256, ..PLAIN }, 3),
    (Case { retry_after: Some("0.5"), ..LIMITED }, 3),
    (LIMITED, 3),
];

/// Rows of the build whose peak memory is compared with that of a tenth of the rows.
const MANY_ROWS: u64 = 10 * PLAIN.rows;

/// Rows that DataDesigner builds, unless it is measured in full.
const DESIGNER_ROWS: u64 = 1_000;

pub(super) fn report(report: &mut Report, scale: Scale) -> io::Result<()> {
    report.heading("Builds over HTTP");
    report.say(format_args!("{LEGEND}"));
    let designer = match Designer::install() {
        Ok(designer) => Some(designer),
        Err(error) => {
            report.say(format_args!("\ndata-designer is left out: {error}"));
            None
        }
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(format!("../target/bench-dataset-http-{}", std::process::id()));
    let ground = Ground { server: Server::start()?, folder, designer };
    let designer_rows = match scale {
        Scale::Quick => 50,
        Scale::Usual => DESIGNER_ROWS,
        Scale::Full => u64::MAX,
    };
    let mut aims = Aims::default();
    for (case, rounds) in CASES {
        let (case, rounds) = match scale {
            Scale::Quick => (Case { rows: case.rows.min(500), ..case }, 1),
            Scale::Usual | Scale::Full => (case, rounds),
        };
        let mut turns = ground.measure(&case, &contenders(&case), rounds)?;
        let designer = ground.designer.as_ref().map(|_| ground.measure_designer(&case, designer_rows));
        let failed = designer.and_then(|turn| turn.map(|turn| turns.push(turn)).err());
        report_case(report, &case, &turns);
        if let Some(error) = failed {
            report.say(format_args!("data-designer failed: {error}"));
        }
        aims.note(&case, &turns);
    }
    let (rows, rounds) = if scale == Scale::Quick { (5_000, 1) } else { (MANY_ROWS, 3) };
    let many = Case { rows, parallel: 256, ..PLAIN };
    let turns = ground.measure(&many, &[Contender::Ours], rounds)?;
    aims.note_many(&many, &turns[0]);
    aims.report(report);
    Ok(())
}

const LEGEND: &str = "Two samplers, three columns of a model (`b` reads `a`; `a` and `c` read the samplers) and an expression \
    per row: 3 calls. The server is one thread in a process of its own; it answers after the given time with 60 words. Each \
    turn is a process of its own, which reports its CPU time (all threads, user and kernel) and its peak memory (VmHWM). \
    `bare` is the floor: a plain hyper client that makes the same calls with the same dependencies, parses the replies and \
    keeps nothing. `ours` reads the configuration and writes Parquet files. `ours, column by column` is the same engine with \
    columns as batches over all rows, each after the one before; its prompts are made without templates. It has no retries, \
    so it is left out where the server answers 429. `data-designer` reads the same configuration and has one turn. Figures \
    are medians of turns that contenders take one after another; ratios are of the same turn. Wall, CPU per call and ratios \
    leave out the start of the process, which is only long for data-designer (imports); `whole CPU` has it. CPU per call \
    counts the calls that the rows need; extra calls are those beyond. `in flight` is the mean at the server, which holds no \
    call when it answers at once.";

fn contenders(case: &Case) -> Vec<Contender> {
    let mut contenders = vec![Contender::Bare, Contender::Ours, Contender::NoJournal];
    if case.limit.is_none() {
        contenders.push(Contender::ByColumn);
    }
    contenders
}

fn report_case(report: &mut Report, case: &Case, all: &[Turns]) {
    report.say(format_args!("\n### {}\n", case.title()));
    let mut rows = vec![row([
        "contender",
        "rows",
        "turns",
        "wall",
        "CPU",
        "whole CPU",
        "CPU per call",
        "x bare",
        "peak memory",
        "calls",
        "extra",
        "429s",
        "in flight",
        "connections",
        "rows out",
    ])];
    for turns in all {
        let count = |of: fn(&case::Turn) -> u64| format!("{:.0}", turns.median(|turn| of(turn) as f64));
        let seconds = |of: fn(&case::Turn) -> f64| format!("{:.2} s", turns.median(of));
        rows.push(vec![
            turns.contender.name(case),
            turns.rows.to_string(),
            turns.turns.len().to_string(),
            seconds(|turn| turn.work.wall),
            seconds(|turn| turn.work.cpu),
            seconds(|turn| turn.work.whole_cpu),
            format!("{:.1} us", turns.median(case::Turn::cpu_per_call)),
            format!("{:.2}", turns.ratio(&all[0], case::Turn::cpu_per_call)),
            format!("{:.0} MB", turns.median(|turn| turn.work.peak)),
            count(|turn| turn.served.calls),
            format!("{:.1}%", turns.median(case::Turn::extra)),
            count(|turn| turn.served.refused),
            format!(
                "{:.1} (most {:.0})",
                turns.median(|turn| turn.served.mean_in_flight),
                turns.median(|turn| turn.served.most_in_flight as f64)
            ),
            count(|turn| turn.served.connections),
            count(|turn| turn.work.rows),
        ]);
    }
    report.table(&rows);
    let server = all[0].median(|turn| turn.served.cpu * 1e6 / turn.calls as f64);
    let ideal = case.ideal_wall();
    report.say(format_args!(
        "\nThe server's CPU per call of `bare`: {server:.1} us. The ideal wall: {ideal:.2} s."
    ));
}

/// The server, or one turn of a contender.
pub(super) fn child(settings: &[&str]) -> io::Result<()> {
    let [role, arguments @ ..] = settings else { return Err(io::Error::other("a child has a role")) };
    if *role == "serve" {
        return server::run();
    }
    let job = Job::parse(arguments).ok_or_else(|| io::Error::other("a turn is PORT ROWS PARALLEL FOLDER"))?;
    measured(|| match Contender::of_role(role) {
        Some(Contender::Bare) => bare::run(&job),
        Some(Contender::Ours) => ours::run(&job, JournalPlace::OutputFolder),
        Some(Contender::NoJournal) => ours::run(&job, JournalPlace::Nowhere),
        Some(Contender::ByColumn) => by_column::run(&job),
        Some(Contender::DataDesigner) | None => Err(io::Error::other("no such role")),
    })
}
