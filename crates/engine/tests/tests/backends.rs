//! Runs against simulated backends: limits, retries and the engine together, on the virtual clock.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anabranch_engine::clock::Clock;
use anabranch_engine::event::{EventKind, ListenerItem};
use anabranch_engine::limit::{Allowance, Bounds, Concurrency, LimitKey, Limits, Ramp};
use anabranch_engine::retry::{Classified, Retry, Severity};
use anabranch_engine::{
    Budget, Check, Config, Dag, Drops, Engine, NodeId, OnError, Options, Policies, Policy, Report, Step,
    Workload,
};
use anabranch_testkit::{Rng, Sim};

/// What a backend does with a call.
#[derive(Clone, Copy)]
enum Nature {
    /// Refuses more than so many at a time.
    Ceiling(u32),
    /// A ceiling that is another after so many calls.
    Moving { first: u32, calls: usize, then: u32 },
    /// Serves so many a second, first come, first served.
    Rate(u32),
    /// Never answers.
    Dead,
}

struct Backend {
    nature: Nature,
    in_flight: u32,
    free_at: Option<Instant>,
    rng: Rng,
    /// Whether each call was refused, and the limit when it was made.
    calls: Vec<(bool, u32)>,
}

#[derive(Debug)]
struct TooMuch;

impl Classified for TooMuch {
    fn severity(&self) -> Severity {
        Severity::Throttled { retry_after: None }
    }
}

struct Calls {
    backend: Arc<Mutex<Backend>>,
    clock: Arc<dyn Clock>,
    limits: Limits,
    key: LimitKey,
}

type CallFuture = Pin<Box<dyn Future<Output = Result<(), TooMuch>> + Send>>;

/// Counts a call as over when it is, however it ends.
struct InFlight(Arc<Mutex<Backend>>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.lock().unwrap().in_flight -= 1;
    }
}

impl Backend {
    fn new(nature: Nature, seed: u64) -> Arc<Mutex<Backend>> {
        let rng = Rng::new(seed);
        Arc::new(Mutex::new(Backend { nature, in_flight: 0, free_at: None, rng, calls: Vec::new() }))
    }

    /// How long the call takes, or that it is refused.
    fn take(&mut self, now: Instant, limit: u32) -> Result<Duration, TooMuch> {
        let jitter = self.rng.within(80..121) as u32;
        self.in_flight += 1;
        let ceiling = match self.nature {
            Nature::Ceiling(ceiling) => ceiling,
            Nature::Moving { first, calls, then } => {
                if self.calls.len() < calls {
                    first
                } else {
                    then
                }
            }
            Nature::Rate(_) | Nature::Dead => u32::MAX,
        };
        let refused = self.in_flight > ceiling;
        self.calls.push((refused, limit));
        match self.nature {
            _ if refused => Err(TooMuch),
            Nature::Dead => Ok(Duration::from_secs(1_000_000)),
            Nature::Rate(rate) => {
                let start = self.free_at.map_or(now, |free| free.max(now));
                let done = start + Duration::from_secs(1) / rate;
                self.free_at = Some(done);
                Ok((done - now).max(Duration::from_millis(200)))
            }
            _ => Ok(Duration::from_millis(200) * jitter / 100),
        }
    }
}

