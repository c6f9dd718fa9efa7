use expect_test::Expect;
use oxc_allocator::Allocator;
use oxc_parser::Parser;
use oxc_span::SourceType;

use crate::job::{Fault, Method, Site};
use crate::syntax::{Unit, rewrite, scan};

mod types;
mod statements;
mod operators;
mod calls;
mod modules;
mod faults;
mod places;
mod programs;
mod random;
mod meaning;

/// Ops as methods: two that need options, one that does not.
fn methods() -> Vec<Method> {
    [("viewer", false), ("take", false), ("sort", false), ("concat", true)]
        .map(|(name, bare)| Method {
            op: format!("core::{name}"),
            namespace: "core".to_owned(),
            name: name.to_owned(),
            input: true,
            bare,
        })
        .into()
}

/// In these tests, `Type..` is the name of a type.
fn is_type(specifier: &str, name: &str) -> bool {
    specifier.starts_with("./") && (name.starts_with("Type") || (specifier == "./type" && name == "default"))
}

fn made(source: &str) -> Result<(Unit, Vec<Site>), Vec<Fault>> {
    let mut sites = Vec::new();
    let unit = rewrite(0, source, &methods(), &is_type, &mut sites)?;
    Ok((unit, sites))
}

/// The errors of a text as JavaScript.
fn wrong(code: &str) -> Option<String> {
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, code, SourceType::mjs().with_jsx(false)).parse();
    parsed.diagnostics.errors().next().map(|error| format!("{error:?}"))
}

fn told(source: &str, faults: &[Fault]) -> String {
    let line = |fault: &Fault| {
        let at = fault.at.map(|at| &source[at.start as usize..at.end as usize]);
        format!("{:?}: {}; {}\n", at.unwrap_or("?"), fault.what, fault.help.as_deref().unwrap_or("-"))
    };
    faults.iter().map(line).collect()
}

/// Checks the result for a file, which must be JavaScript.
fn check(source: &str, expect: &Expect) {
    match made(source) {
        Ok((unit, _)) => {
            // Characters that a source file cannot show.
            expect.assert_eq(&unit.code.replace('\r', "␍").replace('\t', "␉"));
            assert_eq!(wrong(&unit.code), None, "{source}\n--\n{}", unit.code);
        }
        Err(faults) => expect.assert_eq(&told(source, &faults)),
    }
}
