//! How a limit follows simulated backends; `world` has those, `bucket` the tests of token buckets.

mod bucket;
mod world;

use std::time::Duration;

use anabranch_engine::clock::{Clock, SystemClock};
use anabranch_engine::limit::{
    Adaptive, Bounds, Call, CallOutcome, ChangeReason, Error as LimitError, LearnedLimit, LimitChange, Ramp,
};
use expect_test::{Expect, expect};

use world::{Arrival, FinishedCall, Spread, least_limit, mean_limit, play, refused_share, timeouts};

const SEEDS: std::ops::Range<u64> = 0..32;

fn up_to(max: u32) -> Adaptive {
    Adaptive::new(Bounds { min: 1, max, start: 8.min(max), ramp: Ramp::Double }).unwrap()
}

/// Every first with every second, and the same third.
fn crossed<A: Copy, B: Copy, C: Copy>(
    first: impl IntoIterator<Item = A>,
    second: impl IntoIterator<Item = B> + Clone,
    third: C,
) -> Vec<(C, A, B)> {
    first.into_iter().flat_map(|a| second.clone().into_iter().map(move |b| (third, a, b))).collect()
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A backend that answers 429, after `refusal`, to every call above the ceiling.
fn with_ceiling(
    limit: &mut Adaptive,
    seed: u64,
    calls: usize,
    (service, refusal, spread): (Duration, Duration, Spread),
    ceiling: &dyn Fn(Duration) -> u32,
) -> Vec<FinishedCall> {
    play(limit, seed, calls, &mut |rng, Arrival { at, served }| match served < ceiling(at) {
        true => (CallOutcome::Answered, service.mul_f64(spread.draw(rng))),
        false => (CallOutcome::Refused, refusal),
    })
}

#[test]
fn settles_at_a_hard_ceiling() {
    let paces = [(1000, 20), (1000, 1000), (50, 10)];
    let spreads = [Spread::None, Spread::Half, Spread::Heavy];
    for (ceiling, (service, refusal), spread) in
        [1, 2, 5, 40, 200].into_iter().flat_map(|ceiling| crossed(paces, spreads, ceiling))
    {
        for seed in SEEDS {
            let calls = 1500.max(ceiling as usize * 50);
            let pace = (millis(service), millis(refusal), spread);
            let ended = with_ceiling(&mut up_to(400), seed, calls, pace, &|_| ceiling);
            let (mean, refused) = (mean_limit(&ended[calls / 3..]), refused_share(&ended[200..]));
            let wanted = f64::from(ceiling);
            let case = format!("seed {seed}, ceiling {ceiling}, {pace:?}: {mean} {refused}");
            assert!((mean - wanted).abs() <= (wanted * 0.1).max(1.0), "{case}");
            assert!(refused <= 0.03, "{case}");
        }
    }
}

#[test]
fn follows_a_ceiling_down_within_three_round_trips_and_up_within_2000_calls() {
    let (down, up) = (Duration::from_secs(100), Duration::from_secs(250));
    let ceiling = |at| match at < up {
        true if at < down => 40,
        true => 15,
        false => 60,
    };
    for spread in [Spread::None, Spread::Half, Spread::Heavy] {
        for seed in SEEDS {
            let pace = (millis(1000), millis(20), spread);
            let ended = with_ceiling(&mut up_to(400), seed, 10_000, pace, &ceiling);
            let first = |from: Duration| ended.iter().position(|end| end.at >= from).unwrap();
            let fallen = ended[first(down)..].iter().find(|end| end.limit <= 16).unwrap();
            assert!(fallen.at - down <= Duration::from_secs(3), "seed {seed}, {spread:?}: {:?}", fallen.at);
            let calls = ended[first(up)..].iter().position(|end| end.limit >= 54).unwrap();
            assert!(calls <= 2000, "seed {seed}, {spread:?}: {calls}");
            let refused = refused_share(&ended[200..]);
            assert!(refused <= 0.03, "seed {seed}, {spread:?}: {refused}");
        }
    }
}

#[test]
fn comes_back_within_130_round_trips_after_everything_was_refused() {
    let (from, to) = (Duration::from_secs(60), Duration::from_secs(90));
    for seed in SEEDS {
        let ceiling = |at| if (from..to).contains(&at) { 0 } else { 64 };
        let pace = (millis(1000), millis(20), Spread::Half);
        let ended = with_ceiling(&mut up_to(64), seed, 14_000, pace, &ceiling);
        let back = ended.iter().find(|end| end.at > to && end.limit >= 58).unwrap();
        assert!(back.at - to <= Duration::from_secs(130), "seed {seed}: {:?}", back.at - to);
    }
}

const BASE: Duration = Duration::from_millis(500);
const TIMEOUT: Duration = Duration::from_secs(5);

/// A backend that refuses nothing but serves only so many calls at full speed.
struct Knee<'a> {
    at: &'a dyn Fn(Duration) -> f64,
    queue: Queue,
    spread: Spread,
    timeout: Duration,
}

