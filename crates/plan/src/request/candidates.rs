//! Candidates: rows that a request brings along.

use anabranch_rows::{Batch, Column, Kind, Rows};
use anabranch_text::{Problems, quote};
use serde_json::{Map, Value};

use crate::json::{show, whole};
use crate::registry::{KeyEntry, KeyKind, Keys, Status};
use crate::value::Scalar;

/// The most candidates of a request.
pub(crate) const MOST_CANDIDATES: usize = 100_000;
/// The most columns of candidates.
const MOST_COLUMNS: usize = 256;
/// The most mistakes that are reported.
const MOST_TOLD: usize = 20;

/// A column on its way: its key, and a value per row.
struct Draft<'a> {
    entry: &'a KeyEntry,
    kind: Kind,
    values: Vec<Option<Scalar>>,
}

/// Reads the `candidates` of a request: a list of ids, a list of objects, or an object of columns. The error names the
/// row and the column.
pub(super) fn parse(value: &Value, keys: &Keys) -> Result<Rows, String> {
    let mut reader = Reader { keys, ids: Vec::new(), columns: Vec::new(), wrong: Vec::new() };
    match value {
        Value::Array(list) => reader.list(list),
        Value::Object(columns) => reader.columnar(columns),
        other => {
            let what = "must be a list of ids, a list of objects, or an object of columns";
            reader.wrong.push(format!("`candidates` {what}, not {}", show(other)));
        }
    }
    reader.finish()
}

/// Checks the rows that a program passes to a request: the registry must have their columns, with the same kinds.
pub(super) fn check(rows: &Rows, keys: &Keys) -> Result<(), String> {
    if rows.len() > MOST_CANDIDATES {
        return Err(too_many(rows.len()));
    }
    for (key, column) in rows.batch().columns() {
        let Some(entry) = keys.get(*key) else { return Err(format!("there is no key {key}")) };
        if entry.kind != KeyKind::Column(column.kind()) {
            let what = format!("the column {} is {}, but the key is not", quote(&entry.name), column.kind());
            return Err(what);
        }
        if !entry.nullable && rows.iter().any(|row| column.is_null(row)) {
            return Err(format!("the column {} has nulls, and its key may not be null", quote(&entry.name)));
        }
    }
    Ok(())
}

fn too_many(rows: usize) -> String {
    format!("`candidates` has {rows} rows; at most {MOST_CANDIDATES} are allowed")
}

struct Reader<'a> {
    keys: &'a Keys,
    ids: Vec<i64>,
    columns: Vec<Draft<'a>>,
    wrong: Vec<String>,
}

impl<'a> Reader<'a> {
    fn list(&mut self, list: &[Value]) {
        if list.len() > MOST_CANDIDATES {
            self.wrong.push(too_many(list.len()));
            return;
        }
        for (row, item) in list.iter().enumerate() {
            match item {
                Value::Object(members) => {
                    self.id(row, members.get("id"));
                    self.row(row, members);
                }
                id => self.id(row, Some(id)),
            }
            if self.wrong.len() > MOST_TOLD {
                return;
            }
        }
        for column in &mut self.columns {
            column.values.resize(list.len(), None);
        }
    }

    fn row(&mut self, row: usize, members: &Map<String, Value>) {
        for (name, value) in members.iter().filter(|(name, _)| *name != "id") {
            let found = self.columns.iter().position(|column| column.entry.name == *name);
            let Some(at) = found.or_else(|| self.column(row, name)) else { continue };
            let column = &mut self.columns[at];
            // Rows before this one may lack it.
            column.values.resize(row, None);
            match scalar(column.kind, value) {
                Ok(value) => column.values.push(value),
                Err(expected) => {
                    let what = format!(
                        "candidates[{row}], {}: must be {expected}, not {}",
                        quote(name),
                        show(value)
                    );
                    self.wrong.push(what);
                }
            }
        }
    }

    fn columnar(&mut self, members: &Map<String, Value>) {
        let Some(ids) = members.get("id") else {
            self.wrong.push("`candidates` has no column `id`".to_owned());
            return;
        };
        let Some(ids) = self.values("id", ids) else { return };
        if ids.len() > MOST_CANDIDATES {
            self.wrong.push(too_many(ids.len()));
            return;
        }
        ids.iter().enumerate().for_each(|(row, id)| self.id(row, Some(id)));
        for (name, values) in members.iter().filter(|(name, _)| *name != "id") {
            if self.wrong.len() > MOST_TOLD {
                return;
            }
            let Some(values) = self.values(name, values) else { continue };
            if values.len() != ids.len() {
                let what = format!("has {} values, and there are {} ids", values.len(), ids.len());
                self.wrong.push(format!("`candidates`, column {}: {what}", quote(name)));
                continue;
            }
            let Some(at) = self.column(0, name) else { continue };
            for (row, value) in values.iter().enumerate() {
                match scalar(self.columns[at].kind, value) {
                    Ok(value) => self.columns[at].values.push(value),
                    Err(expected) => {
                        let what = format!("must be {expected}, not {}", show(value));
                        self.wrong.push(format!("candidates[{row}], {}: {what}", quote(name)));
                    }
                }
                if self.wrong.len() > MOST_TOLD {
                    return;
                }
            }
        }
    }

