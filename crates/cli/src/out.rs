//! The output of a command: data to stdout, the rest to stderr.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;

use anabranch_text::{Plain, Problem, Problems, count};
use serde_json::{Value as Json, json};

use crate::failure::Failure;

/// Writes data to stdout.
pub(crate) fn data(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Failure::OutputClosed),
        Err(error) => Err(Failure::of(format!("cannot write to stdout: {error}"))),
    }
}

/// A line for stdout. On a terminal, it has no control characters, because a file name in it may be untrusted.
pub(crate) fn line(text: &str) -> String {
    if io::stdout().is_terminal() { format!("{}\n", Plain(text)) } else { format!("{text}\n") }
}

/// Writes lines to stderr, without control characters, because names and messages in them may be untrusted. Errors are
/// ignored.
pub(crate) fn note(lines: &str) {
    let mut stderr = io::stderr().lock();
    for line in lines.split('\n') {
        let _ = writeln!(stderr, "{}", Plain(line));
    }
}

/// Reports all problems of an input.
pub(crate) fn problems(problems: &Problems) {
    problems.errors.iter().for_each(|problem| note(&problem.report("error").to_string()));
    warnings(&problems.warnings);
    match problems.errors.len() {
        1 => {}
        count => note(&format!("{count} errors")),
    }
}

/// Reports warnings.
pub(crate) fn warnings(problems: &[Problem]) {
    problems.iter().for_each(|problem| note(&problem.report("warning").to_string()));
}

/// A problem as JSON, with its place in the source if it has one.
pub(crate) fn problem_json(problem: &Problem) -> Json {
    let mut json = json!({"place": problem.place, "what": problem.what, "help": problem.help});
    if let Some(excerpt) = &problem.excerpt {
        json["line"] = excerpt.line.into();
        json["column"] = excerpt.column.into();
        json["width"] = excerpt.width.into();
    }
    json
}

/// Writes a file.
pub(crate) fn file(path: &Path, content: &str) -> Result<(), Failure> {
    std::fs::write(path, content)
        .map_err(|error| Failure::of(format!("cannot write {}: {error}", path.display())))
}

/// The summary of a plan with this many errors and warnings.
pub(crate) fn status(errors: usize, warnings: usize) -> String {
    match (errors, warnings) {
        (0, 0) => "fine".to_owned(),
        (0, warnings) => format!("fine, {}", count(warnings, "warning")),
        (errors, _) => format!("refused, {}", count(errors, "error")),
    }
}
