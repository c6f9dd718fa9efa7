//! Plans that are asked for more than they can do: who is let in, and how many answers come in time.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_engine::clock::Clock;
use anabranch_plan::metrics::Outcome;
use anabranch_plan::source::{Bound, Fetch, Keys, Memory, MemoryData, Pattern, Read, ReadContext, Source};
use anabranch_plan::{Config, Engine, Error, Plan, Request, RunOptions};
use anabranch_testkit::{Rng, Sim};
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::naive::world::registries;

/// How long a trip takes, and how many go at once: so many a second.
const TRIP: Duration = Duration::from_millis(20);
const SLOTS: u32 = 8;
const CAPACITY: f64 = 400.0;

/// When a trip is answered that begins now, both in milliseconds.
type AnswerTime = fn(u64) -> u64;

/// A store with so many slots.
struct Store {
    memory: Memory,
    clock: Arc<dyn Clock>,
    began: Instant,
    answered: AnswerTime,
}

impl Source for Store {
    fn bind(&self, pattern: &Pattern, read: &Read) -> Arc<dyn Bound> {
        let bound = self.memory.bind(pattern, read);
        Arc::new(Trips { bound, clock: Arc::clone(&self.clock), began: self.began, answered: self.answered })
    }

    fn max_inflight(&self) -> Option<u32> {
        Some(SLOTS)
    }
}

struct Trips {
    bound: Arc<dyn Bound>,
    clock: Arc<dyn Clock>,
    began: Instant,
    answered: AnswerTime,
}

impl Bound for Trips {
    fn fetch(&self, keys: Keys, context: ReadContext<'_>) -> Fetch {
        let now = self.clock.now() - self.began;
        let whole = Duration::from_millis(now.as_millis() as u64);
        let then = Duration::from_millis((self.answered)(whole.as_millis() as u64)) + (now - whole);
        let reply = self.clock.sleep_until(self.began + then);
        let fetch = self.bound.fetch(keys, context);
        Fetch::Later(Box::pin(async move {
            reply.await;
            match fetch {
                Fetch::Ready(reply) => reply,
                Fetch::Later(reply) => reply.await,
            }
        }))
    }
}

/// A world with one store, and plans that read it.
struct World {
    sim: Sim,
    engine: Engine,
    began: Instant,
    rng: Rng,
}

/// A request: when it comes, in milliseconds, and how long it has.
#[derive(Clone, Copy)]
struct RequestArrival {
    at: f64,
    within: Option<Duration>,
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestOutcome {
    InTime,
    Late,
    Refused,
}

/// The outcomes of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    in_time: usize,
    late: usize,
    refused: usize,
}

impl World {
    fn new(seed: u64) -> World {
        World::with(seed, true, |now| now + TRIP.as_millis() as u64)
    }

    fn with(seed: u64, admission: bool, answered: AnswerTime) -> World {
        let sim = Sim::new(seed);
        let (clock, began) = (sim.clock(), sim.clock().now());
        let memory = Memory::new("ep_0001", Arc::new(MemoryData::default()), sim.clock());
        let store: Arc<dyn Source> = Arc::new(Store { memory, clock, began, answered });
        let mut config = Config::new(registries(), vec![Arc::clone(&store), store]);
        config.admission = admission;
        let engine = Engine::on(sim.engine(&anabranch_engine::Config::default()), config);
        World { sim, engine, began, rng: Rng::new(seed) }
    }

    /// A plan that makes so many trips, one after the other.
    fn plan(&self, trips: usize) -> Plan {
        let mut nodes =
            vec![json!({"node_id": "n0", "op": "test::fixed_source", "inputs": [], "params": {}})];
        for at in 1..=trips {
            let field = ["likes", "author", "parent"][at - 1];
            let read = json!({"endpoint": "ep_0001", "key": "user:{id}", "fields": [field]});
            let (id, input) = (format!("n{at}"), format!("n{}", at - 1));
            nodes.push(json!({"node_id": id, "op": "core::lookup", "inputs": [input], "params": read}));
        }
        let (name, output) = (format!("trips_{trips}"), nodes[trips]["node_id"].clone());
        self.compile(&json!({"schema_version": 1, "plan_name": name, "nodes": nodes, "outputs": [output]}))
    }

