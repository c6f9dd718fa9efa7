//! An explanation as a picture: stages as boxes, from left to right by level, edges as curves between them.

use std::collections::HashMap;
use std::fmt::Write as _;

use anabranch_text::palette;

use super::{Explanation, Kind, Node, Stage};

const GAP: usize = 56;
const ROW: usize = 16;
const SPACE: usize = 26;
const TOP: usize = 92;
const LEFT: usize = 24;
/// The longest line of a box.
const CHARACTERS: usize = 46;
/// The width of a character, in tenths of a pixel: a little more than in any of the fonts.
const CHARACTER: usize = 73;
/// The width of the head with its legend.
const HEAD: usize = 620;

/// Blue waits, green computes, as in timelines.
const STYLE: &str = "text{font:12px var(--sans);fill:var(--ink)}\
    .paper{fill:var(--paper)}.t{font-weight:600;font-size:17px}.n{font-weight:600}.m{fill:var(--muted)}.r{fill:var(--blue)}.g{fill:var(--orange)}\
    .box{stroke-width:1.2;rx:6}.wait{fill:var(--blue-soft);stroke:var(--blue)}.compute{fill:var(--green-soft);stroke:var(--green)}\
    .gate{fill:var(--violet-soft);stroke:var(--violet)}.timer{fill:var(--amber-soft);stroke:var(--amber);stroke-dasharray:4 3}\
    path{fill:none;stroke:var(--control);stroke-width:1.3}path.c{stroke:var(--ink);stroke-width:2.2}\
    path.a{stroke-dasharray:5 4}.l .box{rx:2}";

/// The meaning of boxes and lines.
const LEGEND: [(&str, &str); 6] = [
    ("<rect class=\"box wait\" width=\"14\" height=\"10\"/>", "waits"),
    ("<rect class=\"box compute\" width=\"14\" height=\"10\"/>", "computes"),
    ("<rect class=\"box gate\" width=\"14\" height=\"10\"/>", "decides"),
    ("<rect class=\"box timer\" width=\"14\" height=\"10\"/>", "watches the time"),
    ("<path class=\"c\" d=\"M0 5H20\"/>", "longest path"),
    ("<path class=\"a\" d=\"M0 5H20\"/>", "only if needed"),
];

/// Where a box is.
struct Place {
    x: usize,
    y: usize,
    width: usize,
    height: usize,
}

pub(super) fn write(of: &Explanation) -> String {
    let nodes: HashMap<&str, &Node> = of.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
    let lines: Vec<Vec<(&str, String)>> = of.stages.iter().map(|stage| lines(stage, &nodes)).collect();
    let (places, width, height) = places(of, &lines);
    let style = palette::filled(STYLE);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\"><style>{style}</style>\
         <rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>"
    );
    let mut head = format!("at most {} trips, {} one after the other", of.trips, of.critical_trips);
    if let Some(deadline) = of.deadline_ms {
        head.push_str(&format!("; deadline {deadline} ms"));
    }
    push_text(&mut svg, "t", LEFT, 30, &format!("plan {}", of.plan));
    push_text(&mut svg, "m", LEFT, 50, &head);
    push_legend(&mut svg);
    push_edges(&mut svg, of, &places);
    for ((stage, place), lines) in of.stages.iter().zip(&places).zip(&lines) {
        let kind = stage.kind.word();
        let Place { x, y, width, height } = place;
        push(&mut svg, format_args!("<g><title>{}</title>", title(stage, &nodes)));
        push(
            &mut svg,
            format_args!(
                "<rect class=\"box {kind}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>"
            ),
        );
        for (at, (class, line)) in lines.iter().enumerate() {
            push_text(&mut svg, class, x + 10, y + (at + 1) * ROW + 2, line);
        }
        svg.push_str("</g>");
    }
    svg.push_str("</svg>\n");
    svg
}

/// The lines of a box: its nodes, their parameters, their reads, their timeouts and fallbacks.
fn lines<'a>(stage: &Stage, nodes: &HashMap<&str, &Node>) -> Vec<(&'a str, String)> {
    if matches!(stage.kind, Kind::Gate | Kind::Timer) {
        return vec![("n", cut(&stage.name))];
    }
    let mut lines = Vec::new();
    for id in &stage.nodes {
        let node = nodes[id.as_str()];
        lines.push(("n", cut(&format!("{id}: {}", anabranch_plan::inspect::short(&node.op)))));
        lines.extend(node.reads.iter().map(|read| ("r", cut(&read.command))));
        // A read says what its parameters say.
        let settings = node.settings.iter().filter(|_| node.reads.is_empty());
        lines.extend(settings.map(|(name, value)| ("m", cut(&format!("{name}: {value}")))));
        lines.extend(node.guard.iter().map(|(name, value)| ("g", cut(&format!("{name}: {value}")))));
        if let Some(rows) = node.first_rows {
            lines.push(("m", format!("first {rows} rows")));
        }
    }
    lines
}

