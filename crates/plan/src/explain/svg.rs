//! An explanation as a picture: stages as boxes, from left to right by level, edges as curves between them.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::{Explanation, Kind, Node, Stage};

const WIDTH: usize = 300;
const GAP: usize = 70;
const ROW: usize = 16;
const SPACE: usize = 22;
const TOP: usize = 58;
const LEFT: usize = 20;
/// What fits into a box, at 12 pixels.
const CHARACTERS: usize = 38;

const STYLE: &str = "text{font:12px ui-monospace,Menlo,Consolas,monospace;fill:#1d2433}\
    .t{font-weight:600;font-size:15px}.m{fill:#5b6577}.r{fill:#0b5f63}\
    rect{stroke-width:1.2;rx:6}.wait{fill:#e3f4f4;stroke:#2a8b90}.compute{fill:#fdf1dc;stroke:#c98a1b}\
    .gate{fill:#eee8fb;stroke:#7a5cc4}path{fill:none;stroke:#8a94a6;stroke-width:1.3}\
    path.c{stroke:#c2402b;stroke-width:2.4}path.a{stroke-dasharray:5 4}";

/// Where a box is.
struct Place {
    x: usize,
    y: usize,
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
    push_edges(&mut svg, of, &places);
    for ((stage, place), lines) in of.stages.iter().zip(&places).zip(&lines) {
        let kind = stage.kind.word();
        let Place { x, y, height } = place;
        push(&mut svg, format_args!("<g><title>{}</title>", escaped(&stage.name)));
        push(
            &mut svg,
            format_args!(
                "<rect class=\"{kind}\" x=\"{x}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{height}\"/>"
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
        lines.push(("", cut(&format!("{id}: {}", crate::compiled::short(&node.op)))));
        lines.extend(node.reads.iter().map(|read| ("r", cut(&read.command))));
        if let Some(rows) = node.first_rows {
            lines.push(("m", format!("first {rows} rows")));
        }
    }
    lines
}

/// Boxes stacked by level, each level centred; and the size of it all.
fn places(of: &Explanation, lines: &[Vec<(&str, String)>]) -> (Vec<Place>, usize, usize) {
    let height = |stage: usize| lines[stage].len() * ROW + 12;
    let tall = |level: &Vec<usize>| level.iter().map(|stage| height(*stage) + SPACE).sum::<usize>();
    let tallest = of.levels.iter().map(tall).max().unwrap_or(0);
    let mut places: Vec<Place> = of.stages.iter().map(|_| Place { x: 0, y: 0, height: 0 }).collect();
    for (number, level) in of.levels.iter().enumerate() {
        let mut y = TOP + (tallest - tall(level)) / 2;
        for &stage in level {
            places[stage] = Place { x: LEFT + number * (WIDTH + GAP), y, height: height(stage) };
            y += height(stage) + SPACE;
        }
    }
    (places, 2 * LEFT + of.levels.len().max(1) * (WIDTH + GAP) - GAP, TOP + tallest + LEFT)
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
            let (from, to) = (&places[after.stage], &places[number]);
            let (x1, y1) = (from.x + WIDTH, from.y + from.height / 2);
            let (x2, y2) = (to.x, to.y + to.height / 2);
            let bend = GAP / 2;
            push(
                svg,
                format_args!(
                    "<path{class} d=\"M{x1} {y1}C{} {y1} {} {y2} {x2} {y2}\"/>",
                    x1 + bend,
                    x2 - bend
                ),
            );
        }
    }
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
