//! Tables, for the terminal and for the dated file of a run.

use std::path::Path;
use std::process::Command;
use std::{fmt, fs, io};

/// Text that is printed as it grows and kept at the end.
pub(crate) struct Report {
    name: &'static str,
    date: String,
    text: String,
}

impl Report {
    /// Begins the report of `./dev bench NAME` with where and when it is made.
    pub(crate) fn new(name: &'static str) -> Report {
        let date = output_of("date", "+%F");
        let mut report = Report { name, date, text: String::new() };
        report.say(format_args!("# Bench `{name}`, {}\n", report.date.clone()));
        report.say(format_args!("Made by `./dev bench {name}` on {}.", machine()));
        report
    }

    pub(crate) fn say(&mut self, line: impl fmt::Display) {
        println!("{line}");
        self.text += &format!("{line}\n");
    }

    pub(crate) fn heading(&mut self, title: &str) {
        self.say(format_args!("\n## {title}\n"));
    }

    /// A table; its first row is the heading. Cells are padded, so that it reads well as plain text too.
    pub(crate) fn table(&mut self, rows: &[Vec<String>]) {
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
        for (number, row) in rows.iter().enumerate() {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            self.say(format_args!("| {} |", cells.collect::<Vec<_>>().join(" | ")));
            if number == 0 {
                let rules = widths.iter().map(|width| "-".repeat(*width));
                self.say(format_args!("| {} |", rules.collect::<Vec<_>>().join(" | ")));
            }
        }
    }

    /// Keeps the report beside the earlier ones; a second run on the same day replaces the first.
    pub(crate) fn keep(self) -> io::Result<()> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("runs");
        fs::create_dir_all(&folder)?;
        let name = self.name.replace(" --only ", "-");
        fs::write(folder.join(format!("{}-{name}.md", self.date)), self.text)
    }
}

/// A row of a table.
pub(crate) fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).into()
}

fn machine() -> String {
    let cpu = first_line("/proc/cpuinfo", |line| line.strip_prefix("model name")?.split(": ").nth(1));
    let load = first_line("/proc/loadavg", |line| line.get(..14));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let rustc = output_of("rustc", "-V");
    format!("{cores} cores of {cpu}, {}, {rustc}; load average {load}", output_of("uname", "-sm"))
}

fn first_line(file: &str, pick: impl Fn(&str) -> Option<&str>) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().find_map(pick).map_or_else(|| "(unknown)".to_owned(), str::to_owned)
}

fn output_of(command: &str, argument: &str) -> String {
    let output = Command::new(command).arg(argument).output().map(|output| output.stdout);
    String::from_utf8_lossy(&output.unwrap_or_default()).trim().to_owned()
}
