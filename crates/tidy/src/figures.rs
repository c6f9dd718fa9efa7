//! Rule: figures in the README are those of committed measurements.
//!
//! A line that names a file of `bench/runs/` has its figures in bold, and each of them is in that file.

use crate::{Policy, Violation, Workspace};

const PAGE: &str = "README.md";
const RUNS: &str = "bench/runs/";

/// Checks every line of the README that names a run.
pub fn check(tree: &Workspace, _: &Policy) -> Vec<Violation> {
    let pages = tree.texts("md").filter(|(file, _)| *file == PAGE);
    pages
        .flat_map(|(_, text)| text.lines().zip(1..).flat_map(|(line, number)| check_line(tree, line, number)))
        .collect()
}

fn check_line(tree: &Workspace, line: &str, number: usize) -> Vec<Violation> {
    let place = || format!("{PAGE}:{number}");
    let Some(run) = run(line) else { return Vec::new() };
    let Some((_, measured)) = tree.texts("md").find(|(file, _)| *file == run) else {
        // The rule about paths in documents reports it.
        return Vec::new();
    };
    let figures: Vec<&str> = line.split("**").skip(1).step_by(2).collect();
    if figures.is_empty() {
        let what = format!("names {run} and has no figure of it");
        return vec![Violation::new(place(), what, "write the figure in bold, as the run has it")];
    }
    let is_missing = |figure: &&&str| !measured.contains(**figure);
    let missing = figures.iter().filter(is_missing).map(|figure| {
        let what = format!("{run} does not have the figure `{figure}`");
        Violation::new(place(), what, "copy it from the run, or name the run that has it")
    });
    missing.collect()
}

/// The run that a line names.
fn run(line: &str) -> Option<&str> {
    let from = line.find(RUNS)?;
    let end = line[from..].find(".md")?;
    (end > RUNS.len()).then(|| &line[from..from + end + ".md".len()])
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(line: &str, expected: &Expect) {
        let run = ("bench/runs/2026-01-02-plan.md".to_owned(), "| feed | 0.12x |".to_owned());
        let tree = Workspace::of(vec![("README.md".to_owned(), line.to_owned()), run]);
        let found = super::check(&tree, &Policy::of_this_repository());
        expected.assert_eq(&crate::report(&found));
    }

    #[test]
    fn figures_are_those_of_the_run() {
        check("**0.12x** of the CPU (`bench/runs/2026-01-02-plan.md`)", &expect![""]);
        check("Runs are in `bench/runs`.", &expect![""]);
        check(
            "fast (`bench/runs/2026-01-02-plan.md`)",
            &expect![[r#"
            README.md:1: names bench/runs/2026-01-02-plan.md and has no figure of it
                way out: write the figure in bold, as the run has it
        "#]],
        );
        check(
            "**0.11x** of the CPU, **0.12x** of it (`bench/runs/2026-01-02-plan.md`)",
            &expect![[r#"
            README.md:1: bench/runs/2026-01-02-plan.md does not have the figure `0.11x`
                way out: copy it from the run, or name the run that has it
        "#]],
        );
    }
}
