//! The explanation as text.

use std::fmt::Write as _;

use anabranch_text::count;
use serde_json::Value;

use super::{
    Beside, Cause, Change, End, Leaf, OnList, ReadLists, SortColumn, Step, UnmatchedOrigin, Verdict, Way,
    Why, WrittenValue,
};

/// The longest line that can be helped.
const WIDTH: usize = 100;

pub(super) fn write(why: &Why) -> String {
    let mut text = Text(String::new());
    text.head(why);
    for (number, way) in (1..).zip(&why.ways) {
        text.way(number, way, why);
    }
    match why.more_ways {
        0 => {}
        more => text.line(0, &format!("and {} that are not told", count(more, "more way"))),
    }
    if !why.looked.is_empty() {
        text.line(0, "\nnodes that bring rows, and did not bring it");
        let width = |of: fn(&UnmatchedOrigin) -> &String| {
            why.looked.iter().map(|looked| of(looked).chars().count()).max()
        };
        let widths =
            [width(|looked| &looked.node), width(|looked| &looked.op)].map(Option::unwrap_or_default);
        why.looked.iter().for_each(|looked| text.looked(looked, widths));
    }
    if !why.idle.is_empty() {
        text.line(0, &format!("\nwithout rows for this request: {}", why.idle.join(", ")));
    }
    if !why.degraded.is_empty() {
        text.line(0, "\ndegraded: these nodes have rows that are not their own");
        for entry in &why.degraded {
            let waited = entry.waited.as_secs_f64() * 1e3;
            let region = entry.region.as_ref().map_or(String::new(), |region| format!(" of region {region}"));
            let (node, reason, instead) = (&entry.node, entry.reason, &entry.fallback);
            let told = format!("{node}{region}: {reason} after {waited:.1} ms, {instead} instead");
            text.line(2, &told);
        }
    }
    text.0
}

struct Text(String);

impl Text {
    fn line(&mut self, indent: usize, line: &str) {
        for part in line.split('\n') {
            let lead = if part.is_empty() { 0 } else { indent };
            self.broken(&format!("{:lead$}{part}", ""), indent + 2);
        }
    }

    /// Adds a line, broken at spaces if it is too long. Continuation lines are indented by `indent` spaces.
    fn broken(&mut self, line: &str, indent: usize) {
        let mut rest = line.to_owned();
        while let Some((end, _)) = rest.char_indices().nth(WIDTH) {
            // Breaking before the first word is useless.
            let words = rest.len() - rest.trim_start().len() + 1;
            let fits = if rest[end..].starts_with(' ') { end + 1 } else { end };
            let cut = rest[..fits].rfind(' ').filter(|cut| *cut > words.max(indent));
            let Some(cut) = cut else { break };
            let after = rest.split_off(cut);
            self.push(&rest);
            rest = format!("{:indent$}{}", "", after.trim_start());
        }
        self.push(&rest);
    }

    fn push(&mut self, line: &str) {
        writeln!(self.0, "{}", line.trim_end()).expect("a string takes all that is written");
    }

    fn head(&mut self, why: &Why) {
        let Why { plan, row, .. } = why;
        let line = match &why.verdict {
            Verdict::Answered { places } => {
                let places: Vec<String> = places.iter().map(usize::to_string).collect();
                format!("row {row} is in the answer of plan {plan}, at place {}", places.join(", "))
            }
            Verdict::Dropped { node } => {
                format!("row {row} is not in the answer of plan {plan}: {node} dropped it")
            }
            Verdict::Used { by } if by.is_empty() => {
                format!("row {row} is not in the answer of plan {plan}: no node that ran took it")
            }
            Verdict::Used { by } => {
                let by = by.join(", ");
                format!("row {row} is not in the answer of plan {plan}: {by} read other rows through it")
            }
            Verdict::Absent => format!("row {row} is not in the answer of plan {plan}: no node brought it"),
        };
        self.line(0, &line);
    }

    fn way(&mut self, number: usize, way: &Way, why: &Why) {
        let total = why.ways.len() + why.more_ways;
        if total > 1 {
            self.line(0, &format!("\nway {number} of {total}"));
        }
        self.end(&way.end);
        self.line(0, "\nhow it got there");
        let node = way.steps.iter().map(|step| step.node.chars().count()).max().unwrap_or(0);
        let op = way.steps.iter().map(|step| step.op.chars().count()).max().unwrap_or(0);
        let mut before = 0;
        for (at, step) in way.steps.iter().enumerate() {
            let mut parts = Vec::new();
            if at == 0 {
                parts.extend(way.origin.list.as_ref().map(on_list));
            }
            parts.push(stood(step, before));
            parts.extend(step.wrote.iter().flat_map(wrote));
            before = step.of;
            let lead = format!("  {:node$}  {:op$}  ", step.node, step.op);
            self.wrapped(&lead, &parts);
        }
    }

