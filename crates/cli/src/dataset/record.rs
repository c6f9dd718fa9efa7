//! Rows as readable records.

use std::io::{self, IsTerminal as _};

use anabranch_dataset::processor::Table;
use anabranch_text::{Plain, columns, count};
use anabranch_value::{Map, Value};

/// The width of records if stdout is not a terminal, which is also the maximum, and the minimum.
const WIDTH: usize = 100;
const NARROW: usize = 40;
/// The most lines of one text, and the most items of one list.
const MOST_LINES: usize = 40;
const MOST_ITEMS: usize = 20;
/// Values that are nested deeper are shown as JSON.
const DEEPEST: usize = 8;
const STEP: usize = 2;

/// Formats rows as readable records of a given width.
pub(crate) struct Records {
    width: usize,
    text: String,
}

impl Records {
    /// Records as wide as the terminal of stdout, within limits.
    pub(crate) fn for_stdout() -> Records {
        let size =
            io::stdout().is_terminal().then(|| rustix::termios::tcgetwinsize(io::stdout()).ok()).flatten();
        let width = size.map_or(WIDTH, |size| usize::from(size.ws_col));
        Records::new(width.clamp(NARROW, WIDTH))
    }

    /// Records of a width.
    pub(crate) fn new(width: usize) -> Records {
        Records { width, text: String::new() }
    }

    /// Adds a row, with the columns that a build writes to other files.
    pub(crate) fn row(&mut self, table: &Table, apart: Option<&Table>, row: usize) {
        self.begin(table.ids[row].map(|id| id.to_string()).as_deref());
        for column in &table.columns {
            self.field(STEP, &column.name, &column.values[row], 0);
        }
        for column in apart.into_iter().flat_map(|table| &table.columns) {
            self.field(STEP, &format!("{} (not in the rows)", column.name), &column.values[row], 0);
        }
    }

    /// Adds a row with a name.
    pub(crate) fn named_row(&mut self, name: Option<&str>, row: &Map) {
        self.begin(name);
        row.iter().for_each(|(column, value)| self.field(STEP, column, value, 0));
    }

    fn begin(&mut self, name: Option<&str>) {
        if !self.text.is_empty() {
            self.text.push_str(&"-".repeat(self.width.min(60)));
            self.text.push('\n');
        }
        match name {
            Some(name) => self.line(0, &format!("row {name}")),
            None => self.line(0, "row added by a processor"),
        }
    }

    /// All records.
    pub(crate) fn finish(self) -> String {
        self.text
    }

