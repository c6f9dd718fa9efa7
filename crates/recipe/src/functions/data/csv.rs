//! Functions of CSV.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value as Json;

use super::json::keyed;
use super::parsed;
use super::records::{FIELDS_MOST, RECORDS, Record, RecordVisitor, of_records};
use crate::budget::CallBudget;
use crate::function::{Call, Fault, Out};
use crate::functions::kernels::{StreamingFunction, signature};
use crate::functions::output::{Output, OutputLimit, capped};
use crate::functions::text::shown;
use crate::param::ParamKind;
use crate::registry::Functions;
use crate::signature::Signature;
use crate::whole::whole;

pub(super) fn add(functions: &mut Functions) {
    functions.add(StreamingFunction(
        recorded(signature(
            "csv_to_json/1.0.0",
            "A JSON list with one object per record, indented by two spaces. All values are texts, and \
             keys are in byte order.",
        ))
        .bounds_output()
        .nanos_per_kib(5000),
        |call| {
            let to_json = ToJson { columns: Vec::new(), begun: false, quoted: Vec::new() };
            Ok(capped(of_records(call, to_json), call.max_bytes()?))
        },
    ));
    functions.add(StreamingFunction(
        recorded(signature(
            "csv_select/1",
            "The columns with these names, in the order of the names, as CSV. Lines end at LF.",
        ))
        .needs("columns", ParamKind::Names, "names from the header, each once")
        .nanos_per_kib(3000),
        |call| Ok(of_records(call, Select { wanted: columns(call)?, columns: Vec::new() })),
    ));
    functions.add(whole(
        keyed(signature(
            "json_to_csv/1.0.0",
            "A JSON list of objects as CSV: a header of all their keys, then one record per object, each \
             with LF at its end. A missing field is empty, a text is written without JSON's quotes, null \
             is `null`, other values are JSON.",
        ))
        .bounds_held_output()
        .nanos_per_kib(25_000),
        |call| {
            let most = call.max_bytes_held()?;
            Ok(Box::new(move |inputs, budget| from_json(&inputs[0], most, budget)))
        },
    ));
}

fn recorded(mut signature: Signature) -> Signature {
    signature.about.to_mut().push_str(RECORDS);
    signature
}

struct ToJson {
    /// The columns in output order: the index of the field, and the JSON text that precedes its value.
    columns: Vec<(usize, Vec<u8>)>,
    begun: bool,
    quoted: Vec<u8>,
}

impl RecordVisitor for ToJson {
    fn header(&mut self, names: &[String], _: &mut Out) -> Result<(), Fault> {
        let mut order: Vec<usize> = (0..names.len()).collect();
        order.sort_unstable_by_key(|index| &names[*index]);
        for index in order {
            let mut before = if self.columns.is_empty() { b"    ".to_vec() } else { b",\n    ".to_vec() };
            quote(&mut before, &names[index]);
            before.extend_from_slice(b": ");
            self.columns.push((index, before));
        }
        Ok(())
    }

    fn record(&mut self, record: Record<'_>, out: &mut Out) -> Result<(), Fault> {
        out.write(if std::mem::replace(&mut self.begun, true) { b",\n  {\n" } else { b"[\n  {\n" });
        for (index, before) in &self.columns {
            out.write(before);
            self.quoted.clear();
            quote(&mut self.quoted, record.field(*index));
            out.write(&self.quoted);
        }
        out.write(b"\n  }");
        Ok(())
    }

    fn finish(&mut self, out: &mut Out) -> Result<(), Fault> {
        out.write(if self.begun { b"\n]" } else { b"[]" });
        Ok(())
    }
}

fn quote(made: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(made, text).expect("text takes any text");
}

struct Select {
    wanted: Vec<String>,
    columns: Vec<usize>,
}

