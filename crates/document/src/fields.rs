//! Reads a table field by field: each of the right kind, none missing, none unknown.

use crate::notes::Notes;
use crate::tree::{Key, Node, Span, Table};

/// The fields of a table. A field that is null is as good as absent.
#[derive(Debug)]
pub struct Fields<'n> {
    table: &'n Table,
    at: Span,
    of: String,
    known: Vec<&'static str>,
}

impl<'n> Fields<'n> {
    /// The fields of a table that stands at `at` and describes `of`, for instance `a column`.
    pub fn new(table: &'n Table, at: &Span, of: &str) -> Fields<'n> {
        // A whole table has no text to point at: its first name has.
        let start = table.first().map_or(at.start, |(key, _)| key.at.start);
        let at = table.first().map_or(at.clone(), |(key, _)| start..key.at.end);
        Fields { table, at, of: of.to_owned(), known: Vec::new() }
    }

    /// The place for problems with the table as a whole: its first name.
    pub fn at(&self) -> &Span {
        &self.at
    }

    /// The table itself.
    pub fn table(&self) -> &'n Table {
        self.table
    }

    /// What the table describes.
    pub fn of(&self) -> &str {
        &self.of
    }

    /// Says from here on what the table describes.
    pub fn rename(&mut self, of: String) {
        self.of = of;
    }

    /// The name and value of a field, null or not. From here on it is a known one.
    pub fn entry(&mut self, name: &'static str) -> Option<&'n (Key, Node)> {
        if !self.known.contains(&name) {
            self.known.push(name);
        }
        self.table.iter().find(|(key, _)| key.name == name)
    }

    /// A field that is not null.
    pub fn get(&mut self, name: &'static str) -> Option<&'n Node> {
        self.entry(name).map(|(_, node)| node).filter(|node| !node.value.is_null())
    }

    /// A field that must be there.
    pub fn need(&mut self, name: &'static str, notes: &mut Notes<'_>) -> Option<&'n Node> {
        let found = self.get(name);
        if found.is_none() {
            // The place of the null if there is one.
            let at = self.entry(name).map_or(self.at.clone(), |(key, _)| key.at.clone());
            notes.hint(&at, format!("{} needs `{name}`", self.of), None);
        }
        found
    }

    /// The text of a field.
    pub fn text(&mut self, name: &'static str, notes: &mut Notes<'_>) -> Option<&'n str> {
        self.get(name).and_then(|node| notes.as_text(node, name))
    }

    /// The text of a field that must be there.
    pub fn need_text(&mut self, name: &'static str, notes: &mut Notes<'_>) -> Option<&'n str> {
        self.need(name, notes).and_then(|node| notes.as_text(node, name))
    }

    /// The whole number of a field.
    pub fn int(&mut self, name: &'static str, notes: &mut Notes<'_>) -> Option<i64> {
        self.get(name).and_then(|node| notes.as_int(node, name))
    }

    /// The number of a field.
    pub fn float(&mut self, name: &'static str, notes: &mut Notes<'_>) -> Option<f64> {
        self.get(name).and_then(|node| notes.as_float(node, name))
    }

    /// The number of a field that must be there.
    pub fn need_float(&mut self, name: &'static str, notes: &mut Notes<'_>) -> Option<f64> {
        self.need(name, notes).and_then(|node| notes.as_float(node, name))
    }

    /// True or false.
    pub fn bool(&mut self, name: &'static str, notes: &mut Notes<'_>) -> Option<bool> {
        self.get(name).and_then(|node| notes.as_bool(node, name))
    }

    /// The elements of a field.
    pub fn list(&mut self, name: &'static str, notes: &mut Notes<'_>) -> Option<&'n [Node]> {
        self.get(name).and_then(|node| notes.as_list(node, name))
    }

    /// The texts of a field that is a list of them, with their places; those that are not text are left out.
    pub fn texts(&mut self, name: &'static str, notes: &mut Notes<'_>) -> Option<Vec<(&'n str, &'n Span)>> {
        let items = self.list(name, notes)?;
        let label = format!("an element of `{name}`");
        Some(items.iter().filter_map(|item| Some((notes.as_text(item, &label)?, &item.at))).collect())
    }

    /// One of several words.
    pub fn choice<T: Copy>(
        &mut self,
        name: &'static str,
        words: &[(&str, T)],
        notes: &mut Notes<'_>,
    ) -> Option<T> {
        let node = self.get(name)?;
        let text = notes.as_text(node, name)?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        if found.is_none() {
            let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            let help = notes.did_you_mean(text, known.iter().copied());
            let what = format!("`{name}` is {}, this is {}", one_of(&known), anabranch_text::quote(text));
            notes.hint(&node.at, what, help);
        }
        found
    }

    /// Takes fields as known that are not read.
    pub fn ignore(&mut self, names: &[&'static str]) {
        self.known.extend(names);
    }

    /// Fields that nothing asked for.
    pub fn unknown(&self) -> impl Iterator<Item = &'n (Key, Node)> {
        self.table.iter().filter(|(key, _)| !self.known.contains(&key.name.as_str()))
    }

    /// Notes fields that nothing asked for.
    pub fn finish(self, notes: &mut Notes<'_>) {
        for (key, _) in self.unknown() {
            notes.unknown(&key.at, &key.name, &self.known, &self.of);
        }
    }
}

/// `one`, `two` or `three`.
fn one_of(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, first)) if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        _ => quoted.join(""),
    }
}
