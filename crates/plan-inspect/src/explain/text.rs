//! An explanation for people.

use std::fmt::Write as _;

use anabranch_text::count;

use super::{Column, Explanation, Node, Stage};

/// The maximum line length.
const COLUMNS: usize = 100;

pub(super) fn write(of: &Explanation) -> String {
    let mut text = String::new();
    let (nodes, stages) = (of.nodes.len(), of.stages.len());
    line(&mut text, &format!("plan {}: {} in {}", of.plan, count(nodes, "node"), count(stages, "stage")));
    line(&mut text, &format!("answer: the rows of {}", of.outputs.join(", then of ")));
    let trips = match (of.trips, of.critical_trips) {
        (0, _) => "trips to sources: none".to_owned(),
        (all, one_by_one) => {
            format!("trips to sources: at most {all}, at most {one_by_one} of them one after the other")
        }
    };
    line(&mut text, &trips);
    let threshold = match of.inline_threshold_us {
        0.0 => "computing: always on the CPU pool".to_owned(),
        micros => {
            format!("computing: in place when expected to take at most {micros} µs, else on the CPU pool")
        }
    };
    line(&mut text, &threshold);
    if let Some(millis) = of.deadline_ms {
        line(&mut text, &format!("deadline: {millis} ms, unless the request brings one"));
    }
    text.push_str("\nnodes\n");
    of.nodes.iter().for_each(|node| write_node(&mut text, node, of));
    text.push_str("\nstages by level; those of one level may run side by side\n");
    for (number, level) in of.levels.iter().enumerate() {
        for (at, stage) in level.iter().enumerate() {
            let number = if at == 0 { (number + 1).to_string() } else { String::new() };
            line(&mut text, &stage_line(&number, &of.stages[*stage]));
        }
    }
    if of.critical_trips > 0 {
        let on_way = of.critical_path.iter().map(|stage| &of.stages[*stage]);
        let names: Vec<String> =
            on_way.filter(|stage| stage.trips > 0).map(|stage| stage.name.clone()).collect();
        let head = format!("\nlongest path, {}: ", count(of.critical_trips, "trip"));
        wrap(&mut text, &head, 2, &names, " -> ");
    }
    if !of.dead.is_empty() {
        let dead: Vec<String> = of.dead.iter().map(|dead| format!("{} ({})", dead.id, dead.op)).collect();
        wrap(&mut text, "\nnot run, for no output needs them: ", 2, &dead, ", ");
    }
    text
}

fn write_node(text: &mut String, node: &Node, of: &Explanation) {
    let inputs = match &node.inputs[..] {
        [] => Vec::new(),
        inputs => vec![format!("<- {}", inputs.join(", "))],
    };
    wrap(text, &format!("  {:<14} {:<20} ", node.id, node.op), 20, &inputs, "");
    let mut detail = |what: &str, items: &[String], separator: &str| {
        if !items.is_empty() {
            wrap(text, &format!("      {what:<10}"), 16, items, separator);
        }
    };
    // The reads of a node already show its settings.
    let settings = node
        .settings
        .iter()
        .filter(|_| node.reads.is_empty())
        .map(|(name, value)| format!("{name}: {value}"));
    detail("says", &settings.collect::<Vec<_>>(), ", ");
    for (name, value) in &node.guard {
        detail(name, std::slice::from_ref(value), "");
    }
    detail("equal to", &node.stands_for, ", ");
    if let Some(with) = &node.reads_with {
        detail("early", &[format!("reads with the rows of {with}")], "");
    }
    for read in &node.reads {
        let shared = if read.shared { " (shared)" } else { "" };
        detail("reads", &[format!("{}: {}{shared}", read.endpoint_name, read.command)], "");
    }
    let whole = node.inputs.is_empty() || of.outputs.contains(&node.id);
    let columns = |asked: bool| {
        let columns = node.columns.iter().filter(|column| column.asked == asked);
        // Columns that are only passed on were already shown. Columns that are not fetched from a source are always
        // shown.
        let always = whole || (!asked && !node.reads.is_empty());
        let columns = columns.filter(|column| always || !passed(node, column, of));
        columns.map(|column| format!("{} {}", column.name, column.kind)).collect::<Vec<_>>()
    };
    detail(if whole { "columns" } else { "adds" }, &columns(true), ", ");
    detail("unread", &columns(false), ", ");
    if let Some(rows) = node.first_rows {
        detail("rows", &[format!("only the first {rows} are asked for")], "");
    }
}

/// True if an input has the same column.
fn passed(node: &Node, column: &Column, of: &Explanation) -> bool {
    let inputs = of.nodes.iter().filter(|other| node.inputs.contains(&other.id));
    inputs.flat_map(|input| &input.columns).any(|other| other == column)
}

fn stage_line(number: &str, stage: &Stage) -> String {
    let trips = match stage.trips {
        0 => String::new(),
        trips => format!("  {}", count(trips, "trip")),
    };
    format!("{number:>3}  {:<8} {}{trips}", stage.kind.word(), stage.name)
}

fn line(text: &mut String, content: &str) {
    text.push_str(content.trim_end());
    text.push('\n');
}

/// Adds items after `head`. Continuation lines are indented by `indent` spaces.
fn wrap(text: &mut String, head: &str, indent: usize, items: &[String], separator: &str) {
    let mut current = head.to_owned();
    for (at, item) in items.iter().enumerate() {
        let last = at + 1 == items.len();
        let piece = if last { item.clone() } else { format!("{item}{}", separator.trim_end()) };
        let used = current.trim_start_matches('\n').chars().count();
        if at > 0 && used + 1 + piece.chars().count() > COLUMNS {
            line(text, &current);
            current = " ".repeat(indent);
        } else if at > 0 {
            current.push(' ');
        }
        write!(current, "{piece}").expect("a string takes all that is written");
    }
    line(text, &current);
}
