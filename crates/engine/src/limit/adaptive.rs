//! How many calls one backend takes at a time, found out by calling it.
//!
//! A limit grows towards a goal, by one with each call that ends well; then it lets a round go by and judges a window
//! of calls. More calls at a time must pay: were it for nothing, each would just take longer. A refusal cuts the limit
//! at once and leaves a ceiling. Calls that come to take twice as long halve it; if that does not help, the slowness
//! is not of our making, and the limit returns.

use std::cmp::Ordering;
use std::time::{Duration, Instant};

use super::bounds::Bounds;
use super::ceiling::{Ceiling, Next};
use super::error::Error;
use super::latency::{Mean, Window};

/// A call, as it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// When it began.
    pub began: Instant,
    /// Calls in flight then, itself included.
    pub in_flight: u32,
}

/// How a call ended, as far as it tells of the backend's load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The backend answered.
    Done,
    /// The backend said that it has too much to do.
    Refused,
    /// No answer came in time.
    TimedOut,
    /// The caller gave up before an answer came: its deadline passed, or it was dropped.
    GivenUp,
    /// Something went wrong that says nothing of load.
    Failed,
}

/// A limit moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// What it was.
    pub from: u32,
    /// What it is now.
    pub to: u32,
    /// Why.
    pub why: Why,
}

/// Why a limit moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Calls ended well.
    Well,
    /// A call was refused.
    Refused,
    /// Calls timed out.
    TimedOut,
    /// Calls took too long.
    Slow,
}

/// What a limit has learned of its backend, for another to go on from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Learned {
    /// The limit.
    pub limit: u32,
    /// The fewest calls in flight known to be too many.
    pub ceiling: Option<u32>,
    /// How long a call takes on average when calls do not queue.
    pub latency: Option<Duration>,
}

/// A limit on calls in flight that follows what their backend can take.
#[derive(Clone, Debug)]
pub struct Adaptive {
    bounds: Bounds,
    limit: u32,
    /// Where growth is going.
    goal: u32,
    ceiling: Ceiling,
    /// Calls that ended at this limit.
    held: u32,
    /// Calls begun by the last cut tell nothing of the limit as it is.
    cut_at: Option<Instant>,
    /// [`RARE`] for each timeout, less one for each call that ended well since.
    timeouts: u32,
    /// Calls to let go by before the window opens: of those that begin now, the short ones end first.
    settling: u32,
    window: Window,
    /// Seconds that answered calls took of late, whatever the limit was.
    recent: Option<f64>,
    /// The least that calls took on average at a limit that was held.
    calm: Option<Mean>,
    /// The limit that growth is judged against, and how long calls take there.
    anchor: Option<(u32, Mean)>,
    ground: Ground,
    /// Probes that did not pay.
    retreats: u32,
    /// The limit before a cut because of slow calls, and how long they took, while the effect is watched.
    easing: Option<(u32, Mean)>,
}

/// Whether calls are known not to queue at the anchor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ground {
    Untested,
    /// Calls timed out, or the last test is long ago.
    Doubtful,
    Firm,
}

/// How many times as long as when calm calls may take.
const TOLERANCE: f64 = 2.0;
/// Growth up to this factor may stay unjudged while its effect could be chance.
const SMALL: f64 = 1.5;
/// After so many retreats it is tested whether calls queue at the anchor too: no judgement by chance lasts for ever.
const TESTED: u32 = 32;
/// More than one timeout for so many calls that end well is a backend that no longer answers.
const RARE: u32 = 4;

impl Adaptive {
    /// A limit that knows nothing yet.
    pub fn new(bounds: Bounds) -> Result<Adaptive, Error> {
        bounds.check()?;
        Ok(Adaptive {
            bounds,
            limit: bounds.start,
            goal: bounds.start,
            ceiling: Ceiling::unknown(bounds.ramp, bounds.start),
            held: 0,
            cut_at: None,
            timeouts: 0,
            settling: bounds.start,
            window: Window::default(),
            recent: None,
            calm: None,
            anchor: None,
            ground: Ground::Untested,
            retreats: 0,
            easing: None,
        })
    }

    /// How many calls may be in flight.
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// What it has learned, to be stored.
    pub fn save(&self) -> Learned {
        let latency = self.calm.map(|calm| calm.latency());
        Learned { limit: self.limit, ceiling: self.ceiling.level(), latency }
    }

