//! The pace of a build: rates over the last seconds and the time left, as lines for people and as JSON.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use anabranch_dataset::config::{Column, ColumnKind, Config};
use anabranch_dataset::output::{LimitReport, ModelMetadata, StageView};
use anabranch_dataset::{AcceptSnapshot, Build, ColumnSnapshot, Snapshot};
use anabranch_text::{count, duration};
use serde_json::{Value, json};

use super::spend::{LiveSpend, cost};
use crate::number::grouped;

/// Rates are means over this time.
const WINDOW: Duration = Duration::from_secs(10);
/// Counters are kept no more often.
const STEP: Duration = Duration::from_millis(500);
/// Characters of a whole bar.
const BAR: usize = 24;
/// The most characters of a column's name.
const LABEL: usize = 32;
/// The most characters of a line.
const LINE: usize = 100;

/// The counters of a build at several moments.
pub struct Pace {
    began: Instant,
    now: Instant,
    /// Oldest first; the first is of the beginning or of a window ago.
    samples: VecDeque<(Instant, Snapshot)>,
    latest: Snapshot,
    limits: Vec<LimitReport>,
    /// Calls and tokens by model alias.
    usage: BTreeMap<String, ModelMetadata>,
    /// Settled cells per column that an earlier build had done.
    before: Vec<u64>,
    /// The current stage, if there are several.
    stage: Option<StageView>,
    /// Longer names for some columns.
    labels: Vec<(String, String)>,
}

/// The figures of a build at one moment, for curves.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// The time since the beginning.
    pub elapsed_seconds: f64,
    /// Settled cells per second, of late.
    pub cells_per_second: f64,
    /// Calls of all models that are in flight.
    pub in_flight: u64,
    /// The calls that may be in flight.
    pub limit: u64,
    /// The money so far; `None` if no model has a price.
    pub cost: Option<f64>,
}

impl Pace {
    /// A build that begins now.
    pub fn new(build: &Build, now: Instant) -> Pace {
        let latest = build.progress().snapshot();
        let samples = VecDeque::from([(now, latest.clone())]);
        let before = latest.columns.iter().map(settled).collect();
        let (limits, usage, labels) = (build.limits(), build.usage(), Vec::new());
        Pace { began: now, now, samples, latest, limits, usage, before, stage: build.stage_view(), labels }
    }

    /// The samplers of a configuration, and the columns of its seed, are filled together: the first one stands for all.
    pub fn with_labels(self, config: &Config) -> Pace {
        let is_sampler = |column: &&Column| matches!(column.kind, ColumnKind::Sampler(_));
        let samplers = config.columns.iter().filter(is_sampler).map(|column| column.name.as_str()).collect();
        let seed: Vec<&str> = config.seed_columns.iter().flatten().map(String::as_str).collect();
        let label = |together: Vec<&str>, noun: &str| {
            let first = together.first().filter(|_| together.len() > 1)?;
            let more = count(together.len() as u64 - 1, &format!("more {noun}"));
            Some(((*first).to_owned(), format!("{first} and {more}")))
        };
        let labels = [label(samplers, "sampler"), label(seed, "seed column")];
        Pace { labels: labels.into_iter().flatten().collect(), ..self }
    }

    /// Takes the counters of now.
    pub fn read(&mut self, build: &Build, now: Instant) {
        self.now = now;
        let stage = build.stage_view();
        self.latest = build.progress().snapshot();
        if stage != self.stage {
            // Other columns, and other rows.
            self.stage = stage;
            self.samples.clear();
            self.before = self.latest.columns.iter().map(settled).collect();
        }
        (self.limits, self.usage) = (build.limits(), build.usage());
        if self.samples.back().is_none_or(|(at, _)| now - *at >= STEP) {
            self.samples.push_back((now, self.latest.clone()));
        }
        while self.samples.get(1).is_some_and(|(at, _)| now - *at >= WINDOW) {
            self.samples.pop_front();
        }
    }

