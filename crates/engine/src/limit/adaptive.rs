//! Adaptive concurrency: finds out how many calls one backend can take at a time.
//!
//! A limit is in one of four states. All but the first judge a *window*: the latencies of a round of calls, measured after
//! one round has passed at the present limit.
//!
//! | state | meaning | judgement |
//! |---|---|---|
//! | grow | below its target; an answered call adds 1 | at the target: hold or probe |
//! | hold | measures the latency at this limit | as usual: new target, then grow; doubled: back off |
//! | probe | above `probe_base`; did throughput rise? | yes: new target, then grow; no: return below the probe |
//! | back off | halved because calls were slow | faster: hold; not faster: the backend itself is slow, grow back |
//!
//! In every state a refused call cuts the limit by a quarter at once, and so do repeated timeouts. The number of calls
//! that was too many becomes the *ceiling*: the limit returns to just below it, and goes past it only after a delay.

use std::cmp::Ordering;
use std::time::{Duration, Instant};

use super::bounds::Bounds;
use super::ceiling::{Ceiling, NextTarget};
use super::error::Error;
use super::latency::{MeanLatency, Window};

/// The start of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The time of the start.
    pub began: Instant,
    /// Calls in flight at the start, including this one.
    pub in_flight: u32,
}

/// The outcome of a call, for estimating the backend's load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// The backend answered.
    Answered,
    /// The backend said that it is overloaded, such as HTTP 429.
    Refused,
    /// No answer came in time.
    TimedOut,
    /// The caller gave up before an answer came: its deadline passed, or it was dropped.
    GivenUp,
    /// An error that says nothing about load.
    Failed,
}

/// A change of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitChange {
    /// The limit before the change.
    pub from: u32,
    /// The limit after the change.
    pub to: u32,
    /// The reason for it.
    pub reason: ChangeReason,
}

/// The reason why a limit changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeReason {
    /// A call was answered.
    Success,
    /// A call was refused.
    Refused,
    /// Several calls timed out.
    TimedOut,
    /// Calls became slower.
    Slow,
}

/// The knowledge of an adaptive limit, for storing it and loading it after a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LearnedLimit {
    /// The limit.
    pub limit: u32,
    /// The lowest number of calls in flight that is known to be too many.
    pub ceiling: Option<u32>,
    /// The mean latency of a call when calls do not queue in the backend.
    pub latency: Option<Duration>,
}

/// A limit on calls in flight that adapts to its backend.
#[derive(Clone, Debug)]
pub struct Adaptive {
    bounds: Bounds,
    limit: u32,
    /// The limit grows up to this.
    target: u32,
    ceiling: Ceiling,
    /// Calls that ended while the limit had its present value.
    calls_at_limit: u32,
    /// Calls that began before the last cut say nothing about the present limit.
    last_cut: Option<Instant>,
    /// [`SUCCESSES_PER_TIMEOUT`] for each timeout, minus one for each answered call since.
    timeout_score: u32,
    /// Calls to ignore before the window opens. Without this, short calls would be over-represented: of the calls that
    /// begin now, they end first.
    calls_to_skip: u32,
    window: Window,
    /// Recent latency of answered calls in seconds, at any limit.
    recent_latency: Option<f64>,
    /// The lowest mean latency that was measured in the hold state.
    baseline_latency: Option<MeanLatency>,
    /// The limit that a probe is compared with, and the latency there.
    probe_base: Option<(u32, MeanLatency)>,
    trust: Trust,
    failed_probes: u32,
    /// In the back-off state: the limit and the latency before it.
    backing_off: Option<(u32, MeanLatency)>,
}

/// The certainty that calls do not queue in the backend at `probe_base`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trust {
    Untested,
    /// Calls timed out, or the last test was long ago.
    Doubtful,
    Confirmed,
}

/// Calls that take more than this many times the baseline latency make the limit back off.
const MAX_SLOWDOWN: f64 = 2.0;
/// Growth up to this factor may continue while its effect is within chance.
const MAX_UNJUDGED_GROWTH: f64 = 1.5;
/// After this many failed probes the baseline is tested again, so that no wrong judgement lasts forever.
const PROBES_PER_RETEST: u32 = 32;
/// A backend with more than one timeout per this many answered calls counts as overloaded.
const SUCCESSES_PER_TIMEOUT: u32 = 4;

impl Adaptive {
    /// A limit that starts at `bounds.start`.
    pub fn new(bounds: Bounds) -> Result<Adaptive, Error> {
        bounds.check()?;
        Ok(Adaptive {
            bounds,
            limit: bounds.start,
            target: bounds.start,
            ceiling: Ceiling::unknown(bounds.ramp, bounds.start),
            calls_at_limit: 0,
            last_cut: None,
            timeout_score: 0,
            calls_to_skip: bounds.start,
            window: Window::default(),
            recent_latency: None,
            baseline_latency: None,
            probe_base: None,
            trust: Trust::Untested,
            failed_probes: 0,
            backing_off: None,
        })
    }

