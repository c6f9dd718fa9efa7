//! Random flows against a naive evaluation, on virtual and on real time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anabranch_engine::clock::Clock;
use anabranch_engine::flow::{Error, Node, Optional, Results, optional};
use anabranch_engine::retry::Retry;
use anabranch_engine::workload::BoxError;
use anabranch_engine::{Config, Cost, Engine, Flow};
use anabranch_testkit::{Leftovers, Rng, Sim};

const CASES: u64 = 1_500;
const REAL_CASES: u64 = 40;

struct Plan {
    nodes: Vec<Part>,
}

/// One node of a case.
struct Part {
    /// Earlier nodes, and how each is read.
    reads: Vec<(usize, How)>,
    is_job: bool,
    time: Duration,
    /// Tries that fail; more than are made, if it never succeeds.
    failures: u32,
    panics: bool,
    /// Tries after the first, if it has a retry.
    retry: Option<u32>,
    on_error: OnError,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum How {
    Moved,
    Borrowed,
    MovedMaybe,
    BorrowedMaybe,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum OnError {
    FailRun,
    Isolate,
    Fallback(u64),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Outcome {
    Value(u64),
    Missing,
    Fatal,
}

impl Plan {
    fn new(rng: &mut Rng) -> Plan {
        let count = rng.within(1..20) as usize;
        let trouble = *rng.choose(&[0, 10, 30]);
        let mut moved = vec![false; count];
        let nodes = (0..count).map(|node| {
            let mut reads = Vec::new();
            for (input, moved) in moved.iter_mut().enumerate().take(node) {
                if !*moved && rng.percent(30) {
                    let how = *rng.choose(&[
                        How::Moved,
                        How::Borrowed,
                        How::Borrowed,
                        How::MovedMaybe,
                        How::BorrowedMaybe,
                    ]);
                    *moved = matches!(how, How::Moved | How::MovedMaybe);
                    reads.push((input, how));
                }
            }
            Part {
                reads,
                is_job: rng.percent(50),
                time: rng.micros(0..900),
                failures: if rng.percent(trouble) { rng.within(1..4) as u32 } else { 0 },
                panics: rng.percent(20),
                retry: rng.percent(30).then(|| rng.within(0..3) as u32),
                on_error: *rng.choose(&[OnError::FailRun, OnError::Isolate, OnError::Fallback(node as u64)]),
            }
        });
        Plan { nodes: nodes.collect() }
    }

    /// One node after the other.
    fn evaluate(&self) -> Vec<Outcome> {
        let mut outcomes: Vec<Outcome> = Vec::new();
        for part in &self.nodes {
            let read = |(input, _): &(usize, How)| match outcomes[*input] {
                Outcome::Value(value) => Some(value),
                Outcome::Missing | Outcome::Fatal => None,
            };
            let needs = |(_, how): &&(usize, How)| matches!(how, How::Moved | How::Borrowed);
            let outcome = if part.reads.iter().filter(needs).any(|input| read(input).is_none()) {
                Outcome::Missing
            } else if part.succeeds() {
                let of = |kind: How| -> Vec<Option<u64>> {
                    part.reads.iter().filter(|(_, how)| *how == kind).map(read).collect()
                };
                let kinds = [How::Moved, How::Borrowed, How::MovedMaybe, How::BorrowedMaybe];
                Outcome::Value(combine(kinds.into_iter().flat_map(of)))
            } else {
                match part.on_error {
                    OnError::FailRun => Outcome::Fatal,
                    OnError::Isolate => Outcome::Missing,
                    OnError::Fallback(value) => Outcome::Value(value),
                }
            };
            outcomes.push(outcome);
        }
        outcomes
    }

    /// The flow, and the handles that were not moved.
    fn flow(&self, clock: &Arc<dyn Clock>) -> (Flow, Vec<Option<Node<u64>>>) {
        let mut flow = Flow::new("random");
        let mut handles: Vec<Option<Node<u64>>> = Vec::new();
        for (number, part) in self.nodes.iter().enumerate() {
            let node = part.add(&mut flow, number, &mut handles, Arc::clone(clock));
            handles.push(Some(node));
        }
        (flow, handles)
    }
}

type Reads = (Vec<u64>, Vec<u64>, Vec<Option<u64>>, Vec<Option<u64>>);

fn combined((moved, borrowed, moved_maybe, borrowed_maybe): Reads) -> u64 {
    let needed = moved.into_iter().chain(borrowed).map(Some);
    combine(needed.chain(moved_maybe).chain(borrowed_maybe))
}

fn combine(values: impl IntoIterator<Item = Option<u64>>) -> u64 {
    let mix =
        |sum: u64, value: Option<u64>| sum.wrapping_mul(31).wrapping_add(value.map_or(7, |value| value + 1));
    values.into_iter().fold(1, mix)
}

impl Part {
    fn succeeds(&self) -> bool {
        // A panic is not tried again.
        self.failures == 0 || (!self.panics && self.failures <= self.retry.unwrap_or(0))
    }

    fn add(
        &self,
        flow: &mut Flow,
        number: usize,
        handles: &mut [Option<Node<u64>>],
        clock: Arc<dyn Clock>,
    ) -> Node<u64> {
        let take = |kind: How, handles: &mut [Option<Node<u64>>]| -> Vec<Node<u64>> {
            let inputs = self.reads.iter().filter(|(_, how)| *how == kind);
            inputs.map(|(input, _)| handles[*input].take().unwrap()).collect()
        };
        let moved = take(How::Moved, handles);
        let moved_maybe: Vec<_> = take(How::MovedMaybe, handles).into_iter().map(optional).collect();
        let borrow = |kind: How| -> Vec<&Node<u64>> {
            let inputs = self.reads.iter().filter(|(_, how)| *how == kind);
            inputs.map(|(input, _)| handles[*input].as_ref().unwrap()).collect()
        };
        let maybe: Vec<Optional<&Node<u64>>> = borrow(How::BorrowedMaybe).into_iter().map(optional).collect();
        let inputs = (moved, borrow(How::Borrowed), moved_maybe, maybe);
        let (time, panics, failures) = (self.time, self.panics, self.failures);
        let tries = Arc::new(AtomicU32::new(0));
        let work = move |reads: Reads| -> Result<u64, BoxError> {
            if tries.fetch_add(1, Ordering::SeqCst) < failures {
                assert!(!panics, "boom");
                return Err("broken".into());
            }
            Ok(combined(reads))
        };
        let mut node = flow.node(number.to_string()).cost(Cost::About(time));
        node = match self.on_error {
            OnError::FailRun => node,
            OnError::Isolate => node.isolate(),
            OnError::Fallback(value) => node.fallback(value),
        };
        let pause = move || async move { clock.sleep_until(clock.now() + time).await };
        match (self.retry, self.is_job) {
            (None, true) => node.job(inputs, move |reads, _| work(reads)),
            (None, false) => node.future(inputs, move |reads| async move {
                pause().await;
                work(reads)
            }),
            (Some(rounds), is_job) => {
                let node = node.retry(Retry { rounds, base: time, longest: time, ..Retry::default() });
                match is_job {
                    true => node.job(inputs, move |reads, _| work(reads)),
                    false => node.future(inputs, move |reads| async move {
                        pause().await;
                        work(reads)
                    }),
                }
            }
        }
    }
}

/// Holds what a run gave against the naive evaluation.
fn compare(plan: &Plan, handles: &[Option<Node<u64>>], ran: Result<Results, Error>) {
    let expected = plan.evaluate();
    let fatal = |name: &str| expected[name.parse::<usize>().unwrap()] == Outcome::Fatal;
    let results = match ran {
        Ok(results) => results,
        Err(Error::Node { node, .. }) => return assert!(fatal(&node), "node {node} should not have failed"),
        Err(error) => panic!("{error}"),
    };
    let finished = expected.iter().filter(|outcome| matches!(outcome, Outcome::Value(_))).count();
    assert_eq!(results.report().finished as usize, finished);
    for (handle, expected) in handles.iter().zip(&expected) {
        assert_ne!(*expected, Outcome::Fatal);
        if let Some(handle) = handle {
            let value = results.get(handle).map_or(Outcome::Missing, |value| Outcome::Value(*value));
            assert_eq!(value, *expected, "node {}", handle.id());
        }
    }
}

#[test]
fn random_flows_agree_with_a_naive_evaluation() {
    for seed in 0..CASES {
        let case = std::panic::catch_unwind(|| {
            let (sim, plan) = (Sim::new(seed), Plan::new(&mut Rng::new(seed)));
            let engine = sim.engine(&Config::default());
            let (flow, handles) = plan.flow(engine.clock());
            let ran = sim.block_on(flow.run(&engine));
            assert_eq!(sim.settle(), Leftovers { tasks: 0, jobs: 0 });
            compare(&plan, &handles, ran);
        });
        assert!(case.is_ok(), "seed {seed}");
    }
}

#[test]
fn random_flows_agree_on_real_threads() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    let engine = Engine::new(&Config::default()).unwrap();
    for seed in 0..REAL_CASES {
        let plan = Plan::new(&mut Rng::new(seed));
        let (flow, handles) = plan.flow(engine.clock());
        compare(&plan, &handles, runtime.block_on(flow.run(&engine)));
    }
}

#[test]
fn random_flows_meet_every_kind_of_read_and_end() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let plan = Plan::new(&mut Rng::new(seed));
        for (part, outcome) in plan.nodes.iter().zip(plan.evaluate()) {
            seen.extend(part.reads.iter().map(|(_, how)| format!("{how:?}")));
            seen.insert(match outcome {
                Outcome::Value(_) if part.succeeds() => "value".to_owned(),
                Outcome::Value(_) => "fallback".to_owned(),
                outcome => format!("{outcome:?}"),
            });
        }
    }
    assert_eq!(seen.len(), 8, "{seen:?}");
}