    /// The figures of now.
    pub fn figures(&self) -> Figures {
        let sum = |number: fn(&LimitReport) -> u64| self.limits.iter().map(number).sum();
        Figures {
            elapsed_seconds: rounded(self.elapsed().as_secs_f64()),
            cells_per_second: rounded(self.total_rate()),
            in_flight: sum(|limit| u64::from(limit.in_flight)),
            limit: sum(|limit| u64::from(limit.limit)),
            cost: cost(&self.usage),
        }
    }

    /// The time since the beginning.
    pub fn elapsed(&self) -> Duration {
        self.now - self.began
    }

    /// Rows whose cells are all settled. Failed cells of a column drop their rows, or are null in them.
    fn rows_done(&self) -> u64 {
        if let Some(accept) = self.latest.accept {
            return accept.accepted.min(self.latest.rows);
        }
        let done = self.latest.columns.iter().map(|column| self.rows_done_in(column)).min();
        done.unwrap_or(self.latest.rows_written)
    }

    fn rows_done_in(&self, column: &ColumnSnapshot) -> u64 {
        let Snapshot { rows, rows_written, rows_dropped, .. } = self.latest;
        if rows_written + rows_dropped >= rows {
            return rows;
        }
        let settled = column.finished + column.skipped + column.failed.max(rows_dropped);
        settled.min(rows)
    }

    /// The recent rate of settled cells of a column, per second.
    fn rate(&self, number: usize) -> f64 {
        let settled = |snapshot: &Snapshot| snapshot.columns.get(number).map_or(0, settled);
        let Some((from, first)) = self.samples.front() else { return 0.0 };
        let seconds = (self.now - *from).as_secs_f64();
        let cells = settled(&self.latest).saturating_sub(settled(first));
        if seconds > 0.0 { cells as f64 / seconds } else { 0.0 }
    }

    fn total_rate(&self) -> f64 {
        (0..self.latest.columns.len()).map(|number| self.rate(number)).sum()
    }

    /// The time until enough rows are accepted.
    fn accepted_left(&self, accept: AcceptSnapshot) -> Option<Duration> {
        let (from, first) = self.samples.front()?;
        let accepted = accept.accepted.saturating_sub(first.accept.map_or(0, |accept| accept.accepted));
        let rate = accepted as f64 / (self.now - *from).as_secs_f64();
        let missing = self.latest.rows.saturating_sub(accept.accepted);
        (rate > 0.0 && missing > 0).then(|| Duration::try_from_secs_f64(missing as f64 / rate).ok())?
    }

    /// The time that the slowest column takes for its remaining cells.
    fn left(&self) -> Option<Duration> {
        if let Some(accept) = self.latest.accept {
            return self.accepted_left(accept);
        }
        let elapsed = self.elapsed().as_secs_f64();
        let left = self.latest.columns.iter().enumerate().filter_map(|(number, column)| {
            let remaining = self.latest.rows - self.rows_done_in(column);
            let recent = self.rate(number);
            let done = settled(column) - self.before.get(number).copied().unwrap_or(0);
            let rate = if recent > 0.0 { recent } else { done as f64 / elapsed };
            (remaining > 0 && rate > 0.0).then_some(remaining as f64 / rate)
        });
        left.reduce(f64::max).and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
    }

    fn error_count(&self) -> u64 {
        self.latest.errors.values().sum()
    }

