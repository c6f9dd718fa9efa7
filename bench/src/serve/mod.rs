//! `./dev bench serve`: a plan over HTTP beside a bare axum server, overload, and idle listeners.
//!
//! Servers are processes of their own, so that their CPU time and memory can be told from the load generator's.

mod floor;
mod idle;
mod load;
mod process;

use std::io;
use std::path::Path;

use load::{Load, Measured};
use process::ServerProcess;

use crate::plan::{Aims, ServedProject};
use crate::report::{Report, row};

pub(crate) use floor::run as run_floor;

/// The plan that is asked for, as rankd has it.
const PLAN: &str = "reels_plan_a";

/// Connections of the load generator, each with one request at a time.
const CONNECTIONS: u32 = 64;

/// Each server is measured so often, in turns.
const ROUNDS: usize = 5;

/// Seconds of one turn.
const SECONDS: u32 = 4;

/// Idle listeners of events.
const LISTENERS: usize = 1_000;

pub(crate) fn bench() -> io::Result<()> {
    let mut report = Report::new("serve");
    let mut aims = Aims::default();
    let project = ServedProject::write(PLAN)?;
    let ours = ServerProcess::ours(project.path())?;
    let answer = ours.answer(PLAN)?;
    let floor = ServerProcess::floor(&answer)?;
    let peak = throughput(&mut report, &mut aims, &ours, &floor, project.path())?;
    overload(&mut report, &mut aims, &ours, peak, project.path())?;
    idle::report(&mut report, &mut aims, &ours, LISTENERS)?;
    aims.report(&mut report);
    report.keep()
}

/// Answers `peak`, the requests per second that our server got done at most.
fn throughput(
    report: &mut Report,
    aims: &mut Aims,
    ours: &ServerProcess,
    floor: &ServerProcess,
    folder: &Path,
) -> io::Result<f64> {
    report.heading("A plan over HTTP/1.1");
    report.say(format_args!(
        "`{PLAN}` on the memory source, {CONNECTIONS} connections of h2load with one request each, {ROUNDS} turns of \
         {SECONDS} s in alternation. The floor is axum alone: it reads the body as JSON and answers the bytes that our \
         server answered once. Load generator and server share the machine's cores. CPU is of the server process.\n"
    ));
    let mut rows =
        vec![row(["server", "requests/s", "of the floor", "CPU us each", "p50", "p99", "best p99"])];
    let mut turns = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for (server, turns) in [floor, ours].into_iter().zip(&mut turns) {
            turns.push(Load::closed(CONNECTIONS, SECONDS).run(server, PLAN, folder)?);
        }
    }
    let [floor, ours] = turns.map(|turns| Summary::of(&turns));
    for (name, summary) in [("axum alone", &floor), ("anabranch serve", &ours)] {
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
    aims.add(
        "at least 60% of the floor's requests per second",
        format!("{:.0}%", share * 100.0),
        share >= 0.6,
    );
    aims.add("p99 at most 2x the floor's", format!("{late:.2}x"), late <= 2.0);
    Ok(ours.rate)
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
    fn of(turns: &[Measured]) -> Summary {
        let middle = |of: fn(&Measured) -> f64| {
            let mut values: Vec<f64> = turns.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        Summary {
            rate: middle(Measured::goodput),
            cpu_micros: middle(Measured::cpu_micros),
            p50: middle(|turn| turn.percentile(0.5)),
            p99: middle(|turn| turn.percentile(0.99)),
            best_p99: turns.iter().map(|turn| turn.percentile(0.99)).fold(f64::INFINITY, f64::min),
        }
    }
}

/// Twice as many requests as the server can answer, sent at a fixed rate whether it keeps up or not.
fn overload(
    report: &mut Report,
    aims: &mut Aims,
    ours: &ServerProcess,
    peak: f64,
    folder: &Path,
) -> io::Result<()> {
    report.heading("Overload");
    report
        .say("Requests are sent at a rate of so many times the peak above; answers are counted by status.\n");
    let mut rows = vec![row(["rate", "sent/s", "answered/s", "of the peak", "429 or 503", "failed", "p99"])];
    for times in [1.0, 2.0] {
        let measured = Load::open(CONNECTIONS * 8, SECONDS, peak * times).run(ours, PLAN, folder)?;
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
        if times > 1.0 {
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
