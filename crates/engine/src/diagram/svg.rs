//! A diagram as SVG.

use std::fmt::Write as _;

use anabranch_text::palette;

use super::layout::{CHARACTER, LEFT, Layout, Place, ROW};
use super::{Diagram, Edge, Look, Sign, Tone};
use crate::timeline::escape::{Markup, shorten};

/// The longest line of a box.
const CHARACTERS: usize = 46;

pub(super) fn write(diagram: &Diagram) -> String {
    let texts: Vec<Vec<String>> = diagram
        .nodes
        .iter()
        .map(|node| node.lines.iter().map(|line| shorten(&line.text, CHARACTERS)).collect())
        .collect();
    let layout = Layout::of(diagram, &texts, head_width(diagram));
    let (width, height) = (layout.width, layout.height);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"diagram\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\"><style>{}</style>\
         <rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>",
        palette::filled(include_str!("diagram.css")).replace('\n', "")
    );
    push_text(&mut svg, "t", LEFT, 30, &diagram.title);
    push_text(&mut svg, "m", LEFT, 50, &diagram.summary);
    push_legend(&mut svg, diagram);
    for (to, node) in diagram.nodes.iter().enumerate() {
        for edge in &node.after {
            let curve = layout.curve(&diagram.nodes, edge.from, to);
            push(&mut svg, format_args!("<path{} d=\"{curve}\"/>", class_of(*edge)));
        }
    }
    for ((node, place), texts) in diagram.nodes.iter().zip(&layout.places).zip(&texts) {
        let Place { x, y, width, height } = place;
        let tooltip =
            node.tooltip.lines().map(|line| Markup(line).to_string()).collect::<Vec<_>>().join("\n");
        push(&mut svg, format_args!("<g><title>{tooltip}</title><rect class=\"box {}\"", node.tone.class()));
        push(&mut svg, format_args!(" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>"));
        for (at, (line, text)) in node.lines.iter().zip(texts).enumerate() {
            push_text(&mut svg, line.look.class(), x + 10, y + (at + 1) * ROW + 2, text);
        }
        svg.push_str("</g>");
    }
    svg.push_str("</svg>\n");
    svg
}

fn class_of(edge: Edge) -> &'static str {
    match (edge.is_strong, edge.is_dashed) {
        (true, false) => " class=\"c\"",
        (true, true) => " class=\"c a\"",
        (false, false) => "",
        (false, true) => " class=\"a\"",
    }
}

/// The width of an entry of the legend.
fn entry_width(text: &str) -> usize {
    26 + text.len() * CHARACTER / 10 + 18
}

fn head_width(diagram: &Diagram) -> usize {
    let legend: usize = diagram.legend.iter().map(|(_, text)| entry_width(text)).sum();
    let summary = diagram.summary.chars().count() * CHARACTER / 10;
    let title = diagram.title.chars().count() * CHARACTER * 3 / 20;
    legend.max(summary).max(title)
}

fn push_legend(svg: &mut String, diagram: &Diagram) {
    let mut x = LEFT;
    for (sign, text) in &diagram.legend {
        push(svg, format_args!("<g class=\"l\" transform=\"translate({x} 64)\">"));
        match sign {
            Sign::Box(tone) => {
                let tone = tone.class();
                push(svg, format_args!("<rect class=\"box {tone}\" width=\"14\" height=\"10\"/>"));
            }
            Sign::StrongLine => svg.push_str("<path class=\"c\" d=\"M0 5H20\"/>"),
            Sign::DashedLine => svg.push_str("<path class=\"a\" d=\"M0 5H20\"/>"),
        }
        push_text(svg, "m", 26, 9, text);
        svg.push_str("</g>");
        x += entry_width(text);
    }
}

fn push_text(svg: &mut String, class: &str, x: usize, y: usize, text: &str) {
    push(svg, format_args!("<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{}</text>", Markup(text)));
}

fn push(svg: &mut String, piece: std::fmt::Arguments<'_>) {
    svg.write_fmt(piece).expect("a String takes it all");
}

impl Tone {
    fn class(self) -> &'static str {
        match self {
            Tone::Wait => "wait",
            Tone::Compute => "compute",
            Tone::Gate => "gate",
            Tone::Timer => "timer",
            Tone::Quiet => "quiet",
            Tone::Fault => "fault",
        }
    }
}

impl Look {
    fn class(self) -> &'static str {
        match self {
            Look::Strong => "n",
            Look::Muted => "m",
            Look::Read => "r",
            Look::Warn => "g",
        }
    }
}
