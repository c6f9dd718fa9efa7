//! SQL code: by sqlfluff, or by the parser of the dialect.

use std::collections::HashMap;
use std::sync::LazyLock;

use anabranch_engine::Check;
use anabranch_value::Value;
use regex::Regex;
use serde::Deserialize;
use sqlparser::dialect;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use super::child::{self, TempFolder};
use super::code::Tool;
use crate::column_type::ColumnType;
use crate::fault::Fault;

/// The maximum nesting depth of a statement. The parser tries some nested forms more than once per level.
const MAX_DEPTH: usize = 24;

/// The most words and operators between two semicolons: a chain of operators becomes a tree as deep as the chain.
const MAX_WORDS: usize = 4_000;

/// The stack of the parser's thread, of which only the used part takes memory.
const STACK: usize = 64 << 20;

/// The message about code without a statement.
const EMPTY: &str = "there is no statement";

/// A dialect of SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    Ansi,
    Postgres,
    MySql,
    Sqlite,
    BigQuery,
    TSql,
}

impl Dialect {
    pub(super) fn new(name: &str) -> Option<Dialect> {
        Some(match name {
            "ansi" => Dialect::Ansi,
            "postgres" => Dialect::Postgres,
            "mysql" => Dialect::MySql,
            "sqlite" => Dialect::Sqlite,
            "bigquery" => Dialect::BigQuery,
            "tsql" => Dialect::TSql,
            _ => return None,
        })
    }

    /// The name that sqlfluff has for it.
    fn name(self) -> &'static str {
        match self {
            Dialect::Ansi => "ansi",
            Dialect::Postgres => "postgres",
            Dialect::MySql => "mysql",
            Dialect::Sqlite => "sqlite",
            Dialect::BigQuery => "bigquery",
            Dialect::TSql => "tsql",
        }
    }

    fn parser(self) -> &'static dyn dialect::Dialect {
        match self {
            Dialect::Ansi => &dialect::AnsiDialect {},
            Dialect::Postgres => &dialect::PostgreSqlDialect {},
            Dialect::MySql => &dialect::MySqlDialect {},
            Dialect::Sqlite => &dialect::SQLiteDialect {},
            Dialect::BigQuery => &dialect::BigQueryDialect {},
            Dialect::TSql => &dialect::MsSqlDialect {},
        }
    }
}

/// The type of a verdict about SQL code.
pub(super) fn verdict_type() -> ColumnType {
    ColumnType::Struct(vec![
        ("is_valid".into(), ColumnType::Bool),
        ("error_messages".into(), ColumnType::Text),
        ("validator".into(), ColumnType::Text),
    ])
}

fn verdict(messages: &[String], validator: &str) -> Value {
    Value::map([
        ("is_valid", Value::Bool(messages.is_empty())),
        ("error_messages", messages.join("\n").into()),
        ("validator", validator.into()),
    ])
}

/// The verdicts of the parser. It and its trees recurse, so it has a thread with a stack for the deepest allowed code.
pub(super) fn parse_all(dialect: Dialect, codes: Vec<Result<&str, String>>) -> Result<Vec<Value>, Fault> {
    let fault = |problem: String| Fault::transient("validator", format!("the SQL parser {problem}"));
    std::thread::scope(|threads| {
        let thread = std::thread::Builder::new().name("sql-parser".into()).stack_size(STACK);
        let parser =
            thread.spawn_scoped(threads, || codes.into_iter().map(|code| parse(dialect, code)).collect());
        let parser = parser.map_err(|error| fault(format!("could not be started: {error}")))?;
        parser.join().map_err(|_| fault("panicked".into()))
    })
}

/// The verdict of the parser.
fn parse(dialect: Dialect, code: Result<&str, String>) -> Value {
    let messages = match code {
        Ok(code) => syntax(dialect, code).err().into_iter().chain(scales(code)).collect(),
        Err(problem) => vec![problem],
    };
    verdict(&messages, "parser")
}

