//! The head of the picture: the run, how it ended, and a table of where the time went, which is also the legend.

use std::fmt::{self, Write};
use std::time::Duration;

use super::escape::{Markup, shorten};
use super::svg::{Head, Layout, Thousands, WIDTH};
use super::{Category, NodeOutcome, Timeline, scale};
use crate::event::RunEnding;

const LEFT: usize = 24;
const LINE: usize = 18;

/// The head and its height.
pub(super) fn write(
    timeline: &Timeline,
    title: &str,
    layout: &Layout,
    head: Head,
) -> Result<(String, usize), fmt::Error> {
    let mut out = String::new();
    let mut y = 32;
    writeln!(out, "<text class=\"title\" x=\"{LEFT}\" y=\"{y}\">{}</text>", Markup(&shorten(title, 80)))?;
    y += 20;
    writeln!(out, "<text class=\"muted\" x=\"{LEFT}\" y=\"{y}\">{}</text>", facts(timeline))?;
    if timeline.lost > 0 {
        y += LINE;
        let lost = Thousands(timeline.lost);
        let note = "events were lost: some times are missing, others may be too long";
        writeln!(out, "<text class=\"warn\" x=\"{LEFT}\" y=\"{y}\">{lost} {note}</text>")?;
    }
    if head == Head::Short {
        return Ok((out, y + 16));
    }
    let (legend, end) = legend(timeline, layout, y + 28)?;
    out.push_str(&legend);
    Ok((out, end + 20))
}

/// A legend of the time spent and of the signs. Also returns the lowest line.
pub(super) fn legend(
    timeline: &Timeline,
    layout: &Layout,
    top: usize,
) -> Result<(String, usize), fmt::Error> {
    let mut out = String::new();
    let end = table(&mut out, timeline, top)?;
    let end = end.max(signs(&mut out, timeline, layout, top)?);
    Ok((out, end))
}

/// `10 nodes, 8 finished, 2 failed; 63 ms; complete`.
pub(super) fn facts(timeline: &Timeline) -> String {
    let count = |wanted: fn(NodeOutcome) -> bool| {
        timeline.tracks.iter().filter(|track| wanted(track.outcome)).count() as u64
    };
    let counts = [
        (count(|outcome| outcome == NodeOutcome::Finished), "finished"),
        (count(|outcome| matches!(outcome, NodeOutcome::FellBack(_))), "fell back"),
        (count(|outcome| matches!(outcome, NodeOutcome::Failed(_))), "failed"),
        (count(|outcome| matches!(outcome, NodeOutcome::Dropped(_))), "dropped"),
        (count(|outcome| outcome == NodeOutcome::Open), "not ended"),
        (count(|outcome| outcome == NodeOutcome::NotStarted), "not started"),
    ];
    let counts: Vec<String> = counts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{} {what}", Thousands(count)))
        .collect();
    let ending = match timeline.ending {
        Some(RunEnding::Complete) => "complete",
        Some(RunEnding::Failed) => "stopped: a node failed",
        Some(RunEnding::Deadline) => "stopped: the deadline passed",
        Some(RunEnding::Cut) => "stopped: the engine shut down",
        Some(RunEnding::Drained) => "stopped: it was drained",
        Some(RunEnding::Dropped) => "stopped: its future was dropped",
        None => "not ended",
    };
    format!(
        "{} · {} nodes: {} · {ending}",
        scale::words(timeline.wall),
        Thousands(timeline.tracks.len() as u64),
        if counts.is_empty() { "none".to_owned() } else { counts.join(", ") },
    )
}

