//! Counters of requests, by the words of the ledger.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anabranch_engine::limit::LimitStatus;
use anabranch_engine::metrics::MetricsPage;

use crate::admission::Totals;
use crate::ledger::{LedgerEntry, Reason};
use crate::source::{HedgeCounts, ReadLatency};

/// The most distinct ledger lines that are counted per plan. Further ones are counted together.
const MAX_LINES: usize = 1024;

/// The node that lines beyond the bound are counted under.
const OTHERS: &str = "(others)";

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// With all its rows.
    Full,
    /// With an answer and a ledger.
    Degraded,
    /// With an error.
    Failed,
    /// Its deadline passed.
    Deadline,
    /// It was not let in.
    Refused,
    /// The caller stopped waiting.
    Dropped,
}

/// All outcomes, in order.
const OUTCOMES: [Outcome; 6] = [
    Outcome::Full,
    Outcome::Degraded,
    Outcome::Failed,
    Outcome::Deadline,
    Outcome::Refused,
    Outcome::Dropped,
];

impl Outcome {
    fn word(self) -> &'static str {
        match self {
            Outcome::Full => "full",
            Outcome::Degraded => "degraded",
            Outcome::Failed => "failed",
            Outcome::Deadline => "deadline",
            Outcome::Refused => "refused",
            Outcome::Dropped => "dropped",
        }
    }
}

/// The counters of an engine.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanMetrics {
    /// The counters of requests, by plan.
    pub plans: Vec<PlanCounts>,
    /// The counts of hedged reads, by the name of the endpoint.
    pub hedges: Vec<(String, HedgeCounts)>,
    /// The times of reads, by the name of the endpoint.
    pub reads: Vec<(String, ReadLatency)>,
    /// The state of the limits of reads, by the name of the endpoint, for endpoints that have one.
    pub limits: Vec<(String, LimitStatus)>,
}

/// The counters of the requests for a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanCounts {
    /// The plan.
    pub plan: String,
    /// Requests that have not ended.
    pub in_flight: u64,
    /// The number of requests by outcome.
    pub requests: [(Outcome, u64); 6],
    /// The fallbacks that were used, by node.
    pub degraded: Vec<DegradedCount>,
}

/// The number of fallbacks of a node for one reason.
#[derive(Clone, Debug, PartialEq)]
pub struct DegradedCount {
    /// The node.
    pub node: String,
    /// The reason.
    pub reason: Reason,
    /// The fallback that replaced its rows.
    pub fallback: String,
    /// The number of times.
    pub count: u64,
    /// The total time for which requests waited for it.
    pub waited: Duration,
    /// The total number of rows that replaced its own.
    pub rows: u64,
    /// The age of the oldest stale value.
    pub oldest: Option<Duration>,
}

impl PlanMetrics {
    /// The numbers in the text format of Prometheus.
    pub fn render(&self) -> String {
        let mut page = MetricsPage::new("anabranch_plan", &[]);
        let requests = self.plans.iter().flat_map(|plan| {
            plan.requests.map(|(outcome, count)| {
                (vec![("plan", plan.plan.as_str()), ("outcome", outcome.word())], count)
            })
        });
        page.counters("requests", "Requests that ended, by how.", requests);
        let in_flight = self.plans.iter().map(|plan| (vec![("plan", plan.plan.as_str())], plan.in_flight));
        page.gauges("requests_in_flight", "Requests that have not ended.", in_flight);
        self.render_degraded(&mut page);
        if !self.hedges.is_empty() {
            let hedges = self.hedges.iter().flat_map(|(endpoint, counts)| {
                let became = [("sent", counts.sent), ("won", counts.won), ("denied", counts.denied)];
                became
                    .map(|(became, count)| (vec![("endpoint", endpoint.as_str()), ("became", became)], count))
            });
            page.counters(
                "hedges",
                "Late reads: sent a second time, won by that, denied by the budget.",
                hedges,
            );
        }
        if !self.limits.is_empty() {
            let gauge = |of: fn(&LimitStatus) -> u64| {
                self.limits
                    .iter()
                    .map(move |(endpoint, limit)| (vec![("endpoint", endpoint.as_str())], of(limit)))
            };
            page.gauges("limit", "Reads that may be in flight.", gauge(|limit| u64::from(limit.limit)));
            let in_flight = gauge(|limit| u64::from(limit.in_flight));
            page.gauges("limit_in_flight", "Reads in flight that count against the limit.", in_flight);
            page.gauges(
                "limit_waiting",
                "Runs that wait for the limit.",
                gauge(|limit| limit.waiting as u64),
            );
        }
        let mut text = page.finish();
        self.render_reads(&mut text);
        text
    }

