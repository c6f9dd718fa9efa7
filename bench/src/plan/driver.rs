//! Our Redis driver beside redis-rs in the same plans, and beside a floor of raw sockets.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anabranch_plan::source::{self, Bound, Fault, Fetch, Keys, Pattern, Read, ReadContext, Redis, Source};
use tokio::runtime::Runtime;

use super::aims::Aims;
use super::by_hand::Connections;
use super::floor::{Batch, Floor};
use super::ours::{self, Ours};
use super::redis_rs::RedisRs;
use super::server::Server;
use super::turns::{Pace, ServeReport, median, ratio, serve, take_turns};
use super::{digits, plans};
use crate::report::{Report, row};

const PROGRAMS: [&str; 3] = ["ours", "redis-rs", "floor"];

const HEADING: [&str; 8] = [
    "plan",
    "callers",
    "driver",
    "requests/s",
    "p50 us",
    "CPU us",
    "Redis reads per request",
    "to redis-rs: requests/s, CPU; CPU to floor",
];

const LEGEND: &str = "`ours` and `redis-rs`: the same plan, read by our driver and by a source over the crate redis. \
    `floor`: raw sockets, the bytes of the same commands in the same order of levels, replies only counted to their ends; \
    no plan runs. A read of the Redis is one `read` of a connection, at most 16 KiB; a write of ours is one or more of them.";

struct Ground {
    runtime: Runtime,
    server: Server,
    ours: Arc<Redis>,
    peer: Arc<RedisRs>,
    floor: Floor,
}

pub(super) fn report(report: &mut Report, aims: &mut Aims, pace: Pace) -> io::Result<()> {
    let ground = Ground::new()?;
    report.heading("Redis drivers");
    let mut rows = vec![row(HEADING)];
    let plans = [("feed_100", plans::feed(100)), ("concat", plans::concat()), ("reels", plans::reels())];
    for (name, text) in &plans {
        let batches = ground.batches(text);
        for callers in [1, 10, 100] {
            let (turns, writes) = ground.measure(text, &batches, callers, pace);
            rows.extend(table(name, callers, &turns));
            judge(name, callers, &turns, writes, aims);
        }
    }
    report.table(&rows);
    report.say(format_args!("\n{LEGEND}"));
    Ok(())
}

/// A turn, with the reads of the Redis for each request.
struct Turn {
    served: ServeReport,
    rate: f64,
    reads: f64,
}

impl Ground {
    fn new() -> io::Result<Ground> {
        let server = Server::start();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let (redis, config) = ours::redis(server.port());
        runtime.block_on(source::seed(&ours::embedded(), &redis)).map_err(io::Error::other)?;
        let connections = runtime.block_on(Connections::open(server.port(), config.connections));
        let peer = Arc::new(RedisRs(connections.map_err(io::Error::other)?));
        let floor = runtime.block_on(Floor::open(server.port(), config.connections))?;
        Ok(Ground { runtime, server, ours: Arc::new(redis), peer, floor })
    }

    /// The commands of one request, by level: those that are sent while the same trips are under way.
    fn batches(&self, text: &str) -> Vec<Batch> {
        const DELAY: Duration = Duration::from_millis(50);
        let slow = ours::memory(&ours::embedded()).with_fault("", Fault { delay: DELAY, ..Fault::default() });
        let seen: Arc<Mutex<Vec<(Instant, Batch)>>> = Arc::default();
        let watched = WatchedSource { source: Arc::new(slow), seen: Arc::clone(&seen) };
        let plan = Ours::new(text, Arc::new(watched));
        let began = Instant::now();
        self.runtime.block_on(plan.answer());
        let mut batches: Vec<Batch> = Vec::new();
        for (at, batch) in seen.lock().expect("no panic").drain(..) {
            let level = ((at - began).as_secs_f64() / DELAY.as_secs_f64()) as usize;
            batches.resize(batches.len().max(level + 1), Batch::default());
            batches[level].bytes.extend(batch.bytes);
            batches[level].replies += batch.replies;
        }
        batches
    }

    /// The turns of each program, and the writes of ours for each request.
    fn measure(&self, text: &str, batches: &[Batch], callers: usize, pace: Pace) -> (Vec<Vec<Turn>>, f64) {
        let ours = Ours::new(text, Arc::clone(&self.ours) as Arc<dyn Source>);
        let peer = Ours::new(text, Arc::clone(&self.peer) as Arc<dyn Source>);
        let (first, second) = self.runtime.block_on(async { (ours.rows().await, peer.rows().await) });
        assert!(!first.is_empty() && first == second, "both drivers read the same");
        let batches: Arc<[Batch]> = batches.into();
        let mut writes = Vec::new();
        let mut turn = |program: usize, window: Duration| {
            let (reads, wrote) = (self.server.reads(), self.ours.counts().writes);
            let served = match program {
                0 | 1 => {
                    let plan = if program == 0 { ours.clone() } else { peer.clone() };
                    serve(&self.runtime, &self.server, callers, window, move || {
                        let plan = plan.clone();
                        async move { drop(std::hint::black_box(plan.answer().await)) }
                    })
                }
                _ => {
                    let (floor, batches) = (self.floor.clone(), Arc::clone(&batches));
                    serve(&self.runtime, &self.server, callers, window, move || {
                        let (floor, batches) = (floor.clone(), Arc::clone(&batches));
                        async move { floor.ask(&batches).await }
                    })
                }
            };
            let requests = served.requests as f64;
            if program == 0 {
                writes.push((self.ours.counts().writes - wrote) as f64 / requests);
            }
            let reads = (self.server.reads() - reads) as f64 / requests;
            Turn { served, rate: requests / served.wall.as_secs_f64(), reads }
        };
        for program in 0..PROGRAMS.len() {
            turn(program, pace.window / 4);
        }
        let turns = take_turns(pace.rounds, PROGRAMS.len(), |program| turn(program, pace.window));
        (turns, median(writes))
    }
}