    /// Parts behind a lead, as many on a line as fit.
    fn wrapped(&mut self, lead: &str, parts: &[String]) {
        let indent = lead.chars().count();
        let mut line = lead.to_owned();
        let mut empty = true;
        for part in parts.iter().filter(|part| !part.is_empty()) {
            let fits = line.chars().count() + part.chars().count() + 2 <= WIDTH;
            if !empty && !fits {
                self.broken(&format!("{line};"), indent);
                line = " ".repeat(indent);
            } else if !empty {
                line.push_str("; ");
            }
            line.push_str(part);
            empty = false;
        }
        self.broken(&line, indent);
    }

    fn end(&mut self, end: &End) {
        match end {
            End::Answered { node, place, of, before } => {
                self.line(2, &format!("place {place} of {of} in {node}"));
                if let Some(before) = before {
                    self.line(2, &ahead(before));
                }
            }
            End::Dropped { node, op, cause } => self.cause(&format!("{node} ({op})"), cause),
            End::Used { by } if by.is_empty() => self.line(2, "no node that ran took it"),
            End::Used { by } => {
                self.line(2, &format!("its last readers are {}, whose rows have other ids", by.join(", ")));
            }
        }
    }

    fn cause(&mut self, node: &str, cause: &Cause) {
        match cause {
            Cause::Predicate { says, leaves, keeps } => {
                self.line(2, &format!("{node} keeps rows with {says}"));
                leaves.iter().for_each(|leaf| self.leaf(leaf));
                match keeps {
                    Some(changes) => self.line(2, &format!("it would have stayed with {}", all(changes))),
                    None => self.line(2, "no value of its columns was found with which it would have stayed"),
                }
            }
            Cause::Skipped { place, offset } => {
                self.line(2, &format!("{node} skips the first {offset}; it was at place {place}"));
                self.line(2, &format!("it would not have been skipped with an offset of {}", place - 1));
            }
            Cause::Limit { place, limit, offset, behind, needs } => {
                let missed = count(place - limit, "place");
                let skipped = if *offset > 0 { format!(" behind the first {offset}") } else { String::new() };
                let of = if *offset > 0 { " of these" } else { "" };
                let at = format!("it was at place {place}{of}, {missed} too late");
                self.line(2, &format!("{node} keeps {limit}{skipped}; {at}"));
                if let Some(behind) = behind {
                    self.line(2, &after(behind));
                }
                let value =
                    needs.as_ref().map_or(String::new(), |needs| format!(", or with {}", change(needs)));
                self.line(2, &format!("it would have stayed with a limit of {place}{value}"));
            }
            Cause::Group { column, value, place, limit, stayed } => {
                let (of, stayed) = (shown(value), ids(stayed));
                self.line(
                    2,
                    &format!("{node} keeps {limit} of each {column}; it was number {place} of {column} {of}"),
                );
                self.line(2, &format!("in its stead: {stayed}"));
                self.line(
                    2,
                    &format!("it would have stayed with a limit of {place}, or with another {column}"),
                );
            }
            Cause::Repeat { column, value, stayed, from, place } => {
                let of = shown(value);
                self.line(2, &format!("{node} keeps one row of each {column}"));
                let told = format!("of {column} {of} it keeps row {stayed} at place {place} of {from}");
                self.line(2, &told);
            }
            other => self.line(2, &plain_cause(node, other)),
        }
    }

    fn leaf(&mut self, leaf: &Leaf) {
        let mark = match (leaf.holds == leaf.wanted, leaf.decides) {
            (true, _) => "ok",
            (false, true) => "NO",
            (false, false) => "no, but another part makes up for it:",
        };
        let says = if leaf.wanted { leaf.says.clone() } else { format!("not ({})", leaf.says) };
        let off = leaf.off_by.filter(|off| *off > 0.0);
        let off = off.map_or(String::new(), |off| format!(", off by {}", number(off)));
        let with = named(&leaf.with);
        let with = if with.is_empty() { with } else { format!(": {with}") };
        self.line(4, &format!("{mark}  {says}{with}{off}"));
    }

    fn looked(&mut self, looked: &UnmatchedOrigin, [node, op]: [usize; 2]) {
        let mut parts = vec![count(looked.rows, "row")];
        if let Some(lists) = &looked.lists {
            parts.extend(told_lists(lists));
        }
        if let Some(first) = looked.first {
            let by = looked.wanted_by.as_ref().map_or(String::new(), |by| format!(" by {by}"));
            parts.push(format!("only the first {first} are wanted{by}"));
        }
        if let Some(unwanted) = looked.lists.as_ref().and_then(|lists| lists.unwanted.as_ref()) {
            parts.push(format!("it was {}, behind those", on_list(unwanted)));
        }
        let lead = format!("  {:node$}  {:op$}  ", looked.node, looked.op);
        self.wrapped(&lead, &parts);
    }
}