impl Workload for Calls {
    type Value = ();
    type Error = TooMuch;
    type Future = CallFuture;
    type Job = fn(Option<()>, &Check<'_>) -> Result<(), TooMuch>;

    fn step(&mut self, _: NodeId, _: Budget) -> Step<Self> {
        let (clock, backend) = (Arc::clone(&self.clock), Arc::clone(&self.backend));
        let limit = self.limits.status(self.key).limit;
        let future: CallFuture = Box::pin(async move {
            let taken = backend.lock().unwrap().take(clock.now(), limit);
            let _in_flight = InFlight(Arc::clone(&backend));
            let pause = *taken.as_ref().unwrap_or(&Duration::from_millis(20));
            clock.sleep_until(clock.now() + pause).await;
            taken.map(|_| ())
        });
        Step::Future(future)
    }

    fn finish(&mut self, _: NodeId, (): (), _: &mut Drops) {}
}

fn adaptive() -> Allowance {
    let bounds = Bounds { min: 1, max: 500, start: 4, ramp: Ramp::Double };
    Allowance { concurrency: Concurrency::Adaptive(bounds), requests: None, tokens: None, parent: None }
}

fn calls_on(
    sim: &Sim,
    engine: &Engine,
    (limits, key): (&Limits, LimitKey),
    backend: &Arc<Mutex<Backend>>,
    nodes: u32,
    seed: u64,
) -> Result<Report, String> {
    let retry = Retry {
        rounds: 2,
        base: Duration::from_millis(100),
        longest: Duration::from_secs(2),
        ..Retry::default()
    };
    let policy = Policy {
        limit: Some(key),
        retry: Some(retry),
        timeout: Some(Duration::from_secs(2)),
        on_error: OnError::Isolate,
        ..Policy::default()
    };
    let clock = Arc::clone(engine.clock());
    let mut work = Calls { backend: Arc::clone(backend), clock, limits: limits.clone(), key };
    let dag = Dag::new(nodes, &[]).unwrap();
    let policies = Policies::uniform(policy);
    let options = Options { limits: Some(limits.clone()), seed, ..Options::default() };
    let result = sim.block_on(engine.run(&dag, &policies, &mut work, &options).unwrap());
    let standing = limits.status(key);
    assert_eq!((standing.in_flight, standing.waiting), (0, 0));
    result.map_err(|stopped| format!("{stopped:?}"))
}

fn call(nature: Nature, nodes: u32, seed: u64) -> (Result<Report, String>, Vec<(bool, u32)>, Duration) {
    let sim = Sim::new(seed);
    let engine = sim.engine(&Config::default());
    let limits = Limits::new(Arc::clone(engine.clock()));
    let key = limits.add("backend", adaptive()).unwrap();
    let backend = Backend::new(nature, seed);
    let began = engine.clock().now();
    let result = calls_on(&sim, &engine, (&limits, key), &backend, nodes, seed);
    let calls = std::mem::take(&mut backend.lock().unwrap().calls);
    (result, calls, engine.clock().now() - began)
}

/// The share of refused calls after the first 200, and the average limit of the second half.
fn settled(calls: &[(bool, u32)]) -> (f64, f64) {
    let later = &calls[200..];
    let refused = later.iter().filter(|(refused, _)| *refused).count() as f64 / later.len() as f64;
    let half = &calls[calls.len() / 2..];
    (refused, half.iter().map(|(_, limit)| f64::from(*limit)).sum::<f64>() / half.len() as f64)
}

#[test]
fn a_hard_ceiling_is_found_and_kept_with_few_refusals() {
    for ceiling in [10, 40, 150] {
        for seed in 0..4 {
            let nodes = 3_000.max(ceiling * 60);
            let (result, calls, _) = call(Nature::Ceiling(ceiling), nodes, seed);
            assert_eq!(result.unwrap().finished, nodes, "every node gets its answer");
            let (refused, limit) = settled(&calls);
            assert!(refused <= 0.03, "seed {seed}: {:.1}% refused at {ceiling}", refused * 100.0);
            let off = (limit - f64::from(ceiling)).abs();
            assert!(off <= f64::from(ceiling) * 0.1 + 1.0, "seed {seed}: settled at {limit:.1} of {ceiling}");
        }
    }
}

#[test]
fn a_ceiling_that_moves_is_followed() {
    for (first, then) in [(60, 20), (20, 60)] {
        let (result, calls, _) = call(Nature::Moving { first, calls: 4_000, then }, 12_000, 1);
        assert_eq!(result.unwrap().finished, 12_000);
        let end = &calls[calls.len() - 2_000..];
        let limit = end.iter().map(|(_, limit)| f64::from(*limit)).sum::<f64>() / 2_000.0;
        assert!((limit - f64::from(then)).abs() <= f64::from(then) * 0.15 + 1.0, "{limit:.1} of {then}");
    }
}

#[test]
fn slowness_without_refusals_backs_off_before_timeouts_and_loses_little() {
    let (result, _, took) = call(Nature::Rate(100), 4_000, 1);
    let report = result.unwrap();
    assert_eq!((report.finished, report.failed), (4_000, 0), "no call came near its timeout of 2 s twice");
    assert!(took < Duration::from_secs(46), "40 s of work took {took:?}");
}

#[test]
fn a_dead_backend_brings_the_limit_down_to_one_and_keeps_it_there() {
    let (result, calls, _) = call(Nature::Dead, 60, 1);
    assert_eq!(result.unwrap().failed, 60);
    assert_eq!(calls.last().unwrap().1, 1);
    let climbs = calls.windows(2).filter(|pair| pair[1].1 > pair[0].1).count();
    assert_eq!(climbs, 0);
}

/// The limit after so many runs of 20 calls each, whose only bound is a deadline.
fn limit_after_deadlines(nature: Nature, runs: u64, deadline: Duration) -> u32 {
    let sim = Sim::new(1);
    let engine = sim.engine(&Config::default());
    let limits = Limits::new(Arc::clone(engine.clock()));
    let key = limits.add("backend", adaptive()).unwrap();
    let backend = Backend::new(nature, 1);
    let policies = Policies::uniform(Policy { limit: Some(key), ..Policy::default() });
    let dag = Dag::new(20, &[]).unwrap();
    for _ in 0..runs {
        let clock = Arc::clone(engine.clock());
        let deadline = Some(clock.now() + deadline);
        let mut work = Calls { backend: Arc::clone(&backend), clock, limits: limits.clone(), key };
        let options = Options { limits: Some(limits.clone()), deadline, ..Options::default() };
        let _ = sim.block_on(engine.run(&dag, &policies, &mut work, &options).unwrap());
    }
    limits.status(key).limit
}

#[test]
fn a_backend_that_hangs_is_seen_through_deadlines_too() {
    assert_eq!(limit_after_deadlines(Nature::Dead, 60, Duration::from_secs(2)), 1);
}

#[test]
fn calls_that_a_deadline_cuts_early_say_nothing_of_the_backend() {
    // Calls take about 200 ms: the second round of each run is cut after 20 ms.
    let limit = limit_after_deadlines(Nature::Ceiling(1_000), 200, Duration::from_millis(265));
    assert!(limit >= 4, "{limit}");
}

#[test]
fn what_a_limit_learned_is_heard_saved_and_gone_on_from() {
    let sim = Sim::new(1);
    let engine = sim.engine(&Config::default());
    let mut listener = crate::script::listen(&engine);
    let table = || {
        let limits = Limits::new(Arc::clone(engine.clock()));
        let key = limits.add("backend", adaptive()).unwrap();
        (limits, key)
    };
    let (limits, key) = table();
    let backend = Backend::new(Nature::Ceiling(30), 1);
    calls_on(&sim, &engine, (&limits, key), &backend, 3_000, 1).unwrap();
    let mut moves = std::iter::from_fn(|| listener.try_next()).filter_map(|heard| match heard {
        ListenerItem::Event(event) => match event.kind {
            EventKind::Limit(heard, moved) if heard == key => Some(moved),
            _ => None,
        },
        ListenerItem::Lost(_) => None,
    });
    let first = moves.next().unwrap();
    let last = moves.last().unwrap();
    assert_eq!((first.from, last.to), (4, limits.status(key).limit));
    let learned = limits.save();
    assert_eq!((learned.len(), learned[0].0.as_str(), learned[0].1.limit), (1, "backend", last.to));
    let (again, key) = table();
    assert_eq!(again.status(key).limit, 4);
    again.load(&learned);
    assert_eq!(again.status(key).limit, last.to);
}
