//! The course of a build: plots over time.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::Duration;

use anabranch_text::duration;

use super::escape::Html;
use super::plot::Ids;
use crate::number::{grouped, short};
use crate::report::{ProgressPoint, Section, Timeline};

/// Intervals of a rate over time: more are finer than a screen.
const BUCKETS: usize = 100;
const HEIGHT: u32 = 120;

/// A line of a chart.
struct Series<'a> {
    name: &'a str,
    class: &'static str,
    /// Times in milliseconds, with values.
    points: Vec<(u64, f64)>,
    /// The value stays until the next point.
    steps: bool,
}

/// The section on the course of a build; empty if it has no events.
pub(super) fn write(ids: &mut Ids, section: &Section) -> String {
    let timeline = &section.timeline;
    if timeline.end_ms == 0 || (timeline.groups.is_empty() && timeline.points.is_empty()) {
        return String::new();
    }
    let mut html = String::from("<h2>Course of the build</h2><div class=\"charts\">");
    html.push_str(&rows_written(ids, timeline));
    let calls = timeline.points.iter().map(|point| (point.at_ms, point.calls)).collect();
    let counts = [
        ("Rows per second", "rows/s", "rows", row_counts(&timeline.points)),
        ("Calls per second", "calls/s", "calls", calls),
    ];
    for (title, unit, class, counts) in counts {
        let points = rates(&counts, timeline.points.len());
        if points.iter().any(|(_, rate)| *rate > 0.0) {
            let series = [Series { name: unit, class, points, steps: true }];
            html.push_str(&chart(ids, title, unit, timeline, &series));
        }
    }
    for name in limit_names(&timeline.points) {
        let of = |value: fn(&crate::report::LimitPoint) -> u64| -> Vec<(u64, f64)> {
            let points = timeline.points.iter();
            let found = |point: &ProgressPoint| {
                let limit = point.limits.iter().find(|limit| limit.name == name)?;
                Some((point.at_ms, value(limit) as f64))
            };
            points.filter_map(found).collect()
        };
        let series = [
            Series { name: "in flight", class: "flight", points: of(|limit| limit.in_flight), steps: true },
            Series { name: "limit", class: "limit", points: of(|limit| limit.limit), steps: true },
        ];
        html.push_str(&chart(ids, &format!("Calls of {name}"), "", timeline, &series));
    }
    html.push_str("</div>");
    html
}

/// Limits that have a chart.
const MAX_LIMITS: usize = 12;

fn limit_names(points: &[ProgressPoint]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for limit in points.iter().flat_map(|point| &point.limits) {
        if !names.contains(&limit.name.as_str()) && names.len() < MAX_LIMITS {
            names.push(&limit.name);
        }
    }
    names
}

/// The counts of rows at the times when they changed: rows are written by row groups, and were made in between.
fn row_counts(points: &[ProgressPoint]) -> Vec<(u64, u64)> {
    let mut counts: Vec<(u64, u64)> = Vec::new();
    for point in points {
        if counts.last().is_none_or(|(_, rows)| *rows != point.rows) {
            counts.push((point.at_ms, point.rows));
        }
    }
    counts
}

/// The growth of a count per second, in intervals of the same length.
fn rates(counts: &[(u64, u64)], points: usize) -> Vec<(u64, f64)> {
    let buckets = BUCKETS.min(points).max(1);
    let end = counts.last().map_or(0, |(at, _)| *at);
    let width = (end as f64 / buckets as f64).max(1.0);
    let mut grown = vec![0.0; buckets];
    let mut before = (0, 0);
    for (at, now) in counts.iter().copied() {
        // The rows of a new stage are counted from 0.
        let growth = if now < before.1 { now } else { now - before.1 } as f64;
        // The growth between two points is spread over the time between them.
        let time = at.saturating_sub(before.0).max(1) as f64;
        let first = (before.0 as f64 / width) as usize;
        let last = ((at as f64 / width) as usize).min(buckets - 1);
        for (bucket, grown) in grown.iter_mut().enumerate().take(last + 1).skip(first.min(last)) {
            let from = (bucket as f64 * width).max(before.0 as f64);
            let to = ((bucket + 1) as f64 * width).min(at as f64);
            *grown += growth * ((to - from).max(0.0) / time);
        }
        before = (at.max(before.0), now);
    }
    let seconds = width / 1e3;
    let rate = |(bucket, grown): (usize, f64)| ((bucket as f64 * width) as u64, grown / seconds);
    let mut rates: Vec<(u64, f64)> = grown.into_iter().enumerate().map(rate).collect();
    if let Some((_, last)) = rates.last().copied() {
        rates.push((end, last));
    }
    rates
}

