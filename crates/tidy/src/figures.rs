//! Rule: figures in the README are those of committed measurements.
//!
//! A line that names a file of `bench/runs/` has its figures in bold. Each of them is a cell of a table in that file, and no
//! newer run of the same bench has measured the same row.

use crate::{Policy, Violation, Workspace};

const PAGE: &str = "README.md";
const RUNS: &str = "bench/runs/";
/// The length of `2026-01-02`.
const DATE: usize = 10;

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
    let (rows, newer) = (rows(measured), newer(tree, run));
    let mut found = Vec::new();
    for figure in figures {
        let sources: Vec<&Row> = rows.iter().filter(|row| row.has(figure)).collect();
        if sources.is_empty() {
            let what = format!("{run} does not have the figure `{figure}` in a cell of its own");
            found.push(Violation::new(place(), what, "copy it from the run, or name the run that has it"));
        }
        let again =
            newer.iter().find(|(_, rows)| sources.iter().any(|row| rows.iter().any(|other| other.is(row))));
        if let Some((file, _)) = again {
            let what = format!("`{figure}` is of {run}, and {file} has measured it again");
            found.push(Violation::new(place(), what, "copy the figure of the newer run, and name that run"));
        }
    }
    found
}

/// The run that a line names.
fn run(line: &str) -> Option<&str> {
    let from = line.find(RUNS)?;
    let end = line[from..].find(".md")?;
    (end > RUNS.len()).then(|| &line[from..from + end + ".md".len()])
}

/// The later runs of the same bench. A run that leaves out a table, because it was made for another one, replaces nothing
/// there.
fn newer<'t>(tree: &'t Workspace, run: &str) -> Vec<(&'t str, Vec<Row<'t>>)> {
    let Some((date, bench)) = dated(run) else { return Vec::new() };
    let is_newer = |file: &str| dated(file).is_some_and(|(day, kind)| kind == bench && day > date);
    let runs = tree.texts("md").filter(|(file, _)| is_newer(file));
    runs.map(|(file, text)| (file, rows(text))).collect()
}

/// The day and the bench of `bench/runs/2026-01-02-plan.md`.
fn dated(run: &str) -> Option<(&str, &str)> {
    let name = run.strip_prefix(RUNS)?.strip_suffix(".md")?;
    Some((name.get(..DATE)?, name.get(DATE + 1..)?))
}

/// A row of a table, and the heading above it.
struct Row<'t> {
    heading: &'t str,
    cells: Vec<&'t str>,
}

impl Row<'_> {
    /// True if the figure is a cell, or an item of a cell that is a list.
    fn has(&self, figure: &str) -> bool {
        let mut items = self.cells.iter().flat_map(|cell| cell.split(", ").flat_map(|part| part.split("; ")));
        self.cells.contains(&figure) || items.any(|item| item == figure)
    }

    /// True if both rows measure the same.
    fn is(&self, other: &Row) -> bool {
        self.heading == other.heading && self.cells.first() == other.cells.first()
    }
}

fn rows(text: &str) -> Vec<Row<'_>> {
    let mut heading = "";
    let mut rows = Vec::new();
    for line in text.lines() {
        if line.starts_with('#') {
            heading = line;
        } else if let Some(cells) = line.strip_prefix('|') {
            let cells = cells.trim_end().trim_end_matches('|').split('|').map(str::trim).collect();
            rows.push(Row { heading, cells });
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    const PLAN: &str = "bench/runs/2026-01-02-plan.md";

    fn check_beside(line: &str, newer: &[(&str, &str)], expected: &Expect) {
        let table = "## Feed\n\n| work | CPU | others |\n| feed | 0.12x | 2.5x, 17.3x; 4x |\n";
        let files = [("README.md", line), (PLAN, table)].into_iter().chain(newer.iter().copied());
        let tree = Workspace::of(files);
        let found = super::check(&tree, &Policy::of_this_repository());
        expected.assert_eq(&crate::report(&found));
    }

    fn check(line: &str, expected: &Expect) {
        check_beside(line, &[], expected);
    }

    #[test]
    fn figures_are_those_of_the_run() {
        check("**0.12x** of the CPU (`bench/runs/2026-01-02-plan.md`)", &expect![""]);
        check("**2.5x**, **17.3x**, **4x** (`bench/runs/2026-01-02-plan.md`)", &expect![""]);
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
            README.md:1: bench/runs/2026-01-02-plan.md does not have the figure `0.11x` in a cell of its own
                way out: copy it from the run, or name the run that has it
        "#]],
        );
    }

    #[test]
    fn a_part_of_a_figure_is_another_figure() {
        check(
            "**7.3x** as fast (`bench/runs/2026-01-02-plan.md`)",
            &expect![[r#"
            README.md:1: bench/runs/2026-01-02-plan.md does not have the figure `7.3x` in a cell of its own
                way out: copy it from the run, or name the run that has it
        "#]],
        );
    }

    #[test]
    fn the_newest_run_of_a_row_counts() {
        let line = "**0.12x** of the CPU (`bench/runs/2026-01-02-plan.md`)";
        let again = "## Feed\n\n| work | CPU |\n| feed | 0.15x |\n";
        check_beside(
            line,
            &[("bench/runs/2026-01-03-plan.md", again)],
            &expect![[r#"
            README.md:1: `0.12x` is of bench/runs/2026-01-02-plan.md, and bench/runs/2026-01-03-plan.md has measured it again
                way out: copy the figure of the newer run, and name that run
        "#]],
        );
        let others = [
            ("bench/runs/2026-01-01-plan.md", again),
            ("bench/runs/2026-01-03-serve.md", again),
            ("bench/runs/2026-01-04-plan.md", "## Feed\n\n| work | CPU |\n| other | 0.15x |\n"),
            ("bench/runs/2026-01-05-plan.md", "## Other\n\n| work | CPU |\n| feed | 0.15x |\n"),
        ];
        check_beside(line, &others, &expect![""]);
    }
}
