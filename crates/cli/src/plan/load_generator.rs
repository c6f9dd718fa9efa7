//! The load generator: many concurrent requests, and their results.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anabranch_engine::Failure;
use anabranch_engine::admission::Refused;
use anabranch_engine::clock::Clock;
use anabranch_plan::source;
use anabranch_plan::{Answer, Error, OpError, Plan, Reason, Request, RunOptions};
use anabranch_plan_inspect::capture::Sampler;
use hdrhistogram::Histogram;
use rustix::time::{ClockId, clock_gettime};
use tokio::task::JoinSet;

/// The requests to send, their number and their rate.
pub(super) struct Load {
    pub(super) plan: Plan,
    /// Captures some of the requests.
    pub(super) sampler: Option<Arc<Sampler>>,
    /// The requests, sent round-robin.
    pub(super) requests: Vec<Request>,
    pub(super) concurrency: u32,
    pub(super) until: LoadEnd,
    /// The requests per second of an open loop. `None` is a closed loop: each request follows a response.
    pub(super) rate: Option<f64>,
    pub(super) sequential: bool,
    /// The time limit of each response, from the time at which the request was due.
    pub(super) deadline: Option<Duration>,
}

/// The end of a load.
#[derive(Clone, Copy, Debug)]
pub(super) enum LoadEnd {
    /// After this many requests.
    Count(u64),
    /// After this time.
    Elapsed(Duration),
}

/// The results of the requests.
pub(super) struct Outcome {
    /// The latencies of answered requests, in nanoseconds.
    pub(super) latencies: Histogram<u64>,
    pub(super) answered: u64,
    /// Answered in full, and before the deadline if there is one.
    pub(super) good: u64,
    /// Answered before the deadline, with a ledger.
    pub(super) degraded: u64,
    /// Not answered before the deadline.
    pub(super) late: u64,
    /// Refused by the admission control.
    pub(super) refused: u64,
    /// The numbers of ledger entries by node, reason and fallback. The plan limits their variety.
    pub(super) ledger: BTreeMap<(String, Reason, String), u64>,
    pub(super) total_latency: Duration,
    pub(super) least: Duration,
    pub(super) most: Duration,
    pub(super) trips: u64,
    pub(super) commands: u64,
    /// The number of errors of each kind, and the message of the first one.
    pub(super) errors: BTreeMap<&'static str, (u64, String)>,
    /// The time from the first start to the last end.
    pub(super) wall: Duration,
    /// The CPU time of all threads of this process, in user and kernel mode.
    pub(super) cpu: Duration,
}

/// The longest latency that the histogram can represent.
const LONGEST: Duration = Duration::from_secs(600);

/// The time by which a request may start early. Timers have steps of a millisecond, and a late start would count as
/// latency.
const EARLY: Duration = Duration::from_millis(1);

/// The number of records that senders share. One per sender would take megabytes, and a single one would be contended.
const RECORDS: usize = 8;

impl Load {
    /// Sends the requests. Errors do not stop it.
    pub(super) async fn run(self) -> Outcome {
        let clock = Arc::clone(self.plan.engine().runs().clock());
        let askers = self.concurrency;
        let records = (0..RECORDS.min(askers as usize)).map(|_| Mutex::new(Outcome::new())).collect();
        let cpu = cpu_time();
        let began = clock.now();
        let line = Arc::new(Line { load: self, next: AtomicU64::new(0), began, records });
        if askers == 1 {
            line.ask(0).await;
        } else {
            let mut asking = JoinSet::new();
            for asker in 0..askers as usize {
                let line = Arc::clone(&line);
                asking.spawn(async move { line.ask(asker % RECORDS).await });
            }
            asking.join_all().await;
        }
        let (wall, cpu) = (clock.now() - began, cpu_time().saturating_sub(cpu));
        let mut all = Outcome::new();
        line.records.iter().for_each(|record| all.add(&lock(record)));
        Outcome { wall, cpu, ..all }
    }
}

/// The queue of requests. Each sender takes the next one when it has a response.
struct Line {
    load: Load,
    next: AtomicU64,
    began: Instant,
    records: Vec<Mutex<Outcome>>,
}