    fn render_reads(&self, text: &mut String) {
        const NAME: &str = "anabranch_plan_read_seconds";
        let reads = || self.reads.iter().filter(|(_, times)| times.count > 0);
        if reads().next().is_none() {
            return;
        }
        let mut line = |line: std::fmt::Arguments<'_>| text.write_fmt(line).expect("a String takes it all");
        line(format_args!(
            "# HELP {NAME} The time of reads that an endpoint answered.\n# TYPE {NAME} histogram\n"
        ));
        for (endpoint, times) in reads() {
            let endpoint = endpoint.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            for (bound, count) in &times.within {
                line(format_args!("{NAME}_bucket{{endpoint=\"{endpoint}\",le=\"{bound}\"}} {count}\n"));
            }
            let (count, sum) = (times.count, times.sum.as_secs_f64());
            line(format_args!("{NAME}_bucket{{endpoint=\"{endpoint}\",le=\"+Inf\"}} {count}\n"));
            line(format_args!("{NAME}_sum{{endpoint=\"{endpoint}\"}} {sum}\n"));
            line(format_args!("{NAME}_count{{endpoint=\"{endpoint}\"}} {count}\n"));
        }
    }

    fn render_degraded(&self, page: &mut MetricsPage<'_>) {
        let lines: Vec<_> = self.plans.iter().flat_map(PlanCounts::lines).collect();
        if lines.is_empty() {
            return;
        }
        let counted = |count: fn(&DegradedCount) -> f64| {
            lines.iter().map(move |(labels, line)| (labels.clone(), count(line)))
        };
        page.counters("degraded", "Lines in ledgers.", counted(|line| line.count as f64));
        let help = "How long requests waited for nodes that did not make it.";
        page.counters("degraded_waited_seconds", help, counted(|line| line.waited.as_secs_f64()));
        let help = "Rows that stood for those of nodes.";
        page.counters("degraded_rows", help, counted(|line| line.rows as f64));
        let stale =
            lines.iter().filter_map(|(labels, line)| Some((labels.clone(), line.oldest?.as_secs_f64())));
        page.gauges("stale_age_seconds", "The oldest that ever stood for the rows of a node.", stale);
    }
}

impl PlanCounts {
    fn lines(&self) -> impl Iterator<Item = (Vec<(&str, &str)>, &DegradedCount)> {
        self.degraded.iter().map(|line| {
            let labels = [
                ("plan", self.plan.as_str()),
                ("node", &line.node),
                ("reason", line.reason.word()),
                ("fallback", &line.fallback),
            ];
            (labels.to_vec(), line)
        })
    }
}

/// The books of a plan.
#[derive(Default)]
pub(crate) struct Counts {
    entered: AtomicU64,
    ended: [AtomicU64; 6],
    /// By node.
    degraded: Mutex<Lines>,
}

#[derive(Default)]
struct Lines {
    by_node: BTreeMap<String, Vec<DegradedCount>>,
    count: usize,
}

impl Counts {
    /// Counts a request that arrives; returns its number.
    pub(crate) fn enter(&self) -> u64 {
        self.entered.fetch_add(1, Ordering::Relaxed)
    }

