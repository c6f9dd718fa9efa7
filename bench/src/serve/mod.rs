//! `./dev bench serve`: a plan over HTTP beside a bare axum server, overload, idle listeners, and the start.
//!
//! Servers are processes of their own, so that their CPU time and memory can be told from the load generator's.

mod floor;
mod idle;
mod load;
mod process;
mod start;

use std::io;
use std::path::Path;

use load::{Load, LoadReport, Protocol};
use process::ServerProcess;

use crate::plan::{Aims, ServedProject};
use crate::report::{Report, row};

pub(crate) use floor::run as run_floor;
pub(crate) use process::beside;

/// The plan that is asked for, as rankd has it.
const PLAN: &str = "reels_plan_a";

/// A plan whose requests take a few milliseconds of a core: a load generator can send more than the server answers.
const BUSY_PLAN: &str = "busy";
const BUSY_ROWS: usize = 1_000_000;
const BUSY_DEADLINE_MS: u64 = 100;

/// Connections of the load generator, each with one request at a time.
const CONNECTIONS: u32 = 64;

/// Connections that send at a fixed rate: more than are answered within a deadline at the peak.
const OVERLOAD_CONNECTIONS: u32 = 1_024;

/// The settings of our servers. One address has at most seven eighths of the connections, and the server closes further
/// ones, which the load generator does not open again.
const SETTINGS: [&str; 2] = ["--max-connections", "2048"];

/// The turns of each rate of overload.
const OVERLOAD_TURNS: usize = 3;

/// Each server is measured so often, in turns.
const ROUNDS: usize = 5;

/// Seconds of one turn.
const SECONDS: u32 = 4;

/// Idle listeners of events.
const LISTENERS: usize = 1_000;

/// The parts, in their order, under the names that `--only` knows.
const PARTS: [(&str, Part); 5] =
    [("http", http), ("grpc", grpc), ("overload", overload), ("idle", idle), ("start", start::report)];

type Part = fn(&mut Report, &mut Aims) -> io::Result<()>;

/// Measures all parts and keeps the report, or one part and keeps nothing.
pub(crate) fn bench(only: Option<&str>) -> io::Result<()> {
    let parts: Vec<Part> = PARTS
        .into_iter()
        .filter(|(name, _)| only.is_none_or(|only| only == *name))
        .map(|(_, part)| part)
        .collect();
    if parts.is_empty() {
        let names = PARTS.map(|(name, _)| name).join(", ");
        let only = only.unwrap_or_default();
        return Err(io::Error::other(format!("there is no part {only:?}; it may be {names}")));
    }
    let (mut report, mut aims) = (Report::new("serve"), Aims::default());
    for part in parts {
        part(&mut report, &mut aims)?;
    }
    aims.report(&mut report);
    match only {
        Some(_) => Ok(()),
        None => report.keep(),
    }
}

fn project() -> io::Result<ServedProject> {
    ServedProject::write(PLAN, (BUSY_PLAN, BUSY_ROWS, BUSY_DEADLINE_MS))
}

fn http(report: &mut Report, aims: &mut Aims) -> io::Result<()> {
    beside_floor(report, aims, Protocol::Http)
}

fn grpc(report: &mut Report, aims: &mut Aims) -> io::Result<()> {
    beside_floor(report, aims, Protocol::Grpc)
}

fn beside_floor(report: &mut Report, aims: &mut Aims, protocol: Protocol) -> io::Result<()> {
    let project = project()?;
    let ours = ServerProcess::ours(project.path(), &SETTINGS)?;
    let floor = ServerProcess::floor(&ours, PLAN, project.path())?;
    throughput(report, aims, protocol, [&ours, &floor], project.path())
}

fn idle(report: &mut Report, aims: &mut Aims) -> io::Result<()> {
    // Not the server of another part: one that has been busy has memory to spare, and would not grow.
    let project = project()?;
    idle::report(report, aims, &ServerProcess::ours(project.path(), &SETTINGS)?, LISTENERS)
}

