//! Plans that read from a real Redis, beside the same by hand.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_plan::source::{self, Fault, Source};
use tokio::runtime::Runtime;

use super::aims::Aims;
use super::by_hand::{self, Connections, Reads, Row, Style};
use super::digits;
use super::ours::{self, Ours};
use super::plans;
use super::server::Server;
use super::turns::{Pace, ServeReport, median, ratio, serve, take_turns};
use crate::report::{Report, row};

/// A Redis with the rows, and the ways to it.
struct Ground {
    runtime: Runtime,
    server: Server,
    source: Arc<dyn Source>,
    connections: Connections,
}

/// What is asked for.
#[derive(Clone, Copy)]
enum AskedPlan {
    Feed(usize),
    Follow(usize),
}

pub(super) fn report(report: &mut Report, aims: &mut Aims, pace: Pace) -> io::Result<()> {
    let ground = Ground::new()?;
    let count = ground.connections.len();
    report.heading("Over Redis");
    report.say(format_args!(
        "redis-server {} on the loopback; {count} connections for each program, shared by all its callers. Callers are \
        tasks on tokio's runtime with 2 workers. Medians of {} turns of {} ms; ratios are of the same round.\n",
        ground.server.version(),
        pace.rounds,
        pace.window.as_millis()
    ));
    let mut rows = vec![row(HEADING)];
    for asked in
        [AskedPlan::Feed(100), AskedPlan::Follow(10), AskedPlan::Follow(100), AskedPlan::Follow(1_000)]
    {
        let reads = ground.reads(asked);
        ground.check(asked);
        for callers in [1, 10, 100] {
            let turns = ground.measure(asked, callers, pace);
            rows.extend(table(asked, callers, &reads, &turns));
            judge(asked, callers, &turns, aims);
        }
        if let AskedPlan::Feed(_) = asked {
            let ours = &reads[0];
            let measured = format!("{}, {} in a row", ours.trips, ours.in_a_row);
            let met = ours.trips <= 8 && ours.in_a_row <= 4;
            aims.add(&format!("`{}`: at most 8 trips, 4 in a row", asked.name()), measured, met);
        }
    }
    report.table(&rows);
    report.say(format_args!("\n{LEGEND}"));
    Ok(())
}

const LEGEND: &str = "`lean`: by hand, one pipelined trip a level, only what the answer needs. `letter`: by hand, one \
    pipelined trip a level, all reads that the plan names (the viewer, every user's country). `naive`: by hand, a command \
    at a time, each awaited, `HGETALL` a row, two branches at once. All with the same client crate. CPU is of all threads \
    of the process, a request; the Redis has its own column. The trips of ours are counted by its own tally, those \
    in a row by what a request takes when each trip takes 20 ms.";

const HEADING: [&str; 11] = [
    "plan",
    "callers",
    "program",
    "p50 us",
    "p99 us",
    "CPU us",
    "Redis CPU us",
    "trips",
    "in a row",
    "commands",
    "to `lean`: p50, CPU",
];

const PROGRAMS: [&str; 4] = ["ours", "lean", "letter", "naive"];

impl Ground {
    fn new() -> io::Result<Ground> {
        let server = Server::start();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let (redis, config) = ours::redis(server.port());
        let data = ours::embedded();
        runtime.block_on(source::seed(&data, &redis)).map_err(io::Error::other)?;
        let connections = Connections::open(server.port(), config.connections);
        let connections = runtime.block_on(connections).map_err(io::Error::other)?;
        Ok(Ground { runtime, server, source: Arc::new(redis), connections })
    }

    fn ours(&self, asked: AskedPlan) -> Ours {
        Ours::new(&asked.plan(), Arc::clone(&self.source))
    }

    /// All programs give the same answer.
    fn check(&self, asked: AskedPlan) {
        let ours = self.ours(asked);
        let rows = self.runtime.block_on(ours.rows());
        assert!(!rows.is_empty(), "{} has an answer", asked.name());
        for style in [Style::Lean, Style::Letter, Style::Naive] {
            let theirs = self.runtime.block_on(asked.by_hand(self.connections.clone(), style));
            assert_eq!(rows, theirs, "{} by hand, {style:?}", asked.name());
        }
    }

    /// What each program reads.
    fn reads(&self, asked: AskedPlan) -> [Reads; 4] {
        let stats = self.runtime.block_on(self.ours(asked).answer()).stats;
        let ours = Reads {
            trips: stats.trips as usize,
            in_a_row: self.trips_in_a_row(asked),
            commands: stats.commands as usize,
        };
        let [lean, letter, naive] = [Style::Lean, Style::Letter, Style::Naive].map(|style| match asked {
            AskedPlan::Feed(fanout) => style.reads_of_feed(fanout),
            AskedPlan::Follow(fanout) => style.reads_of_follow(fanout),
        });
        [ours, lean, letter, naive]
    }