/// What becomes of calls beyond the knee.
#[derive(Clone, Copy, Debug)]
enum Queue {
    /// All take longer in proportion.
    Shared,
    /// They wait for their turn.
    Line,
}

const QUEUES: [Queue; 2] = [Queue::Shared, Queue::Line];

/// Also tells which part of the backend's capacity was used since `from`.
fn with_knee(
    limit: &mut Adaptive,
    seed: u64,
    calls: usize,
    knee: &Knee<'_>,
    from: Duration,
) -> (Vec<FinishedCall>, f64) {
    let mut servers = vec![Duration::ZERO; (knee.at)(Duration::ZERO) as usize];
    let mut work: Vec<(Duration, f64)> = Vec::new();
    let ended = play(limit, seed, calls, &mut |rng, Arrival { at, served }| {
        let full = (knee.at)(at);
        let service = BASE.mul_f64(knee.spread.draw(rng));
        let takes = match knee.queue {
            Queue::Shared => service.mul_f64((f64::from(served + 1) / full).max(1.0)),
            Queue::Line => {
                let server = servers[..full as usize].iter_mut().min().unwrap();
                *server = at.max(*server) + service;
                *server - at
            }
        };
        if takes > knee.timeout {
            return (CallOutcome::TimedOut, knee.timeout);
        }
        work.push((at + takes / 2, service.as_secs_f64() / full));
        (CallOutcome::Answered, takes)
    });
    let end = ended[ended.len() - 1].at;
    let used: f64 = work.iter().filter(|(at, _)| (from..end).contains(at)).map(|(_, work)| work).sum();
    (ended, used / (end - from).as_secs_f64())
}

#[test]
fn backs_off_from_a_queue_before_anything_times_out() {
    let spreads = [Spread::None, Spread::Half];
    for (full, queue, spread) in [5_u32, 20, 100].into_iter().flat_map(|full| crossed(QUEUES, spreads, full))
    {
        let knee = Knee { at: &|_| full.into(), queue, spread, timeout: TIMEOUT };
        for seed in SEEDS {
            let calls = 3000.max(full as usize * 100);
            let (ended, used) = with_knee(&mut up_to(400), seed, calls, &knee, Duration::from_secs(20));
            let mean = mean_limit(&ended[calls / 3..]);
            let case = format!("seed {seed}, knee {full}, {queue:?}, {spread:?}: {used} {mean}");
            assert_eq!(timeouts(&ended), 0, "{case}");
            assert!(used >= 0.9 && mean <= 3.0 * f64::from(full), "{case}");
        }
    }
}

#[test]
fn follows_a_backend_that_degrades_slowly() {
    for (fading, queue, spread) in
        [60, 600].into_iter().flat_map(|fading| crossed(QUEUES, [Spread::None, Spread::Half], fading))
    {
        let left = |at: Duration| 1.0 - 0.8 * ((at.as_secs_f64() - 30.0) / f64::from(fading)).clamp(0.0, 1.0);
        let knee = Knee { at: &|at| 100.0 * left(at), queue, spread, timeout: TIMEOUT };
        for seed in SEEDS {
            let calls = 200 * (90 + fading as usize * 6 / 10);
            let (ended, used) = with_knee(&mut up_to(100), seed, calls, &knee, Duration::from_secs(20));
            let mean = mean_limit(&ended[calls * 9 / 10..]);
            let case = format!("seed {seed}, {fading} s, {queue:?}, {spread:?}: {used} {mean}");
            assert_eq!(timeouts(&ended), 0, "{case}");
            assert!(used >= 0.9 && mean <= 4.0 * 20.0, "{case}");
        }
    }
}

