//! Lines for problems: finds in the text of a TOML or JSON file the part that a problem's place names.
//!
//! The checks describe places in words (``node `top` (core::topk), by``), because their input has no line numbers any
//! more. Only if there are problems is the text parsed a second time, into a tree with positions.

use std::ops::Range;

use anabranch_document::{Format, Limits, Node, Notes, Table, Tree};
use anabranch_text::{Problem, Problems, quote};

/// The text of a file that problems are about.
pub(crate) struct SourceText<'a> {
    text: &'a str,
    root: Node,
}

/// The result of resolving a place: the last part that was found.
struct NodePlace<'a> {
    node: &'a Node,
    at: Range<usize>,
}

impl<'a> SourceText<'a> {
    /// Parses a text again; `None` if that is impossible.
    pub(crate) fn read(format: Format, text: &'a str) -> Option<SourceText<'a>> {
        let mut notes = Notes::new("", text);
        let root = anabranch_document::parse(format, Limits::default(), &mut notes)?;
        matches!(root.value, Tree::Table(_)).then_some(SourceText { text, root })
    }

    /// The problem with its line, if its place names something that is in the text. `place` is the problem's, without
    /// the name of the file.
    pub(crate) fn locate(&self, file: &str, place: &str, problem: Problem) -> Problem {
        if problem.excerpt.is_some() {
            return problem;
        }
        let Some(at) = self.find(place) else {
            return Problem { place: joined(file, place), ..problem };
        };
        let what = if place.is_empty() { problem.what } else { format!("{place}: {}", problem.what) };
        let mut placed = Problem { help: problem.help, ..Problem::in_source(file, self.text, at, what) };
        // The line of a URL may show a password.
        if place.ends_with("url") {
            placed.excerpt = None;
        }
        placed
    }

    /// The bytes of the deepest part that a place names; none if it names nothing here.
    fn find(&self, place: &str) -> Option<Range<usize>> {
        let mut found: Option<NodePlace<'_>> = None;
        for segment in segments(place) {
            let from = found.as_ref().map_or(&self.root, |found| found.node);
            let Some(next) = self.step(from, segment) else { break };
            found = Some(next);
        }
        found.map(|found| found.at)
    }

    /// The target of a segment of a place: ``node `a` (op)``, ``key `price` ``, `key 3`, or a path.
    fn step<'n>(&'n self, from: &'n Node, segment: &str) -> Option<NodePlace<'n>> {
        let table = table(from)?;
        if let Some((word, rest)) = segment.split_once(' ') {
            let list = if word == "node" { "nodes" } else { word };
            if let Some((_, Node { value: Tree::List(items), .. })) = field(table, list) {
                let number = rest.parse().ok().and_then(|number: usize| items.get(number.checked_sub(1)?));
                let named = || items.iter().find_map(|item| Some((item, name_of(item, rest)?)));
                return match number {
                    Some(item) => Some(NodePlace { node: item, at: head(item) }),
                    None => named().map(|(item, at)| NodePlace { node: item, at }),
                };
            }
            return self.reference(table, word, rest);
        }
        let mut found = None;
        let mut node = from;
        for part in path(segment) {
            let Some(next) = child(node, part) else { break };
            node = next.node;
            found = Some(next);
        }
        // The arguments of a node are in `params`, beside its other fields.
        found.or_else(|| self.step(field(table, "params").map(|(_, node)| node)?, segment))
    }

    /// ``pred_id `p`.a.b``: a part of an entry of a table of expressions.
    fn reference<'n>(&'n self, node: &'n Table, word: &str, rest: &str) -> Option<NodePlace<'n>> {
        let params = field(node, "params").and_then(|(_, node)| table(node));
        field(params.unwrap_or(node), word)?;
        let (name, below) = quoted(rest)?;
        let tables = ["pred_table", "expr_table"].iter();
        let entry = tables.filter_map(|name| table(&field(table(&self.root)?, name)?.1)).flatten();
        let (key, entry) = entry.into_iter().find(|(key, _)| quote(&key.name) == name)?;
        let mut found = NodePlace { node: entry, at: key.at.clone() };
        for part in path(below) {
            let Some(next) = child(found.node, part) else { break };
            found = next;
        }
        Some(found)
    }
}

/// A place behind the name of its file.
fn joined(file: &str, place: &str) -> String {
    if place.is_empty() { file.to_owned() } else { format!("{file}, {place}") }
}

fn table(node: &Node) -> Option<&Table> {
    match &node.value {
        Tree::Table(table) => Some(table),
        _ => None,
    }
}

fn field<'n>(table: &'n Table, name: &str) -> Option<&'n (anabranch_document::Key, Node)> {
    table.iter().find(|(key, _)| key.name == name || quote(&key.name).trim_matches('`') == name)
}

