//! The picture: a summary that is also the legend, an axis, the critical path, then the lanes.
//!
//! Positions along the axis are in percent of a nested `svg`, so that a page zooms by setting one width.

use std::fmt::{self, Display, Formatter, Write};
use std::time::Duration;

use anabranch_text::palette;

use super::lanes::Lanes;
use super::{Timeline, scale, summary};
use crate::graph::NodeId;

pub(super) const WIDTH: usize = 1270;
/// Room for the names of the lanes.
pub(super) const GUTTER: usize = 250;
pub(super) const PLOT_WIDTH: usize = 1000;
const AXIS: usize = 22;
/// Up to this number of nodes, each node has its own lane.
const MAX_ROWS: usize = 40;
/// More bars or lanes than this cannot be distinguished and are merged.
const MAX_BARS: usize = 2_000;
const MAX_LANES: usize = 48;

/// The head of the picture.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Head {
    /// Title, facts, where the time went, and the signs.
    Full,
    /// Title and facts; the page has the rest.
    Short,
}

pub(super) fn write(timeline: &Timeline, title: &str, name: &dyn Fn(NodeId) -> String, head: Head) -> String {
    let mut on_path = vec![false; timeline.tracks.len()];
    timeline.path.iter().for_each(|node| on_path[node.index()] = true);
    let mut canvas =
        Canvas { plot: String::new(), marks: String::new(), gutter: String::new(), timeline, name, on_path };
    canvas.write(title, head).expect("a String takes it all")
}

/// The legend as a foldable part of a page. It uses the colours of the picture.
pub(super) fn legend(timeline: &Timeline) -> String {
    let (text, end) = summary::legend(timeline, &Layout::of(timeline), 16).expect("a String takes it all");
    let height = end + 8;
    format!(
        "<details>\n<summary>Where the time went, and what the colours mean</summary>\n<div class=\"wide\">\
         <svg xmlns=\"http://www.w3.org/2000/svg\" class=\"timeline\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" height=\"{height}\">\n{text}</svg></div>\n</details>\n"
    )
}

/// The meaning of the lanes.
pub(super) enum Layout {
    /// One lane per node.
    Rows,
    /// One lane per slot, one bar per attempt.
    Slots(Lanes),
    /// Several slots per lane, several bars per block.
    Blocks(Lanes),
}

impl Layout {
    fn of(timeline: &Timeline) -> Layout {
        if timeline.tracks.len() <= MAX_ROWS {
            return Layout::Rows;
        }
        let lanes = Lanes::of_slots(timeline);
        if lanes.bars.len() > MAX_BARS || lanes.count > MAX_LANES {
            return Layout::Blocks(lanes);
        }
        Layout::Slots(lanes)
    }
}

/// Draws the plot. Vertical positions count from its upper edge.
pub(super) struct Canvas<'a> {
    pub(super) plot: String,
    /// Signs and lines that no bar may cover.
    pub(super) marks: String,
    pub(super) gutter: String,
    pub(super) timeline: &'a Timeline,
    pub(super) name: &'a dyn Fn(NodeId) -> String,
    pub(super) on_path: Vec<bool>,
}