    fn line(&mut self, indent: usize, line: &str) {
        let line = format!("{}{}", " ".repeat(indent), Plain(line));
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    fn field(&mut self, indent: usize, name: &str, value: &Value, depth: usize) {
        match value {
            Value::Text(text) => self.named_text(indent, name, text),
            Value::Map(map) if !map.is_empty() && depth < DEEPEST => {
                self.line(indent, &format!("{name}:"));
                map.iter().for_each(|(name, value)| self.field(indent + STEP, name, value, depth + 1));
            }
            Value::List(list) if list.iter().any(is_large) && depth < DEEPEST => {
                self.line(indent, &format!("{name}:"));
                for (number, value) in list.iter().enumerate().take(MOST_ITEMS) {
                    self.field(indent + STEP, &format!("{}", number + 1), value, depth + 1);
                }
                if list.len() > MOST_ITEMS {
                    self.line(indent + STEP, &format!("… {} more", list.len() - MOST_ITEMS));
                }
            }
            Value::List(list) => self.named_list(indent, name, list),
            other => self.named_text(indent, name, &other.to_json()),
        }
    }

    /// Adds a list of small values, on several lines if needed.
    fn named_list(&mut self, indent: usize, name: &str, list: &[Value]) {
        let shown: Vec<String> = list.iter().take(MOST_ITEMS).map(Value::to_json).collect();
        let more = match list.len() > MOST_ITEMS {
            true => format!(", … {} in all", count(list.len() as u64, "item")),
            false => String::new(),
        };
        self.named_text(indent, name, &format!("[{}{more}]", shown.join(", ")));
    }

    /// Adds a text: on the line of its name if it is one line, below it otherwise.
    fn named_text(&mut self, indent: usize, name: &str, text: &str) {
        let room = self.width.saturating_sub(indent + STEP).max(NARROW / 2);
        let mut lines = Vec::new();
        if text.contains('\n') {
            self.line(indent, &format!("{name}:"));
            text.lines().for_each(|line| wrap(&Plain(line).to_string(), room, &mut lines));
        } else {
            let named = format!("{name}: {}", Plain(if text.is_empty() { "\"\"" } else { text }));
            wrap(&named, room, &mut lines);
            let first = lines.remove(0);
            self.line(indent, &first);
        }
        let left_out = lines.len().saturating_sub(MOST_LINES);
        lines.iter().take(MOST_LINES).for_each(|line| self.line(indent + STEP, line));
        if left_out > 0 {
            self.line(
                indent + STEP,
                &format!("… {} (--json shows all)", count(left_out as u64, "more line")),
            );
        }
    }
}

fn is_large(value: &Value) -> bool {
    match value {
        Value::Map(_) | Value::List(_) => true,
        Value::Text(text) => text.len() > 60 || text.contains('\n'),
        _ => false,
    }
}

/// Breaks a line at spaces, or inside a word that is longer than a line. Leading spaces stay, because code needs them.
fn wrap(line: &str, room: usize, lines: &mut Vec<String>) {
    let mut rest = line;
    while columns(rest) > room {
        let mut end = 0;
        let mut space = None;
        let mut used = 0;
        for (at, letter) in rest.char_indices() {
            let width = columns(letter.encode_utf8(&mut [0; 4]));
            if used + width > room && end > 0 {
                break;
            }
            if letter == ' ' && !rest[..at].trim().is_empty() {
                space = Some(at);
            }
            used += width;
            end = at + letter.len_utf8();
        }
        let end = space.unwrap_or(end);
        lines.push(rest[..end].to_owned());
        rest = rest[end..].trim_start_matches(' ');
    }
    if !rest.is_empty() || line.is_empty() {
        lines.push(rest.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use anabranch_dataset::ColumnType;
    use anabranch_dataset::processor::{Table, TableColumn};
    use anabranch_value::Value;
    use expect_test::{Expect, expect};

    use super::Records;

    fn check(width: usize, json: &str, expected: &Expect) {
        let Value::Map(map) = Value::from_json(json).unwrap() else { panic!("a map") };
        let column = |(name, value): (&std::sync::Arc<str>, &Value)| TableColumn {
            name: name.to_string(),
            column_type: ColumnType::Text,
            values: vec![value.clone()],
        };
        let table = Table { ids: vec![Some(3)], columns: map.iter().map(column).collect() };
        let mut records = Records::new(width);
        records.row(&table, None, 0);
        expected.assert_eq(&records.finish());
    }

    #[test]
    fn long_texts_are_wrapped_and_structure_is_indented() {
        check(
            40,
            r#"{"topic": "tea", "n": 3, "skipped": null, "empty": "",
                "story": "Once upon a time there was a river that split and met itself again.",
                "code": "if x:\n    return 1\n", "tags": ["a", 2],
                "judge": {"clarity": {"score": 4, "reasoning": "fine"}},
                "people": [{"name": "Ann"}, {"name": "Bob"}], "none": []}"#,
            &expect![[r#"
                row 3
                  topic: tea
                  n: 3
                  skipped: null
                  empty: ""
                  story: Once upon a time there was a
                    river that split and met itself
                    again.
                  code:
                    if x:
                        return 1
                  tags: ["a", 2]
                  judge:
                    clarity:
                      score: 4
                      reasoning: fine
                  people:
                    1:
                      name: Ann
                    2:
                      name: Bob
                  none: []
            "#]],
        );
    }

    #[test]
    fn a_terminal_obeys_nothing_of_it() {
        check(
            40,
            r#"{"a": "red\u001b[31m\u202e", "b": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}"#,
            &expect![[r#"
                row 3
                  a: red\u{1b}[31m\u{202e}
                  b:
                    aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
                    aaaaaaaaaaaaaaaaa
            "#]],
        );
    }
}