    /// The progress of the build in one line. If the line is too long, the least important parts are left out.
    pub fn line(&self) -> String {
        let snapshot = &self.latest;
        let mut parts =
            vec![(0, self.rows_text()), (6, format!("{} cells/s", per_second(self.total_rate())))];
        parts.extend(self.busy_models().map(|busy| (1, busy)));
        parts.extend(LiveSpend::of(&self.usage).parts());
        let retried: u64 = snapshot.columns.iter().map(|column| column.retried).sum();
        let refused: u64 = self.limits.iter().map(|limit| limit.refused).sum();
        let counts = [(5, refused, "refused"), (8, retried, "retried"), (1, self.error_count(), "failed")];
        let counts = counts.into_iter().filter(|(_, count, _)| *count > 0);
        parts.extend(counts.map(|(rank, count, what)| (rank, format!("{} {what}", grouped(count)))));
        let (elapsed, left) = (duration::format(self.elapsed()), self.left());
        parts.push((if left.is_some() { 7 } else { 0 }, elapsed));
        parts.extend(left.map(|left| (0, format!("{} left", brief(left)))));
        fitted(parts)
    }

    /// The number of finished rows, and the requested number.
    fn rows_text(&self) -> String {
        let stage = self.stage.as_ref().map_or_else(String::new, |stage| {
            format!("stage {} of {} ({}): ", stage.number, stage.count, stage.name)
        });
        let rows = format!("{} of {} rows", grouped(self.rows_done()), grouped(self.latest.rows));
        format!(
            "{stage}{rows}{}",
            self.latest.accept.map_or_else(String::new, |accept| self.acceptance(accept))
        )
    }

    /// The share of rows that are accepted, and how many it takes in all.
    fn acceptance(&self, accept: AcceptSnapshot) -> String {
        let Some(share) = accept.acceptance() else { return " accepted".to_owned() };
        let forecast = (self.latest.rows as f64 / share).ceil();
        let of = match forecast <= accept.most as f64 {
            true => format!("about {} candidates", grouped(forecast as u64)),
            false => format!("more than {} candidates needed", grouped(accept.most)),
        };
        format!(" accepted ({:.0}%, {of})", share * 100.0)
    }

    /// The models that have calls in flight or pause, in short.
    fn busy_models(&self) -> Option<String> {
        let busy = self.limits.iter().filter(|limit| limit.in_flight > 0 || limit.cooling_ms.is_some());
        match busy.collect::<Vec<_>>()[..] {
            [] => None,
            [LimitReport { name, in_flight, limit, cooling_ms, .. }] => Some(match cooling_ms {
                Some(rest) => format!("{name} {in_flight}/{limit} paused {} s", rest.div_ceil(1000)),
                None => format!("{name} {in_flight}/{limit}"),
            }),
            ref several => {
                let in_flight: u32 = several.iter().map(|limit| limit.in_flight).sum();
                let limits: u32 = several.iter().map(|limit| limit.limit).sum();
                let paused = match several.iter().filter(|limit| limit.cooling_ms.is_some()).count() {
                    0 => String::new(),
                    paused => format!(" ({paused} paused)"),
                };
                Some(format!("{} models {in_flight}/{limits}{paused}", several.len()))
            }
        }
    }

    /// The progress of the build, in at most `height` lines for a terminal.
    pub fn lines(&self, height: usize) -> Vec<String> {
        let snapshot = &self.latest;
        let (done, rows) = (self.rows_done(), snapshot.rows);
        let full = (done as f64 / rows.max(1) as f64 * BAR as f64) as usize;
        let bar = format!("[{}{}]", "=".repeat(full.min(BAR)), " ".repeat(BAR.saturating_sub(full)));
        let percent = done * 100 / rows.max(1);
        let mut lines = vec![
            format!("{bar} {percent}%  {}, {}", self.rows_text(), self.times()),
            format!(
                "  {} on disk, {} dropped",
                grouped(snapshot.rows_written),
                grouped(snapshot.rows_dropped)
            ),
        ];
        let mut below: Vec<String> = self.limits.iter().map(limit_line).collect();
        below.extend(LiveSpend::of(&self.usage).line());
        if !snapshot.errors.is_empty() {
            let errors = snapshot.errors.iter().map(|(class, count)| format!("{class} {}", grouped(*count)));
            below.push(format!("  failed cells: {}", errors.collect::<Vec<_>>().join(", ")));
        }
        lines.extend(self.column_lines(height.saturating_sub(2 + below.len())));
        lines.extend(below);
        lines.truncate(height.max(1));
        lines.into_iter().map(|line| line.chars().take(LINE).collect()).collect()
    }