impl Canvas<'_> {
    fn write(&mut self, title: &str, head: Head) -> Result<String, fmt::Error> {
        let layout = Layout::of(self.timeline);
        let height = self.draw(&layout)? + 4;
        let (head, top) = summary::write(self.timeline, title, &layout, head)?;
        self.deadline(height)?;
        let axis = self.axis(height)?;
        let full = top + height + 12;
        let mut out = String::with_capacity(self.plot.len() + self.gutter.len() + 16_384);
        write!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"timeline\" viewBox=\"0 0 {WIDTH} {full}\" \
             width=\"{WIDTH}\" height=\"{full}\" data-wall=\"{}\">\n<style>{}</style>\n{}\
             <rect class=\"paper\" width=\"{WIDTH}\" height=\"{full}\"/>\n{head}",
            scale::nanos(self.timeline.extent()),
            palette::filled(include_str!("picture.css")),
            include_str!("hatches.svg"),
        )?;
        write!(
            out,
            "<g transform=\"translate(0 {top})\">\n{}</g>\n\
             <svg class=\"plot\" x=\"{GUTTER}\" y=\"{top}\" width=\"{PLOT_WIDTH}\" height=\"{height}\">\
             <rect class=\"ground\" y=\"{AXIS}\" width=\"100%\" height=\"100%\"/>\
             <svg class=\"view\" width=\"100%\" height=\"{height}\">\n\
             <g class=\"axis\" data-height=\"{height}\">{axis}</g>\n{}{}</svg></svg>\n</svg>\n",
            self.gutter, self.plot, self.marks
        )?;
        Ok(out)
    }

    fn draw(&mut self, layout: &Layout) -> Result<usize, fmt::Error> {
        let y = self.path_lane(AXIS + 6)?;
        match layout {
            Layout::Rows => self.rows(y),
            Layout::Slots(lanes) => {
                let y = self.loads(y)?;
                self.slots(lanes, y)
            }
            Layout::Blocks(lanes) => {
                let y = self.loads(y)?;
                self.blocks(lanes, y)
            }
        }
    }

    fn axis(&self, height: usize) -> Result<String, fmt::Error> {
        let mut out = String::new();
        for (at, label) in scale::ticks(self.timeline.extent()) {
            let x = self.x(at);
            let anchor = match x.0 {
                0.0..1.0 => "start",
                97.0.. => "end",
                _ => "middle",
            };
            write!(
                out,
                "<line x1=\"{x}%\" x2=\"{x}%\" y1=\"{AXIS}\" y2=\"{height}\"/>\
                 <text x=\"{x}%\" y=\"14\" text-anchor=\"{anchor}\">{label}</text>"
            )?;
        }
        Ok(out)
    }

    /// Draws the deadline of the run, if it lies within the picture.
    fn deadline(&mut self, height: usize) -> fmt::Result {
        let Some(at) = self.timeline.shown_deadline() else { return Ok(()) };
        let x = self.x(at);
        let (anchor, shift) = if x.0 > 90.0 { ("end", -4) } else { ("start", 4) };
        writeln!(
            self.marks,
            "<line class=\"deadline\" x1=\"{x}%\" x2=\"{x}%\" y1=\"{AXIS}\" y2=\"{height}\"/>\
             <text class=\"late\" x=\"{x}%\" dx=\"{shift}\" y=\"{}\" text-anchor=\"{anchor}\">deadline {}</text>",
            height - 4,
            scale::words(at),
        )
    }

    /// Writes a name left of a lane.
    pub(super) fn name_lane(&mut self, y: usize, class: &str, text: impl Display) -> fmt::Result {
        writeln!(
            self.gutter,
            "<text class=\"{class}\" x=\"{}\" y=\"{y}\" text-anchor=\"end\">{text}</text>",
            GUTTER - 10
        )
    }

    pub(super) fn x(&self, at: Duration) -> Percent {
        Percent(at.as_secs_f64() / self.timeline.extent().max(Duration::from_nanos(1)).as_secs_f64() * 100.0)
    }

    /// The width of a span, at least the smallest width that is drawn.
    pub(super) fn width(&self, from: Duration, to: Duration) -> Percent {
        Percent(self.x(to - from).0.max(0.0001))
    }
}

/// A percentage of the width of the plot.
#[derive(Clone, Copy)]
pub(super) struct Percent(pub(super) f64);

impl Percent {
    pub(super) fn pixels(self) -> f64 {
        self.0 / 100.0 * PLOT_WIDTH as f64
    }
}

impl Display for Percent {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let digits = format!("{:.4}", self.0);
        f.write_str(digits.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// `1234567` as `1,234,567`.
pub(super) struct Thousands(pub(super) u64);

impl Display for Thousands {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                f.write_char(',')?;
            }
            f.write_char(digit)?;
        }
        Ok(())
    }
}
