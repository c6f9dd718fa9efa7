//! Functions of JSON.

use std::sync::Arc;

use bytes::Bytes;
use serde::de::DeserializeSeed as _;
use serde_json::Value as Json;

use super::tree::{Tree, TreeBudget};
use super::{compact, parsed, write_json};
use crate::budget::CallBudget;
use crate::function::{Fault, Out};
use crate::functions::kernels::{StreamingFunction, signature};
use crate::functions::output::{Output, OutputLimit};
use crate::functions::text::{LineVisitor, of_lines};
use crate::registry::Functions;
use crate::signature::Signature;
use crate::whole::{Body, whole};

/// The rules by which JSON is read and written, shared by all functions that do both.
pub(super) const KEYS: &str = " Keys are in byte order; of duplicate keys the last one is used. Numbers \
    are 64-bit integers or floats. Values are nested in at most 127 lists and objects.";

/// The usual memory of a parsed document, per byte of text.
pub(super) const TREE: u64 = 12;

/// Adds the rules for reading and writing JSON to a signature.
pub(super) fn keyed(mut signature: Signature) -> Signature {
    signature.about.to_mut().push_str(KEYS);
    signature.claims(TREE)
}

pub(super) fn add(functions: &mut Functions) {
    let pretty = signature("pretty_json/1.0.0", "The JSON, indented by two spaces.").bounds_held_output();
    functions.add(whole(keyed(pretty).nanos_per_kib(15_000), |call| {
        let most = call.max_bytes_held()?;
        Ok(Box::new(move |inputs, budget| {
            let mut made = Output::new(most, budget);
            let value = parsed(0, &inputs[0], budget)?;
            serde_json::to_writer_pretty(&mut made, &value).map_err(|_| made.fault())?;
            Ok(made.into_bytes())
        }))
    }));
    let minified = signature("minify_json/1.0.0", "The JSON without white space.");
    functions.add(whole(keyed(minified).nanos_per_kib(13_000), |_| {
        changed(|input, budget| compact(&parsed(0, input, budget)?, budget))
    }));
    let lines = signature(
        "json_lines/1.0.0",
        "The elements of a JSON list as compact JSON, one per line. The output has an LF between lines and \
         none after the last line.",
    );
    functions.add(whole(keyed(lines).nanos_per_kib(13_000), |_| changed(lines_of)));
    functions.add(whole(
        signature(
            "json_validate/1.0.0",
            "Returns the input unchanged; fails if it is not JSON. Values are nested in at most 127 lists \
             and objects, and numbers must be in the range of a 64-bit float. Duplicate keys are allowed.",
        )
        .nanos_per_kib(3000),
        |_| {
            Ok(Box::new(|mut inputs, budget| {
                let input = inputs.remove(0);
                let read = |tree: &TreeBudget<'_>| {
                    let mut reader = serde_json::Deserializer::from_slice(&input);
                    let CheckedJson = tree.seed().deserialize(&mut reader)?;
                    reader.end()
                };
                let wrong = |error: serde_json::Error| Fault::input(0, format!("not JSON: {error}"));
                TreeBudget::new(budget).read(read, wrong)?;
                Ok(input)
            }))
        },
    ));
    functions.add(StreamingFunction(
        keyed(signature(
            "json_from_lines/1",
            "The lines, each a JSON value, as one compact JSON list. Blank lines are skipped. A line has \
             at most 16 MiB.",
        ))
        .nanos_per_kib(13_000),
        |call| Ok(of_lines(call, ListFromLines { begun: false, budget: Arc::clone(call.budget) })),
    ));
}

/// A body that transforms the bytes of one input.
pub(super) fn changed(change: fn(&Bytes, &Arc<CallBudget>) -> Result<Bytes, Fault>) -> Result<Body, Fault> {
    Ok(Box::new(move |inputs, budget| change(&inputs[0], budget)))
}

fn lines_of(input: &Bytes, budget: &Arc<CallBudget>) -> Result<Bytes, Fault> {
    let Json::Array(values) = parsed(0, input, budget)? else {
        return Err(Fault::input(0, "is not a JSON list"));
    };
    let mut made = Output::new(OutputLimit::ANY, budget);
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            made.write(b"\n")?;
        }
        write_json(&mut made, value)?;
    }
    Ok(made.into_bytes())
}

struct ListFromLines {
    begun: bool,
    budget: Arc<CallBudget>,
}

impl LineVisitor for ListFromLines {
    fn line(&mut self, number: u64, line: &str, out: &mut Out) -> Result<(), Fault> {
        if line.trim().is_empty() {
            return Ok(());
        }
        let wrong = |error: serde_json::Error| {
            let problem = error.to_string();
            let column = error.column();
            let problem = problem.split(" at line ").next().unwrap_or(&problem);
            Fault::input(0, format!("line {number}, column {column}: not JSON: {problem}"))
        };
        // The memory of one line is released before the next line is read.
        let claim = self.budget.claimed();
        let read = |tree: &TreeBudget<'_>| {
            let mut reader = serde_json::Deserializer::from_str(line);
            let value: Json = tree.seed().deserialize(&mut reader)?;
            reader.end()?;
            Ok(value)
        };
        let value = TreeBudget::new(&self.budget).read(read, wrong)?;
        let text = compact(&value, &self.budget)?;
        self.budget.release(self.budget.claimed() - claim);
        out.write(if std::mem::replace(&mut self.begun, true) { b"," } else { b"[" });
        out.push(text);
        Ok(())
    }

    fn finish(&mut self, _: u64, out: &mut Out) -> Result<(), Fault> {
        out.write(if self.begun { b"]" } else { b"[]" });
        Ok(())
    }
}

/// Any JSON value, parsed but not kept.
struct CheckedJson;

impl Tree for CheckedJson {
    type Entries = ();

    fn scalar(_: Json) -> CheckedJson {
        CheckedJson
    }

    fn list(_: Vec<CheckedJson>) -> CheckedJson {
        CheckedJson
    }

    fn add_entry(_: &mut (), _: String, _: CheckedJson) {}

    fn object((): ()) -> CheckedJson {
        CheckedJson
    }
}
