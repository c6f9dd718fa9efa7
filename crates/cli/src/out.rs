//! The output of a command: data to stdout, the rest to stderr.

use std::io::{self, Write as _};
use std::path::Path;

use anabranch_text::{Plain, Problem, Problems, count};

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

/// Writes lines to stderr, without control characters: names and messages in them may be a stranger's. When it cannot
/// be written there is nobody to tell.
pub(crate) fn note(lines: &str) {
    let mut stderr = io::stderr().lock();
    for line in lines.split('\n') {
        let _ = writeln!(stderr, "{}", Plain(line));
    }
}

/// Tells what is wrong with an input: all of it.
pub(crate) fn problems(problems: &Problems) {
    problems.errors.iter().for_each(|problem| note(&problem.report("error").to_string()));
    warnings(&problems.warnings);
    match problems.errors.len() {
        1 => {}
        count => note(&format!("{count} errors")),
    }
}

/// Tells what is odd.
pub(crate) fn warnings(problems: &[Problem]) {
    problems.iter().for_each(|problem| note(&problem.report("warning").to_string()));
}

/// Writes a file.
pub(crate) fn file(path: &Path, content: &str) -> Result<(), Failure> {
    std::fs::write(path, content)
        .map_err(|error| Failure::of(format!("cannot write {}: {error}", path.display())))
}

/// The summary of a plan with so many errors and warnings.
pub(crate) fn status(errors: usize, warnings: usize) -> String {
    match (errors, warnings) {
        (0, 0) => "fine".to_owned(),
        (0, warnings) => format!("fine, {}", count(warnings, "warning")),
        (errors, _) => format!("refused, {}", count(errors, "error")),
    }
}