fn lock(record: &Mutex<Outcome>) -> MutexGuard<'_, Outcome> {
    record.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Line {
    async fn ask(&self, record: usize) {
        let clock = &**self.load.plan.engine().runs().clock();
        // Without a rate, a request is due when the sender has its last response, even if its task runs later.
        let mut free = self.began;
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(asked) = self.asked_at(number, free) else { return };
            let enough = match self.load.until {
                LoadEnd::Count(count) => number >= count,
                LoadEnd::Elapsed(time) => self.began.checked_add(time).is_some_and(|end| asked >= end),
            };
            if enough {
                return;
            }
            free = self.ask_one(number, asked, clock, &self.records[record]).await;
            if self.load.concurrency > 1 {
                // A source that answers immediately would starve the other senders.
                tokio::task::yield_now().await;
            }
        }
    }

    /// The time at which a request is due, for a sender that is free since `free`. With a rate, this depends on its
    /// number only. `None` if the time is too far in the future to represent.
    fn asked_at(&self, number: u64, free: Instant) -> Option<Instant> {
        let Some(rate) = self.load.rate else { return Some(free) };
        let after = Duration::try_from_secs_f64(number as f64 / rate).ok()?;
        self.began.checked_add(after)
    }

    /// Sends a request, and returns the time of its response.
    async fn ask_one(
        &self,
        number: u64,
        asked: Instant,
        clock: &dyn Clock,
        record: &Mutex<Outcome>,
    ) -> Instant {
        if let Some(early) = asked.checked_sub(EARLY)
            && early > clock.now()
        {
            clock.sleep_until(early).await;
        }
        let at = usize::try_from(number % self.load.requests.len() as u64).expect("smaller than a length");
        let request = self.load.requests[at].clone();
        // A request that starts late because others took too long has been waiting since it was due.
        let since = asked.min(clock.now());
        let options = RunOptions {
            deadline: self.load.deadline.and_then(|time| since.checked_add(time)),
            sequential: self.load.sequential,
            ..RunOptions::default()
        };
        let load = &self.load;
        let answer = match &load.sampler {
            None => load.plan.run_with(request, &options).await,
            // In a box, so that the future of other loads stays small.
            Some(sampler) => Box::pin(sampler.run(&load.plan, request, &options)).await,
        };
        let now = clock.now();
        match answer {
            Ok(answer) => lock(record).answered(&answer, now - since, self.load.deadline),
            Err(error) => lock(record).failed(&error),
        }
        now
    }
}

impl Outcome {
    fn new() -> Outcome {
        let longest = LONGEST.as_nanos() as u64;
        Outcome {
            latencies: Histogram::new_with_bounds(1, longest, 3).expect("bounds that a histogram can have"),
            answered: 0,
            good: 0,
            degraded: 0,
            late: 0,
            refused: 0,
            ledger: BTreeMap::new(),
            total_latency: Duration::ZERO,
            least: Duration::MAX,
            most: Duration::ZERO,
            trips: 0,
            commands: 0,
            errors: BTreeMap::new(),
            wall: Duration::ZERO,
            cpu: Duration::ZERO,
        }
    }

    fn answered(&mut self, answer: &Answer, latency: Duration, deadline: Option<Duration>) {
        self.latencies.saturating_record(latency.as_nanos() as u64);
        self.answered += 1;
        match &answer.ledger[..] {
            _ if deadline.is_some_and(|deadline| latency > deadline) => self.late += 1,
            [] => self.good += 1,
            _ => self.degraded += 1,
        }
        for entry in &answer.ledger {
            let line = (entry.node.clone(), entry.reason, entry.fallback.clone());
            *self.ledger.entry(line).or_default() += 1;
        }
        self.total_latency += latency;
        self.least = self.least.min(latency);
        self.most = self.most.max(latency);
        self.trips += u64::from(answer.stats.trips);
        self.commands += u64::from(answer.stats.commands);
    }

    fn failed(&mut self, error: &Error) {
        match error {
            late if late.is_late() => self.late += 1,
            Error::Refused(_) | Error::Overloaded { .. } => self.refused += 1,
            _ => {}
        }
        self.count(kind(error), 1, || error.to_string());
    }

    fn count(&mut self, kind: &'static str, count: u64, what: impl FnOnce() -> String) {
        self.errors.entry(kind).or_insert_with(|| (0, what())).0 += count;
    }

    fn add(&mut self, other: &Outcome) {
        self.latencies.add(&other.latencies).expect("histograms of the same bounds");
        self.answered += other.answered;
        self.good += other.good;
        self.degraded += other.degraded;
        self.late += other.late;
        self.refused += other.refused;
        for (line, count) in &other.ledger {
            *self.ledger.entry(line.clone()).or_default() += count;
        }
        self.total_latency += other.total_latency;
        self.least = self.least.min(other.least);
        self.most = self.most.max(other.most);
        self.trips += other.trips;
        self.commands += other.commands;
        for (kind, (count, first)) in &other.errors {
            self.count(kind, *count, || first.clone());
        }
    }