fn table(name: &str, callers: usize, turns: &[Vec<Turn>]) -> Vec<Vec<String>> {
    let line = |program: usize| {
        let (turns, peer, floor) = (&turns[program], &turns[1], &turns[2]);
        let of = |pick: fn(&Turn) -> f64| median(turns.iter().map(pick));
        vec![
            name.to_owned(),
            callers.to_string(),
            PROGRAMS[program].to_owned(),
            digits(of(|turn| turn.rate)),
            digits(of(|turn| turn.served.p50)),
            digits(of(|turn| turn.served.cpu)),
            format!("{:.2}", of(|turn| turn.reads)),
            format!(
                "{:.2}x, {:.2}x; {:.2}x",
                ratio(turns, peer, |turn| turn.rate),
                ratio(turns, peer, |turn| turn.served.cpu),
                ratio(turns, floor, |turn| turn.served.cpu)
            ),
        ]
    };
    (0..PROGRAMS.len()).map(line).collect()
}

fn judge(name: &str, callers: usize, turns: &[Vec<Turn>], writes: f64, aims: &mut Aims) {
    let to = |program: usize, of: fn(&Turn) -> f64| ratio(&turns[0], &turns[program], of);
    let what = format!("`{name}` over Redis, {callers} callers");
    if name == "feed_100" {
        let (peer, floor) = (to(1, |turn| turn.served.cpu), to(2, |turn| turn.served.cpu));
        let met = peer <= 0.5 && floor <= 1.5;
        let aim = format!("{what}: CPU at most 0.5x that of redis-rs and 1.5x that of the floor");
        aims.add(&aim, format!("{peer:.2}x, {floor:.2}x"), met);
    }
    if callers == 100 {
        aims.add(&format!("{what}: less than 0.3 writes per request"), format!("{writes:.2}"), writes < 0.3);
        if name != "feed_100" {
            let faster = to(1, |turn| turn.rate);
            let aim = format!("{what}: at least 1.5x the requests per second of redis-rs");
            aims.add(&aim, format!("{faster:.2}x"), faster >= 1.5);
        }
    }
}

/// Notes the commands that another source would be asked.
struct WatchedSource {
    source: Arc<dyn Source>,
    seen: Arc<Mutex<Vec<(Instant, Batch)>>>,
}

struct WatchedRead {
    bound: Arc<dyn Bound>,
    affixes: (String, String),
    read: Read,
    seen: Arc<Mutex<Vec<(Instant, Batch)>>>,
}

impl Source for WatchedSource {
    fn bind(&self, pattern: &Pattern, read: &Read) -> Arc<dyn Bound> {
        let (prefix, suffix) = pattern.affixes().expect("the bench's plans read by id");
        Arc::new(WatchedRead {
            bound: self.source.bind(pattern, read),
            affixes: (prefix.to_owned(), suffix.to_owned()),
            read: read.clone(),
            seen: Arc::clone(&self.seen),
        })
    }
}

impl Bound for WatchedRead {
    fn fetch(&self, keys: Keys, context: ReadContext<'_>) -> Fetch {
        if let Keys::Ids(ids) = &keys {
            let mut batch = Batch::default();
            let mut distinct = ids.clone();
            distinct.sort_unstable();
            distinct.dedup();
            for id in distinct {
                batch.bytes.extend(self.command(id));
                batch.replies += 1;
            }
            self.seen.lock().expect("no panic").push((Instant::now(), batch));
        }
        self.bound.fetch(keys, context)
    }
}

impl WatchedRead {
    fn command(&self, id: i64) -> Vec<u8> {
        let key = format!("{}{id}{}", self.affixes.0, self.affixes.1);
        let words: Vec<String> = match &self.read {
            Read::Fields(fields) => {
                let name = if fields.len() == 1 { "HGET" } else { "HMGET" };
                [name.to_owned(), key].into_iter().chain(fields.iter().map(|f| f.name.to_string())).collect()
            }
            Read::List { limit } | Read::Scored { limit } => {
                vec!["LRANGE".to_owned(), key, "0".to_owned(), (limit - 1).to_string()]
            }
        };
        let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            bytes.extend(format!("${}\r\n{word}\r\n", word.len()).bytes());
        }
        bytes
    }
}
