//! What a command says: data to stdout, the rest to stderr.

use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use anabranch_plan::{Problem, Problems};

use crate::failure::Failure;

/// Writes data to stdout.
pub(crate) fn data(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Failure::Unheard),
        Err(error) => Err(Failure::of(format!("cannot write to stdout: {error}"))),
    }
}

/// Writes a line to stderr; when that cannot be done there is nobody to tell.
pub(crate) fn note(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Tells what is wrong with an input: all of it.
pub(crate) fn problems(problems: &Problems) {
    problems.errors.iter().for_each(|problem| note(&told("error", problem)));
    warnings(&problems.warnings);
    match problems.errors.len() {
        1 => {}
        count => note(&format!("{count} errors")),
    }
}

/// Tells what is odd.
pub(crate) fn warnings(problems: &[Problem]) {
    problems.iter().for_each(|problem| note(&told("warning", problem)));
}

/// A problem in words, with the line of the source that it is about.
pub(crate) fn told(what: &str, problem: &Problem) -> String {
    match (&problem.excerpt, &problem.help) {
        (None, _) => format!("{what}: {problem}"),
        (Some(excerpt), None) => format!("{what}: {}: {}\n{excerpt}", problem.place, problem.what),
        (Some(excerpt), Some(help)) => {
            format!("{what}: {}: {}\n{excerpt}\n  help: {help}", problem.place, problem.what)
        }
    }
}

/// Writes a file.
pub(crate) fn file(path: &Path, content: &str) -> Result<(), Failure> {
    std::fs::write(path, content)
        .map_err(|error| Failure::of(format!("cannot write {}: {error}", path.display())))
}

/// What became of a plan with so many errors and warnings.
pub(crate) fn status(errors: usize, warnings: usize) -> String {
    match (errors as u64, warnings as u64) {
        (0, 0) => "fine".to_owned(),
        (0, warnings) => format!("fine, {}", count(warnings, "warning")),
        (errors, _) => format!("refused, {}", count(errors, "error")),
    }
}

/// `1 trip`, `2 trips`.
pub(crate) fn count(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// A time in milliseconds.
pub(crate) fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}
