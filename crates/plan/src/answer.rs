//! Answers: the rows of a plan's outputs, and how they are written.

use std::fmt;
use std::io::Write as _;
use std::ops::Range;
use std::sync::Arc;

use anabranch_rows::{Column, Key, Kind, Rows};
use serde::Serialize;
use smallvec::SmallVec;

use crate::ledger::LedgerEntry;
use crate::registry::Keys;
use crate::value::Scalar;

/// The answer to a request.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The caller's id of the request, or a generated one.
    pub request_id: RequestId,
    /// The id of this run.
    pub engine_request_id: RequestId,
    /// The rows of each output of the plan, in its order.
    pub outputs: Vec<Rows>,
    /// The names of the outputs.
    pub output_names: Arc<[String]>,
    /// The degraded parts of the answer.
    pub ledger: Vec<LedgerEntry>,
    /// The reads that it took.
    pub stats: Stats,
}

/// The id of a request. A generated one is formatted only when it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestId {
    /// The caller's id.
    Given(String),
    /// A unique number, formatted like a random UUID.
    Made(u128),
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestId::Given(name) => f.write_str(name),
            RequestId::Made(bits) => {
                let (high, low) = ((bits >> 64) as u64, *bits as u64);
                let (a, b, c) = (high >> 32, (high >> 16) & 0xffff, high & 0xfff);
                let (d, e) = ((low >> 48) & 0x3fff | 0x8000, low & 0xffff_ffff_ffff);
                write!(f, "{a:08x}-{b:04x}-4{c:03x}-{d:04x}-{e:012x}")
            }
        }
    }
}

impl RequestId {
    fn write_json(&self, out: &mut Vec<u8>) {
        match self {
            RequestId::Given(name) => write(out, name),
            RequestId::Made(_) => {
                std::io::Write::write_fmt(out, format_args!("\"{self}\"")).expect("a Vec takes all bytes");
            }
        }
    }
}

/// The reads of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Round trips to sources.
    pub trips: u32,
    /// Commands in these trips.
    pub commands: u32,
}

/// One row of an answer.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// Its id.
    pub id: i64,
    /// The output that it is a row of, by its place among [`Answer::outputs`].
    pub output: usize,
    rows: &'a Rows,
    row: usize,
}

impl Candidate<'_> {
    /// The value of a column; `None` if it is null or missing.
    pub fn get(&self, key: Key) -> Option<Scalar> {
        self.rows.batch().column(key)?.get(self.row).map(Scalar::from)
    }
}

impl Answer {
    /// The rows of all outputs, one after the other.
    pub fn candidates(&self) -> impl Iterator<Item = Candidate<'_>> {
        self.outputs.iter().enumerate().flat_map(|(output, rows)| {
            rows.iter().map(move |row| Candidate { id: rows.batch().ids()[row], output, rows, row })
        })
    }

    /// The rows of the output of this name.
    pub fn output(&self, name: &str) -> Option<&Rows> {
        let at = self.output_names.iter().position(|other| other == name)?;
        self.outputs.get(at)
    }

    /// Writes the answer as one line of JSON, without the newline: the rows of all outputs in one list, as rankd does.
    /// Null cells are left out; numbers that JSON cannot write are `null`.
    pub fn write_json(&self, keys: &Keys, out: &mut Vec<u8>) {
        self.write_head(out);
        out.extend_from_slice(b",\"candidates\":[");
        let mut first = true;
        for rows in &self.outputs {
            write_rows(rows, keys, &mut first, out);
        }
        out.push(b']');
        self.write_ledger(out);
    }

    /// The same with one list of rows per output: `{.., "outputs": {"main": [..], "ads": [..]}, ..}`.
    pub fn write_json_by_output(&self, keys: &Keys, out: &mut Vec<u8>) {
        self.write_head(out);
        out.extend_from_slice(b",\"outputs\":{");
        for (at, (name, rows)) in self.output_names.iter().zip(&self.outputs).enumerate() {
            if at > 0 {
                out.push(b',');
            }
            write(out, name);
            out.extend_from_slice(b":[");
            write_rows(rows, keys, &mut true, out);
            out.push(b']');
        }
        out.push(b'}');
        self.write_ledger(out);
    }

    /// Writes one line per row, and a last line with the ids and the ledger. A row of a plan with several outputs names
    /// its own: `{"output": "ads", "id": 1, "fields": {}}`.
    pub fn write_lines(&self, keys: &Keys, out: &mut Vec<u8>) {
        let several = self.outputs.len() > 1;
        for (name, rows) in self.output_names.iter().zip(&self.outputs) {
            let named = named(rows, keys);
            for row in rows.iter() {
                out.push(b'{');
                if several {
                    out.extend_from_slice(b"\"output\":");
                    write(out, name);
                    out.push(b',');
                }
                write_row(rows, &named, row, out);
                out.extend_from_slice(b"}\n");
            }
        }
        self.write_head(out);
        self.write_ledger(out);
        out.push(b'\n');
    }

    fn write_head(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"request_id\":");
        self.request_id.write_json(out);
        out.extend_from_slice(b",\"engine_request_id\":");
        self.engine_request_id.write_json(out);
    }

    fn write_ledger(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b",\"ledger\":");
        write(out, &self.ledger);
        out.push(b'}');
    }
}

/// The fields of an output, named once for all its rows.
struct NamedFields<'a> {
    /// `"name":` of each column, one after the other.
    names: Vec<u8>,
    columns: SmallVec<[(Range<usize>, &'a Column); 8]>,
}

fn named<'a>(rows: &'a Rows, keys: &Keys) -> NamedFields<'a> {
    let columns = rows.batch().columns();
    let mut named = NamedFields { names: Vec::with_capacity(24 * columns.len()), columns: SmallVec::new() };
    for kind in [Kind::Float, Kind::Text, Kind::Int, Kind::Bool] {
        for (key, column) in columns.iter().filter(|(_, column)| column.kind() == kind) {
            let start = named.names.len();
            match keys.get(*key) {
                Some(entry) => write(&mut named.names, entry.name.as_str()),
                None => write!(named.names, "\"{key}\"").expect("a vector takes all that is written"),
            }
            named.names.push(b':');
            named.columns.push((start..named.names.len(), column));
        }
    }
    named
}

fn write_rows(rows: &Rows, keys: &Keys, first: &mut bool, out: &mut Vec<u8>) {
    let named = named(rows, keys);
    for row in rows.iter() {
        if !std::mem::take(first) {
            out.push(b',');
        }
        out.push(b'{');
        write_row(rows, &named, row, out);
        out.push(b'}');
    }
}

/// Writes `"id":..,"fields":{..}`.
fn write_row(rows: &Rows, named: &NamedFields<'_>, row: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(b"\"id\":");
    write(out, &rows.batch().ids()[row]);
    out.extend_from_slice(b",\"fields\":{");
    let mut first = true;
    for (name, column) in &named.columns {
        if column.is_null(row) {
            continue;
        }
        if !std::mem::take(&mut first) {
            out.push(b',');
        }
        out.extend_from_slice(&named.names[name.clone()]);
        match column {
            Column::Int(values) => write(out, &values.value(row)),
            Column::Float(values) => write(out, &values.value(row)),
            Column::Bool(values) => write(out, &values.value(row)),
            Column::Text(text) => write(out, text.dictionary().get(text.codes().value(row))),
        }
    }
    out.push(b'}');
}

fn write<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    serde_json::to_writer(out, value).expect("a vector takes all that is written");
}