    /// How many trips wait for one another: how much longer a request takes than a trip, when trips take long.
    fn trips_in_a_row(&self, asked: AskedPlan) -> usize {
        const DELAY: Duration = Duration::from_millis(20);
        let slow = ours::memory(&ours::embedded()).with_fault("", Fault { delay: DELAY, ..Fault::default() });
        let ours = Ours::new(&asked.plan(), Arc::new(slow));
        let timed = || {
            let began = Instant::now();
            self.runtime.block_on(ours.answer());
            (began.elapsed().as_nanos() / DELAY.as_nanos()) as usize
        };
        (0..3).map(|_| timed()).min().expect("three times")
    }

    fn measure(&self, asked: AskedPlan, callers: usize, pace: Pace) -> Vec<Vec<ServeReport>> {
        let ours = self.ours(asked);
        let turn = |program: usize, window: Duration| {
            let style = match program {
                0 => {
                    let ours = ours.clone();
                    return serve(&self.runtime, &self.server, callers, window, move || {
                        let ours = ours.clone();
                        async move { drop(std::hint::black_box(ours.answer().await)) }
                    });
                }
                1 => Style::Lean,
                2 => Style::Letter,
                _ => Style::Naive,
            };
            let connections = self.connections.clone();
            serve(&self.runtime, &self.server, callers, window, move || {
                let connections = connections.clone();
                async move { drop(std::hint::black_box(asked.by_hand(connections, style).await)) }
            })
        };
        for program in 0..PROGRAMS.len() {
            turn(program, pace.window / 4);
        }
        take_turns(pace.rounds, PROGRAMS.len(), |program| turn(program, pace.window))
    }
}

impl AskedPlan {
    fn name(self) -> String {
        match self {
            AskedPlan::Feed(fanout) => format!("feed_{fanout}"),
            AskedPlan::Follow(fanout) => format!("follow_{fanout}"),
        }
    }

    fn plan(self) -> String {
        match self {
            AskedPlan::Feed(fanout) => plans::feed(fanout),
            AskedPlan::Follow(fanout) => plans::follow(fanout),
        }
    }

    async fn by_hand(self, connections: Connections, style: Style) -> Vec<Row> {
        let rows = match self {
            AskedPlan::Feed(fanout) => by_hand::feed(&connections, fanout, style).await,
            AskedPlan::Follow(fanout) => by_hand::follow(&connections, fanout, style).await,
        };
        rows.expect("the Redis answers")
    }
}

fn table(
    asked: AskedPlan,
    callers: usize,
    reads: &[Reads; 4],
    turns: &[Vec<ServeReport>],
) -> Vec<Vec<String>> {
    let line = |program: usize| {
        let (reads, turns, lean) = (&reads[program], &turns[program], &turns[1]);
        let of = |pick: fn(&ServeReport) -> f64| digits(median(turns.iter().map(pick)));
        vec![
            asked.name(),
            callers.to_string(),
            PROGRAMS[program].to_owned(),
            of(|turn| turn.p50),
            of(|turn| turn.p99),
            of(|turn| turn.cpu),
            of(|turn| turn.redis),
            reads.trips.to_string(),
            reads.in_a_row.to_string(),
            reads.commands.to_string(),
            format!(
                "{:.2}x, {:.2}x",
                ratio(turns, lean, |turn| turn.p50),
                ratio(turns, lean, |turn| turn.cpu)
            ),
        ]
    };
    (0..PROGRAMS.len()).map(line).collect()
}

fn judge(asked: AskedPlan, callers: usize, turns: &[Vec<ServeReport>], aims: &mut Aims) {
    let to = |program: usize, of: fn(&ServeReport) -> f64| ratio(&turns[0], &turns[program], of);
    let (latency, cpu) = (to(1, |turn| turn.p50), to(1, |turn| turn.cpu));
    let (letter, letter_cpu) = (to(2, |turn| turn.p50), to(2, |turn| turn.cpu));
    let what = format!("`{}` at concurrency {callers}", asked.name());
    if let AskedPlan::Feed(_) | AskedPlan::Follow(1_000) = asked {
        let measured = format!(
            "{latency:.2}x, {cpu:.2}x of the leanest; {letter:.2}x, {letter_cpu:.2}x of the one by the letter"
        );
        let met = latency <= 1.3 && cpu <= 1.3;
        aims.add(&format!("{what}: within 1.3x of the floor in latency and CPU"), measured, met);
    }
    if let AskedPlan::Feed(_) = asked {
        let faster = 1.0 / to(3, |turn| turn.p50);
        aims.add(&format!("{what}: at least 10x the naive one"), format!("{faster:.1}x"), faster >= 10.0);
    }
}
