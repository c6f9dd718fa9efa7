//! What a trip to another thread costs, and from what size of work on it pays.

use std::sync::Arc;
use std::time::Duration;

use super::blocking::BlockingTasks;
use super::contender::{Peer, latency};
use super::digits;
use super::ours::{Ours, PooledEngine};
use super::scores::{BlockingScores, Scores, nanos_a_row, parallel_gain};
use super::shapes::chain;
use super::work::Kind;
use crate::report::{Report, row};
use crate::watch::Spread;

pub(crate) fn report(report: &mut Report) {
    report.heading("Offloading");
    report.say("Latencies are p10 / p50 / p99 in us, from submit to result.\n");
    round_trips(report);
    let rate = nanos_a_row();
    crossover(report, rate);
    thresholds(report, rate);
}

fn round_trips(report: &mut Report) {
    report.say("A graph of one empty job:\n");
    let one = Arc::new(chain(1));
    let mut rows = vec![row(["runtime", "in place", "ours, CPU pool", "`spawn_blocking`"])];
    for (name, threads) in [("current thread", 1), ("2 worker threads", 2)] {
        let inline = latency(Ours::new(&one, Kind::Empty), threads, 20_000);
        let pool = latency(PooledEngine::new(&one, Kind::Empty), threads, 20_000);
        let blocking = BlockingTasks::prepare(&one, Kind::Empty).expect("a job");
        let blocking = latency(blocking, threads, 20_000);
        rows.push(row([name, &show(inline), &show(pool), &show(blocking)]));
    }
    report.table(&rows);
}

fn show(spread: Spread) -> String {
    let [p10, p50, p99] = [spread.p10, spread.p50, spread.p99].map(micros);
    format!("{p10} / {p50} / {p99}")
}

fn micros(time: Duration) -> String {
    digits(time.as_nanos() as f64 / 1e3)
}

/// Two jobs of the same size beside each other: one after the other in place, or at once on the pool.
fn crossover(report: &mut Report, rate: f64) {
    report.say(format_args!(
        "\nTwo jobs beside each other, each over so many rows ({} ns a row), on the current thread. Just now, two \
        threads did {:.2}x the work of one:\n",
        digits(rate),
        parallel_gain()
    ));
    let sizes = [100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000];
    let sizes = sizes.map(|rows| Size::measure(rows, rate));
    let heading = ["rows", "a job", "in place", "ours, CPU pool", "`spawn_blocking`", "gain at p10 / p50"];
    let mut rows = vec![row(heading)];
    rows.extend(sizes.iter().map(|size| size.row(rate)));
    report.table(&rows);
    let pays = |gain: fn(&Size) -> f64| match break_even(&sizes, gain) {
        Some(rows) => format!("from about {rows:.0} rows (jobs of {} us)", digits(rows * rate / 1e3)),
        None => "at no size measured here".to_owned(),
    };
    report.say(format_args!(
        "\nAt p50 offloading pays {}; at p10, when a second core took its job at once, {}.",
        pays(|size| size.gain(|spread| spread.p50)),
        pays(|size| size.gain(|spread| spread.p10))
    ));
}

struct Size {
    rows: usize,
    inline: Spread,
    pool: Spread,
    blocking: Spread,
}

impl Size {
    fn measure(rows: usize, rate: f64) -> Size {
        let samples = (30_000_000 / rows).clamp(50, 5_000);
        let ours = |threshold| latency(Scores::new(&[rows; 2], rate, threshold), 1, samples);
        let blocking = latency(BlockingScores::new(rows), 1, samples);
        Size { rows, inline: ours(Duration::MAX), pool: ours(Duration::ZERO), blocking }
    }

    fn gain(&self, percentile: fn(&Spread) -> Duration) -> f64 {
        percentile(&self.inline).as_secs_f64() / percentile(&self.pool).as_secs_f64()
    }

    fn row(&self, rate: f64) -> Vec<String> {
        let gains = [self.gain(|spread| spread.p10), self.gain(|spread| spread.p50)];
        vec![
            self.rows.to_string(),
            format!("{} us", digits(self.rows as f64 * rate / 1e3)),
            show(self.inline),
            show(self.pool),
            show(self.blocking),
            format!("{:.2}x / {:.2}x", gains[0], gains[1]),
        ]
    }
}

/// Where the gain passes 1 for good, between two sizes on a logarithmic scale.
fn break_even(sizes: &[Size], gain: fn(&Size) -> f64) -> Option<f64> {
    let last_loss = sizes.iter().rposition(|size| gain(size) < 1.0)?;
    let (below, above) = (&sizes[last_loss], sizes.get(last_loss + 1)?);
    let part = (1.0 - gain(below)) / (gain(above) - gain(below));
    Some(below.rows as f64 * (above.rows as f64 / below.rows as f64).powf(part))
}

/// One graph of mixed jobs under three inline thresholds, each given with the run.
fn thresholds(report: &mut Report, rate: f64) {
    report.say("\nEight jobs (2 each of 5, 20, 100 and 500 us), the inline threshold set run by run:\n");
    let jobs = [5e3, 2e4, 1e5, 5e5].map(|nanos| (nanos / rate) as usize);
    let mut rows = vec![row(["threshold", "jobs sent to the pool", "latency"])];
    for threshold in [Duration::ZERO, Duration::from_micros(50), Duration::from_millis(1)] {
        let mut scores = Scores::new(&[jobs, jobs].concat(), rate, threshold);
        let offloaded = scores.count_offloaded();
        let spread = latency(scores, 1, 1_000);
        rows.push(row([&format!("{threshold:?}"), &offloaded.to_string(), &show(spread)]));
    }
    report.table(&rows);
}
