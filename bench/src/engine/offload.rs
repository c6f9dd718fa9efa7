//! What a trip to another thread costs, and from what size of work on it pays.

use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_engine::{
    Budget, Check, Config, Cost, Dag, Drops, Engine, Heard, Job, NodeId, Options, Place, Policies, Step,
    What, Workload,
};

use super::blocking::Blocking;
use super::contender::{Contender, Peer, latency, runtime};
use super::digits;
use super::ours::{Ours, Pooled};
use super::shapes::chain;
use super::work::Kind;
use crate::report::{Report, row};
use crate::watch::Spread;

pub(crate) fn report(report: &mut Report) {
    report.heading("Offloading");
    round_trips(report);
    let rate = nanos_a_row();
    crossover(report, rate);
    thresholds(report, rate);
}

fn round_trips(report: &mut Report) {
    report.say("A graph of one empty job, from submit to result (p50 / p99):\n");
    let one = Arc::new(chain(1));
    let mut rows = vec![row(["runtime", "in place", "ours, CPU pool", "`spawn_blocking`"])];
    for (name, threads) in [("current thread", 1), ("2 worker threads", 2)] {
        let inline = latency(Ours::new(&one, Kind::Empty), threads, 20_000);
        let pool = latency(Pooled::new(&one, Kind::Empty), threads, 20_000);
        let blocking = Blocking::prepare(&one, Kind::Empty).expect("a job");
        let blocking = latency(blocking, threads, 20_000);
        rows.push(row([name, &show(inline), &show(pool), &show(blocking)]));
    }
    report.table(&rows);
}

fn show(spread: Spread) -> String {
    let micros = |time: Duration| digits(time.as_nanos() as f64 / 1e3);
    format!("{} / {} us", micros(spread.p50), micros(spread.p99))
}

/// Two jobs of the same size beside each other, in place and on the pool, on a runtime of two threads.
fn crossover(report: &mut Report, rate: f64) {
    report.say(format_args!(
        "\nTwo jobs beside each other, each over so many rows ({} ns a row), on the current thread (p50 / p99):\n",
        digits(rate)
    ));
    let mut rows = vec![row(["rows", "a job", "in place", "CPU pool", "gain (p50)"])];
    let mut gains = Vec::new();
    for count in [100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000] {
        let samples = (30_000_000 / count).clamp(50, 5_000);
        let [inline, pool] = [Duration::MAX, Duration::ZERO]
            .map(|threshold| latency(Scores::new(&[count; 2], rate, threshold), 1, samples));
        let gain = inline.p50.as_secs_f64() / pool.p50.as_secs_f64();
        let job = format!("{} us", digits(count as f64 * rate / 1e3));
        rows.push(row([&count.to_string(), &job, &show(inline), &show(pool), &format!("{gain:.2}x")]));
        gains.push((count as f64, gain));
    }
    report.table(&rows);
    report.say(match break_even(&gains) {
        Some(rows) => format!(
            "\nOffloading begins to pay at about {rows:.0} rows: jobs of {} us.",
            digits(rows * rate / 1e3)
        ),
        None => "\nOffloading did not begin to pay at a size measured here.".to_owned(),
    });
}

/// Where the gain passes 1 for good, between two sizes on a logarithmic scale.
fn break_even(gains: &[(f64, f64)]) -> Option<f64> {
    let last_loss = gains.iter().rposition(|(_, gain)| *gain < 1.0)?;
    let ((x, low), (y, high)) = (gains[last_loss], *gains.get(last_loss + 1)?);
    Some(x * (y / x).powf((1.0 - low) / (high - low)))
}