/// A plan beside the floor, as fast as both answer.
fn throughput(
    report: &mut Report,
    aims: &mut Aims,
    protocol: Protocol,
    [ours, floor]: [&ServerProcess; 2],
    folder: &Path,
) -> io::Result<()> {
    let (name, bare) = match protocol {
        Protocol::Http => ("HTTP/1.1", "axum alone"),
        Protocol::Grpc => ("gRPC", "tonic alone"),
    };
    report.heading(&format!("A plan over {name}"));
    report.say(format_args!(
        "`{PLAN}` on the memory source, {CONNECTIONS} connections of h2load with one request each, {ROUNDS} turns of \
         {SECONDS} s in alternation. The floor is {bare}: it parses the request and answers as our server answered \
         once. Load generator and server share the machine's cores. CPU is of the server process.\n"
    ));
    let mut rows =
        vec![row(["server", "requests/s", "of the floor", "CPU us each", "p50", "p99", "best p99"])];
    let mut turns = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for (server, turns) in [floor, ours].into_iter().zip(&mut turns) {
            turns.push(Load::closed(protocol, CONNECTIONS, SECONDS).run(server, PLAN, folder)?);
        }
    }
    let [floor, ours] = turns.map(|turns| Summary::of(&turns));
    for (name, summary) in [(bare, &floor), ("anabranch serve", &ours)] {
        let millis = |micros: f64| format!("{:.2} ms", micros / 1e3);
        rows.push(row([
            name,
            &format!("{:.0}", summary.rate),
            &format!("{:.2}x", summary.rate / floor.rate),
            &format!("{:.1}", summary.cpu_micros),
            &millis(summary.p50),
            &millis(summary.p99),
            &millis(summary.best_p99),
        ]));
    }
    report.table(&rows);
    let (share, late) = (ours.rate / floor.rate, ours.p99 / floor.p99);
    let rate = format!("{name}: at least 60% of the floor's requests per second");
    aims.add(&rate, format!("{:.0}%", share * 100.0), share >= 0.6);
    aims.add(&format!("{name}: p99 at most 2x the floor's"), format!("{late:.2}x"), late <= 2.0);
    Ok(())
}

/// Medians of several turns.
struct Summary {
    rate: f64,
    cpu_micros: f64,
    p50: f64,
    p99: f64,
    best_p99: f64,
}

impl Summary {
    fn of(turns: &[LoadReport]) -> Summary {
        let middle = |of: fn(&LoadReport) -> f64| {
            let mut values: Vec<f64> = turns.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        Summary {
            rate: middle(LoadReport::goodput),
            cpu_micros: middle(LoadReport::cpu_micros),
            p50: middle(|turn| turn.percentile(0.5)),
            p99: middle(|turn| turn.percentile(0.99)),
            best_p99: turns.iter().map(|turn| turn.percentile(0.99)).fold(f64::INFINITY, f64::min),
        }
    }
}

/// Twice as many requests as the server can answer, sent at a fixed rate whether it keeps up or not.
fn overload(report: &mut Report, aims: &mut Aims) -> io::Result<()> {
    let project = project()?;
    let (ours, folder) = (&ServerProcess::ours(project.path(), &SETTINGS)?, project.path());
    report.heading("Overload");
    report.say(format_args!(
        "A plan that filters, scores and sorts {BUSY_ROWS} rows, with a deadline of {BUSY_DEADLINE_MS} ms. The peak is \
         the most that {CONNECTIONS} connections get in {OVERLOAD_TURNS} turns on a fresh server, each with one request at a \
         time. Then requests are sent at an even rate, a multiple of the peak, on {OVERLOAD_CONNECTIONS} connections; \
         answers are counted by status. Each row is the middle one of {OVERLOAD_TURNS} turns by its answers. The server runs \
         with `{}`.\n",
        SETTINGS.join(" ")
    ));
    // Before any overload: a server that has learned to shed is asked again at once by these connections, which leaves
    // less of it for answers.
    let mut peak = 0.0_f64;
    for _ in 0..OVERLOAD_TURNS {
        let load = Load::closed(Protocol::Http, CONNECTIONS, SECONDS).run(ours, BUSY_PLAN, folder)?;
        peak = peak.max(load.goodput());
    }
    let mut rows = vec![row(["rate", "sent/s", "answered/s", "of the peak", "429 or 503", "failed", "p99"])];
    rows.push(row(["peak", "", &format!("{peak:.0}"), "100%", "", "", ""]));
    for times in [1.0, 2.0, 4.0] {
        let mut turns = Vec::new();
        for _ in 0..OVERLOAD_TURNS {
            turns.push(Load::open(OVERLOAD_CONNECTIONS, SECONDS, peak * times).run(ours, BUSY_PLAN, folder)?);
        }
        turns.sort_by(|one, other| one.goodput().total_cmp(&other.goodput()));
        let measured = &turns[OVERLOAD_TURNS / 2];
        let share = measured.goodput() / peak;
        rows.push(row([
            &format!("{times}x"),
            &format!("{:.0}", measured.sent()),
            &format!("{:.0}", measured.goodput()),
            &format!("{:.0}%", share * 100.0),
            &measured.shed().to_string(),
            &measured.failed().to_string(),
            &format!("{:.2} ms", measured.percentile(0.99) / 1e3),
        ]));
        if times == 2.0 {
            // A generator that cannot send that much overloads nothing.
            let is_overload = measured.sent() >= 1.8 * peak;
            let told = match is_overload {
                true => format!("{:.0}%", share * 100.0),
                false => format!("not reached: {:.0} requests/s sent", measured.sent()),
            };
            aims.add("at 2x overload, answers above 90% of the peak", told, is_overload && share > 0.9);
        }
    }
    report.table(&rows);
    Ok(())
}