    /// Goes on from what was stored, within its own bounds.
    pub fn load(&mut self, learned: Learned) {
        self.place(learned.limit.clamp(self.bounds.min, self.bounds.max));
        self.ceiling = Ceiling::unknown(self.bounds.ramp, self.limit);
        if let Some(level) = learned.ceiling {
            self.ceiling.found(level);
        }
        if let Some(latency) = learned.latency {
            self.recent = Some(latency.as_secs_f64());
            self.calm = Some(Mean::of(latency));
            self.ground = Ground::Firm;
        }
    }

    /// Takes note of a call's end, with so many in flight, itself included; tells if the limit moved.
    pub fn ended(&mut self, now: Instant, call: Call, in_flight: u32, verdict: Verdict) -> Option<Moved> {
        if self.cut_at.is_some_and(|cut| call.began <= cut) {
            return None;
        }
        match verdict {
            Verdict::Done => self.done(now, call, in_flight),
            Verdict::Refused => {
                let level = in_flight.max(call.in_flight).min(self.limit);
                self.overloaded(now, level, call.in_flight, Why::Refused)
            }
            Verdict::TimedOut => self.timed_out(now, call, in_flight),
            Verdict::GivenUp if self.is_overdue(now, call) => self.timed_out(now, call, in_flight),
            Verdict::GivenUp | Verdict::Failed => None,
        }
    }

    fn done(&mut self, now: Instant, call: Call, in_flight: u32) -> Option<Moved> {
        self.timeouts = self.timeouts.saturating_sub(1);
        let took = now.saturating_duration_since(call.began).as_secs_f64();
        self.recent = Some(self.recent.map_or(took, |recent| recent + (took - recent) / 8.0));
        if self.limit == self.goal || !is_used(in_flight, self.limit) {
            return self.measure(now, call, in_flight);
        }
        let from = self.limit;
        self.limit += 1;
        self.settling = self.limit;
        Some(Moved { from, to: self.limit, why: Why::Well })
    }

    /// Whether a call has taken so long that it tells of the backend and not of its caller's haste.
    fn is_overdue(&self, now: Instant, call: Call) -> bool {
        let took = now.saturating_duration_since(call.began).as_secs_f64();
        self.recent.is_none_or(|recent| took >= TOLERANCE * recent)
    }

    /// A lone timeout is a call that took very long; many are a backend that no longer answers.
    fn timed_out(&mut self, now: Instant, call: Call, in_flight: u32) -> Option<Moved> {
        self.timeouts += RARE;
        if self.timeouts <= RARE {
            return self.measure(now, call, in_flight);
        }
        self.timeouts = RARE;
        self.ground = Ground::Doubtful;
        let level = in_flight.min(self.limit);
        self.overloaded(now, level, level, Why::TimedOut)
    }

    /// Cuts to three quarters of `level`, and does not come near `too_many` soon.
    fn overloaded(&mut self, now: Instant, level: u32, too_many: u32, why: Why) -> Option<Moved> {
        let to = (level - level.div_ceil(4)).clamp(self.bounds.min, self.limit);
        self.ceiling.found(too_many.min(level).max(to.saturating_add(1)));
        self.cut(now, to, why)
    }

    fn measure(&mut self, now: Instant, call: Call, in_flight: u32) -> Option<Moved> {
        self.held = self.held.saturating_add(1);
        if self.settling > 0 {
            self.settling -= 1;
            return None;
        }
        let usual = self.easing.or(self.anchor).map(|(_, mean)| mean).or(self.calm);
        self.window.add(now.saturating_duration_since(call.began), usual, in_flight);
        if !self.window.is_full(self.limit) {
            return None;
        }
        if !is_used(self.window.in_flight(), self.limit) {
            self.window = Window::default();
            return None;
        }
        match (self.easing, self.anchor) {
            (Some((from, before)), _) => self.judge_cut(now, from, before),
            (None, Some((level, mean))) if level < self.limit => self.judge_probe(now, level, mean),
            _ => self.judge_hold(now),
        }
    }