    fn values<'v>(&mut self, name: &str, values: &'v Value) -> Option<&'v Vec<Value>> {
        if !values.is_array() {
            let what = format!("must be a list of values, not {}", show(values));
            self.wrong.push(format!("`candidates`, column {}: {what}", quote(name)));
        }
        values.as_array()
    }

    /// An id is an integer, or a string of one: JavaScript has no integers of 64 bits.
    fn id(&mut self, row: usize, value: Option<&Value>) {
        let id = value.and_then(|value| value.as_i64().or_else(|| value.as_str()?.parse().ok()));
        match id {
            Some(id) => self.ids.push(id),
            None => {
                let found = value.map_or("nothing".to_owned(), show);
                let what = format!("must be an integer of 64 bits or a string of one, not {found}");
                self.wrong.push(format!("candidates[{row}], `id`: {what}"));
            }
        }
    }

    /// Begins the column of this name, and says where it is; a name that cannot be one is noted.
    fn column(&mut self, row: usize, name: &str) -> Option<usize> {
        let Some(entry) = self.keys.named(name) else {
            let names = self.keys.iter().map(|entry| entry.name.as_str());
            let help = Problems::default().did_you_mean(name, names);
            let help = help.map(|help| format!(" ({help})")).unwrap_or_default();
            self.wrong.push(format!("candidates[{row}]: there is no key {}{help}", quote(name)));
            return None;
        };
        let what = match (entry.kind, entry.status) {
            (_, Status::Blocked) => "is blocked",
            (KeyKind::FeatureBundle, _) => "is a feature bundle, not a column",
            (KeyKind::Column(_), _) if self.columns.len() == MOST_COLUMNS => "is one column too many",
            (KeyKind::Column(kind), _) => {
                self.columns.push(Draft { entry, kind, values: Vec::new() });
                return Some(self.columns.len() - 1);
            }
        };
        self.wrong.push(format!("candidates[{row}]: key {} {what}", quote(name)));
        None
    }

    fn finish(mut self) -> Result<Rows, String> {
        if self.wrong.is_empty() {
            self.columns.iter().filter(|column| !column.entry.nullable).for_each(|column| {
                if let Some(row) = column.values.iter().position(Option::is_none) {
                    let name = quote(&column.entry.name);
                    self.wrong.push(format!("candidates[{row}], {name}: is missing, and may not be null"));
                }
            });
        }
        if !self.wrong.is_empty() {
            let more = self.wrong.len() > MOST_TOLD;
            self.wrong.truncate(MOST_TOLD);
            let more = if more { "; and more" } else { "" };
            return Err(self.wrong.join("; ") + more);
        }
        let columns = self.columns.into_iter().map(|column| (column.entry.key, column.finish())).collect();
        Ok(Rows::new(Batch::with_columns(self.ids, columns)))
    }
}

impl Draft<'_> {
    fn finish(self) -> Column {
        macro_rules! values {
            ($kind:ident) => {
                self.values.into_iter().map(|value| match value {
                    Some(Scalar::$kind(value)) => Some(value),
                    _ => None,
                })
            };
        }
        match self.kind {
            Kind::Int => Column::ints(values!(Int)),
            Kind::Float => Column::floats(values!(Float)),
            Kind::Bool => Column::bools(values!(Bool)),
            Kind::Text => Column::texts(values!(Text)),
        }
    }
}

/// A value of a column, or a description of the expected value.
fn scalar(kind: Kind, value: &Value) -> Result<Option<Scalar>, &'static str> {
    if value.is_null() {
        return Ok(None);
    }
    let (scalar, expected) = match kind {
        Kind::Int => (whole(value).map(Scalar::Int), "an integer of 64 bits"),
        Kind::Float => (value.as_f64().map(Scalar::Float), "a finite number"),
        Kind::Bool => (value.as_bool().map(Scalar::Bool), "true or false"),
        Kind::Text => (value.as_str().map(|text| Scalar::Text(text.into())), "a string"),
    };
    scalar.map(Some).ok_or(expected)
}
