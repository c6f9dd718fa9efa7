//! Bars for single nodes: the critical path, one lane per node, or one lane per slot.

use std::collections::HashSet;
use std::fmt::{self, Write};
use std::time::Duration;

use super::escape::{Markup, shorten};
use super::lanes::{Bar, Lanes};
use super::svg::{Canvas, Percent, Thousands};
use super::{Category, NodeOutcome, NodeTrack, Span, TimeSpent, scale};
use crate::graph::NodeId;

const ROW: usize = 22;
const PATH_HEIGHT: usize = 22;
/// This many nodes of the path, the longest, are drawn one by one; the others are merged.
const MAX_ON_PATH: usize = 500;
/// Nodes of the path that are narrower than this, in pixels, have no edge: it would hide them.
const MIN_EDGE: f64 = 8.0;
/// Spans that are narrower than this, in pixels, have no gap and no hatching: these would hide them.
const MIN_PATTERN: f64 = 3.0;
/// About the width of a letter in pixels.
const LETTER: f64 = 6.0;

/// The offset from the top of the lane and the height of its bars and waits.
struct Shape {
    work: (usize, usize),
    queue: (usize, usize),
    wait: (usize, usize),
}

const ROW_SHAPE: Shape = Shape { work: (4, 14), queue: (7, 8), wait: (9, 4) };
const SLOT_SHAPE: Shape = Shape { work: (2, 14), queue: (5, 8), wait: (17, 3) };
const PATH_SHAPE: Shape = Shape { work: (0, 22), queue: (0, 22), wait: (5, 12) };

