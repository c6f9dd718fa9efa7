//! An explanation as a picture: stages as boxes, from left to right by level, edges as curves between them.

use std::collections::HashMap;

use anabranch_engine::diagram::{self, Diagram, Edge, Line, Look, Sign, Tone};

use super::{After, Explanation, Kind, Node, Stage};

/// The meaning of boxes and lines.
const LEGEND: [(Sign, &str); 6] = [
    (Sign::Box(Tone::Wait), "waits"),
    (Sign::Box(Tone::Compute), "computes"),
    (Sign::Box(Tone::Gate), "decides"),
    (Sign::Box(Tone::Timer), "watches the time"),
    (Sign::StrongLine, "longest path"),
    (Sign::DashedLine, "only if needed"),
];

pub(super) fn write(of: &Explanation) -> String {
    let nodes: HashMap<&str, &Node> = of.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
    let mut summary = format!("at most {} trips, {} one after the other", of.trips, of.critical_trips);
    if let Some(deadline) = of.deadline_ms {
        summary.push_str(&format!("; deadline {deadline} ms"));
    }
    // The levels say which stage of a level comes first.
    let order: Vec<usize> = of.levels.iter().flatten().copied().collect();
    let mut places = vec![0; of.stages.len()];
    order.iter().enumerate().for_each(|(place, stage)| places[*stage] = place);
    let drawn = |stage: &usize| {
        let edge = |after: &After| Edge {
            from: places[after.stage],
            is_strong: of.critical_path.windows(2).any(|pair| pair == [after.stage, *stage]),
            is_dashed: !after.needed,
        };
        let of_stage = &of.stages[*stage];
        diagram::Node {
            tone: tone(of_stage.kind),
            lines: lines(of_stage, &nodes),
            tooltip: tooltip(of_stage, &nodes),
            level: of_stage.level,
            after: of_stage.after.iter().map(edge).collect(),
        }
    };
    let nodes = order.iter().map(drawn).collect();
    Diagram { title: format!("plan {}", of.plan), summary, legend: LEGEND.to_vec(), nodes }.svg()
}

fn tone(kind: Kind) -> Tone {
    match kind {
        Kind::Wait => Tone::Wait,
        Kind::Compute => Tone::Compute,
        Kind::Gate => Tone::Gate,
        Kind::Timer => Tone::Timer,
    }
}

/// The lines of a box: its nodes, their parameters, their reads, their timeouts and fallbacks.
fn lines(stage: &Stage, nodes: &HashMap<&str, &Node>) -> Vec<Line> {
    if matches!(stage.kind, Kind::Gate | Kind::Timer) {
        return vec![Line::strong(&stage.name)];
    }
    let mut lines = Vec::new();
    for id in &stage.nodes {
        let node = nodes[id.as_str()];
        lines.push(Line::strong(format!("{id}: {}", anabranch_plan::inspect::short(&node.op))));
        lines.extend(node.reads.iter().map(|read| Line { look: Look::Read, text: read.command.clone() }));
        // A read already shows its parameters.
        let settings = node.settings.iter().filter(|_| node.reads.is_empty());
        lines.extend(settings.map(|(name, value)| Line::muted(format!("{name}: {value}"))));
        let guard =
            |(name, value): &(String, String)| Line { look: Look::Warn, text: format!("{name}: {value}") };
        lines.extend(node.guard.iter().map(guard));
        if let Some(rows) = node.first_rows {
            lines.push(Line::muted(format!("first {rows} rows")));
        }
    }
    lines
}

/// The tooltip of a box: its name, and its reads and parameters in full.
fn tooltip(stage: &Stage, nodes: &HashMap<&str, &Node>) -> String {
    let mut lines = vec![stage.name.clone()];
    for node in stage.nodes.iter().map(|id| nodes[id.as_str()]) {
        lines.extend(node.reads.iter().map(|read| format!("{}: {}", read.endpoint_name, read.command)));
        let settings = node.settings.iter().chain(&node.guard);
        lines.extend(settings.map(|(name, value)| format!("{} {name}: {value}", node.id)));
    }
    lines.join("\n")
}
