//! Plots as inline SVG. Horizontal positions are in percent, so that a plot fits every width and its text keeps its size.

use std::fmt::Write as _;

use super::escape::Html;
use crate::column::{Distribution, Measure};
use crate::number::{grouped, percent, short};

/// Gives each plot names for its title and description.
#[derive(Default)]
pub(super) struct Ids {
    last: u32,
}

impl Ids {
    /// The start of a plot: its role, title and description.
    pub(super) fn open(&mut self, class: &str, height: u32, title: &str, description: &str) -> String {
        self.last += 1;
        let id = self.last;
        format!(
            "<svg class=\"{class}\" width=\"100%\" height=\"{height}\" role=\"img\" aria-labelledby=\"t{id} d{id}\">\
             <title id=\"t{id}\">{}</title><desc id=\"d{id}\">{}</desc>",
            Html(title),
            Html(description)
        )
    }
}

/// The height of the bars of a histogram, of the box below them, and of the labels.
const BARS: f64 = 84.0;
const BOX: u32 = 18;
const LABELS: u32 = 16;
/// Up to this number of bars, each has its value below it.
const LABELLED: usize = 12;

/// A histogram, with a box for the middle half of the numbers and a line for the middle nine tenths.
pub(super) fn histogram(ids: &mut Ids, name: &str, found: &Distribution, measure: Measure) -> String {
    let bins = &found.histogram;
    let (count, most) = (bins.counts.len(), bins.counts.iter().copied().max().unwrap_or(0).max(1));
    let unit = unit(measure);
    let about = if found.exact { "" } else { "about " };
    let title = format!("Distribution of {name}{unit}");
    let description = format!(
        "From {} to {}, mean {}, median {about}{}; the middle half is from {} to {}.",
        short(found.min),
        short(found.max),
        short(found.mean),
        short(found.p50),
        short(found.p25),
        short(found.p75)
    );
    let mut svg = ids.open("plot histogram", BARS as u32 + BOX + LABELS, &title, &description);
    let step = 100.0 / count as f64;
    let each_is_one = found.whole && bins.width == 1.0;
    for (at, counted) in bins.counts.iter().enumerate() {
        let from = bins.from + bins.width * at as f64;
        let to = from + bins.width - if found.whole { 1.0 } else { 0.0 };
        let range = if each_is_one { short(from) } else { format!("{} to {}", short(from), short(to)) };
        // A few must not look like none.
        let height = if *counted == 0 { 0.0 } else { (*counted as f64 / most as f64 * BARS).max(1.5) };
        let (x, width) = (step * at as f64 + step * 0.04, step * 0.92);
        write!(
            svg,
            "<g><title>{}: {about}{}</title><rect class=\"hover\" x=\"{x:.3}%\" y=\"0\" width=\"{width:.3}%\" height=\"{BARS}\"/>\
             <rect class=\"bar\" x=\"{x:.3}%\" y=\"{:.1}\" width=\"{width:.3}%\" height=\"{height:.1}\"/></g>",
            Html(&range),
            grouped(*counted),
            BARS - height,
        )
        .expect("a String takes it all");
        if each_is_one && count <= LABELLED {
            svg.push_str(&label(step * (at as f64 + 0.5), "middle", &short(from)));
        }
    }
    if !(each_is_one && count <= LABELLED) {
        svg.push_str(&label(0.0, "start", &short(found.min)));
        svg.push_str(&label(100.0, "end", &short(found.max)));
    }
    svg.push_str(&quantile_box(found));
    svg.push_str("</svg>");
    svg
}

fn label(x: f64, anchor: &str, text: &str) -> String {
    let y = BARS as u32 + BOX + LABELS - 4;
    format!("<text x=\"{x:.3}%\" y=\"{y}\" text-anchor=\"{anchor}\">{text}</text>")
}

/// The line from the 5th to the 95th percentile, the box of the middle half, and the median.
fn quantile_box(found: &Distribution) -> String {
    let bins = &found.histogram;
    let half = if found.whole { 0.5 } else { 0.0 };
    let place = |number: f64| {
        let bin = number / bins.width - bins.from / bins.width + half / bins.width;
        (bin / bins.counts.len() as f64 * 100.0).clamp(0.0, 100.0)
    };
    let [p5, p25, p50, p75, p95] = [found.p5, found.p25, found.p50, found.p75, found.p95].map(place);
    let y = BARS + f64::from(BOX) / 2.0;
    format!(
        "<g class=\"quantiles\"><title>5% {}, 25% {}, median {}, 75% {}, 95% {}</title>\
         <line x1=\"{p5:.3}%\" x2=\"{p95:.3}%\" y1=\"{y}\" y2=\"{y}\"/>\
         <rect x=\"{p25:.3}%\" width=\"{:.3}%\" y=\"{}\" height=\"8\" rx=\"2\"/>\
         <line class=\"median\" x1=\"{p50:.3}%\" x2=\"{p50:.3}%\" y1=\"{}\" y2=\"{}\"/></g>",
        short(found.p5),
        short(found.p25),
        short(found.p50),
        short(found.p75),
        short(found.p95),
        (p75 - p25).max(0.4),
        y - 4.0,
        y - 6.0,
        y + 6.0,
    )
}

/// The unit of a distribution, as a part of a title.
pub(super) fn unit(measure: Measure) -> &'static str {
    match measure {
        Measure::Characters => " (characters)",
        Measure::Items => " (items)",
        Measure::Value | Measure::None => "",
    }
}

/// A bar of [`bars`].
pub(super) struct Bar {
    pub(super) label: String,
    pub(super) count: u64,
    pub(super) class: &'static str,
}

/// Counts as horizontal bars, in a table that can be read without seeing them.
pub(super) fn bars(caption: &str, bars: &[Bar], whole: u64, about: bool) -> String {
    let most = bars.iter().map(|bar| bar.count).max().unwrap_or(0).max(1);
    let mut table = format!("<table class=\"bars\"><caption class=\"hidden\">{}</caption>", Html(caption));
    table.push_str(
        "<colgroup><col class=\"label\"><col><col class=\"count\"><col class=\"share\"></colgroup><thead><tr>\
         <th scope=\"col\">value</th><th scope=\"col\">bar</th><th scope=\"col\">rows</th>\
         <th scope=\"col\">share</th></tr></thead><tbody>",
    );
    for Bar { label, count, class } in bars {
        let width = if *count == 0 { 0.0 } else { (*count as f64 / most as f64 * 100.0).max(0.7) };
        let sign = if about { "≥ " } else { "" };
        write!(
            table,
            "<tr><th scope=\"row\" dir=\"auto\" title=\"{0}\">{0}</th><td class=\"track\"><svg width=\"100%\" height=\"14\" aria-hidden=\"true\">\
             <rect class=\"bar {class}\" width=\"{width:.2}%\" height=\"14\" rx=\"2\"/></svg></td>\
             <td class=\"num\">{sign}{1}</td><td class=\"num muted\">{2}</td></tr>",
            Html(label),
            grouped(*count),
            Html(&percent(*count, whole)),
        )
        .expect("a String takes it all");
    }
    table.push_str("</tbody></table>");
    table
}