fn table(out: &mut String, timeline: &Timeline, top: usize) -> Result<usize, fmt::Error> {
    const ON_PATH: usize = 330;
    const SHARE: usize = 390;
    const ALL: usize = 490;
    writeln!(
        out,
        "<text class=\"head\" x=\"{LEFT}\" y=\"{top}\">Where the time went</text>\
         <text class=\"muted num\" x=\"{SHARE}\" y=\"{top}\">on the critical path</text>\
         <text class=\"muted num\" x=\"{ALL}\" y=\"{top}\">all nodes</text>\
         <line class=\"rule\" x1=\"{LEFT}\" x2=\"{ALL}\" y1=\"{0}\" y2=\"{0}\"/>",
        top + 6
    )?;
    let mut y = top + 6;
    let mut line = |swatch: &str, label: &str, on_path, all_nodes: &str| {
        y += LINE;
        let share = share(timeline, on_path);
        writeln!(
            out,
            "{swatch}<text x=\"{0}\" y=\"{y}\">{label}</text>\
             <text class=\"num\" x=\"{ON_PATH}\" y=\"{y}\">{1}</text>\
             <text class=\"num\" x=\"{SHARE}\" y=\"{y}\">{share}</text>\
             <text class=\"num muted\" x=\"{ALL}\" y=\"{y}\">{all_nodes}</text>",
            LEFT + 24,
            shown(on_path),
        )
    };
    let mut row = top + 6;
    for category in Category::ALL {
        let (on_path, all_nodes) = (timeline.on_path[category], timeline.all_nodes[category]);
        if on_path.is_zero() && all_nodes.is_zero() {
            continue;
        }
        row += LINE;
        let key = category.key();
        let swatch =
            format!("<rect class=\"{key}\" x=\"{LEFT}\" y=\"{}\" width=\"14\" height=\"10\"/>", row - 9);
        line(&swatch, category.label(), on_path, &shown(all_nodes))?;
    }
    line("", "whole run", timeline.wall, "")?;
    Ok(row + LINE)
}

/// `time` in words, or a dash.
pub(super) fn shown(time: Duration) -> String {
    if time.is_zero() { "–".to_owned() } else { scale::words(time) }
}

/// `time` as a share of the run.
pub(super) fn share(timeline: &Timeline, time: Duration) -> String {
    match timeline.wall.is_zero() {
        _ if time.is_zero() => "–".to_owned(),
        true => "100%".to_owned(),
        false => format!("{:.0}%", time.as_secs_f64() / timeline.wall.as_secs_f64() * 100.0),
    }
}

/// Explains the signs that the picture uses; returns the lowest line.
fn signs(out: &mut String, timeline: &Timeline, layout: &Layout, top: usize) -> Result<usize, fmt::Error> {
    let x = WIDTH - 620;
    let has = |wanted: fn(NodeOutcome) -> bool| timeline.tracks.iter().any(|track| wanted(track.outcome));
    let is_single = !matches!(layout, Layout::Blocks(_));
    let letter = |class: &str, sign: &str| format!("<text class=\"{class}\" x=\"7\">{sign}</text>");
    let swatch = |class: &str| format!("<rect class=\"{class}\" y=\"-9\" width=\"14\" height=\"10\"/>");
    let rule = |class: &str| format!("<line class=\"{class}\" x1=\"7\" x2=\"7\" y1=\"-11\" y2=\"3\"/>");
    let shades = "<rect class=\"io d1\" y=\"-9\" width=\"7\" height=\"10\"/>\
                  <rect class=\"io\" x=\"7\" y=\"-9\" width=\"7\" height=\"10\"/>";
    let signs = [
        (is_single, swatch("edge"), "on the critical path"),
        (!is_single, shades.to_owned(), "darker: slots busier; colour: what most of the time went to"),
        (has(|outcome| outcome == NodeOutcome::Open), swatch("io open"), "not ended when the run ended"),
        (timeline.shown_deadline().is_some(), rule("deadline"), "the deadline"),
        (
            matches!(layout, Layout::Rows) && timeline.timeouts.iter().any(Option::is_some),
            rule("limit-mark"),
            "the timeout of a node",
        ),
        (is_single && has(|outcome| matches!(outcome, NodeOutcome::Failed(_))), letter("bad", "×"), "failed"),
        (
            is_single && has(|outcome| matches!(outcome, NodeOutcome::FellBack(_))),
            letter("soft", "!"),
            "failed, fallback used",
        ),
        (
            matches!(layout, Layout::Rows) && has(|outcome| matches!(outcome, NodeOutcome::Dropped(_))),
            letter("gone", "–"),
            "dropped",
        ),
    ];
    writeln!(out, "<text class=\"head\" x=\"{x}\" y=\"{top}\">Signs</text>")?;
    let mut y = top + 6;
    for (_, sign, meaning) in signs.into_iter().filter(|(is_there, ..)| *is_there) {
        y += LINE;
        writeln!(out, "<g transform=\"translate({x} {y})\">{sign}<text x=\"24\">{meaning}</text></g>")?;
    }
    Ok(y)
}