fn syntax(dialect: Dialect, code: &str) -> Result<(), String> {
    let parser = dialect.parser();
    let tokens = Tokenizer::new(parser, code).tokenize_with_location().map_err(|error| error.to_string())?;
    if tokens.iter().all(|token| matches!(token.token, Token::Whitespace(_) | Token::SemiColon | Token::EOF))
    {
        return Err(EMPTY.into());
    }
    bounded(&tokens)?;
    let mut parser = Parser::new(parser).with_recursion_limit(MAX_DEPTH).with_tokens_with_locations(tokens);
    parser.parse_statements().map(drop).map_err(|error| match error {
        sqlparser::parser::ParserError::RecursionLimitExceeded => {
            format!("the statement is nested deeper than {MAX_DEPTH} levels and was not checked")
        }
        other => other.to_string(),
    })
}

/// Keeps the tree of a statement shallow enough for the stack.
fn bounded(tokens: &[TokenWithSpan]) -> Result<(), String> {
    let mut words = 0;
    for token in tokens {
        match token.token {
            Token::SemiColon => words = 0,
            Token::Whitespace(_) | Token::Comma | Token::LParen | Token::RParen => {}
            Token::Number(..) | Token::SingleQuotedString(_) | Token::DoubleQuotedString(_) => {}
            _ => words += 1,
        }
        if words > MAX_WORDS {
            return Err(format!("a statement has more than {MAX_WORDS} words and was not checked"));
        }
    }
    Ok(())
}

/// `DECIMAL(10)` cuts off fractions: nearly always the scale was forgotten.
fn scales(code: &str) -> Vec<String> {
    static SCALE: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"(?i)\bDECIMAL\s*\(\s*\d+\s*\)").expect("the pattern is fixed"));
    let message = |found: regex::Match<'_>| {
        let line = code[..found.start()].matches('\n').count() + 1;
        format!("line {line}: `{}` has no scale: write DECIMAL(precision, scale)", found.as_str())
    };
    SCALE.find_iter(code).take(100).map(message).collect()
}

/// The verdicts of sqlfluff: one run for all codes.
pub(super) fn lint(
    tool: &Tool,
    dialect: Dialect,
    codes: &[Result<&str, String>],
    check: &Check<'_>,
) -> Result<Vec<Value>, Fault> {
    #[derive(Deserialize)]
    struct Report {
        filepath: String,
        violations: Vec<Violation>,
    }
    #[derive(Deserialize)]
    struct Violation {
        code: String,
        description: String,
    }
    let folder = TempFolder::new()?;
    for (row, code) in codes.iter().enumerate() {
        folder.write(&format!("row_{row}.sql"), code.as_ref().map_or("", |code| code))?;
    }
    let arguments = [
        "lint",
        "--dialect",
        dialect.name(),
        "--format",
        "json",
        "--rules",
        "LT01",
        "--templater",
        "raw",
        "--nofail",
        "--ignore-local-config",
        "--disable-progress-bar",
        "--processes",
        "1",
        ".",
    ];
    let output = child::run(&tool.path, &arguments, folder.path(), tool.wall, check)?;
    let reports: Vec<Report> = serde_json::from_str(&output).map_err(|error| {
        Fault::transient("validator", format!("sqlfluff's output is not readable: {error}"))
    })?;
    let mut by_file: HashMap<String, Vec<String>> = HashMap::new();
    for report in reports {
        let name = std::path::Path::new(&report.filepath)
            .file_stem()
            .map(|name| name.to_string_lossy().into_owned());
        let errors = report.violations.into_iter().filter(|violation| violation.code == "PRS");
        let errors = errors.map(|violation| format!("PRS: {}", violation.description)).collect();
        by_file.insert(name.unwrap_or_default(), errors);
    }
    let version = tool.version(check);
    let verdicts = codes.iter().enumerate().map(|(row, code)| match code {
        Ok(code) if code.trim().is_empty() => verdict(&[EMPTY.to_owned()], version),
        Ok(code) => {
            let unchecked = || vec!["sqlfluff did not report on the statement".to_owned()];
            let mut messages = by_file.remove(&format!("row_{row}")).unwrap_or_else(unchecked);
            messages.extend(scales(code));
            verdict(&messages, version)
        }
        Err(problem) => verdict(std::slice::from_ref(problem), version),
    });
    Ok(verdicts.collect())
}
