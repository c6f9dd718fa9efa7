//! Seeded simulation: callers who come, share, lose patience and come again, over works that fail and panic.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Poll;

use anabranch_engine::clock::{Clock, Sleep};
use anabranch_engine::flight::Flights;
use anabranch_engine::{Budget, Check, Config, Dag, Drops, NodeId, Options, Policies, Step, Workload};
use anabranch_testkit::{Rng, Sim};

const CASES: u64 = 3_000;

type Answer = Result<u64, &'static str>;

/// What happens in a case, and how often.
#[derive(Clone)]
struct World {
    flights: Flights<u64, Answer>,
    clock: Arc<dyn Clock>,
    books: Arc<Mutex<Books>>,
}

struct Books {
    rng: Rng,
    published: BTreeMap<u64, u64>,
    alive: BTreeMap<u64, ()>,
    tally: BTreeMap<&'static str, u64>,
}

impl World {
    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap()
    }

    fn nap(&self) -> Sleep {
        let time = self.books().rng.micros(0..2_000);
        self.clock.sleep_until(self.clock.now() + time)
    }

    fn draw(&self, range: std::ops::Range<u64>) -> u64 {
        self.books().rng.within(range)
    }

    fn count(&self, what: &'static str) {
        *self.books().tally.entry(what).or_default() += 1;
    }

    /// Asks for a few keys, one after the other.
    async fn call(self) -> Result<(), Infallible> {
        for _ in 0..self.draw(1..6) {
            self.nap().await;
            let key = self.draw(0..4);
            let known = self.books().published.get(&key).copied();
            match known {
                Some(value) => assert_eq!(value, key),
                None => self.fly(key).await,
            }
        }
        Ok(())
    }

    async fn fly(&self, key: u64) {
        let (look, work) = (self.clone(), self.clone());
        let mut waiter = pin!(self.flights.join(
            key,
            move || look.books().published.get(&key).copied().map(Ok),
            move || work.compute(key),
        ));
        if self.flights.waiters() > self.flights.open() {
            self.count("shared");
        }
        let mut patience = (self.draw(0..3) == 0).then(|| self.nap());
        let answer = std::future::poll_fn(|cx| match waiter.as_mut().poll(cx) {
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            Poll::Pending => match &mut patience {
                Some(patience) => patience.as_mut().poll(cx).map(|()| None),
                None => Poll::Pending,
            },
        });
        match answer.await {
            Some(Ok(Ok(value))) => assert_eq!(value, key),
            Some(Ok(Err(error))) => self.count(error),
            Some(Err(panicked)) => assert_eq!(panicked.0, "broke"),
            None => self.count("left"),
        }
    }

    async fn compute(self, key: u64) -> Answer {
        let mut alive = Alive { world: &self, key, ending: "cancelled" };
        let taken = self.books().alive.insert(key, ());
        assert!(taken.is_none() && !self.books().published.contains_key(&key), "computed once too often");
        for _ in 0..self.draw(0..4) {
            self.nap().await;
        }
        alive.ending = ["failed", "panicked", "published", "published"][self.draw(0..4) as usize];
        match alive.ending {
            "failed" => return Err("told of a failure"),
            "panicked" => std::panic::resume_unwind(Box::new("broke")),
            _ => self.books().published.insert(key, key),
        };
        Ok(key)
    }
}

/// A computation underway.
struct Alive<'a> {
    world: &'a World,
    key: u64,
    ending: &'static str,
}

impl Drop for Alive<'_> {
    fn drop(&mut self) {
        assert!(self.world.books().alive.remove(&self.key).is_some());
        self.world.count(self.ending);
    }
}

/// Each node is a caller.
struct Callers(World);

impl Workload for Callers {
    type Value = ();
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<(), Self::Error>> + Send>>;
    type Job = fn(Option<()>, &Check<'_>) -> Result<(), Self::Error>;

    fn step(&mut self, _: NodeId, _: Budget) -> Step<Self> {
        let call: Self::Future = Box::pin(self.0.clone().call());
        Step::Future(call)
    }

    fn finish(&mut self, _: NodeId, (): (), _: &mut Drops) {}
}

fn run_case(seed: u64) -> BTreeMap<&'static str, u64> {
    let mut rng = Rng::new(seed);
    let sim = Sim::new(rng.bits());
    let engine = sim.engine(&Config::default());
    let (node_count, runs) = (rng.within(1..12) as u32, rng.within(1..4));
    let books = Books { rng, published: BTreeMap::new(), alive: BTreeMap::new(), tally: BTreeMap::new() };
    let (clock, books) = (sim.clock(), Arc::new(Mutex::new(books)));
    let world = World { flights: Flights::default(), clock, books };
    let (dag, policies, options) =
        (Dag::new(node_count, &[]).unwrap(), Policies::default(), Options::default());
    for _ in 0..runs {
        let mut callers = Callers(world.clone());
        let run = engine.run(&dag, &policies, &mut callers, &options).unwrap();
        sim.block_on(run).unwrap();
        assert_eq!((world.flights.open(), world.flights.waiters()), (0, 0));
        assert!(world.books().alive.is_empty());
    }
    world.books().tally.clone()
}

#[test]
fn random_callers_keep_every_rule() {
    let mut total = BTreeMap::new();
    for seed in 0..CASES {
        let tally = std::panic::catch_unwind(|| run_case(seed)).unwrap_or_else(|payload| {
            eprintln!("the case with seed {seed} failed");
            std::panic::resume_unwind(payload)
        });
        for (what, count) in tally {
            *total.entry(what).or_insert(0) += count;
        }
    }
    println!("{CASES} simulated cases: {total:?}");
    let kinds = ["shared", "left", "cancelled", "failed", "told of a failure", "panicked", "published"];
    assert!(kinds.iter().all(|what| total.get(what).is_some_and(|count| *count > CASES / 4)), "{total:?}");
}
