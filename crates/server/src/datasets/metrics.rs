//! The figures of dataset jobs for monitoring.

use std::fmt::Write as _;

use super::Datasets;

impl Datasets {
    /// The figures in the text format of Prometheus.
    pub fn metrics(&self) -> String {
        let (building, queued, kept, jobs) = {
            let jobs = self.shared.lock();
            let all: Vec<_> = jobs.by_id.values().cloned().collect();
            (jobs.building, jobs.queue.len(), jobs.by_id.len(), all)
        };
        let mut out = String::new();
        let mut gauge = |name: &str, about: &str, value: usize| {
            write!(out, "# HELP {name} {about}\n# TYPE {name} gauge\n{name} {value}\n")
                .expect("a String takes it all");
        };
        gauge("anabranch_datasets_building", "Datasets that are being built.", building);
        gauge("anabranch_datasets_queued", "Datasets that wait to be built.", queued);
        gauge("anabranch_datasets_kept", "Datasets that are kept.", kept);
        let mut lines: Vec<(&str, String, String)> = Vec::new();
        for job in jobs {
            let Some(live) = job.state().build.clone() else { continue };
            let snapshot = live.build.progress().snapshot();
            let id = job.spec.id;
            for column in &snapshot.columns {
                let column_name = label(&column.name);
                let states =
                    [("finished", column.finished), ("failed", column.failed), ("skipped", column.skipped)];
                lines.extend(states.map(|(state, count)| {
                    let labels = format!("dataset=\"{id}\",column=\"{column_name}\",state=\"{state}\"");
                    ("anabranch_dataset_cells", labels, count.to_string())
                }));
            }
            for (alias, used) in live.build.usage() {
                let labels = format!("dataset=\"{id}\",model=\"{}\"", label(&alias));
                let counts = [
                    ("anabranch_dataset_calls", used.calls),
                    ("anabranch_dataset_reused_replies", used.reused),
                    ("anabranch_dataset_input_tokens", used.input_tokens),
                    ("anabranch_dataset_output_tokens", used.output_tokens),
                ];
                lines.extend(counts.map(|(name, count)| (name, labels.clone(), count.to_string())));
                lines.extend(used.cost.map(|cost| ("anabranch_dataset_cost", labels, cost.to_string())));
            }
            for limit in live.build.limits() {
                let labels = format!("dataset=\"{id}\",limit=\"{}\"", label(&limit.name));
                lines.push(("anabranch_dataset_limit", labels.clone(), limit.limit.to_string()));
                lines.push(("anabranch_dataset_in_flight", labels, limit.in_flight.to_string()));
            }
        }
        // Prometheus needs the lines of one name together, below one type.
        lines.sort();
        let mut last = "";
        for (name, labels, value) in &lines {
            if *name != last {
                writeln!(out, "# TYPE {name} gauge").expect("a String takes it all");
                last = name;
            }
            writeln!(out, "{name}{{{labels}}} {value}").expect("a String takes it all");
        }
        out
    }
}

/// Escapes the value of a label.
fn label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
