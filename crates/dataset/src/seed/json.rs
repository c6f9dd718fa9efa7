//! JSON files: an array of objects, objects behind each other, or one object per line.

use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use anabranch_value::Value;
use indexmap::IndexMap;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::column::{Column, Texts};
use super::error::Error;
use super::table::{FileCells, FileColumn, FileTable, Limits};
use super::types::{bounded, join, type_of};
use crate::column_type::ColumnType;

/// The longest line of a `.jsonl` file.
const MAX_LINE: u64 = 64 << 20;

/// Rows between two looks at the limits.
const ROWS_PER_CHECK: u64 = 1024;

/// One object per line; empty lines are skipped.
pub(super) fn read_lines(path: &Path, limits: Limits) -> Result<FileTable, Error> {
    let io = |cause| Error::Io { path: path.to_owned(), cause };
    let mut reader = BufReader::with_capacity(1 << 16, File::open(path).map_err(io)?);
    let mut table = Builder::new(limits);
    let mut bytes = Vec::new();
    for line in 1.. {
        let wrong = |problem: String| Error::Line { path: path.to_owned(), line, problem };
        bytes.clear();
        if (&mut reader).take(MAX_LINE).read_until(b'\n', &mut bytes).map_err(io)? == 0 {
            break;
        }
        if bytes.len() as u64 == MAX_LINE {
            return Err(wrong(format!("the line is longer than {} MiB", MAX_LINE >> 20)));
        }
        let text = std::str::from_utf8(&bytes).map_err(|_| wrong("the line is not UTF-8".into()))?;
        let text = if line == 1 { text.trim_start_matches('\u{feff}') } else { text };
        if text.trim().is_empty() {
            continue;
        }
        let entries: Entries<'_> = serde_json::from_str(text)
            .map_err(|error| wrong(format!("expected one JSON object per line: {error}")))?;
        table.push(&entries).map_err(|problem| problem.at(wrong))?;
    }
    table.finish()
}

/// An array of objects, or objects behind each other.
pub(super) fn read_array(path: &Path, limits: Limits) -> Result<FileTable, Error> {
    let io = |cause| Error::Io { path: path.to_owned(), cause };
    let file = File::open(path).map_err(io)?;
    limits.check(0, file.metadata().map_err(io)?.len())?;
    let mut bytes = Vec::new();
    file.take(limits.bytes.saturating_add(1)).read_to_end(&mut bytes).map_err(io)?;
    limits.check(0, bytes.len() as u64)?;
    let text = std::str::from_utf8(&bytes).map_err(|_| Error::File {
        path: path.to_owned(),
        problem: "the file is not UTF-8: convert it to UTF-8".into(),
    })?;
    let text = text.trim_start_matches('\u{feff}');
    let mut table = Builder::new(limits);
    let mut stopped = None;
    let mut rows = Rows { table: &mut table, stopped: &mut stopped };
    let read = if text.trim_start().starts_with('[') {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        rows.deserialize(&mut deserializer).and_then(|()| deserializer.end())
    } else {
        let mut objects = serde_json::Deserializer::from_str(text).into_iter::<Entries<'_>>();
        objects.try_for_each(|entries| rows.push(&entries?))
    };
    match (stopped, read) {
        (Some(Problem::Seed(error)), _) => Err(error),
        (_, Err(error)) => {
            let problem = format!("expected an array of objects: {error}");
            Err(Error::Line { path: path.to_owned(), line: error.line() as u64, problem })
        }
        _ => table.finish(),
    }
}

/// The problem of a row.
enum Problem {
    Row(String),
    Seed(Error),
}

impl Problem {
    fn at(self, place: impl FnOnce(String) -> Error) -> Error {
        match self {
            Problem::Row(problem) => place(problem),
            Problem::Seed(error) => error,
        }
    }
}

/// Columns as they grow.
struct Builder {
    limits: Limits,
    rows: u64,
    columns: IndexMap<String, (Texts, Option<ColumnType>)>,
}

impl Builder {
    fn new(limits: Limits) -> Builder {
        Builder { limits, rows: 0, columns: IndexMap::new() }
    }

    fn push(&mut self, entries: &Entries<'_>) -> Result<(), Problem> {
        let row = self.rows as usize;
        for (name, raw) in &entries.0 {
            let value = Value::from_json(raw.get())
                .map_err(|error| Problem::Row(format!("column `{name}`: {error}")))?;
            if !self.columns.contains_key(name) && self.columns.len() >= self.limits.columns {
                let limit = self.limits.columns as u64;
                return Err(Problem::Seed(Error::TooLarge { limit, unit: "columns" }));
            }
            let (texts, column_type) = self.columns.entry(name.clone()).or_default();
            if texts.len() > row {
                return Err(Problem::Row(format!("the object has the key `{name}` twice")));
            }
            (texts.len()..row).for_each(|_| texts.push(None));
            texts.push(Some(raw.get()).filter(|_| !value.is_null()));
            if let Some(found) = type_of(&value) {
                *column_type = Some(match column_type.take() {
                    Some(known) => bounded(join(known, found)),
                    None => found,
                });
            }
        }
        self.rows += 1;
        if self.rows.is_multiple_of(ROWS_PER_CHECK) {
            self.check().map_err(Problem::Seed)?;
        }
        Ok(())
    }

    fn check(&self) -> Result<(), Error> {
        self.limits.check(self.rows, self.columns.values().map(|(texts, _)| texts.bytes()).sum())
    }

    fn finish(mut self) -> Result<FileTable, Error> {
        let rows = self.rows as usize;
        for (texts, _) in self.columns.values_mut() {
            (texts.len()..rows).for_each(|_| texts.push(None));
        }
        self.check()?;
        let columns = self.columns.into_iter().map(|(name, (texts, column_type))| FileColumn {
            name,
            cells: FileCells::Typed(Column::Json(texts)),
            column_type,
        });
        Ok(FileTable { rows: self.rows, columns: columns.collect() })
    }
}

/// The entries of one object, in order.
struct Entries<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Entries<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Entries<'a>, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Entries<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object with one entry per column")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries<'de>, A::Error> {
                let mut entries = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, &'de RawValue>()? {
                    entries.push((name, value));
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

/// Takes the rows of an array one by one.
struct Rows<'t> {
    table: &'t mut Builder,
    stopped: &'t mut Option<Problem>,
}

impl Rows<'_> {
    fn push(&mut self, entries: &Entries<'_>) -> Result<(), serde_json::Error> {
        self.table.push(entries).map_err(|problem| match problem {
            Problem::Row(problem) => serde_json::Error::custom(problem),
            seed @ Problem::Seed(_) => {
                *self.stopped = Some(seed);
                serde_json::Error::custom("too large")
            }
        })
    }
}

impl<'de> DeserializeSeed<'de> for Rows<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Rows<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an array of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        while let Some(entries) = items.next_element::<Entries<'de>>()? {
            self.push(&entries).map_err(A::Error::custom)?;
        }
        Ok(())
    }
}