/// Rows on disk, with a tick per row group.
fn rows_written(ids: &mut Ids, timeline: &Timeline) -> String {
    if timeline.groups.is_empty() {
        return String::new();
    }
    let mut groups: Vec<_> = timeline.groups.iter().collect();
    groups.sort_by_key(|group| group.at_ms);
    // A group that was stopped half-way is written again.
    let mut latest: HashMap<(Option<&str>, u64), u64> = HashMap::new();
    let mut rows = 0;
    let mut points = vec![(0, 0.0)];
    for group in &groups {
        let before = latest.insert((group.stage.as_deref(), group.group), group.rows).unwrap_or(0);
        rows = rows + group.rows - before;
        points.push((group.at_ms, rows as f64));
    }
    points.push((timeline.end_ms, rows as f64));
    let series = [Series { name: "rows", class: "rows", points, steps: true }];
    chart(
        ids,
        &format!("Rows on disk, {} row groups", grouped(timeline.group_count())),
        "rows",
        timeline,
        &series,
    )
}

/// A chart over the time of the build.
fn chart(ids: &mut Ids, title: &str, unit: &str, timeline: &Timeline, series: &[Series<'_>]) -> String {
    let most = series.iter().flat_map(|line| &line.points).map(|(_, value)| *value).fold(0.0, f64::max);
    let top = if most > 0.0 { most } else { 1.0 };
    let end = timeline.end_ms.max(1) as f64;
    let legend =
        series.iter().map(|line| format!("<span class=\"key {}\">{}</span>", line.class, Html(line.name)));
    let legend = if series.len() > 1 { legend.collect() } else { String::new() };
    let description = format!("Over {}, at most {} {unit}.", words(timeline.end_ms), short(most));
    let mut html = format!(
        "<figure class=\"chart\"><figcaption>{}{legend}<span class=\"most\">at most {}{}{unit}</span></figcaption>",
        Html(title),
        short(most),
        if unit.is_empty() { "" } else { " " },
    );
    html.push_str(&ids.open("plot course", HEIGHT, title, &description));
    html.push_str("<svg width=\"100%\" height=\"100%\" viewBox=\"0 0 1000 100\" preserveAspectRatio=\"none\" aria-hidden=\"true\">");
    html.push_str("<path class=\"grid\" d=\"M0 25H1000M0 50H1000M0 75H1000\"/>");
    for start in timeline.starts.iter().skip(1) {
        write!(
            html,
            "<path class=\"start\" d=\"M{:.2} 0V100\"><title>continued</title></path>",
            *start as f64 / end * 1e3
        )
        .expect("a String takes it all");
    }
    for line in series {
        html.push_str(&path(line, end, top));
    }
    html.push_str("</svg>");
    html.push_str("</svg><div class=\"ends\">");
    for part in 0..=4 {
        write!(html, "<span>{}</span>", words(timeline.end_ms * part / 4)).expect("a String takes it all");
    }
    html.push_str("</div></figure>");
    html
}

fn path(line: &Series<'_>, end: f64, top: f64) -> String {
    let mut path = String::new();
    let mut last = None;
    for (at, value) in &line.points {
        let (x, y) = (*at as f64 / end * 1e3, 99.0 - value / top * 94.0);
        match last {
            None => write!(path, "M{x:.2} {y:.2}"),
            Some(_) if line.steps => write!(path, "H{x:.2}V{y:.2}"),
            Some(_) => write!(path, "L{x:.2} {y:.2}"),
        }
        .expect("a String takes it all");
        last = Some(x);
    }
    let Some(last) = last else { return String::new() };
    let first = line.points[0].0 as f64 / end * 1e3;
    format!(
        "<path class=\"area {0}\" d=\"{path}H{last:.2}V100H{first:.2}Z\"/><path class=\"line {0}\" d=\"{path}\"/>",
        line.class
    )
}

fn words(milliseconds: u64) -> String {
    duration::format(Duration::from_millis(milliseconds))
}

#[cfg(test)]
mod tests {
    use super::rates;

    #[test]
    fn rates_add_up_to_the_count() {
        let found = rates(&[(0, 0), (1_000, 10), (2_500, 10), (4_000, 40)], 4);
        assert_eq!(found.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [0, 1_000, 2_000, 3_000, 4_000]);
        let shown: Vec<f64> = found.iter().map(|(_, rate)| (rate * 10.0).round() / 10.0).collect();
        assert_eq!(shown, [10.0, 0.0, 10.0, 20.0, 20.0], "10 rows, then none, then 20 per second");
        let found = rates(&[(0, 0), (1_000, 10), (2_000, 4)], 2);
        assert_eq!(
            found.iter().map(|(_, rate)| *rate).collect::<Vec<_>>(),
            [10.0, 4.0, 4.0],
            "a second stage"
        );
    }
}
