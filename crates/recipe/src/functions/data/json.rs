//! Functions of JSON.

use std::io;

use bytes::Bytes;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value as Json;

use super::{compact, parsed};
use crate::function::{Fault, Out, Signature};
use crate::functions::support::{Body, MAX_BYTES_HELD, Most, Streamed, signature, whole};
use crate::functions::text::{OfLines, of_lines};
use crate::registry::Functions;

/// How JSON is read and written, for all functions that do both.
pub(super) const KEYS: &str = " Keys are in the order of their bytes; of equal ones the last counts. Numbers are 64-bit \
    integers or floats. At most 127 lists and objects may be around a value.";

/// A signature that says how JSON is read and written.
pub(super) fn keyed(mut signature: Signature) -> Signature {
    signature.about.to_mut().push_str(KEYS);
    signature
}

pub(super) fn add(functions: &mut Functions) {
    let pretty = signature("pretty_json/1.0.0", "The JSON, two spaces deeper in each list and object.")
        .may("max_bytes", MAX_BYTES_HELD);
    functions.add(whole(keyed(pretty).nanos_per_kib(15_000), |call| {
        let most = call.max_bytes_held()?;
        Ok(Box::new(move |inputs| {
            let mut made = Bounded(Vec::new(), most);
            let written = serde_json::to_writer_pretty(&mut made, &parsed(0, &inputs[0])?);
            written.map_err(|_| Fault::TooLarge { what: "the output", most: most.0 })?;
            Ok(made.0.into())
        }))
    }));
    let minified = signature("minify_json/1.0.0", "The JSON without white space.");
    functions.add(whole(keyed(minified).nanos_per_kib(13_000), |_| {
        changed(|input| Ok(compact(&parsed(0, input)?)))
    }));
    let lines = signature(
        "json_lines/1.0.0",
        "The elements of a JSON list, each without white space in a line of its own; LF is between them, and \
         none behind the last.",
    );
    functions.add(whole(keyed(lines).nanos_per_kib(13_000), |_| changed(lines_of)));
    functions.add(whole(
        signature(
            "json_validate/1.0.0",
            "The input as it is, if it is JSON. At most 127 lists and objects may be around a value, and numbers \
             must be in the range of a 64-bit float; a key may be there twice.",
        )
        .nanos_per_kib(3000),
        |_| {
            Ok(Box::new(|mut inputs| {
                let input = inputs.remove(0);
                let checked: Result<Checked, _> = serde_json::from_slice(&input);
                checked.map_err(|error| Fault::input(0, format!("not JSON: {error}")))?;
                Ok(input)
            }))
        },
    ));
    functions.add(Streamed(
        keyed(signature(
            "json_from_lines/1",
            "A JSON list of what the lines are, which is JSON each; without white space. Blank lines are left out. A \
             line has at most 16 MiB.",
        ))
        .nanos_per_kib(13_000),
        |_| Ok(of_lines(FromLines { begun: false })),
    ));
}

/// A text that may not grow for ever.
struct Bounded(Vec<u8>, Most);

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.1.allows(self.0.len() + bytes.len()).map_err(io::Error::other)?;
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The body that makes something of one input.
pub(super) fn changed(change: fn(&Bytes) -> Result<Bytes, Fault>) -> Result<Body, Fault> {
    Ok(Box::new(move |inputs| change(&inputs[0])))
}

fn lines_of(input: &Bytes) -> Result<Bytes, Fault> {
    let Json::Array(values) = parsed(0, input)? else {
        return Err(Fault::input(0, "is not a JSON list"));
    };
    let mut made = Vec::with_capacity(input.len());
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            made.push(b'\n');
        }
        serde_json::to_writer(&mut made, value).expect("text takes any value");
    }
    Ok(made.into())
}

struct FromLines {
    begun: bool,
}

impl OfLines for FromLines {
    fn line(&mut self, number: u64, line: &str, out: &mut Out) -> Result<(), Fault> {
        if line.trim().is_empty() {
            return Ok(());
        }
        let value: Json = serde_json::from_str(line).map_err(|error| {
            let problem = error.to_string();
            let column = error.column();
            let problem = problem.split(" at line ").next().unwrap_or(&problem);
            Fault::input(0, format!("line {number}, column {column}: not JSON: {problem}"))
        })?;
        out.write(if std::mem::replace(&mut self.begun, true) { b"," } else { b"[" });
        out.push(compact(&value));
        Ok(())
    }

    fn finish(&mut self, _: u64, out: &mut Out) -> Result<(), Fault> {
        out.write(if self.begun { b"]" } else { b"[]" });
        Ok(())
    }
}

/// Any JSON, read like a value but not kept.
struct Checked;

impl<'de> Deserialize<'de> for Checked {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Checked, D::Error> {
        deserializer.deserialize_any(Checked)
    }
}

impl<'de> Visitor<'de> for Checked {
    type Value = Checked;

    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_str<E>(self, _: &str) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Checked, A::Error> {
        while values.next_element::<Checked>()?.is_some() {}
        Ok(Checked)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut values: A) -> Result<Checked, A::Error> {
        while values.next_entry::<Checked, Checked>()?.is_some() {}
        Ok(Checked)
    }
}