impl Canvas<'_> {
    /// Draws the critical path, which fills one lane from end to end.
    pub(super) fn path_lane(&mut self, y: usize) -> Result<usize, fmt::Error> {
        let timeline = self.timeline;
        self.name_lane(y + 15, "head", "critical path")?;
        let mut by_time = timeline.path.clone();
        by_time.sort_by_key(|node| std::cmp::Reverse(self.time_on_path(*node)));
        by_time.truncate(MAX_ON_PATH);
        let single: HashSet<NodeId> = by_time.into_iter().collect();
        let mut rest = timeline.path.as_slice();
        while let Some(node) = rest.first() {
            let merged = rest.iter().take_while(|node| !single.contains(node)).count();
            if merged == 0 {
                self.path_node(*node, y)?;
                rest = &rest[1..];
            } else {
                self.path_block(&rest[..merged], y)?;
                rest = &rest[merged..];
            }
        }
        Ok(y + PATH_HEIGHT + 14)
    }

    fn time_on_path(&self, node: NodeId) -> Duration {
        self.timeline.spans_of(node).iter().map(|span| span.to - span.from).sum()
    }

    fn path_node(&mut self, node: NodeId, y: usize) -> fmt::Result {
        let spans = self.timeline.spans_of(node);
        let (Some(first), Some(last)) = (spans.first(), spans.last()) else { return Ok(()) };
        write!(self.plot, "<g>{}", self.tooltip(node))?;
        spans.iter().try_for_each(|span| self.span(span, y, &PATH_SHAPE))?;
        if self.width(first.from, last.to).pixels() >= MIN_EDGE {
            self.edge(first.from, last.to, y, PATH_HEIGHT)?;
        }
        if let Some(work) = spans.iter().rfind(|span| span.category.is_in_flight()) {
            self.label(node, work.from, work.to, y + 15)?;
        }
        writeln!(self.plot, "</g>")
    }

    fn path_block(&mut self, nodes: &[NodeId], y: usize) -> fmt::Result {
        let mut spent = TimeSpent::default();
        let spans = || nodes.iter().flat_map(|node| self.timeline.spans_of(*node));
        spans().for_each(|span| spent[span.category] += span.to - span.from);
        let (Some(first), Some(last)) = (spans().next(), spans().last()) else { return Ok(()) };
        let (most, _) =
            spent.parts().max_by_key(|part| part.1).unwrap_or((Category::Outside, Duration::ZERO));
        let (x, width) = (self.x(first.from), self.width(first.from, last.to));
        writeln!(
            self.plot,
            "<rect class=\"{} n\" x=\"{x}%\" y=\"{y}\" width=\"{width}%\" height=\"{PATH_HEIGHT}\">\
             <title>{} nodes in {}, mostly {}</title></rect>",
            most.key(),
            Thousands(nodes.len() as u64),
            scale::words(last.to - first.from),
            most.label(),
        )
    }

    /// Draws one lane per node, with the name of the node in front.
    pub(super) fn rows(&mut self, y: usize) -> Result<usize, fmt::Error> {
        let (lanes, nodes) = Lanes::of_nodes(self.timeline);
        let top_of = |lane: usize| y + lane * ROW;
        self.links(&nodes, top_of)?;
        for (lane, node) in nodes.iter().enumerate() {
            let (node, top) = (*node, top_of(lane));
            let name = (self.name)(node);
            let class = if self.timeline.spans_of(node).is_empty() { "muted" } else { "" };
            let full = Markup(&name);
            self.name_lane(
                top + 15,
                class,
                format_args!("{}<title>{full}</title>", Markup(&shorten(&name, 38))),
            )?;
            write!(self.plot, "<g>{}", self.tooltip(node))?;
            self.timeline.spans_of(node).iter().try_for_each(|span| self.span(span, top, &ROW_SHAPE))?;
            let is_on_path = self.on_path[node.index()];
            for bar in lanes.bars.iter().filter(|bar| bar.node == node && is_on_path) {
                self.edge(bar.from, bar.to, top + ROW_SHAPE.work.0, ROW_SHAPE.work.1)?;
            }
            writeln!(self.plot, "</g>")?;
            self.timeout(node, top)?;
            self.sign(node, top + 16, 8)?;
        }
        Ok(top_of(nodes.len()))
    }

    /// Draws a line from each node of the path to the next.
    fn links(&mut self, nodes: &[NodeId], top_of: impl Fn(usize) -> usize) -> fmt::Result {
        let lane_of = |node: &NodeId| nodes.iter().position(|other| other == node).unwrap_or(0);
        for pair in self.timeline.path.windows(2) {
            let at = self.timeline.track(pair[0]).ended.unwrap_or(self.timeline.wall);
            let (x, from, to) = (self.x(at), top_of(lane_of(&pair[0])) + 11, top_of(lane_of(&pair[1])) + 11);
            writeln!(self.plot, "<line class=\"link\" x1=\"{x}%\" x2=\"{x}%\" y1=\"{from}\" y2=\"{to}\"/>")?;
        }
        Ok(())
    }

    /// Draws one lane per slot. Names are inside the bars, waits are in front of them and below.
    pub(super) fn slots(&mut self, lanes: &Lanes, y: usize) -> Result<usize, fmt::Error> {
        for lane in 0..lanes.count {
            self.name_lane(y + lane * ROW + 13, "muted", format_args!("slot {}", lane + 1))?;
        }
        let mut free_since = vec![Duration::ZERO; lanes.count];
        for bar in &lanes.bars {
            let top = y + bar.lane * ROW;
            write!(self.plot, "<g>{}", self.tooltip(bar.node))?;
            for span in bar.waits(self.timeline).iter().chain(bar.spans(self.timeline)) {
                let mut span = *span;
                // While other nodes used this slot, the wait is not drawn. The chart above shows how many waited.
                if span.category == Category::Slot {
                    span.from = span.from.max(free_since[bar.lane]).min(span.to);
                }
                self.span(&span, top, &SLOT_SHAPE)?;
            }
            free_since[bar.lane] = bar.to;
            if self.on_path[bar.node.index()] {
                self.edge(bar.from, bar.to, top + SLOT_SHAPE.work.0, SLOT_SHAPE.work.1)?;
            }
            let work = bar.spans(self.timeline).last().map_or(bar.from, |span| span.from);
            self.label(bar.node, work, bar.to, top + 13)?;
            writeln!(self.plot, "</g>")?;
            self.slot_sign(bar, top + 14)?;
        }
        Ok(y + lanes.count * ROW)
    }

    fn span(&mut self, span: &Span, top: usize, shape: &Shape) -> fmt::Result {
        let (x, width) = (self.x(span.from), self.width(span.from, span.to));
        let (y, height) = match span.category {
            Category::Io | Category::Cpu => shape.work,
            Category::Queue => shape.queue,
            _ => shape.wait,
        };
        let is_open =
            self.timeline.track(span.node).outcome == NodeOutcome::Open && span.to == self.timeline.wall;
        let cut = match self.timeline.track(span.node) {
            NodeTrack { outcome: NodeOutcome::Failed(_), ended, .. } if *ended == Some(span.to) => " cut bad",
            NodeTrack { outcome: NodeOutcome::FellBack(_), ended, .. } if *ended == Some(span.to) => " cut",
            _ => "",
        };
        let class = match (span.category.is_in_flight(), width.pixels()) {
            (true, ..MIN_PATTERN) => " n",
            (true, _) => " b",
            (false, ..MIN_PATTERN) => " s",
            (false, _) => "",
        };
        write!(
            self.plot,
            "<rect class=\"{}{class}{}{}\" x=\"{x}%\" y=\"{}\" width=\"{width}%\" height=\"{height}\"/>",
            span.category.key(),
            if span.category.is_in_flight() { cut } else { "" },
            if is_open { " open" } else { "" },
            top + y,
        )
    }

    fn edge(&mut self, from: Duration, to: Duration, y: usize, height: usize) -> fmt::Result {
        let (x, width) = (self.x(from), self.width(from, to));
        write!(
            self.plot,
            "<rect class=\"edge\" x=\"{x}%\" y=\"{y}\" width=\"{width}%\" height=\"{height}\"/>"
        )
    }

    /// A name inside a bar, visible from the zoom at which it fits.
    fn label(&mut self, node: NodeId, from: Duration, to: Duration, y: usize) -> fmt::Result {
        let room = self.width(from, to).pixels();
        let name = shorten(&(self.name)(node), 40);
        let zoom = (name.chars().count() as f64 * LETTER + 10.0) / room;
        if zoom > 5_000.0 {
            return Ok(());
        }
        let hidden = if zoom > 1.0 { " visibility=\"hidden\"" } else { "" };
        let is_open = self.timeline.track(node).ended.is_none();
        let class = if is_open { "t pale" } else { "t" };
        let x = self.x(from);
        write!(
            self.plot,
            "<text class=\"{class}\" x=\"{x}%\" dx=\"5\" y=\"{y}\" data-zoom=\"{zoom:.1}\"{hidden}>{}</text>",
            Markup(&name)
        )
    }

    /// Draws where the timeout of a node passes, if that is within the picture.
    fn timeout(&mut self, node: NodeId, top: usize) -> fmt::Result {
        let at = self.timeline.times_out(node).filter(|at| *at <= self.timeline.extent());
        let Some(at) = at else { return Ok(()) };
        let (x, bottom) = (self.x(at), top + ROW - 2);
        writeln!(
            self.marks,
            "<line class=\"limit-mark\" x1=\"{x}%\" x2=\"{x}%\" y1=\"{}\" y2=\"{bottom}\">\
             <title>timeout at {}</title></line>",
            top + 2,
            scale::words(at),
        )
    }

    /// Draws a sign at the end of a node, `shift` pixels to the right, unless it finished.
    fn sign(&mut self, node: NodeId, y: usize, shift: i32) -> fmt::Result {
        let track = self.timeline.track(node);
        let (class, sign) = match track.outcome {
            NodeOutcome::Finished | NodeOutcome::Open | NodeOutcome::NotStarted => return Ok(()),
            NodeOutcome::FellBack(_) => ("soft", "!"),
            NodeOutcome::Failed(_) => ("bad", "×"),
            NodeOutcome::Dropped(_) => ("gone", "–"),
        };
        let Percent(at) = self.x(track.ended.unwrap_or(self.timeline.wall));
        // At the right edge there is no room after the bar.
        let shift = if at > 98.5 { -8 } else { shift };
        writeln!(
            self.marks,
            "<text class=\"{class}\" x=\"{}%\" dx=\"{shift}\" y=\"{y}\">{sign}</text>",
            Percent(at)
        )
    }

    fn slot_sign(&mut self, bar: &Bar, y: usize) -> fmt::Result {
        // Inside its bar: another one may begin where it ends.
        if self.timeline.track(bar.node).ended == Some(bar.to) { self.sign(bar.node, y, -6) } else { Ok(()) }
    }

    fn tooltip(&self, node: NodeId) -> String {
        let track = self.timeline.track(node);
        let name = (self.name)(node);
        let mut lines = vec![format!("{} ({node})", shorten(&name, 200))];
        lines.push(match (track.started, track.ended) {
            (Some(start), Some(end)) => {
                format!(
                    "{} to {}: {}",
                    scale::words(start),
                    scale::words(end),
                    track.outcome.words(self.name)
                )
            }
            (Some(start), None) => format!("from {}: not ended", scale::words(start)),
            (None, Some(end)) => format!("at {}: {}", scale::words(end), track.outcome.words(self.name)),
            (None, None) => track.outcome.words(self.name),
        });
        if track.attempts > 1 {
            lines.push(format!("{} attempts", track.attempts));
        }
        let parts = track.spent.parts();
        lines.extend(parts.map(|(category, time)| format!("{}: {}", category.label(), scale::words(time))));
        let lines: Vec<String> = lines.iter().map(|line| Markup(line).to_string()).collect();
        format!("<title>{}</title>", lines.join("\n"))
    }
}
