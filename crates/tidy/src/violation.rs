//! What a rule found, and how a person reads it.

use std::fmt;

/// One broken house rule: where, what, and the way out.
#[derive(Debug)]
pub struct Violation {
    place: String,
    what: String,
    way_out: String,
}

impl Violation {
    pub(crate) fn new(place: impl Into<String>, what: impl Into<String>, way_out: impl Into<String>) -> Self {
        Self { place: place.into(), what: what.into(), way_out: way_out.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}\n    way out: {}", self.place, self.what, self.way_out)
    }
}

/// All violations as one text, a paragraph each; empty when there are none.
pub fn report(violations: &[Violation]) -> String {
    violations.iter().map(|violation| format!("{violation}\n")).collect()
}

/// Compares places and what is wrong there, a line each.
#[cfg(test)]
pub(crate) fn assert_found(found: &[Violation], expected: &expect_test::Expect) {
    let lines: Vec<String> = found.iter().map(|found| format!("{}: {}", found.place, found.what)).collect();
    expected.assert_eq(&lines.join("\n"));
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::{Violation, report};

    #[test]
    fn a_report_says_place_fault_and_way_out() {
        let found =
            [Violation::new("a.rs:3", "has a flaw", "mend it"), Violation::new("b", "is bad", "leave it")];
        expect![[r#"
            a.rs:3: has a flaw
                way out: mend it
            b: is bad
                way out: leave it
        "#]]
        .assert_eq(&report(&found));
    }
}
