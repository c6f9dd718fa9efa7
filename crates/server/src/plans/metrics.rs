//! The metrics of plans, for Prometheus.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Plans;
use super::histogram::Durations;
use super::table::{Entry, Table};
use super::version::Version;

/// The edges of latency buckets are powers of two of microseconds: 128 us to 16.8 s.
const POWERS: std::ops::RangeInclusive<usize> = 7..=24;

impl Plans {
    /// The metrics of all plans, in the text format of Prometheus.
    pub fn metrics(&self) -> String {
        let table = self.table();
        // The engine counts degraded nodes and hedges. Its counters restart when the registry changes.
        let mut out = table.engine.metrics().render();
        requests(&table, &mut out);
        versions(&table, &mut out);
        nodes(&table, &mut out);
        if let Some(captures) = &self.0.captures {
            let counts = captures.sampler.counts();
            head(&mut out, "captures_total", "Captures of requests, by what became of them.", "counter");
            for (became, count) in [
                ("written", counts.written),
                ("dropped_rate", counts.dropped_rate),
                ("dropped_size", counts.dropped_size),
                ("dropped_queue", counts.dropped_queue),
                ("dropped_total", counts.dropped_total),
                ("dropped_masked", counts.dropped_masked),
                ("dropped_store", counts.dropped_store),
            ] {
                line(&mut out, "captures_total", &[("became", became)], count);
            }
        }
        out
    }
}

fn requests(table: &Table, out: &mut String) {
    let plans = || table.plans.values();
    head(
        out,
        "served_requests_total",
        "Requests that the server has answered, by how they ended.",
        "counter",
    );
    for entry in plans() {
        for (outcome, count) in entry.counts.by_outcome() {
            line(out, "served_requests_total", &[("plan", &entry.name), ("outcome", outcome)], count);
        }
    }
    head(out, "served_in_flight", "Requests that have not ended.", "gauge");
    for entry in plans() {
        line(out, "served_in_flight", &[("plan", &entry.name)], entry.counts.in_flight());
    }
    head(out, "latency_seconds", "The time from a parsed request to its answer.", "histogram");
    for entry in plans() {
        histogram(out, "latency_seconds", &[("plan", &entry.name)], &entry.counts.latency.read());
    }
}

fn histogram(out: &mut String, name: &str, labels: &[(&str, &str)], durations: &Durations) {
    let bucket = format!("{name}_bucket");
    for power in POWERS {
        let edge = ((1_u64 << power) as f64 / 1e6).to_string();
        line(out, &bucket, &[labels, &[("le", &edge)]].concat(), durations.below_power(power));
    }
    line(out, &bucket, &[labels, &[("le", "+Inf")]].concat(), durations.count);
    line(out, &format!("{name}_sum"), labels, durations.sum.as_secs_f64());
    line(out, &format!("{name}_count"), labels, durations.count);
}

fn versions(table: &Table, out: &mut String) {
    let served = |entry: &Arc<Entry>| -> Vec<(&'static str, Arc<Version>, f64)> {
        let canary = entry.canary.as_ref();
        let share = canary.map_or(0.0, |canary| canary.share);
        let current = entry.current.iter().map(|version| ("current", Arc::clone(version), 1.0 - share));
        current.chain(canary.map(|canary| ("canary", Arc::clone(&canary.version), share))).collect()
    };
    head(out, "version_share", "The share of users that a version answers.", "gauge");
    for entry in table.plans.values() {
        for (role, version, share) in served(entry) {
            let labels = [("plan", &*entry.name), ("version", &version.id), ("role", role)];
            line(out, "version_share", &labels, share);
        }
    }
    head(out, "version_requests_total", "Requests by the version that answered.", "counter");
    for entry in table.plans.values() {
        for (role, version, _) in served(entry) {
            let failed = version.stats.failed.load(Ordering::Relaxed);
            let all = version.stats.latency.read().count;
            for (outcome, count) in [("answered", all - failed.min(all)), ("failed", failed)] {
                let labels =
                    [("plan", &*entry.name), ("version", &version.id), ("role", role), ("outcome", outcome)];
                line(out, "version_requests_total", &labels, count);
            }
        }
    }
    head(out, "load_problem", "1 if the latest file of a plan is wrong, so that it is not served.", "gauge");
    for entry in table.plans.values() {
        line(out, "load_problem", &[("plan", &entry.name)], u8::from(entry.problem.is_some()));
    }
    head(out, "project_problem", "1 if the latest project file or registry is wrong.", "gauge");
    line(out, "project_problem", &[], u8::from(table.problem.is_some()));
}

/// The times of nodes, from the traced requests. A node that ran in none of them has no lines.
fn nodes(table: &Table, out: &mut String) {
    let help =
        "The time of nodes, sampled: of one request per 100 ms and plan, and of requests with ?trace=true.";
    head(out, "node_seconds", help, "histogram");
    for entry in table.plans.values() {
        let Some(version) = &entry.current else { continue };
        for (stage, stats) in version.explanation().stages.iter().zip(&version.stats.nodes) {
            let durations = stats.latency.read();
            if durations.count > 0 {
                let labels = [("plan", &*entry.name), ("node", stage.name.as_str())];
                histogram(out, "node_seconds", &labels, &durations);
            }
        }
    }
}

fn head(out: &mut String, name: &str, help: &str, kind: &str) {
    let written = writeln!(out, "# HELP anabranch_plan_{name} {help}\n# TYPE anabranch_plan_{name} {kind}");
    written.expect("a String takes all that is written");
}

fn line(out: &mut String, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
    out.push_str("anabranch_plan_");
    out.push_str(name);
    for (at, (label, text)) in labels.iter().enumerate() {
        out.push(if at == 0 { '{' } else { ',' });
        out.push_str(label);
        out.push_str("=\"");
        for letter in text.chars() {
            match letter {
                '\\' => out.push_str("\\\\"),
                '"' => out.push_str("\\\""),
                '\n' => out.push_str("\\n"),
                other => out.push(other),
            }
        }
        out.push('"');
    }
    let end = if labels.is_empty() { "" } else { "}" };
    writeln!(out, "{end} {value}").expect("a String takes all that is written");
}
