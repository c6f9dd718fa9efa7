//! Python code: by ruff, or by the tree-sitter grammar.
//!
//! The grammar was chosen over a parser in Rust because it builds in seconds, is kept up to date with the language and
//! takes hostile input without deep recursion. It accepts more than Python does; the rules below catch what matters.

use std::collections::HashMap;

use anabranch_engine::Check;
use anabranch_value::Value;
use serde::Deserialize;
use tree_sitter::{Node, Parser, TreeCursor};

use super::child::{self, TempFolder};
use super::code::Tool;
use crate::column_type::ColumnType;
use crate::fault::Fault;

/// The rules that DataDesigner's validator selects.
const RULES: &str = "E,F6,F7,F8,SIM,PLC,PLE,PLR,PLW";

/// The most messages per verdict; all count for the score.
const MAX_MESSAGES: usize = 100;

/// The kinds of messages, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Severity {
    Fatal,
    Error,
    Warning,
    Convention,
    Refactor,
}

impl Severity {
    fn word(self) -> &'static str {
        match self {
            Severity::Fatal => "fatal",
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Convention => "convention",
            Severity::Refactor => "refactor",
        }
    }

    /// The severity of a ruff rule. Syntax errors have no rule, or a name in its place.
    fn of_rule(rule: Option<&str>) -> Severity {
        let letters = rule.map(|rule| rule.trim_end_matches(|c: char| c.is_ascii_digit()));
        match letters {
            Some("E") if rule.is_some_and(|rule| rule.starts_with("E9")) => Severity::Fatal,
            Some("E" | "SIM" | "PLR") => Severity::Refactor,
            Some("F" | "PLE") => Severity::Error,
            Some("PLC") => Severity::Convention,
            Some("PLW") => Severity::Warning,
            _ => Severity::Fatal,
        }
    }
}

struct Message {
    severity: Severity,
    symbol: String,
    line: usize,
    column: usize,
    text: String,
}

impl Message {
    fn at(node: Node<'_>, text: impl Into<String>) -> Message {
        let start = node.start_position();
        let symbol = "syntax-error".to_owned();
        Message {
            severity: Severity::Fatal,
            symbol,
            line: start.row + 1,
            column: start.column + 1,
            text: text.into(),
        }
    }
}

/// The type of a verdict about Python code.
pub(super) fn verdict_type() -> ColumnType {
    let field = |name: &str, column_type: ColumnType| (name.to_owned(), column_type);
    let message = ColumnType::Struct(vec![
        field("type", ColumnType::Text),
        field("symbol", ColumnType::Text),
        field("line", ColumnType::Int),
        field("column", ColumnType::Int),
        field("message", ColumnType::Text),
    ]);
    ColumnType::Struct(vec![
        field("is_valid", ColumnType::Bool),
        field("python_linter_score", ColumnType::Float),
        field("python_linter_severity", ColumnType::Text),
        field("python_linter_messages", ColumnType::List(Box::new(message))),
        field("validator", ColumnType::Text),
    ])
}

fn verdict(mut messages: Vec<Message>, statements: usize, validator: &str) -> Value {
    messages.sort_by_key(|message| (message.severity, message.line));
    let worst = messages.first().map(|message| message.severity);
    let penalty: usize =
        messages.iter().map(|message| if message.severity <= Severity::Error { 5 } else { 1 }).sum();
    let score = match worst {
        Some(Severity::Fatal) => 0.0,
        _ => (10.0 - penalty as f64 / statements.max(1) as f64 * 10.0).max(0.0),
    };
    let listed = messages.into_iter().take(MAX_MESSAGES).map(|message| {
        Value::map([
            ("type", Value::from(message.severity.word())),
            ("symbol", message.symbol.into()),
            ("line", Value::Int(message.line as i64)),
            ("column", Value::Int(message.column as i64)),
            ("message", message.text.into()),
        ])
    });
    let listed = Value::list(listed.collect::<Vec<_>>());
    Value::map([
        ("is_valid", Value::Bool(worst.is_none_or(|worst| worst > Severity::Error))),
        ("python_linter_score", Value::Float(score)),
        ("python_linter_severity", worst.map_or("none", Severity::word).into()),
        ("python_linter_messages", listed),
        ("validator", validator.into()),
    ])
}

/// A verdict about a cell that has no code.
fn no_code(problem: String, validator: &str) -> Value {
    let message =
        Message { severity: Severity::Fatal, symbol: "no-code".into(), line: 1, column: 1, text: problem };
    verdict(vec![message], 0, validator)
}

/// The verdict of the parser.
pub(super) fn parse(code: Result<&str, String>) -> Value {
    match code {
        Ok(code) => {
            let (messages, statements) = read(code);
            verdict(messages, statements, "parser")
        }
        Err(problem) => no_code(problem, "parser"),
    }
}