    /// One line per column. If there is no room for all, the columns that are behind are shown.
    fn column_lines(&self, room: usize) -> Vec<String> {
        let columns = &self.latest.columns;
        let mut shown: Vec<usize> = (0..columns.len()).collect();
        if columns.len() > room {
            shown.sort_by_key(|number| self.rows_done_in(&columns[*number]));
            shown.truncate(room.saturating_sub(1));
            shown.sort_unstable();
        }
        let label = |number: &usize| {
            let name = &columns[*number].name;
            let label = self.labels.iter().find(|(first, _)| first == name).map_or(name, |(_, label)| label);
            label.chars().take(LABEL).collect::<String>()
        };
        let width = shown.iter().map(|number| label(number).chars().count()).max().unwrap_or(0);
        let line = |number: &usize| {
            let (column, name) = (&columns[*number], label(number));
            let mut line = format!(
                "  {name:<width$}  {:>11} cells  {:>9}/s",
                grouped(settled(column)),
                per_second(self.rate(*number))
            );
            let counts =
                [(column.failed, "failed"), (column.retried, "retried"), (column.skipped, "skipped")];
            for (count, what) in counts.into_iter().filter(|(count, _)| *count > 0) {
                line.push_str(&format!("  {} {what}", grouped(count)));
            }
            line
        };
        let mut lines: Vec<String> = shown.iter().map(line).collect();
        if shown.len() < columns.len() && room > 0 {
            lines.push(format!("  … and {} columns that are further", columns.len() - shown.len()));
        }
        lines
    }

    fn times(&self) -> String {
        let elapsed = duration::format(self.elapsed());
        match self.left() {
            Some(left) => format!("{elapsed}, about {} left", brief(left)),
            None => elapsed,
        }
    }

    /// The counters as JSON.
    pub fn json(&self) -> Value {
        let snapshot = &self.latest;
        let column = |(number, column): (usize, &ColumnSnapshot)| {
            json!({
                "name": column.name, "finished": column.finished, "failed": column.failed, "skipped": column.skipped,
                "retried": column.retried, "cells_per_second": rounded(self.rate(number)),
            })
        };
        json!({
            "event": "progress",
            "stage": self.stage,
            "accept": snapshot.accept,
            "elapsed_seconds": rounded(self.elapsed().as_secs_f64()),
            "left_seconds": self.left().map(|left| rounded(left.as_secs_f64())),
            "rows": snapshot.rows,
            "rows_done": self.rows_done(),
            "rows_written": snapshot.rows_written,
            "rows_dropped": snapshot.rows_dropped,
            "row_groups_written": snapshot.groups_written,
            "columns": snapshot.columns.iter().enumerate().map(column).collect::<Vec<_>>(),
            "models": self.limits,
            "usage": self.usage,
            "cost": cost(&self.usage),
            "errors": snapshot.errors,
        })
    }
}

fn limit_line(limit: &LimitReport) -> String {
    let mut line = format!("  {}: {} of {} calls in flight", limit.name, limit.in_flight, limit.limit);
    if let Some(rest) = limit.cooling_ms {
        line.push_str(&format!(", paused by the server for {} s", rest.div_ceil(1000)));
    }
    if limit.refused > 0 {
        line.push_str(&format!(", {} refused (429)", grouped(limit.refused)));
    }
    line
}

/// Joins parts that have ranks. If they are too long, those of the highest rank are left out.
fn fitted(mut parts: Vec<(u8, String)>) -> String {
    loop {
        let line = parts.iter().map(|(_, part)| part.as_str()).collect::<Vec<_>>().join(", ");
        let worst = parts.iter().map(|(rank, _)| *rank).max().unwrap_or(0);
        if line.chars().count() <= LINE || worst == 0 {
            return line;
        }
        let at = parts.iter().rposition(|(rank, _)| *rank == worst).expect("a part has the rank");
        parts.remove(at);
    }
}

