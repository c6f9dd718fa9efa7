//! The picture of a large run: how busy the lanes were, block by block, and charts of how many nodes worked or waited.

use std::fmt::{self, Write};
use std::time::Duration;

use super::lanes::Lanes;
use super::svg::{Canvas, Thousands};
use super::{Category, Span, Timeline, scale};

const COLUMNS: usize = 250;
const MAX_BLOCK_ROWS: usize = 32;
const BLOCK_ROW: usize = 16;
const LOAD_HEIGHT: usize = 56;

const WORK: [Category; 3] = [Category::Cpu, Category::Io, Category::Queue];
const WAITS: [Category; 3] = [Category::Limit, Category::Retry, Category::Slot];

/// The mean number of spans that cover each column of the axis.
#[derive(Clone)]
struct Cover {
    column: f64,
    /// Per column: the sum over the spans that cover a part of it.
    partial: Vec<f64>,
    /// Per column: the number of spans that cover all of it, as a difference from the column before.
    change: Vec<f64>,
}

impl Cover {
    fn new(extent: Duration) -> Cover {
        let column = extent.max(Duration::from_nanos(1)).as_secs_f64() / COLUMNS as f64;
        Cover { column, partial: vec![0.0; COLUMNS], change: vec![0.0; COLUMNS + 1] }
    }

    fn add(&mut self, span: &Span) {
        let (from, to) = (span.from.as_secs_f64() / self.column, span.to.as_secs_f64() / self.column);
        let (first, last) = ((from as usize).min(COLUMNS - 1), (to as usize).min(COLUMNS - 1));
        if first == last {
            self.partial[first] += to - from;
            return;
        }
        self.partial[first] += (first + 1) as f64 - from;
        self.partial[last] += to - last as f64;
        self.change[first + 1] += 1.0;
        self.change[last] -= 1.0;
    }

    fn averages(&self) -> Vec<f64> {
        let mut whole = 0.0;
        let columns = self.partial.iter().zip(&self.change);
        columns
            .map(|(partial, change)| {
                whole += change;
                whole + partial
            })
            .collect()
    }
}

/// One row of blocks, which combines some lanes.
struct BlockRow {
    covers: [Cover; WORK.len()],
    started: Vec<u64>,
}

/// The colour of a row in one column.
#[derive(Clone, Copy, PartialEq)]
struct Look {
    category: Category,
    /// From 1 to 5; 0 is not drawn.
    level: u8,
}

