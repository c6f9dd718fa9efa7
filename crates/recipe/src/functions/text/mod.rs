//! Functions that work on text and lines.

mod split;
mod pattern;
mod pike;
mod chars;
mod lines;
mod order;
mod several;
mod select;
mod replace;
mod diff;
mod patch;

use crate::function::Fault;
use crate::registry::Functions;

pub(super) use pattern::{Caches, Pattern, PatternCompiler};
pub(super) use split::{LineVisitor, of_lines, shown};

pub(super) fn add(functions: &mut Functions) {
    chars::add(functions);
    lines::add(functions);
    order::add(functions);
    several::add(functions);
    select::add(functions);
    replace::add(functions);
    diff::add(functions);
    patch::add(functions);
}

/// A whole input as UTF-8 text.
pub(super) fn text(input: usize, bytes: &[u8]) -> Result<&str, Fault> {
    let problem = |error: std::str::Utf8Error| format!("not UTF-8 at byte {}", error.valid_up_to());
    std::str::from_utf8(bytes).map_err(|error| Fault::input(input, problem(error)))
}
