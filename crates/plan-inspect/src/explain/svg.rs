//! An explanation as a picture: stages as boxes, from left to right by level, edges as curves between them.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::{Explanation, Kind, Node, Stage};

const GAP: usize = 60;
const ROW: usize = 16;
const SPACE: usize = 26;
const TOP: usize = 88;
const LEFT: usize = 20;
/// The longest line of a box.
const CHARACTERS: usize = 46;
/// How wide a character is, in tenths of a pixel: a little more than in any of the fonts.
const CHARACTER: usize = 75;
/// How wide the head is, with what the colours mean.
const HEAD: usize = 560;

const STYLE: &str = "text{font:12px ui-monospace,Menlo,Consolas,monospace;fill:#1d2433}\
    .t{font-weight:600;font-size:15px}.m{fill:#5b6577}.r{fill:#0b5f63}\
    rect{stroke-width:1.2;rx:6}.wait{fill:#e3f4f4;stroke:#2a8b90}.compute{fill:#fdf1dc;stroke:#c98a1b}\
    .gate{fill:#eee8fb;stroke:#7a5cc4}path{fill:none;stroke:#8a94a6;stroke-width:1.3}\
    path.c{stroke:#c2402b;stroke-width:2.4}path.a{stroke-dasharray:5 4}.l rect{rx:2}";

/// What the boxes and lines mean.
const LEGEND: [(&str, &str); 5] = [
    ("<rect class=\"wait\" width=\"14\" height=\"10\"/>", "waits"),
    ("<rect class=\"compute\" width=\"14\" height=\"10\"/>", "computes"),
    ("<rect class=\"gate\" width=\"14\" height=\"10\"/>", "decides"),
    ("<path class=\"c\" d=\"M0 5H20\"/>", "longest way"),
    ("<path class=\"a\" d=\"M0 5H20\"/>", "only if chosen"),
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
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\"><style>{STYLE}</style>\
         <rect width=\"{width}\" height=\"{height}\" style=\"fill:#fff;stroke:none;rx:0\"/>"
    );
    let head = format!("at most {} trips, {} one after the other", of.trips, of.critical_trips);
    push_text(&mut svg, "t", LEFT, 26, &format!("plan {}", of.plan));
    push_text(&mut svg, "m", LEFT, 44, &head);
    push_legend(&mut svg);
    push_edges(&mut svg, of, &places);
    for ((stage, place), lines) in of.stages.iter().zip(&places).zip(&lines) {
        let kind = stage.kind.word();
        let Place { x, y, width, height } = place;
        push(&mut svg, format_args!("<g><title>{}</title>", title(stage, &nodes)));
        push(
            &mut svg,
            format_args!(
                "<rect class=\"{kind}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>"
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

/// What stands in a box: its nodes and what they read.
fn lines<'a>(stage: &Stage, nodes: &HashMap<&str, &Node>) -> Vec<(&'a str, String)> {
    if stage.kind == Kind::Gate {
        return vec![("", cut(&stage.name))];
    }
    let mut lines = Vec::new();
    for id in &stage.nodes {
        let node = nodes[id.as_str()];
        lines.push(("", cut(&format!("{id}: {}", anabranch_plan::inspect::short(&node.op)))));
        lines.extend(node.reads.iter().map(|read| ("r", cut(&read.command))));
        if let Some(rows) = node.first_rows {
            lines.push(("m", format!("first {rows} rows")));
        }
    }
    lines
}

/// What a pointer over a box brings up: its name, and what it reads in full.
fn title(stage: &Stage, nodes: &HashMap<&str, &Node>) -> String {
    let reads = stage.nodes.iter().flat_map(|id| &nodes[id.as_str()].reads);
    let lines = reads.map(|read| escaped(&format!("{}: {}", read.endpoint_name, read.command)));
    [escaped(&stage.name)].into_iter().chain(lines).collect::<Vec<_>>().join("\n")
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
        push(svg, format_args!("<g class=\"l\" transform=\"translate({x} 53)\">{sign}"));
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
