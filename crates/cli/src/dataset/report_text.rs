//! The report about a dataset as text.

use std::fmt::Write as _;
use std::time::Duration;

use anabranch_dataset_inspect::{
    BuildSpend, ColumnStats, Distribution, Measure, PlanComparison, Report, Sample, Section, grouped, money,
    percent, short,
};
use anabranch_text::{Plain, columns, count, duration};
use anabranch_value::Value;

use super::record::Records;
use crate::table::Table;

/// The number of rows that are shown.
const SAMPLES: usize = 2;
/// The number of frequent values that are shown.
const TOP: usize = 8;
/// The width of the longest bar, and of the names left of the bars.
const BAR: usize = 30;
const LABEL: usize = 24;

/// The report for people.
pub(super) fn text(report: &Report) -> String {
    let sections: Vec<String> = report.sections.iter().map(section).collect();
    sections.join("\n")
}

fn section(found: &Section) -> String {
    let mut text = head(found);
    for column in &found.columns {
        text.push('\n');
        column_lines(&mut text, column, 0);
    }
    let mut part = |title: &str, body: &str| {
        if !body.is_empty() {
            write!(text, "\n{title}\n{body}").expect("a String takes it all");
        }
    };
    part("from candidates to rows", &stages(found));
    part("errors", &errors(found));
    part("calls, tokens and cost", &spent(&found.spent, !found.metadata.spent.is_empty()));
    if let Some(planned) = &found.estimated {
        part("planned and actual", &estimated(planned, &found.spent));
    }
    part("course of the build", &course(found));
    part("sample rows", &samples(&found.samples));
    text
}

fn head(found: &Section) -> String {
    let metadata = &found.metadata;
    let mut text = format!(
        "{}: {}, {} of {} rows, {} dropped, seed {}",
        Plain(&found.title()),
        found.state_name(),
        grouped(found.rows),
        grouped(metadata.target_num_records),
        grouped(metadata.dropped_num_records),
        metadata.seed
    );
    if found.elapsed_ms() > 0 {
        let time = duration::format(Duration::from_millis(found.elapsed_ms()));
        write!(text, ", in {time}").expect("a String takes it all");
    }
    text.push('\n');
    text
}

fn column_lines(text: &mut String, column: &ColumnStats, indent: usize) {
    let space = " ".repeat(indent);
    let mut facts = vec![column.column_type.clone()];
    if let Some(distinct) = column.distinct {
        let about = if distinct.exact { "" } else { "≈" };
        facts.push(format!("{about}{} distinct", grouped(distinct.count)));
    }
    if column.nulls > 0 {
        facts.push(format!("{} null ({})", grouped(column.nulls), percent(column.nulls, column.cells)));
    }
    let facts = facts.join(", ");
    writeln!(text, "{space}{}  {}", Plain(&column.name), Plain(&facts)).expect("a String takes it all");
    if let Some(found) = column.distribution.as_ref().filter(|_| !column.is_categorical()) {
        writeln!(text, "{space}  {}", distribution(found, column.measure)).expect("a String takes it all");
    }
    let bars = bars(column);
    let most = bars.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1);
    for (label, count) in bars {
        let label = padded(&label, LABEL);
        let about = if column.top_error > 0 { "≥" } else { "" };
        let line = format!(
            "{space}  {label}  {:<BAR$}  {about}{} {}",
            bar(count, most),
            grouped(count),
            percent(count, column.filled())
        );
        writeln!(text, "{}", line.trim_end()).expect("a String takes it all");
    }
    for field in &column.fields {
        column_lines(text, field, indent + 2);
    }
}

/// A histogram in one line, with its numbers.
fn distribution(found: &Distribution, measure: Measure) -> String {
    let about = if found.exact { "" } else { "≈" };
    if found.min == found.max {
        return match measure {
            Measure::Characters => format!("all of {} characters", short(found.min)),
            Measure::Items => format!("all of {} items", short(found.min)),
            Measure::Value | Measure::None => format!("all {}", short(found.min)),
        };
    }
    let unit = match measure {
        Measure::Characters => " characters",
        Measure::Items => " items",
        Measure::Value | Measure::None => "",
    };
    format!(
        "{}  min {}, 5% {about}{}, median {about}{}, mean {}, 95% {about}{}, max {}{unit}",
        spark(&found.histogram.counts),
        short(found.min),
        short(found.p5),
        short(found.p50),
        short(found.mean),
        short(found.p95),
        short(found.max),
    )
}

/// A bar chart with one character per count. Only a count of zero is a space.
fn spark(counts: &[u64]) -> String {
    const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let height = |count: u64| match count {
        0 => ' ',
        count => HEIGHTS[((count as f64 / most as f64 * 8.0).ceil() as usize).clamp(1, 8) - 1],
    };
    counts.iter().map(|count| height(*count)).collect()
}

/// A bar with a resolution of an eighth of a character.
fn bar(count: u64, most: u64) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (count as f64 / most as f64 * (BAR * 8) as f64).round() as usize;
    let eighths = if count == 0 { 0 } else { eighths.max(1) };
    format!("{}{}", "█".repeat(eighths / 8), PARTS[eighths % 8])
}

