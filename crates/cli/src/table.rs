//! Tables for people.

use std::io::{self, IsTerminal as _};

use anabranch_text::Plain;

/// A table: a header, and rows with the same number of cells.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    widest: usize,
}

/// The most characters of a cell. Longer ones are cut; an address is not longer.
const WIDEST: usize = 64;

impl Table {
    /// A table with these columns.
    pub(crate) fn new<S: Into<String>>(head: impl IntoIterator<Item = S>) -> Table {
        Table { rows: vec![head.into_iter().map(Into::into).collect()], widest: WIDEST }
    }

    /// The same table, whose cells are cut only for a terminal.
    pub(crate) fn whole_in_pipes(mut self) -> Table {
        if !io::stdout().is_terminal() {
            self.widest = usize::MAX;
        }
        self
    }

    /// Adds a row.
    pub(crate) fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        let cells: Vec<String> = cells.into_iter().map(|cell| shown(&cell.into(), self.widest)).collect();
        debug_assert_eq!(cells.len(), self.rows[0].len(), "a cell a column");
        self.rows.push(cells);
    }

    /// The table as text, with an indent. Columns of numbers are right-aligned.
    pub(crate) fn text(&self, indent: usize) -> String {
        let count = self.rows[0].len();
        let width =
            |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..count).map(width).collect();
        let numeric = |column: usize| {
            let is_number = |row: &Vec<String>| row[column].is_empty() || row[column].parse::<f64>().is_ok();
            self.rows.len() > 1 && self.rows[1..].iter().all(is_number)
        };
        let numeric: Vec<bool> = (0..count).map(numeric).collect();
        let mut text = String::new();
        for (at, row) in self.rows.iter().enumerate() {
            let cells = row.iter().enumerate().map(|(column, cell)| {
                let width = widths[column];
                if numeric[column] { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
            });
            push_line(&mut text, indent, &cells.collect::<Vec<_>>());
            if at == 0 {
                let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
                push_line(&mut text, indent, &rule);
            }
        }
        text
    }
}

fn push_line(text: &mut String, indent: usize, cells: &[String]) {
    text.push_str(&" ".repeat(indent));
    text.push_str(cells.join("  ").trim_end());
    text.push('\n');
}

/// A cell on one line, without control characters, because names may be untrusted.
fn shown(cell: &str, widest: usize) -> String {
    let plain = Plain(cell).to_string();
    match plain.char_indices().nth(widest) {
        Some(_) => plain.chars().take(widest - 1).chain(['…']).collect(),
        None => plain,
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::Table;

    #[test]
    fn numbers_are_flush_right() {
        let mut table = Table::new(["id", "name"]);
        table.row(["7", "a\tb"]);
        table.row(["1000", "\u{1b}[31m\u{202e}"]);
        expect![[r#"
              id  name
            ----  ------------------
               7  a b
            1000  \u{1b}[31m\u{202e}
        "#]]
        .assert_eq(&table.text(0));
    }
}
