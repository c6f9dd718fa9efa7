//! The timeline of a run as bars of characters.

use std::time::Duration;

use anabranch_server::runs::{RunDetail, RunTimeline, TimelineNode};
use anabranch_text::duration;

/// The characters of the longest bar.
const WIDTH: usize = 60;
/// The most characters of a name.
const NAME: usize = 32;
/// The most nodes that are drawn: those of the critical path and the longest ones.
const NODES: usize = 60;

/// The nodes that failed or fell back, in the order in which they ended.
pub(super) fn troubles(detail: &RunDetail) -> String {
    let Some(timeline) = &detail.timeline else { return String::new() };
    let mut troubled: Vec<&TimelineNode> =
        timeline.nodes.iter().filter(|node| matches!(&*node.state, "failed" | "fell_back")).collect();
    if troubled.is_empty() {
        return String::new();
    }
    troubled.sort_by(|one, other| one.end_ms.unwrap_or(0.0).total_cmp(&other.end_ms.unwrap_or(0.0)));
    let mut text = "\nfailures and fallbacks\n".to_owned();
    for node in troubled {
        let what = if node.state == "failed" { "failed" } else { "fell back" };
        let reason = node.reason.as_deref().unwrap_or("error");
        let at = node.end_ms.map_or_else(String::new, |at| format!(" at {}", time(at)));
        let tries = if node.attempts > 1 { format!(", {} tries", node.attempts) } else { String::new() };
        text.push_str(&format!("  {}: {what} ({reason}){at}{tries}\n", name(detail, node)));
    }
    text
}

/// One bar per node.
pub(super) fn timeline(detail: &RunDetail) -> String {
    let Some(timeline) = &detail.timeline else { return String::new() };
    let shown = shown(timeline);
    let left_out = timeline.nodes.len() - shown.len();
    let names: Vec<String> = shown.iter().map(|node| name(detail, node)).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    // A deadline after the end of the run is not drawn.
    let end = timeline.wall_ms.max(0.001);
    let deadline = detail.deadline_ms.filter(|at| *at <= end).map(|at| column(at, end));
    let mut text = format!("\ntimeline of {}", time(timeline.wall_ms));
    if let Some(deadline) = detail.deadline_ms {
        text.push_str(&format!(", deadline {}", time(deadline)));
    }
    text.push('\n');
    for (node, name) in shown.iter().zip(&names) {
        let mark = if node.critical { '*' } else { ' ' };
        let took = match (node.start_ms, node.end_ms) {
            (Some(start), Some(end)) => time(end - start),
            _ => node.state.replace('_', " "),
        };
        text.push_str(&format!("{mark} {name:<width$}  {}  {took}\n", bar(node, end, deadline)));
    }
    if left_out > 0 {
        text.push_str(&format!("  … and {left_out} shorter nodes\n"));
    }
    text
}

/// The nodes that are drawn, in their order.
fn shown(timeline: &RunTimeline) -> Vec<&TimelineNode> {
    let mut nodes: Vec<(usize, &TimelineNode)> = timeline.nodes.iter().enumerate().collect();
    if nodes.len() > NODES {
        let took = |node: &TimelineNode| node.end_ms.unwrap_or(0.0) - node.start_ms.unwrap_or(0.0);
        let is_later = |node: &TimelineNode| (!node.critical, node.state == "finished");
        nodes.sort_by(|(_, one), (_, other)| {
            is_later(one).cmp(&is_later(other)).then(took(other).total_cmp(&took(one)))
        });
        nodes.truncate(NODES);
        nodes.sort_by_key(|(number, _)| *number);
    }
    nodes.into_iter().map(|(_, node)| node).collect()
}

fn time(ms: f64) -> String {
    duration::format(Duration::try_from_secs_f64(ms / 1e3).unwrap_or_default())
}

fn column(at: f64, end: f64) -> usize {
    ((at / end * WIDTH as f64) as usize).min(WIDTH - 1)
}

fn bar(node: &TimelineNode, end: f64, deadline: Option<usize>) -> String {
    let mut bar = [' '; WIDTH];
    let mut fill = |from: f64, to: f64, sign: char| {
        let (from, to) = (column(from, end), column(to, end));
        // Work is drawn over waits in the same column.
        bar[from..=to.max(from)]
            .iter_mut()
            .filter(|drawn| sign == '=' || **drawn == ' ')
            .for_each(|it| *it = sign);
    };
    for (category, from, to) in &node.spans {
        let sign = match &**category {
            "io" | "cpu" => '=',
            "inputs" => '-',
            _ => '.',
        };
        fill(*from, *to, sign);
    }
    if let Some(at) = deadline {
        bar[at] = '|';
    }
    bar.iter().collect()
}

fn name(detail: &RunDetail, node: &TimelineNode) -> String {
    let named = detail.graph.nodes.iter().find(|named| named.id == node.id);
    let name = named.map_or(&*node.id, |named| &*named.name).chars().take(NAME);
    // The reason why a recipe took no time of its own.
    let note = named.and_then(|named| named.note.as_deref()).map(|note| format!(" ({note})"));
    name.chain(note.iter().flat_map(|note| note.chars())).collect()
}

#[cfg(test)]
mod tests {
    use anabranch_server::runs::{GraphNode, RunGraph};
    use expect_test::expect;

    use super::*;

    #[test]
    fn bars_show_waits_work_and_the_critical_path() {
        let span = |category: &str, from, to| (category.to_owned(), from, to);
        let node = |id: &str, state: &str, spans: Vec<(String, f64, f64)>, critical| TimelineNode {
            id: id.to_owned(),
            start_ms: Some(spans.last().unwrap().1),
            end_ms: Some(spans.last().unwrap().2),
            state: state.to_owned(),
            reason: (state == "fell_back").then(|| "timeout".to_owned()),
            critical,
            spans,
            ..TimelineNode::default()
        };
        let nodes = vec![
            node("n0", "finished", vec![span("io", 0.0, 30.0)], true),
            node("n1", "fell_back", vec![span("limit", 0.0, 10.0), span("io", 10.0, 50.0)], false),
            node("n2", "finished", vec![span("queue", 30.0, 40.0), span("cpu", 40.0, 60.0)], true),
        ];
        let named = |(number, name): (usize, &str)| GraphNode {
            id: format!("n{number}"),
            name: name.to_owned(),
            kind: "io".to_owned(),
            ..GraphNode::default()
        };
        let names = ["fetch", "profile", "rank"].into_iter().enumerate().map(named).collect();
        let detail = RunDetail {
            deadline_ms: Some(55.0),
            graph: RunGraph { nodes: names, edges: Vec::new() },
            timeline: Some(RunTimeline { wall_ms: 60.0, nodes, ..RunTimeline::default() }),
            ..RunDetail::default()
        };
        expect![[r#"

            failures and fallbacks
              profile: fell back (timeout) at 50 ms

            timeline of 60 ms, deadline 55 ms
            * fetch    ===============================                        |      30 ms
              profile  ..........=========================================    |      40 ms
            * rank                                   ..........===============|====  20 ms
        "#]]
        .assert_eq(&format!("{}{}", troubles(&detail), timeline(&detail)));
    }
}
