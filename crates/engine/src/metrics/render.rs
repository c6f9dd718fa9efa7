//! Metrics in the text format of Prometheus.

use std::fmt::{self, Display, Write};

use super::snapshot::{DurationStats, Snapshot, WaitKind};
use crate::event::{FailureReason, Placement, RunEnding};

impl Snapshot {
    /// The metrics in the text format of Prometheus. Their names start with `prefix`, and every line has `labels`.
    ///
    /// # Panics
    /// If `prefix` or the name of a label is not a valid name.
    pub fn render(&self, prefix: &str, labels: &[(&str, &str)]) -> String {
        let mut page = MetricsPage::new(prefix, labels);
        self.counters(&mut page).and_then(|()| self.gauges(&mut page)).expect("a String takes it all");
        self.histograms(&mut page).expect("a String takes it all");
        page.out
    }

    fn counters(&self, page: &mut MetricsPage<'_>) -> fmt::Result {
        let by_reason =
            |counts: [(FailureReason, u64); 5]| counts.map(|(reason, count)| (reason_word(reason), count));
        page.counter("runs_started", "Runs that were admitted.", self.runs_started)?;
        let ended = self.runs_ended.map(|(ending, count)| (ending_word(ending), count));
        page.by_label("runs_ended", "Runs that ended, by how they ended.", "ending", &ended)?;
        page.counter("node_attempts", "Starts of nodes, including retries.", self.attempts)?;
        page.counter("nodes_finished", "Nodes that finished without a fallback.", self.finished)?;
        let fell_back = by_reason(self.fell_back);
        page.by_label("nodes_fell_back", "Nodes whose fallback was used, by reason.", "reason", &fell_back)?;
        page.by_label("nodes_failed", "Nodes that failed, by reason.", "reason", &by_reason(self.failed))?;
        page.counter("nodes_dropped", "Nodes that were dropped.", self.dropped)?;
        page.counter("events_lost", "Events that were lost. With any, all counts are too low.", self.lost)?;
        page.counter("starts_untimed", "Starts that were not timed: too many were open.", self.untimed)
    }

    fn gauges(&self, page: &mut MetricsPage<'_>) -> fmt::Result {
        page.gauge("runs_open", "Runs that have not ended.", &[("", "", self.runs_open)])?;
        page.gauge("nodes_in_flight", "Nodes that have started and not ended.", &[("", "", self.in_flight)])?;
        let waiting = [("on", "limit", self.on_limit), ("on", "retry", self.on_retry)];
        page.gauge("nodes_waiting", "Ready nodes that wait for a limit or a retry.", &waiting)
    }

    fn histograms(&self, page: &mut MetricsPage<'_>) -> fmt::Result {
        let node_times = self.node_times.each_ref().map(|(place, times)| (place_word(*place), times));
        page.histogram(
            "node_seconds",
            "Duration of attempts, without their time in a queue.",
            "place",
            &node_times,
        )?;
        let waits = self.waits.each_ref().map(|(pause, times)| (pause_word(*pause), times));
        page.histogram(
            "wait_seconds",
            "Time that nodes waited for a limit, a retry or a thread.",
            "on",
            &waits,
        )?;
        page.histogram("run_seconds", "Duration of runs.", "", &[("", &self.run_times)])
    }
}

/// A page in the text format of Prometheus, for metrics of your own.
pub struct MetricsPage<'a> {
    out: String,
    prefix: &'a str,
    labels: &'a [(&'a str, &'a str)],
}

