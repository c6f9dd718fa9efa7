//! TypeScript to JavaScript: the only place that knows the parser.
//!
//! A file is parsed, walked once, and changed in place: types are removed, and operators become calls. Everything else
//! stays unchanged, so that a location in the running code is a location in the source.

use std::collections::BTreeSet;

use crate::job::{At, Fault, Method, Site};
use edits::Map;

mod edits;
mod parse;
mod modules;
mod walk;
mod blank;
mod class;
mod lift;
mod call;
#[cfg(test)]
mod tests;

/// The most faults of a file that are reported.
const MAX_FAULTS: usize = 1_000;

/// The imports and exports of a file.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    /// The modules it imports from, in order, each once.
    pub(crate) imports: Vec<Import>,
    /// The exports that are only types.
    pub(crate) types: BTreeSet<String>,
    /// The other exports that it declares.
    pub(crate) values: BTreeSet<String>,
    /// The re-exports of other files, where only those files know whether the name is a type.
    pub(crate) forwards: Vec<Forward>,
}

/// Something of another file that a file exports.
#[derive(Debug)]
pub(crate) struct Forward {
    pub(crate) specifier: String,
    /// Its name there and here; `None` for all exports under their own names.
    pub(crate) names: Option<(String, String)>,
}

/// An import.
#[derive(Debug)]
pub(crate) struct Import {
    pub(crate) specifier: String,
    pub(crate) at: At,
}

/// A file as JavaScript.
#[derive(Debug)]
pub(crate) struct Unit {
    /// The module.
    pub(crate) code: String,
    map: Map,
}

/// Finds the imports of a file.
pub(crate) fn scan(file: u32, text: &str) -> Result<Scan, Vec<Fault>> {
    parse::with_program(text, |parsed| {
        let faults = parse::faults(file, text, &parsed);
        if faults.is_empty() { Ok(modules::scan(file, &parsed.program)) } else { Err(told(faults)) }
    })
}

/// The faults to report: in order, and limited in number.
fn told(mut faults: Vec<Fault>) -> Vec<Fault> {
    faults.sort_by_key(|fault| fault.at.map(|at| at.start));
    faults.truncate(MAX_FAULTS);
    faults
}

/// Blanks types and lifts operators. `is_type` says whether a name that is imported from a specifier is a type only;
/// places that the running code will refer to are added to `sites`.
pub(crate) fn rewrite(
    file: u32,
    text: &str,
    methods: &[Method],
    is_type: &dyn Fn(&str, &str) -> bool,
    sites: &mut Vec<Site>,
) -> Result<Unit, Vec<Fault>> {
    let known = sites.len();
    let outcome = parse::with_program(text, |parsed| {
        let mut faults = parse::faults(file, text, &parsed);
        let (edits, found) = walk::walk(file, text, &parsed, (methods, is_type), sites);
        faults.extend(found);
        if faults.is_empty() { Ok(edits) } else { Err(faults) }
    });
    match outcome {
        Ok(edits) => {
            let (code, map) = edits.apply(text);
            Ok(Unit { code, map })
        }
        Err(faults) => {
            sites.truncate(known);
            Err(told(faults))
        }
    }
}

impl Unit {
    /// The byte of the original that a line and a column of the code come from, both from 1; columns count bytes.
    pub(crate) fn original(&self, line: u32, column: u32) -> u32 {
        self.map.original(self.map.offset(&self.code, line, column))
    }
}