    /// The number of calls that may be in flight.
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// The knowledge so far, for storing it.
    pub fn save(&self) -> LearnedLimit {
        let latency = self.baseline_latency.map(|baseline| baseline.latency());
        LearnedLimit { limit: self.limit, ceiling: self.ceiling.level(), latency }
    }

    /// Continues from stored knowledge, within its own bounds.
    pub fn load(&mut self, learned: LearnedLimit) {
        self.set_limit(learned.limit.clamp(self.bounds.min, self.bounds.max));
        self.ceiling = Ceiling::unknown(self.bounds.ramp, self.limit);
        if let Some(level) = learned.ceiling {
            self.ceiling.set(level);
        }
        if let Some(latency) = learned.latency {
            self.recent_latency = Some(latency.as_secs_f64());
            self.baseline_latency = Some(MeanLatency::of(latency));
            self.trust = Trust::Confirmed;
        }
    }

    /// Records the end of a call; `in_flight` includes it. Returns the change of the limit, if there is one.
    pub fn ended(
        &mut self,
        now: Instant,
        call: Call,
        in_flight: u32,
        outcome: CallOutcome,
    ) -> Option<LimitChange> {
        if self.last_cut.is_some_and(|cut| call.began <= cut) {
            return None;
        }
        match outcome {
            CallOutcome::Answered => self.succeeded(now, call, in_flight),
            CallOutcome::Refused => {
                let level = in_flight.max(call.in_flight).min(self.limit);
                self.cut_below(now, level, call.in_flight, ChangeReason::Refused)
            }
            CallOutcome::TimedOut => self.timed_out(now, call, in_flight),
            CallOutcome::GivenUp if self.is_overdue(now, call) => self.timed_out(now, call, in_flight),
            CallOutcome::GivenUp | CallOutcome::Failed => None,
        }
    }

    fn succeeded(&mut self, now: Instant, call: Call, in_flight: u32) -> Option<LimitChange> {
        self.timeout_score = self.timeout_score.saturating_sub(1);
        let took = now.saturating_duration_since(call.began).as_secs_f64();
        self.recent_latency = Some(self.recent_latency.map_or(took, |recent| recent + (took - recent) / 8.0));
        if self.limit == self.target || !is_saturated(in_flight, self.limit) {
            return self.add_to_window(now, call, in_flight);
        }
        let from = self.limit;
        self.limit += 1;
        self.calls_to_skip = self.limit;
        Some(LimitChange { from, to: self.limit, reason: ChangeReason::Success })
    }

    /// Whether a call was given up after such a long time that the backend must be slow. A shorter one only had an
    /// impatient caller.
    fn is_overdue(&self, now: Instant, call: Call) -> bool {
        let took = now.saturating_duration_since(call.began).as_secs_f64();
        self.recent_latency.is_none_or(|recent| took >= MAX_SLOWDOWN * recent)
    }

    /// A single timeout counts as a slow call, several as an overloaded backend.
    fn timed_out(&mut self, now: Instant, call: Call, in_flight: u32) -> Option<LimitChange> {
        self.timeout_score += SUCCESSES_PER_TIMEOUT;
        if self.timeout_score <= SUCCESSES_PER_TIMEOUT {
            return self.add_to_window(now, call, in_flight);
        }
        self.timeout_score = SUCCESSES_PER_TIMEOUT;
        self.trust = Trust::Doubtful;
        let level = in_flight.min(self.limit);
        self.cut_below(now, level, level, ChangeReason::TimedOut)
    }

    /// Cuts the limit to three quarters of `level` and sets the ceiling to `too_many`.
    fn cut_below(
        &mut self,
        now: Instant,
        level: u32,
        too_many: u32,
        reason: ChangeReason,
    ) -> Option<LimitChange> {
        let to = (level - level.div_ceil(4)).clamp(self.bounds.min, self.limit);
        self.ceiling.set(too_many.min(level).max(to.saturating_add(1)));
        self.cut(now, to, reason)
    }

    fn add_to_window(&mut self, now: Instant, call: Call, in_flight: u32) -> Option<LimitChange> {
        self.calls_at_limit = self.calls_at_limit.saturating_add(1);
        if self.calls_to_skip > 0 {
            self.calls_to_skip -= 1;
            return None;
        }
        let usual = self.backing_off.or(self.probe_base).map(|(_, mean)| mean).or(self.baseline_latency);
        self.window.add(now.saturating_duration_since(call.began), usual, in_flight);
        if !self.window.is_full(self.limit) {
            return None;
        }
        if !is_saturated(self.window.in_flight(), self.limit) {
            self.window = Window::default();
            return None;
        }
        match (self.backing_off, self.probe_base) {
            (Some((from, before)), _) => self.judge_back_off(now, from, before),
            (None, Some((level, mean))) if level < self.limit => self.judge_probe(now, level, mean),
            _ => self.judge_hold(now),
        }
    }