#[test]
fn does_not_drift_into_a_queue() {
    let spreads = [Spread::Heavy, Spread::Exponential];
    for (full, queue, spread) in [2, 5].into_iter().flat_map(|full| crossed(QUEUES, spreads, full)) {
        let knee = Knee { at: &|_| full.into(), queue, spread, timeout: Duration::MAX };
        for seed in SEEDS {
            let (ended, used) = with_knee(&mut up_to(400), seed, 40_000, &knee, Duration::from_secs(200));
            let mean = mean_limit(&ended[30_000..]);
            let case = format!("seed {seed}, knee {full}, {queue:?}, {spread:?}: {used} {mean}");
            assert!(used >= 0.9 && mean <= 8.0 * f64::from(full), "{case}");
        }
    }
}

#[test]
fn finds_its_way_down_from_far_above() {
    for queue in QUEUES {
        let knee = Knee { at: &|_| 5.0, queue, spread: Spread::Half, timeout: TIMEOUT };
        for seed in SEEDS {
            let mut limit =
                Adaptive::new(Bounds { min: 1, max: 400, start: 32, ramp: Ramp::Double }).unwrap();
            let (ended, used) = with_knee(&mut limit, seed, 3000, &knee, Duration::from_secs(100));
            let (late, mean) = (timeouts(&ended[1000..]), mean_limit(&ended[1000..]));
            assert!(late == 0 && used >= 0.9 && mean <= 15.0, "seed {seed}, {queue:?}: {late} {used} {mean}");
        }
    }
}

#[test]
fn falls_to_the_least_when_calls_only_time_out_and_stays_there() {
    for seed in SEEDS {
        let dies = Duration::from_secs(20 * (seed % 2));
        let ended = play(&mut up_to(100), seed, 4000, &mut |rng, Arrival { at, .. }| match at < dies {
            true => (CallOutcome::Answered, BASE.mul_f64(Spread::Half.draw(rng))),
            false => (CallOutcome::TimedOut, TIMEOUT.mul_f64(Spread::Half.draw(rng))),
        });
        let dead = ended.iter().position(|end| end.at >= dies + BASE * 2).unwrap();
        let moves: Vec<LimitChange> = ended[dead..].iter().filter_map(|end| end.change).collect();
        assert!(moves.iter().all(|change| change.to < change.from), "seed {seed}: {moves:?}");
        assert_eq!(ended[3999].limit, 1, "seed {seed}");
    }
}

#[test]
fn a_rare_timeout_costs_little() {
    for spread in [Spread::Half, Spread::Heavy, Spread::Exponential] {
        for seed in SEEDS {
            let ended = play(&mut up_to(100), seed, 15_000, &mut |rng, _| match rng.within(0..200) {
                0 => (CallOutcome::TimedOut, TIMEOUT),
                _ => (CallOutcome::Answered, BASE.mul_f64(spread.draw(rng))),
            });
            let mean = mean_limit(&ended[3000..]);
            assert!(mean >= 80.0, "seed {seed}, {spread:?}: {mean}");
        }
    }
}

#[test]
fn noise_does_not_lower_it() {
    for (max, spread, seed) in
        [4, 20, 100, 400].into_iter().flat_map(|max| crossed([Spread::Half, Spread::Heavy], SEEDS, max))
    {
        let ended = play(&mut up_to(max), seed, 12_000, &mut |rng, _| {
            (CallOutcome::Answered, BASE.mul_f64(spread.draw(rng)))
        });
        let least = least_limit(&ended[5000..]);
        assert!(f64::from(least) >= 0.7 * f64::from(max), "seed {seed}, {spread:?}, {max}: {least}");
    }
}

#[test]
fn returns_when_slowness_is_not_of_its_making() {
    for spread in [Spread::None, Spread::Half, Spread::Heavy] {
        for seed in SEEDS {
            let mut limit = Adaptive::new(Bounds { min: 1, max: 100, start: 100, ramp: Ramp::One }).unwrap();
            let ended = play(&mut limit, seed, 25_000, &mut |rng, Arrival { at, .. }| {
                let kind = if at.as_secs() / 100 % 2 == 0 { 1.0 } else { 4.0 };
                (CallOutcome::Answered, BASE.mul_f64(kind * spread.draw(rng)))
            });
            let mean = mean_limit(&ended[4000..]);
            assert!(mean >= 90.0, "seed {seed}, {spread:?}: {mean}");
        }
    }
}