impl<'a> MetricsPage<'a> {
    /// An empty page. All names will start with `prefix`, and every line will have `labels`.
    ///
    /// # Panics
    /// If `prefix` or the name of a label is not a valid name.
    pub fn new(prefix: &'a str, labels: &'a [(&'a str, &'a str)]) -> MetricsPage<'a> {
        for name in labels.iter().map(|(name, _)| name).chain([&prefix]) {
            assert!(
                is_name(name),
                "`{name}` is not a valid name; use letters, digits and `_`, and do not begin with a digit"
            );
        }
        MetricsPage { out: String::new(), prefix, labels }
    }

    /// The text.
    pub fn finish(self) -> String {
        self.out
    }

    /// Adds counters that have one name and differ in their labels. `_total` is added to the name.
    pub fn counters<'l, V: Display>(
        &mut self,
        name: &str,
        help: &str,
        lines: impl IntoIterator<Item = (Vec<(&'l str, &'l str)>, V)>,
    ) {
        self.family(&format!("{name}_total"), help, "counter", lines);
    }

    /// Adds gauges that have one name and differ in their labels.
    pub fn gauges<'l, V: Display>(
        &mut self,
        name: &str,
        help: &str,
        lines: impl IntoIterator<Item = (Vec<(&'l str, &'l str)>, V)>,
    ) {
        self.family(name, help, "gauge", lines);
    }

    fn family<'l, V: Display>(
        &mut self,
        name: &str,
        help: &str,
        kind: &str,
        lines: impl IntoIterator<Item = (Vec<(&'l str, &'l str)>, V)>,
    ) {
        self.head(name, help, kind).expect("a String takes it all");
        for (labels, value) in lines {
            self.line(name, &labels, value).expect("a String takes it all");
        }
    }

    fn counter(&mut self, name: &str, help: &str, count: u64) -> fmt::Result {
        let name = format!("{name}_total");
        self.head(&name, help, "counter")?;
        self.line(&name, &[], count)
    }

    fn by_label(&mut self, name: &str, help: &str, label: &str, counts: &[(&str, u64)]) -> fmt::Result {
        let name = format!("{name}_total");
        self.head(&name, help, "counter")?;
        counts.iter().try_for_each(|(value, count)| self.line(&name, &[(label, value)], count))
    }

    fn gauge(&mut self, name: &str, help: &str, values: &[(&str, &str, u64)]) -> fmt::Result {
        self.head(name, help, "gauge")?;
        values.iter().try_for_each(|(label, value, count)| self.line(name, &[(*label, *value)], count))
    }

    fn histogram(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        rows: &[(&str, &DurationStats)],
    ) -> fmt::Result {
        self.head(name, help, "histogram")?;
        for (value, times) in rows {
            for (bound, count) in DurationStats::BOUNDS.iter().zip(times.within) {
                let bound = bound.as_secs_f64().to_string();
                self.line(&format!("{name}_bucket"), &[(label, value), ("le", &bound)], count)?;
            }
            self.line(&format!("{name}_bucket"), &[(label, value), ("le", "+Inf")], times.count)?;
            self.line(&format!("{name}_sum"), &[(label, value)], times.sum.as_secs_f64())?;
            self.line(&format!("{name}_count"), &[(label, value)], times.count)?;
        }
        Ok(())
    }

    fn head(&mut self, name: &str, help: &str, kind: &str) -> fmt::Result {
        let prefix = self.prefix;
        writeln!(self.out, "# HELP {prefix}_{name} {help}\n# TYPE {prefix}_{name} {kind}")
    }

    fn line(&mut self, name: &str, own: &[(&str, &str)], value: impl Display) -> fmt::Result {
        write!(self.out, "{}_{name}", self.prefix)?;
        let labels = self.labels.iter().chain(own).filter(|(label, _)| !label.is_empty());
        let mut open = '{';
        for (label, value) in labels {
            write!(self.out, "{open}{label}=\"{}\"", escaped(value))?;
            open = ',';
        }
        writeln!(self.out, "{} {value}", if open == ',' { "}" } else { "" })
    }
}

/// The format escapes backslash, quote and line feed, and nothing else.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn is_name(name: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.starts_with(|c: char| is_word(c) && !c.is_ascii_digit()) && name.chars().all(is_word)
}

fn ending_word(ending: RunEnding) -> &'static str {
    match ending {
        RunEnding::Complete => "complete",
        RunEnding::Failed => "failed",
        RunEnding::Deadline => "deadline",
        RunEnding::Cut => "cut",
        RunEnding::Drained => "drained",
        RunEnding::Dropped => "dropped",
    }
}

fn reason_word(reason: FailureReason) -> &'static str {
    match reason {
        FailureReason::Error => "error",
        FailureReason::Panic => "panic",
        FailureReason::Timeout => "timeout",
        FailureReason::Deadline => "deadline",
        FailureReason::Abandoned => "abandoned",
    }
}

fn place_word(place: Placement) -> &'static str {
    match place {
        Placement::Inline => "inline",
        Placement::Future => "future",
        Placement::Spawned => "spawned",
        Placement::Pool => "pool",
        Placement::Blocking => "blocking",
    }
}

fn pause_word(pause: WaitKind) -> &'static str {
    match pause {
        WaitKind::Limit => "limit",
        WaitKind::Retry => "retry",
        WaitKind::Queue => "queue",
    }
}