impl Canvas<'_> {
    /// Draws two charts: how many nodes worked, and how many ready nodes waited.
    pub(super) fn loads(&mut self, y: usize) -> Result<usize, fmt::Error> {
        self.load("working", WORK, y)?;
        let y = y + LOAD_HEIGHT + 10;
        let has_waits = WAITS.into_iter().any(|wait| !self.timeline.all_nodes[wait].is_zero());
        if !has_waits {
            return Ok(y);
        }
        self.load("ready, waiting", WAITS, y)?;
        Ok(y + LOAD_HEIGHT + 10)
    }

    fn load(&mut self, label: &str, categories: [Category; 3], y: usize) -> fmt::Result {
        let columns = categories.map(|category| {
            let mut cover = Cover::new(self.timeline.extent());
            let spans = self.timeline.spans.iter().filter(|span| span.category == category);
            spans.for_each(|span| cover.add(span));
            cover.averages()
        });
        let sum = |column: usize| columns.iter().map(|counts| counts[column]).sum::<f64>();
        let most = (0..COLUMNS).map(sum).fold(0.0, f64::max);
        self.name_lane(y + 14, "", label)?;
        self.name_lane(y + 30, "muted", format_args!("up to about {}", Thousands(most.round() as u64)))?;
        writeln!(
            self.plot,
            "<svg y=\"{y}\" width=\"100%\" height=\"{LOAD_HEIGHT}\" viewBox=\"0 0 {COLUMNS} 100\" \
             preserveAspectRatio=\"none\" shape-rendering=\"crispEdges\">"
        )?;
        let mut base = vec![0.0; COLUMNS];
        for (category, counts) in categories.into_iter().zip(&columns) {
            let top: Vec<f64> =
                base.iter().zip(counts).map(|(base, count)| base + count / most.max(1e-9)).collect();
            if top != base {
                writeln!(self.plot, "<path class=\"{} s\" d=\"{}\"/>", category.key(), band(&base, &top))?;
            }
            base = top;
        }
        writeln!(self.plot, "</svg>")
    }

    /// Draws the lanes, several per row. Columns of the same colour form a block.
    pub(super) fn blocks(&mut self, lanes: &Lanes, y: usize) -> Result<usize, fmt::Error> {
        let row_count = lanes.count.min(MAX_BLOCK_ROWS);
        let rows = block_rows(self.timeline, lanes, row_count);
        let height = row_count * BLOCK_ROW;
        writeln!(
            self.plot,
            "<svg y=\"{y}\" width=\"100%\" height=\"{height}\" viewBox=\"0 0 {COLUMNS} {height}\" \
             preserveAspectRatio=\"none\" shape-rendering=\"crispEdges\">"
        )?;
        for (at, row) in rows.iter().enumerate() {
            let (first, end) = (at * lanes.count / row_count, (at + 1) * lanes.count / row_count);
            let name = match end - first {
                1 => format!("slot {end}"),
                _ => format!("slots {}–{}", Thousands(first as u64 + 1), Thousands(end as u64)),
            };
            self.name_lane(y + at * BLOCK_ROW + 11, "muted", &name)?;
            writeln!(self.plot, "<g transform=\"translate(0 {})\">", at * BLOCK_ROW + 1)?;
            self.block_row(row, &name, end - first)?;
            writeln!(self.plot, "</g>")?;
        }
        writeln!(self.plot, "</svg>")?;
        Ok(y + height)
    }

    fn block_row(&mut self, row: &BlockRow, name: &str, lane_count: usize) -> fmt::Result {
        let averages = row.covers.each_ref().map(Cover::averages);
        let busy =
            |column: usize| averages.iter().map(|counts| counts[column]).sum::<f64>() / lane_count as f64;
        let looks: Vec<Look> = (0..COLUMNS)
            .map(|column| {
                let most =
                    (0..WORK.len()).max_by(|a, b| averages[*a][column].total_cmp(&averages[*b][column]));
                let level = (busy(column).min(1.0) * 5.0).ceil() as u8;
                // A node that took no time is still shown.
                let level = if row.started[column] > 0 { level.max(1) } else { level };
                Look { category: WORK[most.unwrap_or(0)], level }
            })
            .collect();
        let mut from = 0;
        while from < COLUMNS {
            let count = looks[from..].iter().take_while(|look| **look == looks[from]).count();
            if looks[from].level > 0 {
                let columns = from..from + count;
                let started = row.started[columns.clone()].iter().sum();
                let share = columns.clone().map(busy).sum::<f64>() / count as f64;
                self.block(columns, looks[from], &tip(name, started, share, looks[from].category))?;
            }
            from += count;
        }
        Ok(())
    }

    fn block(&mut self, columns: std::ops::Range<usize>, look: Look, tip: &str) -> fmt::Result {
        let time =
            |column: usize| scale::words(self.timeline.extent().mul_f64(column as f64 / COLUMNS as f64));
        writeln!(
            self.plot,
            "<rect class=\"{} d{}\" x=\"{}\" width=\"{}\" height=\"{}\"><title>{} to {}\n{tip}</title></rect>",
            look.category.key(),
            look.level,
            columns.start,
            columns.len(),
            BLOCK_ROW - 2,
            time(columns.start),
            time(columns.end),
        )
    }
}

fn block_rows(timeline: &Timeline, lanes: &Lanes, row_count: usize) -> Vec<BlockRow> {
    let new = || BlockRow {
        covers: std::array::from_fn(|_| Cover::new(timeline.extent())),
        started: vec![0; COLUMNS],
    };
    let mut rows: Vec<BlockRow> = (0..row_count).map(|_| new()).collect();
    for bar in &lanes.bars {
        // The row whose lanes `first..end` (see `blocks`) include the lane of this bar.
        let row = &mut rows[((bar.lane + 1) * row_count - 1) / lanes.count];
        let column = (bar.from.as_secs_f64() / row.covers[0].column) as usize;
        row.started[column.min(COLUMNS - 1)] += 1;
        for span in bar.spans(timeline) {
            let at = WORK.iter().position(|category| *category == span.category);
            row.covers[at.expect("bars are made of work")].add(span);
        }
    }
    rows
}

fn tip(name: &str, started: u64, share: f64, most: Category) -> String {
    let nodes = if started == 1 { "node" } else { "nodes" };
    format!(
        "{name}: {:.0}% busy, mostly {}, {} {nodes} started",
        share * 100.0,
        most.label(),
        Thousands(started)
    )
}

/// The area between two step lines with values between 0 and 1.
fn band(base: &[f64], top: &[f64]) -> String {
    let height = |share: f64| 100.0 - share * 100.0;
    let up = top.iter().enumerate().map(|(at, share)| format!("V{:.2}H{}", height(*share), at + 1));
    let down = base.iter().enumerate().rev().map(|(at, share)| format!("V{:.2}H{at}", height(*share)));
    format!("M0 100{}Z", up.chain(down).collect::<String>())
}
