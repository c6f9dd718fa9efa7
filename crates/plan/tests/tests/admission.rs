//! Plans that are asked for more than they can do: who is let in, and how many answers come in time.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_engine::Clock;
use anabranch_plan::sources::{Bound, Fetch, Keys, Memory, MemoryData, Pattern, Read, Source};
use anabranch_plan::{Config, Engine, Error, Plan, Request, RunOptions};
use anabranch_testkit::{Rng, Sim};
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::naive::world::registries;

/// How long a trip takes, and how many go at once: 400 a second.
const TRIP: Duration = Duration::from_millis(20);
const SLOTS: u32 = 8;
const CAPACITY: f64 = 400.0;

/// A store with so many slots that stands still at times.
struct Store {
    memory: Memory,
    clock: Arc<dyn Clock>,
    stalls: Vec<[Instant; 2]>,
}

impl Source for Store {
    fn bind(&self, pattern: &Pattern, read: &Read) -> Arc<dyn Bound> {
        let (clock, stalls) = (Arc::clone(&self.clock), self.stalls.clone());
        Arc::new(Trips { bound: self.memory.bind(pattern, read), clock, stalls })
    }

    fn max_inflight(&self) -> Option<u32> {
        Some(SLOTS)
    }
}

struct Trips {
    bound: Arc<dyn Bound>,
    clock: Arc<dyn Clock>,
    stalls: Vec<[Instant; 2]>,
}

impl Bound for Trips {
    fn fetch(&self, keys: Keys) -> Fetch {
        let now = self.clock.now();
        let stall = self.stalls.iter().find(|[from, to]| (*from..*to).contains(&now));
        let reply = self.clock.sleep_until(stall.map_or(now, |stall| stall[1]) + TRIP);
        let fetch = self.bound.fetch(keys);
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
struct Asked {
    at: f64,
    within: Option<Duration>,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Became {
    InTime,
    Late,
    Refused { retry_after: Duration },
}

impl World {
    fn new(seed: u64, admission: bool, stalls: &[[u64; 2]]) -> World {
        let sim = Sim::new(seed);
        let (clock, began) = (sim.clock(), sim.clock().now());
        let memory = Memory::new("ep_0001", Arc::new(MemoryData::default()), sim.clock());
        let stalls = stalls.iter().map(|stall| stall.map(|at| began + Duration::from_millis(at))).collect();
        let store: Arc<dyn Source> = Arc::new(Store { memory, clock, stalls });
        let mut config = Config::new(registries(), vec![Arc::clone(&store), store]);
        config.admission = admission;
        let engine = Engine::on(sim.engine(&anabranch_engine::Config::default()), config);
        World { sim, engine, began, rng: Rng::new(seed) }
    }

    /// A plan that makes so many trips, one after the other.
    fn plan(&self, trips: usize) -> Plan {
        let mut nodes = vec![json!({"node_id": "n0", "op": "test::fixed_source", "inputs": [], "params": {}})];
        for at in 1..=trips {
            let read = json!({"endpoint": "ep_0001", "key": format!("{at}:{{id}}"), "fields": ["likes"]});
            let (id, input) = (format!("n{at}"), format!("n{}", at - 1));
            nodes.push(json!({"node_id": id, "op": "core::lookup", "inputs": [input], "params": read}));
        }
        let output = nodes[trips]["node_id"].clone();
        self.compile(&json!({"schema_version": 1, "plan_name": "p", "nodes": nodes, "outputs": [output]}))
    }

    fn compile(&self, plan: &Value) -> Plan {
        self.engine.compile(&plan.to_string(), Path::new(".")).unwrap()
    }

    /// Requests at this rate, at random, from one time to another in milliseconds.
    fn arrivals(&mut self, rate: f64, [from, to]: [u64; 2], within: Option<Duration>) -> Vec<Asked> {
        let mut at = from as f64;
        let mut asked = Vec::new();
        loop {
            let share = (1 + self.rng.within(0..1_000_000)) as f64 / 1e6;
            at -= share.ln() / rate * 1e3;
            if at >= to as f64 {
                return asked;
            }
            asked.push(Asked { at, within });
        }
    }

    fn run(&self, plan: &Plan, requests: &[Asked]) -> Vec<(Asked, Became)> {
        let clock = self.sim.clock();
        let ask = |asked: Asked| {
            let (plan, clock, engine) = (plan.clone(), Arc::clone(&clock), &self.engine);
            let at = self.began + Duration::from_secs_f64(asked.at / 1e3);
            async move {
                clock.sleep_until(at).await;
                let deadline = asked.within.map(|within| at + within);
                let options = RunOptions { deadline, ..RunOptions::default() };
                let became = match plan.run_with(Request::new(1, engine.registries()), &options).await {
                    Ok(_) if deadline.is_none_or(|deadline| clock.now() <= deadline) => Became::InTime,
                    Ok(_) | Err(Error::Deadline { .. }) => Became::Late,
                    Err(Error::Overloaded { retry_after, .. }) => {
                        assert_eq!(clock.now(), at, "refused at once");
                        Became::Refused { retry_after }
                    }
                    Err(other) => panic!("{other}"),
                };
                (asked, became)
            }
        };
        self.sim.block_on(join_all(requests.iter().map(|asked| ask(*asked))))
    }
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn in_time(ended: &[(Asked, Became)]) -> usize {
    ended.iter().filter(|(_, became)| *became == Became::InTime).count()
}

fn refused(ended: &[(Asked, Became)]) -> usize {
    ended.iter().filter(|(_, became)| matches!(became, Became::Refused { .. })).count()
}

#[test]
fn goodput_survives_overload() {
    for trips in [1, 2, 3] {
    for deadline in [2, 3, 5, 10] {
        for load in [0.5, 0.8, 1.0, 2.0, 4.0] {
            let goodput = [true, false].map(|admission| {
                let mut world = World::new(7, admission, &[]);
                let within = TRIP * deadline * trips as u32;
                let asked = world.arrivals(CAPACITY / trips as f64 * load, [0, 5_000], Some(within));
                let ended = world.run(&world.plan(trips), &asked);
                (in_time(&ended) as f64 / 5.0 / (CAPACITY / trips as f64), refused(&ended), ended.len() - in_time(&ended) - refused(&ended), ended.len())
            });
            println!("trips {trips} deadline {deadline}x load {load}: with {:?} without {:?}", goodput[0], goodput[1]);
        }
    }
    }
}
