//! What deadlines and fallbacks cost while nothing is late.

use std::hint::black_box;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use anabranch_plan::source::{self, Redis};
use serde_json::{Value, json};

use super::aims::Aims;
use super::ours::{self, Ours};
use super::plans;
use super::server::Server;
use super::turns::{Pace, ServeReport, median, ratio, repeat, serve, take_turns};
use super::{digits, in_place};
use crate::report::{Report, row};
use crate::watch::Share;

const CALLERS: usize = 10;
const DEADLINE: Duration = Duration::from_secs(10);

const WAYS: [&str; 4] = ["plain", "deadline", "deadline, fallbacks", "deadline, region"];

/// The ways to ask a plan: as it is, with a deadline, and with something that could stand in for what it reads.
fn ways(text: &str, new: impl Fn(&str) -> Ours) -> [Ours; 4] {
    let [fallbacks, region] = [guarded(text), in_region(text)];
    let timed = |text: &str| new(text).within(DEADLINE);
    [new(text), timed(text), timed(&fallbacks), timed(&region)]
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).expect("the bench's plans are JSON")
}

/// Every node that reads has a timeout and a fallback.
fn guarded(text: &str) -> String {
    let mut plan = parsed(text);
    for node in plan["nodes"].as_array_mut().expect("a plan has nodes") {
        if node["params"].get("endpoint").is_some() && !node["inputs"].as_array().is_none_or(Vec::is_empty) {
            node["timeout_ms"] = json!(5_000);
            node["fallback"] = json!("empty");
        }
    }
    plan.to_string()
}

/// All that is behind the viewer is a region.
fn in_region(text: &str) -> String {
    let mut plan = parsed(text);
    let output = plan["outputs"][0].take();
    let region = json!({"node_id": "in_time", "op": "core::timeout", "inputs": [output], "params": {},
                        "timeout_ms": 5_000, "fallback": "empty"});
    plan["nodes"].as_array_mut().expect("a plan has nodes").push(region);
    plan["outputs"] = json!(["in_time"]);
    plan.to_string()
}

pub(super) fn report(report: &mut Report, aims: &mut Aims, pace: Pace) -> io::Result<()> {
    report.heading("Deadlines and fallbacks, while nothing is late");
    report.say(format_args!(
        "CPU time a request in microseconds, and as a ratio of the plain way's (medians of {} rounds). Over a redis-server on \
        the loopback with {CALLERS} callers; in memory one request after the other.\n",
        pace.rounds
    ));
    let mut rows = vec![row(["plan", "way", "CPU us", "of plain"])];
    in_memory(&mut rows, aims, pace)?;
    over_redis(&mut rows, aims, pace)?;
    report.table(&rows);
    Ok(())
}

fn tell(rows: &mut Vec<Vec<String>>, aims: &mut Aims, plan: &str, cpu: &[Vec<f64>]) {
    for (way, turns) in WAYS.iter().zip(cpu) {
        let of_plain = ratio(turns, &cpu[0], |cpu| *cpu);
        let spent = digits(median(turns.iter().copied()));
        rows.push(row([plan, way, &spent, &format!("{of_plain:.3}x")]));
        if *way != "plain" {
            let aim = format!("{plan}, {way}: at most 3% over the plain run");
            aims.add(&aim, format!("{:+.1}%", 100.0 * (of_plain - 1.0)), of_plain <= 1.03);
        }
    }
}

fn in_memory(rows: &mut Vec<Vec<String>>, aims: &mut Aims, pace: Pace) -> io::Result<()> {
    let pace = Pace { rounds: pace.rounds * 3, ..pace.shorter(5) };
    let data = ours::embedded();
    let runtime = in_place()?;
    for (name, text) in [("reels_plan_a", plans::reels()), ("feed_100 in memory", plans::feed(100))] {
        let plans = ways(&text, |text| Ours::new(text, Arc::new(ours::memory(&data))));
        let turns = take_turns(pace.rounds, plans.len(), |plan| {
            let turn = repeat(pace.window, async || drop(black_box(plans[plan].answer().await)));
            let Share { cpu, .. } = runtime.block_on(turn);
            cpu / 1e3
        });
        tell(rows, aims, name, &turns);
    }
    Ok(())
}

fn over_redis(rows: &mut Vec<Vec<String>>, aims: &mut Aims, pace: Pace) -> io::Result<()> {
    let server = Server::start();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (redis, config) = ours::redis(server.port());
    runtime.block_on(source::seed(&ours::embedded(), &redis)).map_err(io::Error::other)?;
    let new = |text: &str| Ours::new(text, Arc::new(Redis::new(config.clone(), ours::clock())));
    let plans = ways(&plans::feed(100), new);
    let turn = |plan: usize, window: Duration| {
        let ours = plans[plan].clone();
        let ServeReport { cpu, .. } = serve(&runtime, &server, CALLERS, window, move || {
            let ours = ours.clone();
            async move { drop(black_box(ours.answer().await)) }
        });
        cpu
    };
    (0..plans.len()).for_each(|plan| _ = turn(plan, pace.window));
    let turns = take_turns(pace.rounds * 2, plans.len(), |plan| turn(plan, pace.window));
    tell(rows, aims, "feed_100 over Redis", &turns);
    Ok(())
}