    fn compile(&self, plan: &Value) -> Plan {
        self.engine.compile(&plan.to_string(), Path::new(".")).unwrap()
    }

    /// Requests that come at random at this rate, from one time to another in milliseconds.
    fn arrivals(&mut self, rate: f64, [from, to]: [u64; 2], within: Option<Duration>) -> Vec<RequestArrival> {
        let mut at = from as f64;
        let mut asked = Vec::new();
        loop {
            let share = (1 + self.rng.within(0..1_000_000)) as f64 / 1e6;
            at -= share.ln() / rate * 1e3;
            if at >= to as f64 {
                return asked;
            }
            asked.push(RequestArrival { at, within });
        }
    }

    fn run(&self, plan: &Plan, requests: &[RequestArrival]) -> Vec<(RequestArrival, RequestOutcome)> {
        let ask = |asked: RequestArrival| async move { (asked, self.ask(plan, asked).await) };
        self.sim.block_on(join_all(requests.iter().map(|asked| ask(*asked))))
    }

    async fn ask(&self, plan: &Plan, asked: RequestArrival) -> RequestOutcome {
        let clock = self.sim.clock();
        let at = self.began + Duration::from_secs_f64(asked.at / 1e3);
        clock.sleep_until(at).await;
        let deadline = asked.within.map(|within| at + within);
        let options = RunOptions { deadline, ..RunOptions::default() };
        match plan.run_with(Request::new(1, self.engine.registries()), &options).await {
            Ok(_) if deadline.is_none_or(|deadline| clock.now() <= deadline) => RequestOutcome::InTime,
            Ok(_) => RequestOutcome::Late,
            Err(error) if error.is_late() => RequestOutcome::Late,
            Err(Error::Overloaded { retry_after, predicted, left }) => {
                assert_eq!((clock.now(), Some(left)), (at, asked.within), "at once");
                assert!((millis(1)..=millis(5_000)).contains(&retry_after), "{retry_after:?}");
                assert!(predicted * 5 / 4 > left, "{predicted:?} of {left:?}");
                RequestOutcome::Refused
            }
            Err(other) => panic!("{other}"),
        }
    }
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn sums<'a>(ended: impl IntoIterator<Item = &'a (RequestArrival, RequestOutcome)>) -> Sums {
    let mut sums = Sums::default();
    for (_, became) in ended {
        match became {
            RequestOutcome::InTime => sums.in_time += 1,
            RequestOutcome::Late => sums.late += 1,
            RequestOutcome::Refused => sums.refused += 1,
        }
    }
    sums
}

fn between(ended: &[(RequestArrival, RequestOutcome)], from: f64, to: f64) -> Sums {
    sums(ended.iter().filter(|(asked, _)| (from..to).contains(&asked.at)))
}

#[test]
fn goodput_survives_overload() {
    for (trips, deadline, load) in [(1, 3, 2.0), (1, 3, 4.0), (1, 10, 4.0), (2, 2, 4.0), (3, 5, 2.0)] {
        let capacity = CAPACITY / trips as f64;
        let goodput = |admission| {
            let mut world = World::with(7, admission, |now| now + TRIP.as_millis() as u64);
            let within = TRIP * deadline * trips as u32;
            let asked = world.arrivals(capacity * load, [0, 6_000], Some(within));
            let ended = world.run(&world.plan(trips), &asked);
            // What the plan can do has been seen by then.
            between(&ended, 2_000.0, 6_000.0).in_time as f64 / 4.0 / capacity
        };
        let (with, without) = (goodput(true), goodput(false));
        let case = format!("{trips} trips, deadline {deadline} times that, load {load}");
        assert!(with >= 0.85, "{case}: {with:.2} of what is possible");
        assert!(without < 0.5, "{case}: {without:.2} of what is possible without");
    }
}

#[test]
fn a_sudden_overload_is_noticed_before_many_are_late() {
    let mut world = World::new(11);
    let within = Some(TRIP * 10);
    // The capacity is known from an hour of the day with as many requests as fit.
    let mut asked = world.arrivals(CAPACITY * 0.95, [0, 4_000], within);
    asked.extend(world.arrivals(CAPACITY * 2.0, [4_000, 8_000], within));
    let ended = world.run(&world.plan(1), &asked);
    let (before, after) = (between(&ended, 0.0, 4_000.0), between(&ended, 4_000.0, 8_000.0));
    assert_eq!((before.late, before.refused), (0, 0), "{before:?}");
    // Half as many again without a warning.
    assert!(after.late < 110, "{after:?}");
    assert!(after.in_time as f64 > CAPACITY * 4.0 * 0.9, "{after:?}");
}

