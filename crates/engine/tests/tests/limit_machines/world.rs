//! Simulated backends, called in a closed loop: always as many calls in flight as the limit allows.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use anabranch_engine::clock::{Clock, SystemClock};
use anabranch_engine::limit::{Adaptive, Call, CallOutcome, LimitChange};
use anabranch_testkit::Rng;

/// What a backend does with one call: how it ends, and after how long.
pub(super) type Backend<'a> = dyn FnMut(&mut Rng, Arrival) -> (CallOutcome, Duration) + 'a;

/// A call that reaches a backend.
pub(super) struct Arrival {
    /// Since the start.
    pub(super) at: Duration,
    /// Other calls that it has not refused and not yet ended.
    pub(super) served: u32,
}

/// The end of a call.
pub(super) struct FinishedCall {
    pub(super) at: Duration,
    pub(super) outcome: CallOutcome,
    /// After it.
    pub(super) limit: u32,
    pub(super) change: Option<LimitChange>,
}

struct Flight {
    call: Call,
    outcome: CallOutcome,
}

/// Makes so many calls; returns their ends.
pub(super) fn play(
    limit: &mut Adaptive,
    seed: u64,
    calls: usize,
    backend: &mut Backend<'_>,
) -> Vec<FinishedCall> {
    let start = SystemClock.now();
    let mut rng = Rng::new(seed);
    let mut flights: Vec<Flight> = Vec::new();
    let mut ends: BinaryHeap<Reverse<(Instant, usize)>> = BinaryHeap::new();
    let (mut now, mut in_flight, mut served) = (start, 0, 0);
    let mut ended = Vec::with_capacity(calls);
    while ended.len() < calls {
        while in_flight < limit.limit() {
            let (outcome, takes) = backend(&mut rng, Arrival { at: now - start, served });
            in_flight += 1;
            served += u32::from(outcome != CallOutcome::Refused);
            ends.push(Reverse((now + takes, flights.len())));
            flights.push(Flight { call: Call { began: now, in_flight }, outcome });
        }
        let Reverse((at, number)) = ends.pop().unwrap();
        let Flight { call, outcome } = flights[number];
        now = at;
        let change = limit.ended(now, call, in_flight, outcome);
        in_flight -= 1;
        served -= u32::from(outcome != CallOutcome::Refused);
        ended.push(FinishedCall { at: now - start, outcome, limit: limit.limit(), change });
    }
    ended
}

/// How the times that calls take are spread around their base.
#[derive(Clone, Copy, Debug)]
pub(super) enum Spread {
    /// Not at all.
    None,
    /// By half.
    Half,
    /// By half, and one in twenty takes ten times as long.
    Heavy,
    /// Exponentially.
    Exponential,
}

impl Spread {
    /// The factor for one call.
    pub(super) fn draw(self, rng: &mut Rng) -> f64 {
        let uniform = (rng.bits() >> 11) as f64 / (1_u64 << 53) as f64;
        match self {
            Spread::None => 1.0,
            Spread::Half => 0.5 + uniform,
            Spread::Heavy if rng.percent(5) => 10.0 * (0.5 + uniform),
            Spread::Heavy => 0.5 + uniform,
            Spread::Exponential => 0.01 - (1.0 - uniform).ln(),
        }
    }
}

pub(super) fn refused_share(ended: &[FinishedCall]) -> f64 {
    let refused = ended.iter().filter(|end| end.outcome == CallOutcome::Refused).count();
    refused as f64 / ended.len() as f64
}

/// The limit on average over time.
pub(super) fn mean_limit(ended: &[FinishedCall]) -> f64 {
    let area: f64 =
        ended.windows(2).map(|pair| f64::from(pair[0].limit) * (pair[1].at - pair[0].at).as_secs_f64()).sum();
    area / (ended[ended.len() - 1].at - ended[0].at).as_secs_f64()
}

pub(super) fn least_limit(ended: &[FinishedCall]) -> u32 {
    ended.iter().map(|end| end.limit).min().unwrap()
}

pub(super) fn timeouts(ended: &[FinishedCall]) -> usize {
    ended.iter().filter(|end| end.outcome == CallOutcome::TimedOut).count()
}