/// One graph of mixed jobs under three inline thresholds, each given with the run.
fn thresholds(report: &mut Report, rate: f64) {
    report.say("\nEight jobs (2 each of 5, 20, 100 and 500 us), the inline threshold set run by run:\n");
    let jobs = [5e3, 2e4, 1e5, 5e5].map(|nanos| (nanos / rate) as usize);
    let mut rows = vec![row(["threshold", "to the pool", "p50 / p99"])];
    for threshold in [Duration::ZERO, Duration::from_micros(50), Duration::from_millis(1)] {
        let mut scores = Scores::new(&[jobs, jobs].concat(), rate, threshold);
        let offloaded = scores.count_offloaded();
        let spread = latency(scores, 1, 1_000);
        rows.push(row([&format!("{threshold:?}"), &offloaded.to_string(), &show(spread)]));
    }
    report.table(&rows);
}

/// Independent jobs over rows, in an engine of two CPU threads.
struct Scores {
    engine: Engine,
    graph: Dag,
    policies: Policies,
    options: Options,
    work: Jobs,
}

impl Scores {
    fn new(rows: &[usize], rate: f64, inline_threshold: Duration) -> Scores {
        let config = Config { cpu_threads: 2, ..Config::default() };
        Scores {
            engine: Engine::new(&config).expect("no setting is zero"),
            graph: Dag::new(rows.len() as u32, &[]).expect("a graph without edges"),
            policies: Policies::default(),
            options: Options { inline_threshold: Some(inline_threshold), ..Options::default() },
            work: Jobs {
                column: column(rows.iter().copied().max().unwrap_or(0)),
                rows: rows.into(),
                rate,
                total: 0.0,
            },
        }
    }

    /// How many nodes a run sends to the pool, by its events.
    fn count_offloaded(&mut self) -> usize {
        let mut listener = self.engine.events().listen(NonZeroUsize::new(1_000).expect("it is not 0"));
        runtime(1).block_on(self.run());
        let events = std::iter::from_fn(|| listener.try_next());
        let to_pool = |heard: &Heard| matches!(heard, Heard::Event(event) if matches!(event.what, What::Started(_, Place::Pool)));
        events.filter(to_pool).count()
    }
}

impl Contender for Scores {
    async fn run(&mut self) -> u64 {
        let run = self.engine.run(&self.graph, &self.policies, &mut self.work, &self.options);
        run.expect("the engine has room").await.expect("no node fails");
        self.work.total.to_bits()
    }
}

struct Jobs {
    column: Arc<[f64]>,
    /// How many rows each node looks at.
    rows: Box<[usize]>,
    rate: f64,
    total: f64,
}

impl Workload for Jobs {
    type Value = f64;
    type Error = Infallible;
    type Future = std::future::Pending<Result<f64, Infallible>>;
    type Job = Score;

    fn step(&mut self, node: NodeId, _: Budget) -> Step<Self> {
        let rows = self.rows[node.index()];
        let cost = Duration::from_nanos((rows as f64 * self.rate) as u64);
        Step::Job(Score { column: Arc::clone(&self.column), rows }, Cost::About(cost))
    }

    fn finish(&mut self, _: NodeId, value: f64, _: &mut Drops) {
        self.total += value;
    }
}

struct Score {
    column: Arc<[f64]>,
    rows: usize,
}

impl Job<f64, Infallible> for Score {
    fn run(self, _: Option<f64>, _: &Check<'_>) -> Result<f64, Infallible> {
        Ok(score(&self.column[..self.rows]))
    }
}

/// A small expression over a column, as a ranking would compute it.
#[inline(never)]
fn score(column: &[f64]) -> f64 {
    column.iter().map(|x| (x * 1.5 + 0.25).sqrt() / (x + 2.0)).sum()
}

fn column(rows: usize) -> Arc<[f64]> {
    (0..rows).map(|row| row as f64 / 7.0).collect()
}

fn nanos_a_row() -> f64 {
    let column = column(10_000);
    let once = || {
        let began = Instant::now();
        std::hint::black_box(score(std::hint::black_box(&column)));
        began.elapsed().as_nanos() as f64 / column.len() as f64
    };
    (0..200).map(|_| once()).min_by(f64::total_cmp).expect("there are many")
}
