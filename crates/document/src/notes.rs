//! Gathers what is wrong with a file.

use std::cell::OnceCell;

use anabranch_text::{Problem, Problems, quote};

use crate::fields::Fields;
use crate::places::Places;
use crate::tree::{Node, Span, Table, Tree};

/// Of so many errors, and of so many warnings, each is told; who has more mends these first.
const TOLD: usize = 100;

/// The problems of a file. Noting one never stops a reader.
#[derive(Debug)]
pub struct Notes<'a> {
    file: &'a str,
    text: &'a str,
    found: Problems,
    more: usize,
    places: OnceCell<Places>,
}

impl<'a> Notes<'a> {
    /// Nothing noted of a file yet.
    pub fn new(file: &'a str, text: &'a str) -> Notes<'a> {
        Notes { file, text, found: Problems::default(), more: 0, places: OnceCell::new() }
    }

    /// The name of the file.
    pub fn file(&self) -> &'a str {
        self.file
    }

    /// The text of the file.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// Notes an error, with the way out.
    pub fn note(&mut self, at: &Span, what: impl Into<String>, help: impl Into<String>) {
        self.hint(at, what, Some(help.into()));
    }

    /// Notes an error whose way out is plain, or that has a hint perhaps.
    pub fn hint(&mut self, at: &Span, what: impl Into<String>, help: Option<String>) {
        if self.is_full() {
            self.more += 1;
            return;
        }
        let problem = Problem::in_source(self.file, self.text, at.clone(), what);
        self.found.error(Problem { help, ..problem });
    }

    /// Notes a warning.
    pub fn warn(&mut self, at: &Span, what: impl Into<String>, help: impl Into<String>) {
        if self.found.warnings.len() < TOLD {
            self.found.warn(Problem::in_source(self.file, self.text, at.clone(), what).help(help));
        }
    }

    /// Whether another error would only be counted, so that looking for its cause is wasted.
    pub fn is_full(&self) -> bool {
        self.found.errors.len() >= TOLD
    }

    /// `file:line:column` of a place.
    pub fn place(&self, at: &Span) -> String {
        let places = self.places.get_or_init(|| Places::of(self.text));
        let (line, column) = places.position(self.text, at.start);
        format!("{}:{line}:{column}", self.file)
    }

    /// The name that was probably meant, as the help of a problem.
    pub fn did_you_mean<'n>(&self, name: &str, known: impl IntoIterator<Item = &'n str>) -> Option<String> {
        self.found.did_you_mean(name, known)
    }

    /// Whether there is no error so far.
    pub fn is_empty(&self) -> bool {
        self.found.is_fine()
    }

    /// Errors so far, those that are only counted included.
    pub fn errors(&self) -> usize {
        self.found.errors.len() + self.more
    }

    /// All that was noted, in the order of the file.
    pub fn problems(self) -> Problems {
        let mut found = self.found.in_order();
        if self.more > 0 {
            found.error(Problem::new(self.file, format!("and {} more problems", self.more)));
        }
        found
    }

    /// The file, if nothing is wrong with it.
    pub fn none_or<T>(self, file: T) -> Result<T, Problems> {
        if self.is_empty() { Ok(file) } else { Err(self.problems()) }
    }

    /// Notes a name that `of` does not have.
    pub fn unknown(&mut self, at: &Span, name: &str, known: &[&str], of: &str) {
        let near = self.did_you_mean(name, known.iter().copied());
        let help = near.unwrap_or_else(|| format!("it has {}", known.join(", ")));
        self.note(at, format!("{of} has no {}", quote(name)), help);
    }

    /// Notes that a value has another kind than `expected`, for instance `text`.
    pub fn mismatch(&mut self, node: &Node, name: &str, expected: &str, help: Option<&str>) {
        let what = format!("{} is {expected}, this is {}", named(name), node.value.kind());
        self.hint(&node.at, what, help.map(str::to_owned));
    }

    /// The text of a value. `name` is what the value is called in messages.
    pub fn as_text<'n>(&mut self, node: &'n Node, name: &str) -> Option<&'n str> {
        match &node.value {
            Tree::Text(text) => Some(text),
            _ => {
                self.mismatch(node, name, "text", Some("put it in quotes"));
                None
            }
        }
    }

    /// The whole number that a value is; `2.0` is one.
    pub fn as_int(&mut self, node: &Node, name: &str) -> Option<i64> {
        match node.value {
            Tree::Int(int) => Some(int),
            Tree::Float(float) if float.fract() == 0.0 && float.abs() < 9e15 => Some(float as i64),
            _ => {
                self.mismatch(node, name, "a whole number", None);
                None
            }
        }
    }

    /// The finite number that a value is.
    pub fn as_float(&mut self, node: &Node, name: &str) -> Option<f64> {
        match node.value {
            Tree::Int(int) => Some(int as f64),
            Tree::Float(float) | Tree::Big(float) if float.is_finite() => Some(float),
            Tree::Float(_) | Tree::Big(_) => {
                self.hint(&node.at, format!("{} is a finite number", named(name)), None);
                None
            }
            _ => {
                self.mismatch(node, name, "a number", None);
                None
            }
        }
    }

    /// True or false.
    pub fn as_bool(&mut self, node: &Node, name: &str) -> Option<bool> {
        match node.value {
            Tree::Bool(truth) => Some(truth),
            _ => {
                self.mismatch(node, name, "`true` or `false`", None);
                None
            }
        }
    }

    /// The elements of a list.
    pub fn as_list<'n>(&mut self, node: &'n Node, name: &str) -> Option<&'n [Node]> {
        match &node.value {
            Tree::List(items) => Some(items),
            _ => {
                self.mismatch(node, name, "a list", None);
                None
            }
        }
    }

    /// The entries of a table; `holds` is what it has, for instance `entries by name`.
    pub fn as_table<'n>(&mut self, node: &'n Node, name: &str, holds: &str) -> Option<&'n Table> {
        match &node.value {
            Tree::Table(table) => Some(table),
            other => {
                self.hint(&node.at, format!("{} holds {holds}, this is {}", named(name), other.kind()), None);
                None
            }
        }
    }

    /// The fields of a table; `of` is what it describes, for instance `a column`.
    pub fn fields<'n>(&mut self, node: &'n Node, of: &str) -> Option<Fields<'n>> {
        match &node.value {
            Tree::Table(table) => Some(Fields::new(table, &node.at, of)),
            other => {
                self.hint(&node.at, format!("{of} is a table of fields, this is {}", other.kind()), None);
                None
            }
        }
    }
}

/// A field in backticks; `an input` and the like as they are.
fn named(name: &str) -> String {
    if name.contains([' ', '`']) { name.to_owned() } else { format!("`{name}`") }
}
