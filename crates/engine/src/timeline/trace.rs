//! The trace, in the event format of `chrome://tracing` and Perfetto.
//!
//! Lane 0 shows the critical path, with the categories of each node below it. The other lanes are the slots. Arrows
//! follow the path. Times are in microseconds with three decimals.

use std::fmt::{self, Display, Formatter, Write};
use std::time::Duration;

use super::escape::JsonString;
use super::lanes::{Bar, Lanes};
use super::scale::nanos;
use super::{Category, Timeline};
use crate::graph::NodeId;

pub(super) fn write(timeline: &Timeline, name: &dyn Fn(NodeId) -> String) -> String {
    let mut trace = Trace { out: String::new(), timeline, name, on_path: vec![false; timeline.tracks.len()] };
    timeline.path.iter().for_each(|node| trace.on_path[node.index()] = true);
    trace.write().expect("a String takes it all");
    trace.out
}

struct Trace<'a> {
    out: String,
    timeline: &'a Timeline,
    name: &'a dyn Fn(NodeId) -> String,
    on_path: Vec<bool>,
}

/// Lane 0 is the critical path.
const FIRST_SLOT: usize = 1;

impl Trace<'_> {
    fn write(&mut self) -> fmt::Result {
        let Timeline { run, lost, wall, .. } = self.timeline;
        let lanes = Lanes::of_slots(self.timeline);
        write!(
            self.out,
            "{{\"displayTimeUnit\":\"ms\",\"otherData\":{{\"run\":{},\"wall_us\":{},\"lost_events\":{lost}}},\n\
             \"traceEvents\":[\n{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"args\":{{\"name\":\"run {}\"}}}}",
            run.0,
            Micros(*wall),
            run.0
        )?;
        self.name_lane(0, "critical path")?;
        for lane in 0..lanes.count {
            self.name_lane(lane + FIRST_SLOT, &format!("slot {}", lane + 1))?;
        }
        self.path()?;
        for bar in &lanes.bars {
            self.bar(bar)?;
        }
        self.arrows(&lanes)?;
        self.without_bar()?;
        self.out.write_str("\n]}\n")
    }

    fn name_lane(&mut self, lane: usize, name: &str) -> fmt::Result {
        write!(
            self.out,
            ",\n{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":{lane},\"args\":{{\"name\":{}}}}},\n\
             {{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":1,\"tid\":{lane},\"args\":{{\"sort_index\":{lane}}}}}",
            JsonString(name)
        )
    }

    fn path(&mut self) -> fmt::Result {
        let timeline = self.timeline;
        for node in &timeline.path {
            let spans = timeline.spans_of(*node);
            if let (Some(first), Some(last)) = (spans.first(), spans.last()) {
                self.slice(&(self.name)(*node), 0, first.from, last.to)?;
                self.args(*node)?;
            }
            for span in spans {
                self.slice(span.category.label(), 0, span.from, span.to)?;
                self.out.write_char('}')?;
            }
        }
        Ok(())
    }

    fn bar(&mut self, bar: &Bar) -> fmt::Result {
        let lane = bar.lane + FIRST_SLOT;
        self.slice(&(self.name)(bar.node), lane, bar.from, bar.to)?;
        if self.on_path[bar.node.index()] {
            self.out.write_str(",\"cname\":\"terrible\"")?;
        }
        self.args(bar.node)?;
        for span in bar.spans(self.timeline).iter().filter(|span| span.category == Category::Queue) {
            self.slice(Category::Queue.label(), lane, span.from, span.to)?;
            self.out.write_char('}')?;
        }
        Ok(())
    }

    /// Writes a complete event ("X") without its closing brace, so that fields can be added.
    fn slice(&mut self, name: &str, lane: usize, from: Duration, to: Duration) -> fmt::Result {
        write!(
            self.out,
            ",\n{{\"ph\":\"X\",\"name\":{},\"pid\":1,\"tid\":{lane},\"ts\":{},\"dur\":{}",
            JsonString(name),
            Micros(from),
            Micros(to - from)
        )
    }

    fn args(&mut self, node: NodeId) -> fmt::Result {
        let track = self.timeline.track(node);
        let outcome = track.outcome.words(self.name);
        write!(self.out, ",\"args\":{{\"node\":{},\"outcome\":{}", node.0, JsonString(&outcome))?;
        write!(self.out, ",\"attempts\":{}", track.attempts)?;
        if self.on_path[node.index()] {
            self.out.write_str(",\"critical\":true")?;
        }
        for (category, time) in track.spent.parts() {
            write!(self.out, ",\"{}_us\":{}", category.key(), Micros(time))?;
        }
        self.out.write_str("}}")
    }

    /// Draws an arrow from the last bar of each node of the path to the first bar of the next node.
    fn arrows(&mut self, lanes: &Lanes) -> fmt::Result {
        let mut ends: Vec<Option<(&Bar, &Bar)>> = vec![None; self.timeline.tracks.len()];
        for bar in lanes.bars.iter().filter(|bar| self.on_path[bar.node.index()]) {
            let (_, last) = ends[bar.node.index()].get_or_insert((bar, bar));
            *last = bar;
        }
        let drawn: Vec<(&Bar, &Bar)> =
            self.timeline.path.iter().filter_map(|node| ends[node.index()]).collect();
        for (id, pair) in drawn.windows(2).enumerate() {
            let (source, target) = (pair[0].1, pair[1].0);
            // An arrow belongs to the slice that covers its time. A slice does not cover its own end.
            let inside = source.from.max(source.to.saturating_sub(Duration::from_nanos(1)));
            self.arrow("\"s\"", id, source.lane, inside)?;
            self.arrow("\"f\",\"bp\":\"e\"", id, target.lane, target.from)?;
        }
        Ok(())
    }

    fn arrow(&mut self, phase: &str, id: usize, lane: usize, at: Duration) -> fmt::Result {
        write!(
            self.out,
            ",\n{{\"ph\":{phase},\"name\":\"critical path\",\"cat\":\"path\",\"id\":{id},\"pid\":1,\"tid\":{},\"ts\":{}}}",
            lane + FIRST_SLOT,
            Micros(at)
        )
    }

    /// Marks nodes that ended without a start, on the lane of the path.
    fn without_bar(&mut self) -> fmt::Result {
        let timeline = self.timeline;
        for (node, track) in (0..).map(NodeId).zip(&timeline.tracks) {
            if let (None, Some(ended)) = (track.started, track.ended) {
                write!(
                    self.out,
                    ",\n{{\"ph\":\"i\",\"s\":\"t\",\"name\":{},\"pid\":1,\"tid\":0,\"ts\":{}",
                    JsonString(&(self.name)(node)),
                    Micros(ended)
                )?;
                self.args(node)?;
            }
        }
        Ok(())
    }
}

/// A duration in microseconds, exact to the nanosecond.
struct Micros(Duration);

impl Display for Micros {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let nanos = nanos(self.0);
        write!(f, "{}.{:03}", nanos / 1_000, nanos % 1_000)
    }
}