#[test]
fn learns_that_calls_have_become_quick() {
    for seed in SEEDS {
        let mut limit = up_to(20);
        play(&mut limit, seed, 4000, &mut |rng, Arrival { at, .. }| {
            let kind = if at.as_secs() < 60 { 4.0 } else { 1.0 };
            (CallOutcome::Answered, BASE.mul_f64(kind * Spread::Half.draw(rng)))
        });
        let latency = limit.save().latency.unwrap();
        assert!((BASE.mul_f64(0.8)..BASE.mul_f64(1.1)).contains(&latency), "seed {seed}: {latency:?}");
    }
}

#[test]
fn does_not_grow_unless_it_is_used() {
    for outcome in [CallOutcome::Answered, CallOutcome::Failed] {
        for in_flight in [1, 6] {
            let mut limit = up_to(100);
            let mut now = SystemClock.now();
            for _ in 0..10_000 {
                let call = Call { began: now, in_flight };
                now += BASE;
                assert_eq!(limit.ended(now, call, in_flight, outcome), None);
            }
        }
    }
}

#[test]
fn a_failure_without_meaning_changes_nothing() {
    let mut limit = up_to(100);
    let call = Call { began: SystemClock.now(), in_flight: 8 };
    for _ in 0..1000 {
        assert_eq!(limit.ended(call.began + BASE, call, 8, CallOutcome::Failed), None);
    }
}

#[test]
fn a_burst_of_refusals_counts_once() {
    let mut limit = Adaptive::new(Bounds { min: 1, max: 100, start: 100, ramp: Ramp::Double }).unwrap();
    let began = SystemClock.now();
    let refuse = |limit: &mut Adaptive, began, level, in_flight| {
        limit.ended(began + millis(20), Call { began, in_flight: level }, in_flight, CallOutcome::Refused)
    };
    let moves: Vec<_> = (1..=60).filter_map(|level| refuse(&mut limit, began, level, 101 - level)).collect();
    assert_eq!(moves, [LimitChange { from: 100, to: 75, reason: ChangeReason::Refused }]);
    assert_eq!(refuse(&mut limit, began + millis(21), 75, 75).unwrap().to, 56);
}

#[test]
fn goes_on_from_what_was_stored() {
    let pace = (millis(1000), millis(20), Spread::Half);
    for seed in SEEDS {
        let mut first = up_to(400);
        with_ceiling(&mut first, seed, 3000, pace, &|_| 40);
        let learned = first.save();
        let mut second = up_to(400);
        second.load(learned);
        assert_eq!(second.save(), learned, "seed {seed}");
        let ended = with_ceiling(&mut second, seed + 1000, 1000, pace, &|_| 40);
        let (mean, refused) = (mean_limit(&ended), refused_share(&ended));
        assert!((36.0..=44.0).contains(&mean) && refused <= 0.03, "seed {seed}: {mean} {refused}");
    }
}

#[test]
fn what_was_stored_is_kept_within_bounds() {
    let mut limit = Adaptive::new(Bounds { min: 2, max: 10, start: 4, ramp: Ramp::One }).unwrap();
    let load = |limit: &mut Adaptive, stored| {
        limit.load(LearnedLimit { limit: stored, ceiling: None, latency: None });
        limit.limit()
    };
    assert_eq!([0, 5, 400].map(|stored| load(&mut limit, stored)), [2, 5, 10]);
}

fn check_bounds((min, start, max): (u32, u32, u32), expected: Expect) {
    let made = Adaptive::new(Bounds { min, max, start, ramp: Ramp::One });
    expected.assert_eq(&made.map_or_else(|error: LimitError| error.to_string(), |_| "fine".into()));
}

#[test]
fn bounds_are_checked() {
    check_bounds((1, 1, 1), expect!["fine"]);
    check_bounds((0, 1, 1), expect!["`min` is 0, so no call could ever be made; set a larger value"]);
    check_bounds((1, 0, 1), expect!["`start` is 0, so no call could ever be made; set a larger value"]);
    check_bounds((1, 1, 0), expect!["`max` is 0, so no call could ever be made; set a larger value"]);
    check_bounds((5, 7, 4), expect!["`min` is 5 and `max` is 4; `min` must not be the larger one"]);
    check_bounds((5, 4, 9), expect!["`min` is 5 and `start` is 4; `min` must not be the larger one"]);
    check_bounds((1, 10, 9), expect!["`start` is 10 and `max` is 9; `start` must not be the larger one"]);
}
