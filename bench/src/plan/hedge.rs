//! One slow connection in ten, with and without hedged reads.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anabranch_plan::source::{self, Hedge, Redis, RedisConfig};
use anabranch_testkit::DelayProxy;

use super::aims::Aims;
use super::digits;
use super::ours::{self, Ours};
use super::plans;
use super::server::Server;
use super::turns::{Pace, ServeReport, median, ratio, serve, take_turns};
use crate::report::{Report, row};

const CONNECTIONS: usize = 10;
const CALLERS: usize = 4;

/// How late replies are on the slow connection.
const LATE: Duration = Duration::from_millis(20);

const WAYS: [(&str, Option<f64>); 3] =
    [("not hedged", None), ("budget 5%", Some(0.05)), ("budget 10%", Some(0.1))];

/// A way to the Redis, with the proxy that it leads through.
struct Way {
    _proxy: DelayProxy,
    ours: Ours,
}

impl Way {
    fn new(server: &Server, budget: Option<f64>) -> Way {
        let slow =
            |number: usize| if number % CONNECTIONS == CONNECTIONS - 1 { LATE } else { Duration::ZERO };
        let proxy = DelayProxy::start(server.port(), slow);
        let (_, config) = ours::redis(proxy.port());
        let hedge = budget.map(|budget| Hedge::default().within(budget).expect("a share"));
        let config = RedisConfig { connections: CONNECTIONS, hedge, ..config };
        let ours = Ours::new(&plans::follow(10), Arc::new(Redis::new(config, ours::clock())));
        Way { _proxy: proxy, ours }
    }
}

pub(super) fn report(report: &mut Report, aims: &mut Aims, pace: Pace) -> io::Result<()> {
    let server = Server::start();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (redis, _) = ours::redis(server.port());
    runtime.block_on(source::seed(&ours::embedded(), &redis)).map_err(io::Error::other)?;
    let ways = WAYS.map(|(_, budget)| Way::new(&server, budget));
    let turn = |way: usize, window: Duration| {
        let (ours, commands, requests) = (ways[way].ours.clone(), AtomicU64::new(0), AtomicU64::new(0));
        let counts = Arc::new((commands, requests));
        let counted = Arc::clone(&counts);
        let served = serve(&runtime, &server, CALLERS, window, move || {
            let (ours, counted) = (ours.clone(), Arc::clone(&counted));
            async move {
                let commands = ours.answer().await.stats.commands;
                counted.0.fetch_add(commands.into(), Ordering::Relaxed);
                counted.1.fetch_add(1, Ordering::Relaxed);
            }
        });
        (served, counts.0.load(Ordering::Relaxed) as f64 / counts.1.load(Ordering::Relaxed) as f64)
    };
    // Connections are made, and it becomes known what is late.
    (0..ways.len()).for_each(|way| _ = turn(way, pace.window));
    let turns = take_turns(pace.rounds, ways.len(), |way| turn(way, pace.window));
    table(report, pace, &turns);
    for way in 1..ways.len() {
        let lower = 1.0 / ratio(&turns[way], &turns[0], |(served, _)| served.p99);
        let more = 100.0 * (ratio(&turns[way], &turns[0], |(_, commands)| *commands) - 1.0);
        let aim =
            format!("one slow connection in ten, {}: p99 3x lower, at most 10% more commands", WAYS[way].0);
        aims.add(&aim, format!("{lower:.1}x, {more:.1}%"), lower >= 3.0 && more <= 10.0);
    }
    Ok(())
}

fn table(report: &mut Report, pace: Pace, turns: &[Vec<(ServeReport, f64)>]) {
    report.heading("Hedged reads");
    report.say(format_args!(
        "`follow_10` over {CONNECTIONS} connections to a redis-server on the loopback, through a proxy of the tests that \
        makes the replies on one of them {} ms late; {CALLERS} callers. Who \
        is not held up asks again at once, so the machine is busier where reads are hedged. Medians of {} turns of {} ms.\n",
        LATE.as_millis(),
        pace.rounds,
        pace.window.as_millis()
    ));
    let mut rows = vec![row(["reads", "p50 us", "p99 us", "CPU us", "commands"])];
    for ((name, _), turns) in WAYS.iter().zip(turns) {
        let of = |pick: fn(&ServeReport) -> f64| digits(median(turns.iter().map(|(served, _)| pick(served))));
        let commands = median(turns.iter().map(|(_, commands)| *commands));
        let [p50, p99, cpu] = [of(|turn| turn.p50), of(|turn| turn.p99), of(|turn| turn.cpu)];
        rows.push(row([name, &p50, &p99, &cpu, &format!("{commands:.2}")]));
    }
    report.table(&rows);
}