/// The values of a column that are shown with bars.
fn bars(column: &ColumnStats) -> Vec<(String, u64)> {
    if let Some(trues) = column.trues {
        return vec![("true".to_owned(), trues), ("false".to_owned(), column.filled() - trues)];
    }
    if !column.is_categorical() {
        return Vec::new();
    }
    let label = |value: &Value| value.as_text().map_or_else(|| value.to_json(), str::to_owned);
    let mut shown: Vec<(String, u64)> =
        column.top.iter().take(TOP).map(|top| (label(&top.value), top.count)).collect();
    let counted: u64 = shown.iter().map(|(_, count)| count).sum();
    if column.top_error == 0 && counted < column.filled() {
        shown.push(("(all others)".to_owned(), column.filled() - counted));
    }
    shown
}

/// A text of exactly this width on the terminal: cut, or padded with spaces.
fn padded(text: &str, width: usize) -> String {
    let mut shown = Plain(text).to_string();
    if columns(&shown) > width {
        while columns(&shown) >= width {
            shown.pop();
        }
        shown.push('…');
    }
    let space = width.saturating_sub(columns(&shown));
    format!("{shown}{}", " ".repeat(space))
}

/// A table of the row counts of the stages.
fn stages(found: &Section) -> String {
    if !found.has_stages() {
        return String::new();
    }
    let mut table = Table::new(["stage", "generated", "failed", "not accepted", "surplus", "kept"]);
    for stage in &found.metadata.stages {
        let name = if stage.name.is_empty() { "rows" } else { &stage.name };
        let counts = [stage.candidates, stage.dropped, stage.rejected, stage.surplus, stage.rows];
        table.row([name.to_owned()].into_iter().chain(counts.map(|count| count.to_string())));
        for step in &stage.steps {
            let (before, after) = (step.before.to_string(), step.after.to_string());
            let none = String::new;
            table.row([format!("  then {}", step.step), before, none(), none(), none(), after]);
        }
    }
    table.text(2)
}

fn errors(found: &Section) -> String {
    if found.errors.groups.is_empty() {
        return String::new();
    }
    let mut table = Table::new(["column", "class", "cells", "rows dropped", "first message"]);
    for group in &found.errors.groups {
        let message = group.examples.first().map_or("", |example| &example.message);
        let (cells, dropped) = (group.cells.to_string(), group.dropped.to_string());
        table.row([group.column.as_str(), &group.class, &cells, &dropped, message]);
    }
    table.text(2)
}

fn spent(spent: &BuildSpend, by_column: bool) -> String {
    if spent.lines.is_empty() {
        return String::new();
    }
    let name = if by_column { "column" } else { "alias" };
    let mut table = Table::new([name, "model", "calls", "reused", "tokens in", "tokens out", "cost"]);
    for line in &spent.lines {
        let spend = &line.spend;
        let numbers = [spend.calls, spend.reused, spend.input_tokens, spend.output_tokens];
        let numbers = numbers.map(|number| number.to_string());
        let cost = spend.cost.map(money).unwrap_or_default();
        table.row([line.name.clone(), spend.model.clone()].into_iter().chain(numbers).chain([cost]));
    }
    let numbers = [spent.calls, spent.reused, spent.input_tokens, spent.output_tokens];
    let cost = spent.cost.map(money).unwrap_or_default();
    let numbers = numbers.map(|number| number.to_string());
    table.row(["all".to_owned(), String::new()].into_iter().chain(numbers).chain([cost]));
    table.text(2)
}

fn estimated(found: &PlanComparison, spent: &BuildSpend) -> String {
    let mut table =
        Table::new(["column", "calls planned", "made", "tokens planned", "used", "cost planned", "actual"]);
    let mut line = |name: &str, calls: [u64; 2], tokens: [u64; 2], costs: [Option<f64>; 2]| {
        let [[planned, made], [expected, used]] =
            [calls, tokens].map(|both| both.map(|count| count.to_string()));
        let [cost, actual] = costs.map(|cost| cost.map(money).unwrap_or_default());
        table.row([name.to_owned(), planned, made, expected, used, cost, actual]);
    };
    for column in found.columns.iter().filter(|_| found.is_from_start) {
        let actual = spent.lines.iter().find(|line| line.name == column.name);
        let actual = actual.map(|line| line.spend.clone()).unwrap_or_default();
        let tokens = [column.input_tokens + column.output_tokens, actual.input_tokens + actual.output_tokens];
        line(&column.name, [column.calls, actual.calls], tokens, [column.cost, actual.cost]);
    }
    let both = [&found.planned, &found.actual];
    let tokens = both.map(|totals| totals.input_tokens + totals.output_tokens);
    line("all", both.map(|totals| totals.calls), tokens, both.map(|totals| totals.cost));
    table.text(2)
}

fn course(found: &Section) -> String {
    let timeline = &found.timeline;
    if timeline.groups.is_empty() {
        return String::new();
    }
    let seconds = found.elapsed_ms() as f64 / 1e3;
    let runs = count(timeline.starts.len().max(1) as u64, "run");
    let mut text = format!("  {} in {runs}\n", count(timeline.group_count(), "row group"));
    if seconds > 0.0 {
        let (rows, calls) = (found.rows as f64 / seconds, found.spent.calls as f64 / seconds);
        writeln!(text, "  {} rows/s, {} calls/s on average", short(rows), short(calls))
            .expect("a String takes it all");
    }
    text
}

fn samples(samples: &[Sample]) -> String {
    let mut records = Records::for_stdout();
    for sample in samples.iter().take(SAMPLES) {
        if let Some(row) = sample.row.as_map() {
            records.named_row(sample.name.as_deref(), row);
        }
    }
    records.finish()
}