    /// Counts the end of a request.
    pub(crate) fn end(&self, outcome: Outcome) {
        self.ended[outcome as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the entries of the ledger of a degraded response.
    #[cold]
    pub(crate) fn degraded(&self, ledger: &[LedgerEntry]) {
        let mut lines = self.lines();
        ledger.iter().for_each(|entry| lines.add(entry));
    }

    pub(crate) fn in_flight(&self) -> u64 {
        // The ends are read first, so that a request that begins and ends in between is counted among those that
        // entered.
        let ended: u64 = self.ended.iter().map(|count| count.load(Ordering::Relaxed)).sum();
        self.entered.load(Ordering::Relaxed).saturating_sub(ended)
    }

    pub(crate) fn totals(&self) -> Totals {
        let ended = |outcome: Outcome| self.ended[outcome as usize].load(Ordering::Relaxed);
        Totals {
            done: ended(Outcome::Full) + ended(Outcome::Degraded) + ended(Outcome::Failed),
            missed: ended(Outcome::Deadline),
        }
    }

    /// The numbers as they are now.
    pub(crate) fn of_plan(&self, plan: &str) -> PlanCounts {
        PlanCounts {
            plan: plan.to_owned(),
            in_flight: self.in_flight(),
            requests: OUTCOMES.map(|outcome| (outcome, self.ended[outcome as usize].load(Ordering::Relaxed))),
            degraded: self.lines().by_node.values().flatten().cloned().collect(),
        }
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.degraded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lines {
    fn add(&mut self, entry: &LedgerEntry) {
        let is = |line: &DegradedCount| line.reason == entry.reason && line.fallback == entry.fallback;
        let known =
            self.by_node.get_mut(&entry.node).and_then(|lines| lines.iter_mut().find(|line| is(line)));
        if let Some(line) = known {
            return line.add(entry);
        }
        let (node, fallback) = match self.count < MAX_LINES {
            true => (entry.node.as_str(), entry.fallback.as_str()),
            false => (OTHERS, ""),
        };
        let lines = self.by_node.entry(node.to_owned()).or_default();
        let at = lines.iter().position(|line| line.reason == entry.reason && line.fallback == fallback);
        let at = at.unwrap_or_else(|| {
            self.count += 1;
            lines.push(DegradedCount::none(node, entry.reason, fallback));
            lines.len() - 1
        });
        lines[at].add(entry);
    }
}

impl DegradedCount {
    fn none(node: &str, reason: Reason, fallback: &str) -> DegradedCount {
        let (node, fallback) = (node.to_owned(), fallback.to_owned());
        DegradedCount { node, reason, fallback, count: 0, waited: Duration::ZERO, rows: 0, oldest: None }
    }

    fn add(&mut self, entry: &LedgerEntry) {
        self.count += 1;
        self.waited = self.waited.saturating_add(entry.waited);
        self.rows += entry.rows as u64;
        self.oldest = self.oldest.max(entry.age);
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn entry(node: &str, reason: Reason, fallback: &str, age: Option<u64>) -> LedgerEntry {
        LedgerEntry {
            node: node.to_owned(),
            region: None,
            reason,
            detail: None,
            fallback: fallback.to_owned(),
            waited: Duration::from_millis(20),
            age: age.map(Duration::from_secs),
            known_keys: None,
            asked_keys: None,
            rows: 3,
        }
    }

    #[test]
    fn requests_are_counted_by_the_words_of_the_ledger() {
        let counts = Counts::default();
        for outcome in [Outcome::Full, Outcome::Full, Outcome::Degraded, Outcome::Refused] {
            counts.enter();
            counts.end(outcome);
        }
        counts.enter();
        counts.degraded(&[
            entry("media", Reason::Timeout, "stale", Some(2)),
            entry("recs", Reason::Shed, "node cheap", None),
        ]);
        counts.degraded(&[entry("media", Reason::Timeout, "stale", Some(1))]);
        counts.degraded(&[entry("media", Reason::Error, "empty", None)]);
        let hedges = vec![("ep_0001".to_owned(), HedgeCounts { sent: 5, won: 4, denied: 1 })];
        let (within, sum) = (vec![(0.000_128, 1)], Duration::from_millis(500));
        let reads = vec![
            ("catalog".to_owned(), ReadLatency { within, count: 2, sum }),
            ("unused".to_owned(), ReadLatency::default()),
        ];
        expect![[r##"
            # HELP anabranch_plan_requests_total Requests that ended, by how.
            # TYPE anabranch_plan_requests_total counter
            anabranch_plan_requests_total{plan="feed",outcome="full"} 2
            anabranch_plan_requests_total{plan="feed",outcome="degraded"} 1
            anabranch_plan_requests_total{plan="feed",outcome="failed"} 0
            anabranch_plan_requests_total{plan="feed",outcome="deadline"} 0
            anabranch_plan_requests_total{plan="feed",outcome="refused"} 1
            anabranch_plan_requests_total{plan="feed",outcome="dropped"} 0
            # HELP anabranch_plan_requests_in_flight Requests that have not ended.
            # TYPE anabranch_plan_requests_in_flight gauge
            anabranch_plan_requests_in_flight{plan="feed"} 1
            # HELP anabranch_plan_degraded_total Lines in ledgers.
            # TYPE anabranch_plan_degraded_total counter
            anabranch_plan_degraded_total{plan="feed",node="media",reason="timeout",fallback="stale"} 2
            anabranch_plan_degraded_total{plan="feed",node="media",reason="error",fallback="empty"} 1
            anabranch_plan_degraded_total{plan="feed",node="recs",reason="shed",fallback="node cheap"} 1
            # HELP anabranch_plan_degraded_waited_seconds_total How long requests waited for nodes that did not make it.
            # TYPE anabranch_plan_degraded_waited_seconds_total counter
            anabranch_plan_degraded_waited_seconds_total{plan="feed",node="media",reason="timeout",fallback="stale"} 0.04
            anabranch_plan_degraded_waited_seconds_total{plan="feed",node="media",reason="error",fallback="empty"} 0.02
            anabranch_plan_degraded_waited_seconds_total{plan="feed",node="recs",reason="shed",fallback="node cheap"} 0.02
            # HELP anabranch_plan_degraded_rows_total Rows that stood for those of nodes.
            # TYPE anabranch_plan_degraded_rows_total counter
            anabranch_plan_degraded_rows_total{plan="feed",node="media",reason="timeout",fallback="stale"} 6
            anabranch_plan_degraded_rows_total{plan="feed",node="media",reason="error",fallback="empty"} 3
            anabranch_plan_degraded_rows_total{plan="feed",node="recs",reason="shed",fallback="node cheap"} 3
            # HELP anabranch_plan_stale_age_seconds The oldest that ever stood for the rows of a node.
            # TYPE anabranch_plan_stale_age_seconds gauge
            anabranch_plan_stale_age_seconds{plan="feed",node="media",reason="timeout",fallback="stale"} 2
            # HELP anabranch_plan_hedges_total Late reads: sent a second time, won by that, denied by the budget.
            # TYPE anabranch_plan_hedges_total counter
            anabranch_plan_hedges_total{endpoint="ep_0001",became="sent"} 5
            anabranch_plan_hedges_total{endpoint="ep_0001",became="won"} 4
            anabranch_plan_hedges_total{endpoint="ep_0001",became="denied"} 1
            # HELP anabranch_plan_read_seconds The time of reads that an endpoint answered.
            # TYPE anabranch_plan_read_seconds histogram
            anabranch_plan_read_seconds_bucket{endpoint="catalog",le="0.000128"} 1
            anabranch_plan_read_seconds_bucket{endpoint="catalog",le="+Inf"} 2
            anabranch_plan_read_seconds_sum{endpoint="catalog"} 0.5
            anabranch_plan_read_seconds_count{endpoint="catalog"} 2
        "##]]
        .assert_eq(&PlanMetrics { plans: vec![counts.of_plan("feed")], hedges, reads, limits: Vec::new() }.render());
    }

    #[test]
    fn limits_have_the_names_of_their_endpoints() {
        let limit = LimitStatus { limit: 64, in_flight: 3, waiting: 2, ..LimitStatus::default() };
        let limits = vec![("catalog".to_owned(), limit)];
        let page = PlanMetrics { plans: Vec::new(), hedges: Vec::new(), reads: Vec::new(), limits }.render();
        for line in [
            "# TYPE anabranch_plan_limit gauge",
            "anabranch_plan_limit{endpoint=\"catalog\"} 64",
            "anabranch_plan_limit_in_flight{endpoint=\"catalog\"} 3",
            "anabranch_plan_limit_waiting{endpoint=\"catalog\"} 2",
        ] {
            assert!(page.lines().any(|found| found == line), "no {line} in\n{page}");
        }
    }

    #[test]
    fn ledgers_without_end_are_counted_within_bounds() {
        let counts = Counts::default();
        for number in 0..2 * MAX_LINES {
            counts.degraded(&[entry(&format!("node {number}"), Reason::Error, "empty", None)]);
        }
        let degraded = counts.of_plan("feed").degraded;
        assert_eq!(degraded.len(), MAX_LINES + 1);
        assert_eq!(degraded.iter().map(|line| line.count).sum::<u64>(), 2 * MAX_LINES as u64);
        let others = degraded.iter().find(|line| line.node == OTHERS).unwrap();
        assert_eq!(others.count, MAX_LINES as u64);
    }
}
