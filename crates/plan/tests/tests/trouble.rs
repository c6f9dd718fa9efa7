//! Any node, and any two, of plans with timeouts, fallbacks and regions may be slow, stall or fail: every answer is
//! there by its deadline, its ledger is exactly what a plain model of the plan says, and nothing is left running.

mod world;
mod examples;
mod model;

use std::time::Duration;

use anabranch_plan::{Error, Request, RunOptions};
use anabranch_testkit::{Rng, Sim};

use model::CaseOutcome;
use world::{Case, Trouble};

const SEEDS: u64 = 150;

fn seeds() -> std::ops::Range<u64> {
    let most = std::env::var("ANABRANCH_TROUBLE_SEEDS").ok().and_then(|text| text.parse().ok());
    0..most.unwrap_or(SEEDS)
}

/// Runs a case with this trouble, and compares. Whether the model could say what must come out.
fn check(case: &Case, trouble: &[(usize, Trouble)], seed: u64) -> bool {
    let Some(expected) = model::expect(case, trouble) else { return false };
    let sim = Sim::new(seed);
    let plan = case.plan(&sim, trouble);
    let start = sim.clock().now();
    let options = RunOptions { deadline: Some(start + case.deadline), ..RunOptions::default() };
    let answer = sim.block_on(plan.run_with(Request::new(1, plan.engine().registries()), &options));
    let took = sim.clock().now() - start;
    let left = sim.settle();
    let context =
        || format!("seed {seed}, trouble {trouble:?}, deadline {:?}\n{}", case.deadline, case.text());
    assert_eq!((left.tasks, left.jobs), (0, 0), "{}", context());
    assert!(took <= case.deadline, "{took:?}: {}", context());
    match (answer, expected) {
        (Ok(answer), CaseOutcome::Answer { at, ledger }) => {
            let mut told: Vec<_> = answer
                .ledger
                .iter()
                .map(|entry| {
                    let region = entry.region.clone();
                    (entry.node.clone(), region, entry.reason, entry.fallback.clone(), entry.waited)
                })
                .collect();
            told.sort();
            assert_eq!(told, ledger, "{}", context());
            assert_eq!(took, at, "{}", context());
        }
        (Err(Error::Node { node, .. }), CaseOutcome::Failed { at, node: expected }) => {
            assert_eq!((node, took), (expected, at), "{}", context());
        }
        (Err(Error::Deadline { late }), CaseOutcome::Late { nodes }) => {
            let mut late: Vec<String> =
                late.iter().map(|name| name.split(' ').next().unwrap().to_owned()).collect();
            late.sort();
            assert_eq!((late, took), (nodes, case.deadline), "{}", context());
        }
        (answer, expected) => panic!("{answer:?}\ninstead of {expected:?}\n{}", context()),
    }
    true
}

/// How many cases were decided, and how many of them answered with a ledger.
#[derive(Default)]
struct Tally {
    checked: u32,
    degraded: u32,
}

impl Tally {
    fn add(&mut self, case: &Case, trouble: &[(usize, Trouble)], seed: u64) {
        if check(case, trouble, seed) {
            self.checked += 1;
            let expected = model::expect(case, trouble);
            let degraded =
                |it: &CaseOutcome| matches!(it, CaseOutcome::Answer { ledger, .. } if !ledger.is_empty());
            self.degraded += u32::from(expected.as_ref().is_some_and(degraded));
        }
    }

    /// The test is worth something only if most cases are decided, and many of them are answered with a ledger.
    fn is_worth(&self, cases: u32) {
        let Tally { checked, degraded } = self;
        assert!(checked * 2 > cases && degraded * 5 > *checked, "{degraded} of {checked} of {cases}");
    }
}

#[test]
fn any_two_nodes_of_random_plans_in_trouble() {
    let (mut tally, mut cases) = (Tally::default(), 0);
    for seed in seeds() {
        let mut rng = Rng::new(seed);
        let case = Case::new(&mut rng);
        let mut troubles = vec![Vec::new()];
        troubles.extend((0..case.nodes.len()).map(|node| vec![(node, Trouble::random(&mut rng))]));
        for _ in 0..case.nodes.len() {
            let pair = [0, 1].map(|_| rng.within(0..case.nodes.len() as u64) as usize);
            if pair[0] != pair[1] {
                troubles.push(pair.map(|node| (node, Trouble::random(&mut rng))).to_vec());
            }
        }
        cases += troubles.len() as u32;
        troubles.iter().for_each(|trouble| tally.add(&case, trouble, seed));
    }
    tally.is_worth(cases);
}

#[test]
fn any_two_nodes_of_the_examples_in_trouble() {
    for (number, name) in examples::NAMES.into_iter().enumerate() {
        let (mut tally, mut cases) = (Tally::default(), 0);
        for seed in 0..seeds().end.div_ceil(50) {
            let mut rng = Rng::new(seed * 10 + number as u64);
            let case = examples::case(&mut rng, name);
            let nodes: Vec<usize> =
                (0..case.nodes.len()).filter(|node| !case.nodes[*node].is_region).collect();
            for (at, &one) in nodes.iter().enumerate() {
                for trouble in [Trouble::Stall, Trouble::Fail, Trouble::random(&mut rng)] {
                    tally.add(&case, &[(one, trouble)], seed);
                }
                for &other in &nodes[..at] {
                    let pair = [one, other].map(|node| (node, Trouble::random(&mut rng)));
                    tally.add(&case, &pair, seed);
                }
                cases += 3 + at as u32;
            }
        }
        assert!(tally.checked * 2 > cases, "{name}: {} of {cases}", tally.checked);
        assert!(tally.degraded > 10, "{name}: {} of {}", tally.degraded, tally.checked);
    }
}

/// Milliseconds that are told apart from all others, so that no two things happen at the same time.
fn odd(rng: &mut Rng, most: u64) -> Duration {
    Duration::from_micros(rng.within(500..most * 1000) * 16 + rng.within(1..16)) / 16
}