#[test]
fn nothing_is_refused_that_fits() {
    for (trips, deadline, load) in [(1, 2, 0.5), (1, 3, 0.8), (2, 2, 0.5), (3, 4, 0.8)] {
        let mut world = World::new(3);
        let within = TRIP * deadline * trips as u32;
        let asked = world.arrivals(CAPACITY / trips as f64 * load, [0, 4_000], Some(within));
        let ended = sums(&world.run(&world.plan(trips), &asked));
        assert_eq!((ended.late, ended.refused), (0, 0), "{trips} trips, {deadline}, {load}: {ended:?}");
    }
}

#[test]
fn a_burst_from_idle_that_fits_is_let_in() {
    let burst = |at: f64| (0..16).map(move |_| RequestArrival { at, within: Some(millis(60)) });
    // Before anything is known.
    let world = World::new(1);
    let ended = world.run(&world.plan(1), &burst(0.0).collect::<Vec<_>>());
    assert_eq!(sums(&ended), Sums { in_time: 16, ..Sums::default() });
    // Soon after there was too much, and a while after, with a request now and then in between.
    let mut world = World::new(1);
    let within = Some(millis(60));
    let mut asked = world.arrivals(CAPACITY * 2.0, [0, 2_000], within);
    asked.extend(world.arrivals(5.0, [2_500, 6_000], within));
    asked.extend(burst(2_400.0).chain(burst(6_000.0)));
    let ended = world.run(&world.plan(1), &asked);
    let after = between(&ended, 2_400.0, f64::MAX);
    assert_eq!((after.late, after.refused), (0, 0), "{after:?}");
}

#[test]
fn what_follows_a_stall_is_let_in_again() {
    // The store stands still for a second, and for a tenth of one.
    let stalls: [AnswerTime; 2] = [
        |now| if (1_000..2_000).contains(&now) { 2_020 } else { now + 20 },
        |now| if (1_900..2_000).contains(&now) { 2_020 } else { now + 20 },
    ];
    for (stall, load, deadline) in
        stalls.into_iter().flat_map(|stall| [(stall, 0.7, 60), (stall, 0.2, 60), (stall, 0.2, 25)])
    {
        let mut world = World::with(5, true, stall);
        let asked = world.arrivals(CAPACITY * load, [0, 5_000], Some(millis(deadline)));
        let ended = world.run(&world.plan(1), &asked);
        let (soon, later) = (between(&ended, 2_000.0, 2_500.0), between(&ended, 3_000.0, f64::MAX));
        assert!(soon.in_time * 2 > soon.late + soon.refused, "{load}, {deadline} ms: {soon:?}");
        assert_eq!((later.late, later.refused), (0, 0), "{load}, {deadline} ms: {later:?}");
    }
}

#[test]
fn a_store_that_becomes_slower_or_faster_is_followed() {
    let changes: [(AnswerTime, f64); 2] = [
        (|now| now + if now < 2_000 { 20 } else { 60 }, CAPACITY / 3.0),
        (|now| now + if now < 2_000 { 60 } else { 20 }, CAPACITY),
    ];
    for (answered, capacity) in changes {
        let mut world = World::with(5, true, answered);
        let asked = world.arrivals(CAPACITY * 1.5, [0, 5_000], Some(millis(200)));
        let ended = world.run(&world.plan(1), &asked);
        let after = between(&ended, 3_000.0, 5_000.0);
        let goodput = after.in_time as f64 / 2.0 / capacity;
        assert!(goodput > 0.85, "{goodput:.2} of {capacity}: {after:?}");
    }
}