/// The verdicts of ruff: one run for all codes.
pub(super) fn lint(
    tool: &Tool,
    codes: &[Result<&str, String>],
    check: &Check<'_>,
) -> Result<Vec<Value>, Fault> {
    #[derive(Deserialize)]
    struct Diagnostic {
        code: Option<String>,
        message: String,
        filename: String,
        location: Location,
    }
    #[derive(Deserialize)]
    struct Location {
        row: usize,
        column: usize,
    }
    let folder = TempFolder::new()?;
    for (row, code) in codes.iter().enumerate() {
        folder.write(&format!("row_{row}.py"), code.as_ref().map_or("", |code| code))?;
    }
    let select = format!("--select={RULES}");
    let arguments =
        ["check", "--isolated", "--no-cache", "--quiet", "--exit-zero", &select, "--output-format=json", "."];
    let output = child::run(&tool.path, &arguments, folder.path(), tool.wall, check)?;
    let diagnostics: Vec<Diagnostic> = serde_json::from_str(&output)
        .map_err(|error| Fault::transient("validator", format!("ruff's output is not readable: {error}")))?;
    let mut by_file: HashMap<String, Vec<Message>> = HashMap::new();
    for found in diagnostics {
        let severity = Severity::of_rule(found.code.as_deref());
        let name =
            std::path::Path::new(&found.filename).file_stem().map(|name| name.to_string_lossy().into_owned());
        by_file.entry(name.unwrap_or_default()).or_default().push(Message {
            severity,
            symbol: found.code.unwrap_or_else(|| "syntax-error".into()),
            line: found.location.row,
            column: found.location.column,
            text: found.message,
        });
    }
    let version = tool.version(check);
    let verdicts = codes.iter().enumerate().map(|(row, code)| match code {
        Ok(code) => {
            let messages = by_file.remove(&format!("row_{row}")).unwrap_or_default();
            verdict(messages, read(code).1, version)
        }
        Err(problem) => no_code(problem.clone(), version),
    });
    Ok(verdicts.collect())
}

/// The syntax errors of a program, and the number of its statements.
fn read(code: &str) -> (Vec<Message>, usize) {
    let mut parser = Parser::new();
    if parser.set_language(&tree_sitter_python::LANGUAGE.into()).is_err() {
        return (Vec::new(), 0);
    }
    let Some(tree) = parser.parse(code, None) else { return (Vec::new(), 0) };
    let (mut messages, mut statements) = (Vec::new(), 0);
    let mut cursor = tree.walk();
    loop {
        let node = cursor.node();
        if let Some(message) = problem(node, code) {
            messages.push(message);
        }
        let kind = node.kind();
        statements += usize::from(node.is_named() && is_statement(kind));
        if messages.len() >= MAX_MESSAGES || !next(&mut cursor, !node.is_error()) {
            return (messages, statements);
        }
    }
}

/// Goes to the next node in depth-first order.
fn next(cursor: &mut TreeCursor<'_>, into: bool) -> bool {
    if into && cursor.goto_first_child() {
        return true;
    }
    while !cursor.goto_next_sibling() {
        if !cursor.goto_parent() {
            return false;
        }
    }
    true
}

fn is_statement(kind: &str) -> bool {
    kind.ends_with("_statement") || matches!(kind, "function_definition" | "class_definition")
}

/// The problem of one node.
fn problem(node: Node<'_>, code: &str) -> Option<Message> {
    if node.is_error() {
        let found: String =
            code[node.byte_range()].lines().next().unwrap_or_default().chars().take(40).collect();
        return Some(Message::at(node, format!("invalid syntax near `{}`", found.trim())));
    }
    if node.is_missing() {
        return Some(Message::at(node, format!("expected `{}`", node.kind())));
    }
    match node.kind() {
        "print_statement" | "exec_statement" => Some(Message::at(node, "a statement of Python 2")),
        "module" => indentation(node, code, Some(0)),
        "block" => indentation(node, code, None),
        _ => None,
    }
}

/// The statements of a block start in one column, and there is at least one.
fn indentation(block: Node<'_>, code: &str, mut expected: Option<usize>) -> Option<Message> {
    let mut cursor = block.walk();
    let mut last_line = None;
    let mut empty = block.kind() == "block";
    for statement in block.named_children(&mut cursor) {
        if statement.kind() == "comment" || statement.is_extra() {
            continue;
        }
        empty = false;
        let start = statement.start_position();
        // Behind a `;`, or on the line of the block's head, the column is free.
        let line_start = statement.start_byte() - start.column;
        let leads_its_line = code[line_start..statement.start_byte()].chars().all(char::is_whitespace);
        if leads_its_line && last_line != Some(start.row) {
            match expected {
                Some(column) if column != start.column => {
                    return Some(Message::at(statement, "the indentation does not match the block"));
                }
                _ => expected = Some(start.column),
            }
        }
        last_line = Some(statement.end_position().row);
    }
    empty.then(|| Message::at(block, "expected an indented block"))
}