fn columns(call: &Call<'_>) -> Result<Vec<String>, Fault> {
    // A record has no more fields.
    let names = call.texts_most("columns", FIELDS_MOST)?;
    // The names, and a set of them.
    let bytes: usize = names.iter().map(|name| name.len() + 4 * size_of::<String>()).sum();
    call.budget.claim(bytes as u64)?;
    let mut seen = HashSet::new();
    for name in &names {
        call.budget.work(NAME_STEPS + name.len() as u64)?;
        if !seen.insert(*name) {
            return Err(Fault::param("columns", format!("{} is there twice", shown(name))));
        }
    }
    Ok(names.into_iter().map(str::to_owned).collect())
}

/// The steps of work to look up a name.
const NAME_STEPS: u64 = 32;

impl RecordVisitor for Select {
    fn header(&mut self, names: &[String], out: &mut Out) -> Result<(), Fault> {
        let places: HashMap<&str, usize> = names.iter().map(|name| &**name).zip(0..).collect();
        for wanted in &self.wanted {
            let place = places.get(&**wanted).ok_or_else(|| {
                Fault::input(
                    0,
                    format!("has no column {}; it has {}", shown(wanted), shown(&names.join(", "))),
                )
            })?;
            self.columns.push(*place);
        }
        write_record(self.wanted.iter().map(|name| &**name), &mut |bytes| out.write(bytes));
        Ok(())
    }

    fn record(&mut self, record: Record<'_>, out: &mut Out) -> Result<(), Fault> {
        write_record(self.columns.iter().map(|index| record.field(*index)), &mut |bytes| out.write(bytes));
        Ok(())
    }

    fn finish(&mut self, _: &mut Out) -> Result<(), Fault> {
        match self.columns.is_empty() {
            true => Err(Fault::input(0, "is empty, so it has no header")),
            false => Ok(()),
        }
    }
}

/// Writes a record, quoting a field only where its meaning would otherwise be ambiguous.
fn write_record(fields: impl Iterator<Item = impl AsRef<str>>, give: &mut impl FnMut(&[u8])) {
    let (mut count, mut empty) = (0, true);
    for field in fields {
        let field = field.as_ref();
        if count > 0 {
            give(b",");
        }
        count += 1;
        empty &= field.is_empty();
        match field.bytes().any(|byte| matches!(byte, b',' | b'"' | b'\r' | b'\n')) {
            true => give(format!("\"{}\"", field.replace('"', "\"\"")).as_bytes()),
            false => give(field.as_bytes()),
        }
    }
    // A blank line would not be read as a record.
    if empty && count < 2 {
        give(b"\"\"");
    }
    give(b"\n");
}

fn from_json(input: &Bytes, most: OutputLimit, budget: &Arc<CallBudget>) -> Result<Bytes, Fault> {
    let Json::Array(rows) = parsed(0, input, budget)? else {
        return Err(Fault::input(0, "is not a JSON list of objects"));
    };
    let rows = rows.iter().enumerate().map(|(index, row)| {
        row.as_object()
            .ok_or_else(|| Fault::input(0, format!("element {index} of the list is not an object")))
    });
    let rows = rows.collect::<Result<Vec<_>, Fault>>()?;
    if rows.is_empty() {
        return Ok(Bytes::new());
    }
    let names: BTreeSet<&str> = rows.iter().flat_map(|row| row.keys()).map(|name| &**name).collect();
    let mut made = Output::new(most, budget);
    let mut record = Vec::new();
    write_record(names.iter().copied(), &mut |bytes| record.extend_from_slice(bytes));
    made.write(&record)?;
    for row in rows {
        // The keys of the row and `names` are both sorted by their bytes.
        let mut left = row.iter().peekable();
        let fields =
            names.iter().map(|name| field(left.next_if(|(key, _)| key == name).map(|(_, value)| value)));
        record.clear();
        write_record(fields, &mut |bytes| record.extend_from_slice(bytes));
        made.write(&record)?;
    }
    Ok(made.into_bytes())
}

fn field(value: Option<&Json>) -> Cow<'_, str> {
    match value {
        None => "".into(),
        Some(Json::String(text)) => text.into(),
        Some(other) => other.to_string().into(),
    }
}
