//! The HTML page: the picture, buttons and a script to zoom it, and the critical path as a table.

use std::fmt::{self, Write};
use std::time::Duration;

use anabranch_text::palette;

use super::escape::{Markup, shorten};
use super::svg::Thousands;
use super::{Category, NodeOutcome, Timeline, scale, summary, svg};
use crate::graph::NodeId;

/// The table shows this many nodes of the critical path, the longest ones.
const MAX_LINES: usize = 50;

pub(super) fn write(timeline: &Timeline, title: &str, name: &dyn Fn(NodeId) -> String) -> String {
    let picture = svg::write(timeline, title, name, svg::Head::Short);
    let table = table(timeline, name).expect("a String takes it all");
    let troubles = troubles(timeline, name).expect("a String takes it all");
    let legend = svg::legend(timeline);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{}</title>\n<style>{}{}</style>\n</head>\n\
         <body>\n<p class=\"tools\"><span>Ctrl and wheel zoom, dragging moves</span><button id=\"out\" title=\"zoom out (-)\">−</button>\
         <button id=\"in\" title=\"zoom in (+)\">+</button><button id=\"all\" title=\"show all (0)\">all</button></p>\n\
         <div class=\"wide\">{picture}</div>\n{legend}{troubles}{table}<script>{}</script>\n</body>\n</html>\n",
        Markup(&shorten(title, 80)),
        palette::css(),
        include_str!("page.css"),
        include_str!("page.js"),
    )
}

/// The nodes that failed or were replaced by their fallbacks; empty if there are none.
fn troubles(timeline: &Timeline, name: &dyn Fn(NodeId) -> String) -> Result<String, fmt::Error> {
    let nodes = (0..timeline.tracks.len() as u32).map(NodeId);
    let mut troubled: Vec<NodeId> = nodes
        .filter(|node| {
            matches!(timeline.track(*node).outcome, NodeOutcome::Failed(_) | NodeOutcome::FellBack(_))
        })
        .collect();
    if troubled.is_empty() {
        return Ok(String::new());
    }
    troubled.sort_by_key(|node| timeline.track(*node).ended);
    let left_out = troubled.len().saturating_sub(MAX_LINES);
    let mut out = String::from(
        "<h2>Failures and fallbacks</h2>\n<table>\n<tr><th>#</th><th>node</th><th>started</th><th>ended</th>\
         <th>attempts</th><th>outcome</th></tr>\n",
    );
    let shown = |time: Option<Duration>| time.map_or_else(|| "–".to_owned(), scale::words);
    for (at, node) in troubled.iter().take(MAX_LINES).enumerate() {
        let track = timeline.track(*node);
        writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            at + 1,
            Markup(&shorten(&name(*node), 120)),
            shown(track.started),
            shown(track.ended),
            track.attempts,
            Markup(&track.outcome.words(name)),
        )?;
    }
    out.push_str("</table>\n");
    if left_out > 0 {
        writeln!(out, "<p>{} more are not shown</p>", Thousands(left_out as u64))?;
    }
    Ok(out)
}

fn table(timeline: &Timeline, name: &dyn Fn(NodeId) -> String) -> Result<String, fmt::Error> {
    let mut out = String::new();
    let mut lines: Vec<(usize, Line)> =
        timeline.path.iter().map(|node| Line::of(timeline, *node)).enumerate().collect();
    lines.sort_by_key(|(at, line)| (std::cmp::Reverse(line.waited + line.queued + line.worked), *at));
    let left_out = lines.split_off(lines.len().min(MAX_LINES));
    lines.sort_by_key(|(at, _)| *at);
    write!(
        out,
        "<h2>Critical path</h2>\n<table>\n<tr><th>#</th><th>node</th><th>waited</th><th>queued</th><th>worked</th>\
         <th>share</th><th>attempts</th><th>outcome</th></tr>\n"
    )?;
    for (at, line) in &lines {
        let track = timeline.track(line.node);
        writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            Thousands(*at as u64 + 1),
            Markup(&shorten(&name(line.node), 120)),
            summary::shown(line.waited),
            summary::shown(line.queued),
            summary::shown(line.worked),
            summary::share(timeline, line.waited + line.queued + line.worked),
            track.attempts,
            Markup(&track.outcome.words(name)),
        )?;
    }
    out.push_str("</table>\n");
    if !left_out.is_empty() {
        let time: Duration = left_out.iter().map(|(_, line)| line.waited + line.queued + line.worked).sum();
        let count = Thousands(left_out.len() as u64);
        writeln!(
            out,
            "<p>{count} shorter nodes are not shown; together they took {}</p>",
            scale::words(time)
        )?;
    }
    Ok(out)
}

/// The part of one node in the critical path.
struct Line {
    node: NodeId,
    waited: Duration,
    queued: Duration,
    worked: Duration,
}

impl Line {
    fn of(timeline: &Timeline, node: NodeId) -> Line {
        let mut line = Line { node, waited: Duration::ZERO, queued: Duration::ZERO, worked: Duration::ZERO };
        for span in timeline.spans_of(node) {
            *match span.category {
                Category::Io | Category::Cpu => &mut line.worked,
                Category::Queue => &mut line.queued,
                _ => &mut line.waited,
            } += span.to - span.from;
        }
        line
    }
}
