//! `anabranch dataset diff`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anabranch_dataset_inspect::{
    ColumnDifference, Difference, RowName, RowsDifference, SectionDifference, SpendChange, grouped, money,
};
use anabranch_text::Plain;
use clap::Args;

use super::report_command::unread;
use crate::failure::Failure;
use crate::out;
use crate::table::Table;

/// The end of the help text.
pub(super) const HELP: &str = "\
Rows are the same row if they have the same stable number, whatever their order and row groups; rows
that a processor added have none and are compared in their order. Settings, inputs and models that
differ, failed cells and spend are shown beside the rows, but do not make datasets different.

  anabranch dataset diff tickets-monday tickets-tuesday
  anabranch dataset diff tickets-monday tickets-tuesday --json

Exit codes: 0 rows, columns and cells are equal; 1 they differ, or a dataset cannot be read (stderr
says why); 2 wrong usage.";

/// Compares two built datasets.
#[derive(Args)]
pub(crate) struct Diff {
    /// The folder of the first dataset.
    #[arg(value_name = "A")]
    before: PathBuf,
    /// The folder of the second dataset.
    #[arg(value_name = "B")]
    after: PathBuf,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

impl Diff {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let found = Difference::read(&self.before, &self.after).map_err(|error| {
            let of = |folder: &Path| error.path.starts_with(folder);
            let folder = if of(&self.after) && !of(&self.before) { &self.after } else { &self.before };
            unread(folder, error)
        })?;
        match self.json {
            true => {
                let mut json = serde_json::to_value(&found).expect("numbers and texts are JSON");
                json["equal"] = found.is_equal().into();
                out::data(&format!("{json}\n"))?;
            }
            false => out::data(&text(&found))?,
        }
        if found.is_equal() { Ok(()) } else { Err(Failure::Reported) }
    }
}

fn text(found: &Difference) -> String {
    let mut text = String::new();
    for (what, stages) in [("removed", &found.stages_removed), ("added", &found.stages_added)] {
        for stage in stages {
            writeln!(text, "stage {} {what}", Plain(stage)).expect("a String takes it all");
        }
    }
    let sections: Vec<String> = found.sections.iter().map(section).collect();
    text + &sections.join("\n")
}

fn section(found: &SectionDifference) -> String {
    let SectionDifference { stage, data, .. } = found;
    let mut text = match stage {
        Some(stage) => format!("stage {}: ", Plain(stage)),
        None => String::new(),
    };
    text.push_str(if data.is_equal() { "equal\n" } else { "different\n" });
    text.push_str(&rows(data));
    text.push('\n');
    text.push_str(&columns(&data.columns));
    for column in data.columns.iter().filter(|column| !column.examples.is_empty()) {
        text.push_str(&examples(column));
    }
    let mut part = |title: &str, table: Option<Table>| {
        if let Some(table) = table {
            write!(text, "\n{title}\n{}", table.text(2)).expect("a String takes it all");
        }
    };
    part("settings that differ", settings(found));
    part("failed cells", errors(found));
    part("spend", spend(&found.spent));
    text
}

fn rows(data: &RowsDifference) -> String {
    let numbers = |rows: &[RowName], count: u64| {
        let shown: Vec<&str> = rows.iter().map(|row| row.row.as_str()).collect();
        let more = if count > rows.len() as u64 { ", …" } else { "" };
        if shown.is_empty() { String::new() } else { format!(" (row {}{more})", shown.join(", ")) }
    };
    let (removed, added) = (data.rows_removed(), data.rows_added());
    format!(
        "  rows  A has {}, B has {}: {} in both, {} of them changed; {} only in A{}, {} only in B{}\n",
        grouped(data.rows_before),
        grouped(data.rows_after),
        grouped(data.rows_in_both),
        grouped(data.rows_changed),
        grouped(removed),
        numbers(&data.removed_rows, removed),
        grouped(added),
        numbers(&data.added_rows, added),
    )
}

fn columns(columns: &[ColumnDifference]) -> String {
    let mut table = Table::new(["column", "type", "equal cells", "changed", "remarks"]);
    for column in columns {
        let (before, after) = (column.type_before.as_deref(), column.type_after.as_deref());
        let (shown, remark) = match (before, after) {
            (Some(before), Some(after)) if before != after => (after, format!("was {before}")),
            (Some(_), Some(after)) => (after, String::new()),
            (Some(before), None) => (before, "only in A".to_owned()),
            (None, after) => (after.unwrap_or_default(), "only in B".to_owned()),
        };
        let counts = match (before, after) {
            (Some(_), Some(_)) => [column.equal.to_string(), column.changed.to_string()],
            _ => Default::default(),
        };
        table.row([column.name.clone(), shown.to_owned()].into_iter().chain(counts).chain([remark]));
    }
    table.text(2)
}

fn examples(column: &ColumnDifference) -> String {
    let mut text = format!("\nchanged cells of {}\n", Plain(&column.name));
    for change in &column.examples {
        let row = change.row.as_ref();
        let row = row.map_or_else(|| "a row without a number".to_owned(), |row| format!("row {row}"));
        writeln!(text, "  {row}\n    A: {}\n    B: {}", Plain(&change.before), Plain(&change.after))
            .expect("a String takes it all");
    }
    let shown = column.examples.len() as u64;
    if column.changed > shown {
        writeln!(text, "  … {} more", grouped(column.changed - shown)).expect("a String takes it all");
    }
    text
}

fn settings(found: &SectionDifference) -> Option<Table> {
    let mut table = Table::new(["", "A", "B"]);
    for setting in &found.settings {
        let shown = |value: &Option<String>| value.clone().unwrap_or_default();
        table.row([setting.name.clone(), shown(&setting.before), shown(&setting.after)]);
    }
    (!found.settings.is_empty()).then_some(table)
}

fn errors(found: &SectionDifference) -> Option<Table> {
    let mut table = Table::new(["column", "class", "A", "B"]);
    for change in &found.errors {
        let counts = [change.before.to_string(), change.after.to_string()];
        table.row([change.column.clone(), change.class.clone()].into_iter().chain(counts));
    }
    (!found.errors.is_empty()).then_some(table)
}

fn spend(SpendChange { before, after }: &SpendChange) -> Option<Table> {
    let mut table = Table::new(["", "A", "B"]);
    let counts = [
        ("calls", before.calls, after.calls),
        ("reused replies", before.reused, after.reused),
        ("tokens in", before.input_tokens, after.input_tokens),
        ("tokens out", before.output_tokens, after.output_tokens),
    ];
    for (name, before, after) in counts {
        table.row([name.to_owned(), before.to_string(), after.to_string()]);
    }
    if before.cost.is_some() || after.cost.is_some() {
        let [before, after] = [before, after].map(|spent| spent.cost.map(money).unwrap_or_default());
        table.row(["cost".to_owned(), before, after]);
    }
    (!before.lines.is_empty() || !after.lines.is_empty()).then_some(table)
}
