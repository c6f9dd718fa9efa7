//! Hedging: a late read is sent a second time, and the first good reply counts.
//!
//! The delay follows from the recent durations of trips. The duration of a trip that lost is unknown. It is only known
//! to be longer than the delay, which is above the percentile. A percentile depends only on the number of longer
//! durations, so hedging does not change the delay. A store that becomes slow as a whole raises the delay soon. Until
//! then, the budget limits the commands that are sent twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anabranch_engine::clock::Clock;
use futures_util::future::{Either, ready, select};

use super::{Bound, Error, Fetch, Keys, Later, ReadContext, Reply, TraceContext};
use crate::bounds::Budget as RequestBudget;
use crate::spread::Spread;

/// The shortest delay: timers have steps of a millisecond.
const SHORTEST: Duration = Duration::from_millis(1);

/// The number of trips after which the delay is recomputed.
const RENEWED: u32 = 16;

/// A command, as the budget counts: in millionths.
const COMMAND: i64 = 1_000_000;

/// The most commands that can be saved up and sent at once.
const BURST: i64 = 100 * COMMAND;

/// The delay after which a read is late, and the budget of commands that may be sent twice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hedge {
    percentile: f64,
    factor: f64,
    budget: f64,
}

/// The results of hedges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HedgeCounts {
    /// Trips that were sent a second time.
    pub sent: u64,
    /// Trips of which the second one brought the answer.
    pub won: u64,
    /// Trips that were late, but the budget was spent.
    pub denied: u64,
}

impl Default for Hedge {
    /// After twice the 80th percentile, for at most 5% more commands.
    fn default() -> Hedge {
        Hedge { percentile: 80.0, factor: 2.0, budget: 0.05 }
    }
}

impl Hedge {
    /// A read is late after `factor` times this percentile of trips. The percentile must exclude slow trips: if one
    /// trip in ten is slow, the 95th percentile is a slow one.
    pub fn after(self, percentile: f64, factor: f64) -> Result<Hedge, String> {
        if !(1.0..=99.9).contains(&percentile) {
            return Err(format!("the percentile must be from 1 to 99.9, not {percentile}"));
        }
        if !(1.0..=100.0).contains(&factor) {
            return Err(format!("the factor must be from 1 to 100, not {factor}"));
        }
        Ok(Hedge { percentile, factor, ..self })
    }

    /// The percentile of trips for the delay.
    pub fn percentile(&self) -> f64 {
        self.percentile
    }

    /// The factor of the delay to that percentile.
    pub fn factor(&self) -> f64 {
        self.factor
    }

    /// The part of all commands that may be sent a second time.
    pub fn budget(&self) -> f64 {
        self.budget
    }

    /// At most this part of all commands (0.05: one in twenty) is sent a second time.
    pub fn within(self, budget: f64) -> Result<Hedge, String> {
        if !(0.0001..=1.0).contains(&budget) {
            return Err(format!("the budget must be from 0.0001 to 1, not {budget}"));
        }
        Ok(Hedge { budget, ..self })
    }
}

/// The hedges of one endpoint.
pub(crate) struct Hedging {
    hedge: Hedge,
    clock: Arc<dyn Clock>,
    budget: Budget,
    sent: AtomicU64,
    won: AtomicU64,
    denied: AtomicU64,
}

impl Hedging {
    pub(crate) fn new(hedge: Hedge, clock: Arc<dyn Clock>) -> Hedging {
        let [sent, won, denied] = [const { AtomicU64::new(0) }; 3];
        Hedging { hedge, clock, budget: Budget::new(hedge.budget), sent, won, denied }
    }

    pub(crate) fn counts(&self) -> HedgeCounts {
        let [sent, won, denied] = [&self.sent, &self.won, &self.denied].map(|at| at.load(Ordering::Relaxed));
        HedgeCounts { sent, won, denied }
    }
}

/// A read whose late trips are sent a second time.
pub(crate) struct HedgedRead(Arc<Inner>);

struct Inner {
    bound: Arc<dyn Bound>,
    hedging: Arc<Hedging>,
    spread: Spread,
    recorded: AtomicU32,
    /// In nanoseconds; 0 as long as none is known.
    delay: AtomicU64,
}

impl HedgedRead {
    pub(crate) fn new(bound: Arc<dyn Bound>, hedging: Arc<Hedging>) -> HedgedRead {
        let (recorded, delay) = (AtomicU32::new(0), AtomicU64::new(0));
        HedgedRead(Arc::new(Inner { bound, hedging, spread: Spread::default(), recorded, delay }))
    }
}

impl Bound for HedgedRead {
    fn refusal(&self) -> Option<&Error> {
        self.0.bound.refusal()
    }

    fn fetch(&self, keys: Keys, context: ReadContext<'_>) -> Fetch {
        let delay = self.0.delay.load(Ordering::Relaxed);
        let second = || Second {
            delay: Duration::from_nanos(delay),
            keys: keys.clone(),
            budget: Arc::clone(context.budget),
            trace: context.trace.cloned(),
        };
        let hedge = (delay > 0).then(second);
        match self.0.bound.fetch(keys, context) {
            Fetch::Ready(reply) => Fetch::Ready(reply),
            Fetch::Later(first) => {
                let inner = Arc::clone(&self.0);
                Fetch::Later(Box::pin(async move { inner.make(first, hedge).await }))
            }
        }
    }
}