fn settled(column: &ColumnSnapshot) -> u64 {
    column.finished + column.skipped + column.failed
}

/// Thousandths are enough.
pub fn rounded(number: f64) -> f64 {
    (number * 1e3).round() / 1e3
}

fn per_second(rate: f64) -> String {
    if rate < 99.95 { format!("{rate:.1}") } else { grouped(rate.round() as u64) }
}

/// Whole seconds, minutes and hours.
fn brief(time: Duration) -> String {
    match time >= duration::LONG {
        true => duration::minutes(time),
        false => format!("{} s", time.as_secs_f64().ceil() as u64),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, VecDeque};
    use std::time::Duration;

    use anabranch_dataset::output::{LimitReport, ModelMetadata, StageView};
    use anabranch_dataset::{AcceptSnapshot, ColumnSnapshot, Snapshot};
    use expect_test::expect;

    use super::Pace;

    #[allow(clippy::disallowed_methods, reason = "an instant cannot be had in another way")]
    fn now() -> std::time::Instant {
        std::time::Instant::now()
    }

    fn column(name: &str, finished: u64, failed: u64, skipped: u64) -> ColumnSnapshot {
        ColumnSnapshot { name: name.to_owned(), finished, failed, skipped, retried: 0 }
    }

    /// A build that has run for ten seconds, in which it settled all that it did.
    fn pace() -> Pace {
        let began = now();
        let first = Snapshot {
            rows: 10_000,
            columns: ["category", "ticket", "verdict"].map(|name| column(name, 0, 0, 0)).to_vec(),
            ..Snapshot::default()
        };
        let latest = Snapshot {
            rows_written: 1_000,
            rows_dropped: 5,
            columns: vec![
                column("category", 3_000, 0, 0),
                column("ticket", 2_100, 5, 0),
                column("verdict", 1_500, 0, 500),
            ],
            errors: BTreeMap::from([("rate_limited".to_owned(), 2), ("timeout".to_owned(), 3)]),
            ..first
        };
        Pace {
            began,
            now: began + Duration::from_secs(10),
            samples: VecDeque::from([(began, first)]),
            latest,
            limits: vec![LimitReport {
                name: "openai/small".to_owned(),
                limit: 12,
                in_flight: 8,
                ..LimitReport::default()
            }],
            usage: BTreeMap::new(),
            before: Vec::new(),
            stage: None,
            labels: vec![("category".to_owned(), "category and 2 more samplers".to_owned())],
        }
    }

    #[test]
    fn a_terminal_shows_columns_models_and_errors() {
        expect![[r#"
            [====                    ] 20%  2,005 of 10,000 rows, 10 s, about 40 s left
              1,000 on disk, 5 dropped
              category and 2 more samplers        3,000 cells        300/s
              ticket                              2,105 cells        211/s  5 failed
              verdict                             2,000 cells        200/s  500 skipped
              openai/small: 8 of 12 calls in flight
              failed cells: rate_limited 2, timeout 3"#]]
        .assert_eq(&pace().lines(20).join("\n"));
    }

    /// The same one, continued, with a model whose server is busy.
    fn busy() -> Pace {
        let mut busy = pace();
        busy.latest.columns[1].retried = 1_412;
        let limit = &mut busy.limits[0];
        (limit.cooling_ms, limit.refused, limit.calls) = (Some(2_300), 1_317, 3_600);
        let used = ModelMetadata {
            model: "small".to_owned(),
            calls: 2_100,
            reused: 1_204,
            input_tokens: 1_480_000,
            output_tokens: 310_400,
            ..ModelMetadata::default()
        };
        busy.usage.insert("writer".to_owned(), used);
        busy
    }

    #[test]
    fn a_busy_server_and_the_spend_are_shown() {
        expect![[r#"
            [====                    ] 20%  2,005 of 10,000 rows, 10 s, about 40 s left
              1,000 on disk, 5 dropped
              category and 2 more samplers        3,000 cells        300/s
              ticket                              2,105 cells        211/s  5 failed  1,412 retried
              verdict                             2,000 cells        200/s  500 skipped
              openai/small: 8 of 12 calls in flight, paused by the server for 3 s, 1,317 refused (429)
              2,100 calls answered, 1,204 from the journal; tokens: 1,480,000 in, 310,400 out
              failed cells: rate_limited 2, timeout 3"#]]
        .assert_eq(&busy().lines(20).join("\n"));
        let line = busy().line();
        expect!["2,005 of 10,000 rows, openai/small 8/12 paused 3 s, 2,100 calls, 1,204 reused, 5 failed, 40 s left"].assert_eq(&line);
        let mut crowded = busy();
        crowded.limits.extend((0..5).map(|number| LimitReport {
            name: format!("some-provider/some-model-{number}"),
            in_flight: 7,
            limit: 9,
            ..LimitReport::default()
        }));
        expect![
            "2,005 of 10,000 rows, 6 models 43/57 (1 paused), 2,100 calls, 1,204 reused, 5 failed, 40 s left"
        ]
        .assert_eq(&crowded.line());
        assert!(line.chars().count() <= 100 && crowded.line().chars().count() <= 100);
    }

    #[test]
    fn a_low_terminal_shows_the_columns_that_are_behind() {
        expect![[r#"
            [====                    ] 20%  2,005 of 10,000 rows, 10 s, about 40 s left
              1,000 on disk, 5 dropped
              verdict        2,000 cells        200/s  500 skipped
              … and 2 columns that are further
              openai/small: 8 of 12 calls in flight
              failed cells: rate_limited 2, timeout 3"#]]
        .assert_eq(&pace().lines(6).join("\n"));
        assert_eq!(pace().lines(0).len(), 1);
    }

    #[test]
    fn one_line_is_enough_for_a_log() {
        expect!["2,005 of 10,000 rows, 711 cells/s, openai/small 8/12, 5 failed, 10 s, 40 s left"]
            .assert_eq(&pace().line());
    }

    #[test]
    fn events_have_all_counters() {
        expect![[r#"{"accept":null,"columns":[{"cells_per_second":300.0,"failed":0,"finished":3000,"name":"category","retried":0,"skipped":0},{"cells_per_second":210.5,"failed":5,"finished":2100,"name":"ticket","retried":0,"skipped":0},{"cells_per_second":200.0,"failed":0,"finished":1500,"name":"verdict","retried":0,"skipped":500}],"cost":null,"elapsed_seconds":10.0,"errors":{"rate_limited":2,"timeout":3},"event":"progress","left_seconds":39.975,"models":[{"calls":0,"cooling_ms":null,"in_flight":8,"limit":12,"name":"openai/small","refused":0,"requests_left":null,"tokens_left":null}],"row_groups_written":0,"rows":10000,"rows_done":2005,"rows_dropped":5,"rows_written":1000,"stage":null,"usage":{}}"#]]
        .assert_eq(&pace().json().to_string());
    }

    #[test]
    fn a_yield_and_a_stage_are_shown() {
        let mut pace = pace();
        pace.stage = Some(StageView { name: "questions".to_owned(), number: 1, count: 2 });
        let accept = AcceptSnapshot { candidates: 4_000, most: 100_000, accepted: 1_200, rejected: 2_700 };
        pace.latest.accept = Some(accept);
        expect!["stage 1 of 2 (questions): 1,200 of 10,000 rows accepted (31%, about 32,500 candidates), 74 s left"].assert_eq(&pace.line());
        pace.latest.accept = Some(AcceptSnapshot { most: 20_000, ..accept });
        expect!["stage 1 of 2 (questions): 1,200 of 10,000 rows accepted (31%, more than 20,000 candidates needed)"].assert_eq(&pace.rows_text());
    }
}