    fn judge_hold(&mut self, now: Instant) -> Option<Moved> {
        let slow = match self.calm {
            Some(calm) => self.window.side(calm, TOLERANCE)? == Ordering::Greater,
            None => false,
        };
        if slow || self.ground == Ground::Doubtful {
            return self.ease(now);
        }
        let mut mean = self.window.mean();
        if let Some((_, held)) = &mut self.anchor {
            held.learn(&self.window);
            mean = *held;
        }
        self.anchor = Some((self.limit, mean));
        self.calm = Some(self.calm.map_or(mean, |calm| calm.least(mean)));
        self.grow();
        None
    }

    /// More calls at a time pay when they take longer by less than half of what was added.
    fn judge_probe(&mut self, now: Instant, level: u32, mean: Mean) -> Option<Moved> {
        let growth = f64::from(self.limit) / f64::from(level);
        let here = Some((self.limit, self.window.mean()));
        match self.window.side(mean, growth.sqrt()) {
            Some(Ordering::Greater) => return self.retreat(now, level, mean),
            Some(_) => {
                self.anchor = here;
                self.ground = Ground::Firm;
            }
            None if growth >= SMALL => return None,
            // There is no further growth to judge it by.
            None if self.limit == self.bounds.max => self.anchor = here,
            None => {}
        }
        self.grow();
        None
    }

    /// Fewer calls at a time help when they take shorter by more than half of what was taken away.
    fn judge_cut(&mut self, now: Instant, from: u32, before: Mean) -> Option<Moved> {
        let kept = f64::from(self.limit) / f64::from(from);
        let helped = self.window.side(before, kept.sqrt())? == Ordering::Less;
        if !helped {
            self.eased(from);
            return None;
        }
        if self.ground != Ground::Firm {
            self.ceiling.found(self.limit + 1);
            return self.ease(now);
        }
        let fits = self.window.mean().fits(from, before).clamp(self.limit, from - 1);
        self.ceiling.found(fits + 1);
        self.place(self.limit);
        None
    }

    /// Gives up a probe that did not pay, for as many calls as the backend serves at a time.
    fn retreat(&mut self, now: Instant, level: u32, mean: Mean) -> Option<Moved> {
        self.retreats = self.retreats.wrapping_add(1);
        if self.retreats.is_multiple_of(TESTED) {
            self.ground = Ground::Doubtful;
        }
        let (from, before) = (self.limit, self.window.mean());
        let to = mean.fits(from, before).clamp(level, from - 1);
        self.ceiling.found(to + 1);
        let moved = self.cut(now, to, Why::Slow);
        if self.ground == Ground::Untested {
            self.easing = Some((from, before));
        }
        moved
    }

    /// Halves the limit, to see whether calls take shorter then.
    fn ease(&mut self, now: Instant) -> Option<Moved> {
        let (from, before) = (self.limit, self.window.mean());
        let to = (from / 2).max(self.bounds.min);
        if to == from {
            self.eased(from);
            return None;
        }
        let moved = self.cut(now, to, Why::Slow);
        self.easing = Some((from, before));
        moved
    }

    /// The last cut, from there, did not help: this is how long calls take when they do not queue.
    fn eased(&mut self, from: u32) {
        self.calm = Some(self.window.mean());
        self.ground = Ground::Firm;
        self.ceiling.is_above(from);
        self.place(self.limit);
    }

    fn grow(&mut self) {
        self.window = Window::default();
        if self.limit == self.bounds.max {
            return;
        }
        let goal = match self.ceiling.next(self.limit, self.held) {
            Next::Stay => return,
            Next::Return(goal) => {
                self.anchor = None;
                goal
            }
            Next::Probe(goal) => goal,
        };
        self.goal = goal.min(self.bounds.max);
        self.held = 0;
    }

    fn cut(&mut self, now: Instant, to: u32, why: Why) -> Option<Moved> {
        let from = self.limit;
        self.cut_at = Some(now);
        self.place(to);
        (to < from).then_some(Moved { from, to, why })
    }

    fn place(&mut self, limit: u32) {
        self.limit = limit;
        self.goal = limit;
        self.held = 0;
        self.settling = limit;
        self.window = Window::default();
        self.anchor = None;
        self.easing = None;
    }
}

/// Whether a limit is what holds calls back.
fn is_used(in_flight: u32, limit: u32) -> bool {
    u64::from(in_flight) * 5 >= u64::from(limit) * 4
}