fn plain_cause(node: &str, cause: &Cause) -> String {
    match cause {
        Cause::Unmatched { column, value, with, with_column } => {
            let value = shown(value);
            format!("{node} keeps rows that match; no row of {with} has {with_column} {value}, its {column}")
        }
        Cause::Matched { column, value, with, with_column, rows } => {
            let (value, rows) = (shown(value), ids(rows));
            format!(
                "{node} keeps rows without a match; {with} has {with_column} {value}, its {column}: {rows}"
            )
        }
        Cause::OtherSide { taken } => format!("{node} went the other way, to the rows of {taken}"),
        Cause::Unasked { place, first, by } => {
            let by = by.as_ref().map_or(String::new(), |by| format!(", for {by} wants no more"));
            format!("{node} was asked for the first {first} rows only{by}; it was at place {place}")
        }
        Cause::Degraded { reason, fallback } => {
            format!("{node} was degraded ({reason}): {fallback} stands for its rows")
        }
        _ => format!("{node} did not pass it on; its op does not say why"),
    }
}

fn told_lists(lists: &ReadLists) -> [String; 2] {
    let ReadLists { keys, count: lists_read, limit, allowed, full, .. } = lists;
    let cut = match full {
        0 => "read to the end".to_owned(),
        full if limit < allowed => format!("{full} read only to place {limit}"),
        full => format!("{full} full at the limit of {limit}, more may be on them"),
    };
    [format!("{} {keys}", count(*lists_read, "list")), cut]
}

fn on_list(list: &OnList) -> String {
    let OnList { key, of_row, of_node, place, read } = list;
    format!("on {key} at place {place} of {read}, through row {of_row} of {of_node}")
}

/// The position of a row, if it changed.
fn stood(step: &Step, before: usize) -> String {
    let by = step.sorted.as_ref().map_or(String::new(), |sorted| {
        let column = |by: &SortColumn| format!("{} {} ({})", by.by, by.order, shown(&by.value));
        let columns: Vec<String> = [sorted].into_iter().chain(&sorted.then).map(column).collect();
        format!(" by {}", columns.join(", "))
    });
    if step.of == before && by.is_empty() && step.op != "concat" && step.op != "union" {
        if step.wrote.is_empty() { format!("place {} of {}", step.place, step.of) } else { String::new() }
    } else {
        format!("place {} of {}{by}", step.place, step.of)
    }
}

fn wrote(wrote: &WrittenValue) -> Vec<String> {
    let was = wrote.was.as_ref().map_or(String::new(), |was| format!(" (was {})", shown(was)));
    let with = named(&wrote.with);
    let with = (!with.is_empty()).then(|| format!("where {with}"));
    let says = wrote.says.as_ref().map_or(String::new(), |says| format!(" = {says}"));
    [format!("{} {}{was}{says}", wrote.column, shown(&wrote.value))].into_iter().chain(with).collect()
}

fn ahead(beside: &Beside) -> String {
    let (own, other) = two(&beside.own, &beside.other);
    let by = apart(beside).map_or(String::new(), |by| format!(" by {by}"));
    format!("ahead of row {}{by}: {} {own} against {other}", beside.row, beside.by)
}

fn after(beside: &Beside) -> String {
    let (own, other) = two(&beside.own, &beside.other);
    let by = apart(beside).map_or(String::new(), |by| format!(", by {by}"));
    format!("behind row {}, the last to stay{by}: {} {own} against {other}", beside.row, beside.by)
}

fn apart(beside: &Beside) -> Option<String> {
    let apart = (beside.own.as_f64()? - beside.other.as_f64()?).abs();
    Some(number(apart))
}

fn change(change: &Change) -> String {
    // The number of digits is the same as elsewhere.
    let short =
        |(op, value): (&str, &str)| Some(format!("{op} {}", shown(&serde_json::from_str(value).ok()?)));
    let needs = change.needs.split_once(' ').and_then(short).unwrap_or_else(|| change.needs.clone());
    let param = change.param.as_ref().map_or(String::new(), |param| format!(", or with {param}"));
    format!("{} {needs} (it is {}){param}", change.what, shown(&change.from))
}

fn all(changes: &[Change]) -> String {
    let changes: Vec<String> = changes.iter().map(change).collect();
    changes.join(" and ")
}

fn named(values: &[(String, Value)]) -> String {
    let named: Vec<String> = values.iter().map(|(name, value)| format!("{name} {}", shown(value))).collect();
    named.join(", ")
}

fn ids(ids: &[i64]) -> String {
    let ids: Vec<String> = ids.iter().map(i64::to_string).collect();
    format!("row{} {}", if ids.len() == 1 { "" } else { "s" }, ids.join(", "))
}

fn shown(value: &Value) -> String {
    match value {
        Value::Number(own) if own.is_f64() => own.as_f64().map_or_else(|| own.to_string(), number),
        other => other.to_string(),
    }
}

/// Two values, with enough digits to tell them apart.
fn two(a: &Value, b: &Value) -> (String, String) {
    let (short_a, short_b) = (shown(a), shown(b));
    if short_a == short_b && a != b { (a.to_string(), b.to_string()) } else { (short_a, short_b) }
}

/// A number with at most four digits behind the point, unless that would be none of it.
fn number(value: f64) -> String {
    let text = format!("{value:.4}");
    let short = text.trim_end_matches('0').trim_end_matches('.');
    if value != 0.0 && matches!(short, "0" | "-0") { value.to_string() } else { short.to_owned() }
}