    /// The number of requests that were sent.
    pub(super) fn asked(&self) -> u64 {
        self.answered + self.errors.values().map(|(count, _)| count).sum::<u64>()
    }

    /// The number of requests that failed for reasons other than being late or refused.
    pub(super) fn failed_otherwise(&self) -> u64 {
        self.asked() - self.good - self.degraded - self.late - self.refused
    }

    /// The latency that this share of the answered requests did not exceed, in microseconds.
    pub(super) fn micros_at(&self, quantile: f64) -> f64 {
        self.latencies.value_at_quantile(quantile) as f64 / 1e3
    }
}

/// The kind of an error, for counting.
fn kind(error: &Error) -> &'static str {
    match error {
        Error::Refused(Refused::DeadlinePassed { .. }) => "deadline",
        Error::Refused(_) => "refused",
        Error::Overloaded { .. } => "overloaded",
        Error::Deadline { .. } => "deadline",
        Error::Cut { .. } => "shutdown",
        Error::Node { failure, .. } => match &**failure {
            Failure::Error(OpError::Source(error)) => match error {
                source::Error::Connect { .. } => "source: no connection",
                source::Error::Broken { .. } => "source: broken connection",
                source::Error::Busy { .. } => "source: busy",
                source::Error::Timeout { .. } => "source: timeout",
                source::Error::Refused { .. } => "source: refused",
                source::Error::Malformed { .. } => "source: malformed reply",
                source::Error::TooLong { .. } => "budget",
                source::Error::Recorded { .. } | source::Error::NotCaptured { .. } => "source: capture",
                source::Error::Forgotten { .. } => "source: nothing remembered",
            },
            Failure::Error(OpError::Expr(_)) => "expression",
            Failure::Error(OpError::Budget(_)) => "budget",
            Failure::Error(OpError::NoTime { .. }) => "not enough time left",
            Failure::Error(OpError::Late(_)) => "region timeout",
            Failure::Error(OpError::Value(_) | OpError::Stopped) => "op",
            Failure::Panic(_) => "panic",
            Failure::Timeout(_) => "node timeout",
            Failure::Deadline => "deadline",
            Failure::Abandoned => "shutdown",
        },
        Error::Plan(_) | Error::NoPlan { .. } | Error::Setting(_) | Error::Config(_) => "plan",
    }
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let (seconds, nanos) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    Duration::new(seconds.unwrap_or(0), nanos.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use anabranch_plan::{Config, Engine, Registries};
    use serde_json::json;

    use super::*;

    /// A plan that sorts some thousands of rows in place.
    fn plan() -> Plan {
        let keys =
            "key = [{ key_id = 1, name = \"id\", type = \"int\", nullable = false, allow_write = false }]";
        let (registries, _) = Registries::parse([("keys.toml", keys)], None).unwrap();
        let mut config = Config::new(registries, Vec::new());
        config.runs.inline_threshold = Duration::from_secs(1);
        let node = |id: &str, op: &str, inputs: &[&str], params| json!({"node_id": id, "op": op, "inputs": inputs, "params": params});
        let nodes = [
            node("rows", "test::fixed_source", &[], json!({"row_count": 5000})),
            node("sorted", "core::sort", &["rows"], json!({"by": 1, "order": "desc"})),
        ];
        let plan = json!({"schema_version": 1, "plan_name": "test", "nodes": nodes, "outputs": ["sorted"]});
        Engine::load(config).unwrap().compile(&plan.to_string(), Path::new("")).unwrap()
    }

    fn run(rate: Option<f64>, until: LoadEnd) -> Outcome {
        let plan = plan();
        let requests = vec![Request::new(1, plan.engine().registries())];
        let load = Load {
            plan,
            sampler: None,
            requests,
            concurrency: 8,
            until,
            rate,
            sequential: false,
            deadline: None,
        };
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(load.run())
    }

    #[test]
    fn a_request_of_a_closed_loop_waits_from_the_answer_before_it() {
        let outcome = run(None, LoadEnd::Count(80));
        assert_eq!(outcome.answered, 80);
        // One thread serves eight callers, so that each of them waits for the others on any machine.
        let (total, wall) = (outcome.total_latency, outcome.wall);
        assert!(total > wall * 3, "latencies of {total:?} within {wall:?} leave the waiting out");
    }

    #[test]
    fn a_time_that_no_clock_tells_ends_the_load() {
        assert_eq!(run(Some(1e-300), LoadEnd::Count(5)).answered, 1);
        assert_eq!(run(Some(1e-300), LoadEnd::Elapsed(Duration::MAX)).answered, 1);
    }
}
