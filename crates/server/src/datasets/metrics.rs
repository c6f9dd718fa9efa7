//! The figures of dataset jobs for monitoring.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anabranch_dataset::{Build, CallTimes};

use super::Datasets;

/// The most values of a label that clients choose. Further ones are counted together, as [`OTHER`].
const NAMES_MOST: usize = 200;
const OTHER: &str = "other";

/// Counters of builds. Any client can name models in demo jobs, so these have at most half of the names.
#[derive(Clone, Default)]
pub(super) struct BuildCounts {
    /// By name and labels.
    counts: BTreeMap<(&'static str, String), f64>,
    /// The times of calls, by the name of the model.
    times: BTreeMap<String, CallTimes>,
    /// The names of models that have counters of their own.
    names: BTreeSet<String>,
}

impl BuildCounts {
    /// Adds the counts of a build since it began in this process.
    pub(super) fn add(&mut self, build: &Build, is_demo: bool) {
        let names_most = if is_demo { NAMES_MOST / 2 } else { NAMES_MOST };
        for (alias, used) in build.usage_of_run() {
            let labels = format!("model=\"{}\"", self.name(&alias, names_most));
            for (name, count) in [
                ("anabranch_dataset_calls_total", used.calls as f64),
                ("anabranch_dataset_reused_replies_total", used.reused as f64),
                ("anabranch_dataset_input_tokens_total", used.input_tokens as f64),
                ("anabranch_dataset_output_tokens_total", used.output_tokens as f64),
                ("anabranch_dataset_cost_total", used.cost.unwrap_or(0.0)),
            ] {
                *self.counts.entry((name, labels.clone())).or_default() += count;
            }
        }
        for (alias, times) in build.call_times() {
            let name = self.name(&alias, names_most);
            *self.times.entry(name).or_default() += &times;
        }
    }