#[test]
fn patience_is_rewarded() {
    let mut world = World::new(2);
    let mut asked = world.arrivals(CAPACITY, [0, 4_000], Some(millis(50)));
    asked.extend(world.arrivals(CAPACITY * 0.8, [0, 4_000], Some(millis(500))));
    let ended = world.run(&world.plan(1), &asked);
    let of = |within: Duration| sums(ended.iter().filter(|(asked, _)| asked.within == Some(within)));
    let (hasty, patient) = (of(millis(50)), of(millis(500)));
    assert!(hasty.refused > 500, "{hasty:?}");
    assert!(patient.refused < 50, "{patient:?}");
    assert!((hasty.in_time + patient.in_time) as f64 > CAPACITY * 4.0 * 0.85, "{hasty:?} {patient:?}");
}

#[test]
fn without_a_deadline_nothing_is_refused() {
    let mut world = World::new(4);
    let mut asked = world.arrivals(CAPACITY * 0.5, [0, 3_000], None);
    asked.extend(world.arrivals(CAPACITY * 3.0, [0, 3_000], Some(millis(60))));
    let ended = world.run(&world.plan(1), &asked);
    let free = sums(ended.iter().filter(|(asked, _)| asked.within.is_none()));
    assert_eq!((free.late, free.refused), (0, 0));
    let dated = sums(ended.iter().filter(|(asked, _)| asked.within.is_some()));
    assert!(dated.in_time as f64 > CAPACITY * 0.5 * 3.0 * 0.8, "there is room for half of them: {dated:?}");
}

#[test]
fn one_plan_is_not_refused_for_another() {
    let mut world = World::new(6);
    let (busy, quick) = (world.plan(1), world.plan(0));
    let crowd = world.arrivals(CAPACITY * 3.0, [0, 2_000], Some(millis(60)));
    let beside = world.arrivals(100.0, [0, 2_000], Some(millis(1)));
    let others = join_all(beside.iter().map(|asked| world.ask(&quick, *asked)));
    let crowd = join_all(crowd.iter().map(|asked| world.ask(&busy, *asked)));
    let (crowd, others) = world.sim.block_on(futures_util::future::join(crowd, others));
    assert!(crowd.contains(&RequestOutcome::Refused));
    assert!(others.iter().all(|became| *became == RequestOutcome::InTime));
}

#[test]
fn who_has_a_fallback_is_not_refused() {
    // Each trip would take longer than there is time.
    let mut world = World::with(9, true, |now| now + 200);
    let source = json!({"node_id": "n0", "op": "test::fixed_source", "inputs": [], "params": {}});
    let read = json!({"endpoint": "ep_0001", "key": "user:{id}", "fields": ["likes"]});
    let lookup = json!({"node_id": "n1", "op": "core::lookup", "inputs": ["n0"], "params": read,
                        "fallback": "pass"});
    let plan = json!({"schema_version": 1, "plan_name": "p", "nodes": [source, lookup], "outputs": ["n1"]});
    let plan = world.compile(&plan);
    let asked = world.arrivals(CAPACITY * 2.0, [0, 1_000], Some(millis(60)));
    let ended = sums(&world.run(&plan, &asked));
    assert_eq!((ended.late, ended.refused), (0, 0), "{ended:?}");
    let counts = &world.engine.metrics().plans[0];
    assert_eq!(counts.requests[Outcome::Degraded as usize], (Outcome::Degraded, asked.len() as u64));
    assert!(counts.degraded.iter().all(|line| line.node == "n1" && line.fallback == "pass"));
    assert_eq!(counts.degraded.iter().map(|line| line.count).sum::<u64>(), asked.len() as u64);
}

#[test]
fn the_books_agree_with_what_was_seen() {
    let mut world = World::new(8);
    let asked = world.arrivals(CAPACITY * 3.0, [0, 1_000], Some(millis(60)));
    let ended = sums(&world.run(&world.plan(1), &asked));
    let all = world.engine.metrics();
    let [metrics] = &all.plans[..] else { panic!("one plan") };
    let count = |outcome| metrics.requests.iter().find(|(known, _)| *known == outcome).unwrap().1 as usize;
    let counted = [Outcome::Full, Outcome::Deadline, Outcome::Refused].map(count);
    assert_eq!(counted, [ended.in_time, ended.late, ended.refused]);
    assert_eq!((metrics.plan.as_str(), metrics.in_flight), ("trips_1", 0));
    let text = all.render();
    let line =
        format!("anabranch_plan_requests_total{{plan=\"trips_1\",outcome=\"refused\"}} {}\n", ended.refused);
    assert!(text.contains(&line), "{text}");
}