/// The second trip.
struct Second {
    /// The delay before it.
    delay: Duration,
    keys: Keys,
    /// The budget that its reply is counted in.
    budget: Arc<RequestBudget>,
    trace: Option<TraceContext>,
}

impl Inner {
    /// Waits for a trip, and sends it again with these keys if it is not back after the delay.
    async fn make(&self, first: Later, hedge: Option<Second>) -> Result<Reply, Error> {
        let Hedging { clock, budget, sent, won, denied, .. } = &*self.hedging;
        let mut trip = Trip { inner: self, began: clock.now(), late: false };
        let Some(Second { delay, keys, budget: request, trace }) = hedge else {
            return trip.end(first.await);
        };
        let first = match select(first, clock.sleep_until(trip.began + delay)).await {
            Either::Left((reply, _)) => return trip.end(reply),
            Either::Right(((), first)) => first,
        };
        trip.late = true;
        if !budget.take(keys.commands()) {
            denied.fetch_add(1, Ordering::Relaxed);
            return trip.end(first.await);
        }
        sent.fetch_add(1, Ordering::Relaxed);
        let second = match self.bound.fetch(keys, ReadContext { budget: &request, trace: trace.as_ref() }) {
            Fetch::Ready(reply) => Box::pin(ready(reply)),
            Fetch::Later(second) => second,
        };
        // The loser is dropped here, which cancels its trip.
        let (reply, by_second) = match select(first, second).await {
            Either::Left((Ok(reply), _)) => (Ok(reply), false),
            Either::Right((Ok(reply), _)) => (Ok(reply), true),
            Either::Left((Err(error), second)) => (second.await.map_err(|_| error), true),
            Either::Right((Err(error), first)) => (first.await.map_err(|_| error), false),
        };
        if by_second && reply.is_ok() {
            won.fetch_add(1, Ordering::Relaxed);
        }
        let reply = trip.end(reply)?;
        Ok(Reply { trips: 2 * reply.trips, commands: 2 * reply.commands, ..reply })
    }

    fn record(&self, took: Duration) {
        self.spread.record(took);
        if (self.recorded.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(RENEWED)
            && let Some(usual) = self.spread.at(self.hedging.hedge.percentile / 100.0)
        {
            let delay = usual.mul_f64(self.hedging.hedge.factor).max(SHORTEST);
            self.delay.store(delay.as_nanos() as u64, Ordering::Relaxed);
        }
    }
}

/// A trip in progress. A late trip that is cancelled counts with the time that it has taken so far.
struct Trip<'a> {
    inner: &'a Inner,
    began: Instant,
    late: bool,
}

impl Trip<'_> {
    fn end(&mut self, reply: Result<Reply, Error>) -> Result<Reply, Error> {
        self.late = false;
        let reply = reply?;
        self.inner.record(self.elapsed());
        self.inner.hedging.budget.add(reply.commands);
        Ok(reply)
    }

    fn elapsed(&self) -> Duration {
        self.inner.hedging.clock.now().saturating_duration_since(self.began)
    }
}

impl Drop for Trip<'_> {
    fn drop(&mut self) {
        if self.late {
            self.inner.record(self.elapsed());
        }
    }
}

/// The budget of hedges: commands may be sent twice up to a share of the commands sent once. Credit is not given in
/// advance, except to a trip of more than [`BURST`] commands.
struct Budget {
    /// The credit for a command.
    share: i64,
    balance: AtomicI64,
}

impl Budget {
    fn new(share: f64) -> Budget {
        Budget { share: (share * COMMAND as f64) as i64, balance: AtomicI64::new(0) }
    }

    fn add(&self, commands: u32) {
        let earned = self.share * i64::from(commands);
        let add = |balance: i64| (balance < BURST).then(|| (balance + earned).min(BURST));
        let _full = self.balance.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// Takes this many commands from the budget; false if it is too small.
    fn take(&self, commands: u32) -> bool {
        let price = COMMAND * i64::from(commands);
        let take = |balance: i64| (balance >= price.min(BURST)).then(|| balance - price);
        self.balance.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_earned_before_it_is_spent() {
        let budget = Budget::new(0.1);
        (0..9).for_each(|_| budget.add(1));
        assert!(!budget.take(1));
        budget.add(1);
        assert!(budget.take(1) && !budget.take(1));
        (0..100).for_each(|_| budget.add(1_000));
        let taken = (0..1_000).filter(|_| budget.take(1)).count();
        assert_eq!(taken, 100, "no more is saved up than a burst");
    }

    #[test]
    fn a_long_trip_waits_for_a_full_budget_and_pays_later() {
        let budget = Budget::new(0.1);
        budget.add(990);
        assert!(!budget.take(300));
        budget.add(10);
        assert!(budget.take(300));
        budget.add(1_990);
        assert!(!budget.take(1));
        budget.add(20);
        assert!(budget.take(1));
    }

    #[test]
    fn settings_are_checked() {
        let hedge = Hedge::default();
        for wrong in
            [hedge.after(0.0, 2.0), hedge.after(80.0, 0.5), hedge.after(f64::NAN, 2.0), hedge.within(1.5)]
        {
            let _what: String = wrong.unwrap_err();
        }
        assert_eq!(hedge.after(80.0, 2.0).and_then(|hedge| hedge.within(0.05)), Ok(hedge));
    }
}