/// The bytes of the name of an entry of a list, if this is how messages call it.
fn name_of(item: &Node, called: &str) -> Option<Range<usize>> {
    let called = quoted(called).map_or(called, |(name, _)| name);
    let fields = ["node_id", "name", "id", "endpoint_id"];
    let (_, name) = fields.iter().find_map(|name| field(table(item)?, name))?;
    matches!(&name.value, Tree::Text(name) if quote(name) == called).then(|| name.at.clone())
}

/// The first line of an entry that has no name.
fn head(item: &Node) -> Range<usize> {
    match table(item).and_then(|table| table.first()) {
        Some((key, first)) => key.at.start..first.at.end,
        None => item.at.clone(),
    }
}

/// The field or item of a value, and its bytes: from the name to the end of the value.
fn child<'n>(node: &'n Node, part: &str) -> Option<NodePlace<'n>> {
    match &node.value {
        Tree::Table(table) => {
            let (key, node) = field(table, part)?;
            // A table of TOML may end before its name, at another place where it goes on.
            let end = node.at.end.max(key.at.end);
            Some(NodePlace { node, at: key.at.start..end })
        }
        Tree::List(items) => {
            let node = items.get(part.parse::<usize>().ok()?)?;
            Some(NodePlace { node, at: node.at.clone() })
        }
        _ => None,
    }
}

/// The name in backticks that a text begins with, backticks included, and the rest.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let end = text.strip_prefix('`')?.find('`')? + 2;
    Some((&text[..end], text[end..].trim_start_matches('.')))
}

/// The parts of a place, which commas divide; those in backticks do not.
fn segments(place: &str) -> impl Iterator<Item = &str> {
    let mut rest = place;
    std::iter::from_fn(move || {
        let mut inside = false;
        let ends = rest.char_indices().find(|(at, letter)| {
            inside ^= *letter == '`';
            !inside && rest[*at..].starts_with(", ")
        });
        let segment;
        (segment, rest) = match ends {
            Some((at, _)) => (&rest[..at], &rest[at + 2..]),
            None => (rest, ""),
        };
        (!segment.is_empty()).then_some(segment)
    })
}

/// The names and numbers of a path: `a.b[2].c`.
fn path(text: &str) -> impl Iterator<Item = &str> {
    text.split(['.', '[']).map(|part| part.trim_end_matches(']')).filter(|part| !part.is_empty())
}

/// Problems of a plan's JSON with their lines, for a reader who has the file.
///
/// ```
/// # use anabranch_plan::{Problem, with_lines};
/// let text = "{\n  \"nodes\": [\n    {\"node_id\": \"top\", \"params\": {\"by\": \"score\"}}\n  ]\n}";
/// let problems = Problem::new("node `top` (core::topk), by", "there is no key `score`").into();
/// let placed = with_lines("feed.plan.json", text, problems);
/// assert_eq!(placed.errors[0].place, "feed.plan.json:3:35");
/// ```
pub fn with_lines(file: &str, text: &str, problems: Problems) -> Problems {
    let Some(source) = SourceText::read(Format::Json, text) else { return problems };
    let located = |problem: Problem| {
        let place = problem.place.clone();
        source.locate(file, &place, problem)
    };
    Problems {
        errors: problems.errors.into_iter().map(located).collect(),
        warnings: problems.warnings.into_iter().map(located).collect(),
    }
}

/// Problems of TOML or JSON files of a folder with their lines. Their places begin with the name of a file.
pub(crate) fn in_files(folder: &std::path::Path, files: &[(String, String)], problems: Problems) -> Problems {
    let mut read: Vec<(&str, Option<SourceText<'_>>)> = Vec::new();
    let mut located = |mut problem: Problem| {
        let end = problem.place.find([',', ':']).unwrap_or(problem.place.len());
        let name = problem.place[..end].to_owned();
        let full = folder.join(&name).display().to_string();
        let Some((name, text)) = files.iter().find(|(file, _)| *file == name) else {
            if name.ends_with(".toml") || name.ends_with(".json") {
                problem.place.replace_range(..end, &full);
            }
            return problem;
        };
        if problem.excerpt.is_some() {
            problem.place.replace_range(..end, &full);
            return problem;
        }
        if !read.iter().any(|(file, _)| file == name) {
            let format = Format::of(std::path::Path::new(name));
            read.push((name, format.and_then(|format| SourceText::read(format, text))));
        }
        let source = read.iter().find(|(file, _)| file == name).and_then(|(_, source)| source.as_ref());
        let rest = problem.place[end..].trim_start_matches(", ").to_owned();
        match source {
            Some(source) => source.locate(&full, &rest, problem),
            None => Problem { place: joined(&full, &rest), ..problem },
        }
    };
    Problems {
        errors: problems.errors.into_iter().map(&mut located).collect(),
        warnings: problems.warnings.into_iter().map(&mut located).collect(),
    }
}