/// The tooltip of a box: its name, and its reads and parameters in full.
fn title(stage: &Stage, nodes: &HashMap<&str, &Node>) -> String {
    let mut lines = vec![escaped(&stage.name)];
    for node in stage.nodes.iter().map(|id| nodes[id.as_str()]) {
        let reads = node.reads.iter().map(|read| format!("{}: {}", read.endpoint_name, read.command));
        let settings = node.settings.iter().chain(&node.guard);
        let settings = settings.map(|(name, value)| format!("{} {name}: {value}", node.id));
        lines.extend(reads.chain(settings).map(|line| escaped(&line)));
    }
    lines.join("\n")
}

/// Boxes stacked by level, each level centred and as wide as its longest line; and the size of it all.
fn places(of: &Explanation, lines: &[Vec<(&str, String)>]) -> (Vec<Place>, usize, usize) {
    let height = |stage: usize| lines[stage].len() * ROW + 12;
    let tall = |level: &Vec<usize>| level.iter().map(|stage| height(*stage) + SPACE).sum::<usize>();
    let tallest = of.levels.iter().map(tall).max().unwrap_or(0);
    let mut places: Vec<Place> =
        of.stages.iter().map(|_| Place { x: 0, y: 0, width: 0, height: 0 }).collect();
    let mut x = LEFT;
    for level in &of.levels {
        let texts = level.iter().flat_map(|stage| &lines[*stage]);
        let longest = texts.map(|(_, text)| text.chars().count()).max().unwrap_or(0);
        let width = longest * CHARACTER / 10 + 20;
        let mut y = TOP + (tallest - tall(level)) / 2;
        for &stage in level {
            places[stage] = Place { x, y, width, height: height(stage) };
            y += height(stage) + SPACE;
        }
        x += width + GAP;
    }
    (places, (x - GAP.min(x - LEFT)).max(HEAD) + LEFT, TOP + tallest + LEFT)
}

fn push_legend(svg: &mut String) {
    let mut x = LEFT;
    for (sign, text) in LEGEND {
        push(svg, format_args!("<g class=\"l\" transform=\"translate({x} 64)\">{sign}"));
        push_text(svg, "m", 26, 9, text);
        svg.push_str("</g>");
        x += 26 + text.len() * CHARACTER / 10 + 18;
    }
}

fn push_edges(svg: &mut String, of: &Explanation, places: &[Place]) {
    for (number, stage) in of.stages.iter().enumerate() {
        for after in &stage.after {
            let critical = of.critical_path.windows(2).any(|pair| pair == [after.stage, number]);
            let class = match (critical, after.needed) {
                (true, true) => " class=\"c\"",
                (true, false) => " class=\"c a\"",
                (false, true) => "",
                (false, false) => " class=\"a\"",
            };
            let between: Vec<&Place> = of
                .levels
                .get(of.stages[after.stage].level + 1..stage.level)
                .into_iter()
                .flatten()
                .flatten()
                .map(|stage| &places[*stage])
                .collect();
            let line = line(&places[after.stage], &places[number], &between);
            push(svg, format_args!("<path{class} d=\"{line}\"/>"));
        }
    }
}

/// From box to box; above or below those between them, whichever is nearer.
fn line(from: &Place, to: &Place, between: &[&Place]) -> String {
    let (x1, y1) = (from.x + from.width, from.y + from.height / 2);
    let (x2, y2) = (to.x, to.y + to.height / 2);
    let curve = |x1: usize, y1: usize, x2: usize, y2: usize| {
        format!("C{} {y1} {} {y2} {x2} {y2}", x1 + GAP / 2, x2 - GAP / 2)
    };
    let above = between.iter().map(|place| place.y).min();
    let below = between.iter().map(|place| place.y + place.height).max();
    let (Some(above), Some(below)) = (above, below) else {
        return format!("M{x1} {y1}{}", curve(x1, y1, x2, y2));
    };
    let (above, below) = (above - SPACE / 2, below + SPACE / 2);
    let lane = if (y1 + y2).abs_diff(2 * above) <= (y1 + y2).abs_diff(2 * below) { above } else { below };
    let (left, right) = (x1 + GAP, x2 - GAP);
    format!("M{x1} {y1}{}H{right}{}", curve(x1, y1, left, lane), curve(right, lane, x2, y2))
}

fn push_text(svg: &mut String, class: &str, x: usize, y: usize, text: &str) {
    push(svg, format_args!("<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{}</text>", escaped(text)));
}

fn push(svg: &mut String, piece: std::fmt::Arguments<'_>) {
    svg.write_fmt(piece).expect("a string takes all that is written");
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(CHARACTERS) {
        Some(_) => text.chars().take(CHARACTERS - 1).chain(['…']).collect(),
        None => text.to_owned(),
    }
}

/// Text as XML takes it: markup escaped, characters that no XML file may contain replaced.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' | '\r' => out.push(' '),
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            character => out.push(character),
        }
    }
    out
}