    /// The name of a model in labels.
    fn name(&mut self, alias: &str, most: usize) -> String {
        let name = label(alias);
        if self.names.len() < most {
            self.names.insert(name.clone());
        }
        if self.names.contains(&name) { name } else { OTHER.to_owned() }
    }
}

impl Datasets {
    /// The figures in the text format of Prometheus.
    pub fn metrics(&self) -> String {
        let (building, queued, kept, jobs) = {
            let jobs = self.shared.lock();
            let all: Vec<_> = jobs.by_id.values().cloned().collect();
            (jobs.building, jobs.queue.len(), jobs.by_id.len(), all)
        };
        let mut page = Page::default();
        page.add("anabranch_datasets_building", String::new(), building as f64);
        page.add("anabranch_datasets_queued", String::new(), queued as f64);
        page.add("anabranch_datasets_kept", String::new(), kept as f64);
        // A build is counted among the finished ones or among the live ones, never among both.
        let finished = self.shared.finished();
        let mut counts = finished.clone();
        for job in jobs {
            let Some(live) = job.state().build.clone() else { continue };
            if !live.is_counted() {
                counts.add(&live.build, job.spec.demo);
            }
            let id = job.spec.id;
            let mut cells: BTreeMap<String, [u64; 3]> = BTreeMap::new();
            for column in &live.build.progress().snapshot().columns {
                let name = if cells.len() < NAMES_MOST { label(&column.name) } else { OTHER.to_owned() };
                let counts = cells.entry(name).or_default();
                counts[0] += column.finished;
                counts[1] += column.failed;
                counts[2] += column.skipped;
            }
            for (column, counts) in cells {
                for (state, count) in ["finished", "failed", "skipped"].into_iter().zip(counts) {
                    let labels = format!("dataset=\"{id}\",column=\"{column}\",state=\"{state}\"");
                    page.add("anabranch_dataset_cells", labels, count as f64);
                }
            }
            // Long names may be the same once they are cut.
            let mut limits: BTreeMap<String, [u64; 2]> = BTreeMap::new();
            for limit in live.build.limits() {
                let name = if limits.len() < NAMES_MOST { label(&limit.name) } else { OTHER.to_owned() };
                let sums = limits.entry(name).or_default();
                sums[0] += u64::from(limit.limit);
                sums[1] += u64::from(limit.in_flight);
            }
            for (limit, sums) in limits {
                let names = ["anabranch_dataset_limit", "anabranch_dataset_in_flight"];
                for (name, sum) in names.into_iter().zip(sums) {
                    page.add(name, format!("dataset=\"{id}\",limit=\"{limit}\""), sum as f64);
                }
            }
        }
        drop(finished);
        counts.counts.into_iter().for_each(|((name, labels), count)| page.add(name, labels, count));
        let mut text = page.text();
        write_times(&counts.times, &mut text);
        text
    }
}

/// Writes the times of calls. A model that was not called has no lines.
fn write_times(times: &BTreeMap<String, CallTimes>, out: &mut String) {
    const NAME: &str = "anabranch_model_call_seconds";
    let mut line = |text: std::fmt::Arguments<'_>| out.write_fmt(text).expect("a String takes it all");
    line(format_args!("# HELP {NAME} The time of model calls of builds.\n# TYPE {NAME} histogram\n"));
    for (model, times) in times.iter().filter(|(_, times)| times.count > 0) {
        for (bound, count) in &times.within {
            let bound = bound.as_secs_f64();
            line(format_args!("{NAME}_bucket{{model=\"{model}\",le=\"{bound}\"}} {count}\n"));
        }
        let (count, sum) = (times.count, times.sum.as_secs_f64());
        line(format_args!("{NAME}_bucket{{model=\"{model}\",le=\"+Inf\"}} {count}\n"));
        line(format_args!(
            "{NAME}_sum{{model=\"{model}\"}} {sum}\n{NAME}_count{{model=\"{model}\"}} {count}\n"
        ));
    }
}

/// Lines by name, because Prometheus needs the lines of one name together, below one type.
#[derive(Default)]
struct Page(BTreeMap<&'static str, Vec<(String, f64)>>);

/// All names, with their descriptions.
const ABOUT: [(&str, &str); 11] = [
    ("anabranch_dataset_calls_total", "Model calls of builds that were answered."),
    ("anabranch_dataset_cells", "Cells of the current stage of a running build."),
    ("anabranch_dataset_cost_total", "The cost of model calls, by the price table."),
    ("anabranch_dataset_in_flight", "Model calls in flight of a build."),
    ("anabranch_dataset_input_tokens_total", "Input tokens of model calls."),
    ("anabranch_dataset_limit", "The current limit of concurrent model calls of a build."),
    ("anabranch_dataset_output_tokens_total", "Output tokens of model calls."),
    ("anabranch_dataset_reused_replies_total", "Replies of the journal that replaced model calls."),
    ("anabranch_datasets_building", "Datasets that are being built."),
    ("anabranch_datasets_kept", "Datasets that are kept."),
    ("anabranch_datasets_queued", "Datasets that wait to be built."),
];

impl Page {
    fn add(&mut self, name: &'static str, labels: String, value: f64) {
        self.0.entry(name).or_default().push((labels, value));
    }

    fn text(&self) -> String {
        let mut out = String::new();
        for (name, lines) in &self.0 {
            let about = ABOUT.iter().find(|(known, _)| known == name).map_or("", |(_, about)| about);
            let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
            let mut line =
                |text: std::fmt::Arguments<'_>| out.write_fmt(text).expect("a String takes it all");
            line(format_args!("# HELP {name} {about}\n# TYPE {name} {kind}\n"));
            for (labels, value) in lines {
                match labels.is_empty() {
                    true => line(format_args!("{name} {value}\n")),
                    false => line(format_args!("{name}{{{labels}}} {value}\n")),
                }
            }
        }
        out
    }
}

/// The most characters of the value of a label.
const LABEL_MOST: usize = 100;

/// The value of a label, escaped, and cut if it is long.
fn label(text: &str) -> String {
    let cut = text.char_indices().nth(LABEL_MOST).map_or(text, |(end, _)| &text[..end]);
    cut.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_models_are_bounded_in_number_and_length() {
        let mut counts = BuildCounts::default();
        let demo = |counts: &mut BuildCounts, at: usize| counts.name(&format!("demo-{at}"), NAMES_MOST / 2);
        let names: BTreeSet<String> = (0..1_000).map(|at| demo(&mut counts, at)).collect();
        assert_eq!(names.len(), NAMES_MOST / 2 + 1);
        assert_eq!((demo(&mut counts, 7).as_str(), demo(&mut counts, 700).as_str()), ("demo-7", OTHER));
        assert_eq!(counts.name("writer", NAMES_MOST), "writer", "demo jobs leave names to others");
        let long = counts.name(&"\u{e9}\"".repeat(5_000), NAMES_MOST);
        assert_eq!(long, "\u{e9}\\\"".repeat(LABEL_MOST / 2));
    }
}