    fn judge_hold(&mut self, now: Instant) -> Option<LimitChange> {
        let slow = match self.baseline_latency {
            Some(baseline) => self.window.compare(baseline, MAX_SLOWDOWN)? == Ordering::Greater,
            None => false,
        };
        if slow || self.trust == Trust::Doubtful {
            return self.back_off(now);
        }
        let mut mean = self.window.mean();
        if let Some((_, held)) = &mut self.probe_base {
            held.update(&self.window);
            mean = *held;
        }
        self.probe_base = Some((self.limit, mean));
        self.baseline_latency =
            Some(self.baseline_latency.map_or(mean, |baseline| baseline.min_if_certain(mean)));
        self.choose_target();
        None
    }

    /// A probe succeeds if latency grew by less than the square root of the growth in calls: throughput rose.
    fn judge_probe(&mut self, now: Instant, level: u32, mean: MeanLatency) -> Option<LimitChange> {
        let growth = f64::from(self.limit) / f64::from(level);
        let here = Some((self.limit, self.window.mean()));
        match self.window.compare(mean, growth.sqrt()) {
            Some(Ordering::Greater) => return self.undo_probe(now, level, mean),
            Some(_) => {
                self.probe_base = here;
                self.trust = Trust::Confirmed;
            }
            None if growth >= MAX_UNJUDGED_GROWTH => return None,
            // The limit cannot grow further, so this is the last chance to judge.
            None if self.limit == self.bounds.max => self.probe_base = here,
            None => {}
        }
        self.choose_target();
        None
    }

    /// Backing off helped if latency fell by more than the square root of the cut.
    fn judge_back_off(&mut self, now: Instant, from: u32, before: MeanLatency) -> Option<LimitChange> {
        let kept = f64::from(self.limit) / f64::from(from);
        let helped = self.window.compare(before, kept.sqrt())? == Ordering::Less;
        if !helped {
            self.accept_latency(from);
            return None;
        }
        if self.trust != Trust::Confirmed {
            self.ceiling.set(self.limit + 1);
            return self.back_off(now);
        }
        let fits = self.window.mean().calls_without_queue(from, before).clamp(self.limit, from - 1);
        self.ceiling.set(fits + 1);
        self.set_limit(self.limit);
        None
    }

    /// Goes back from a failed probe to the number of calls that the backend serves without a queue.
    fn undo_probe(&mut self, now: Instant, level: u32, mean: MeanLatency) -> Option<LimitChange> {
        self.failed_probes = self.failed_probes.wrapping_add(1);
        if self.failed_probes.is_multiple_of(PROBES_PER_RETEST) {
            self.trust = Trust::Doubtful;
        }
        let (from, before) = (self.limit, self.window.mean());
        let to = mean.calls_without_queue(from, before).clamp(level, from - 1);
        self.ceiling.set(to + 1);
        let change = self.cut(now, to, ChangeReason::Slow);
        if self.trust == Trust::Untested {
            self.backing_off = Some((from, before));
        }
        change
    }

    /// Halves the limit, to see whether latency falls.
    fn back_off(&mut self, now: Instant) -> Option<LimitChange> {
        let (from, before) = (self.limit, self.window.mean());
        let to = (from / 2).max(self.bounds.min);
        if to == from {
            self.accept_latency(from);
            return None;
        }
        let change = self.cut(now, to, ChangeReason::Slow);
        self.backing_off = Some((from, before));
        change
    }

    /// Backing off from `from` did not help: the present latency is the new baseline, and `from` is allowed again.
    fn accept_latency(&mut self, from: u32) {
        self.baseline_latency = Some(self.window.mean());
        self.trust = Trust::Confirmed;
        self.ceiling.raise_above(from);
        self.set_limit(self.limit);
    }

    fn choose_target(&mut self) {
        self.window = Window::default();
        if self.limit == self.bounds.max {
            return;
        }
        let target = match self.ceiling.next(self.limit, self.calls_at_limit) {
            NextTarget::Stay => return,
            NextTarget::Return(target) => {
                self.probe_base = None;
                target
            }
            NextTarget::Probe(target) => target,
        };
        self.target = target.min(self.bounds.max);
        self.calls_at_limit = 0;
    }

    fn cut(&mut self, now: Instant, to: u32, reason: ChangeReason) -> Option<LimitChange> {
        let from = self.limit;
        self.last_cut = Some(now);
        self.set_limit(to);
        (to < from).then_some(LimitChange { from, to, reason })
    }

    fn set_limit(&mut self, limit: u32) {
        self.limit = limit;
        self.target = limit;
        self.calls_at_limit = 0;
        self.calls_to_skip = limit;
        self.window = Window::default();
        self.probe_base = None;
        self.backing_off = None;
    }
}

/// Whether calls use at least 80% of the limit. Only then does the limit hold calls back.
fn is_saturated(in_flight: u32, limit: u32) -> bool {
    u64::from(in_flight) * 5 >= u64::from(limit) * 4
}
