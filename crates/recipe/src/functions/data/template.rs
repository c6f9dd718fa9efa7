//! The function `template/1`: renders text from a template and values. `anabranch-template` runs every template in
//! bounded memory and time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anabranch_template::{
    Bounds, Dialect, Error, ErrorKind, MEMORY_BYTES, Run, Sink, Template, filter_names, test_names,
};
use anabranch_value::{Map, Value as Variable};
use bytes::Bytes;
use serde_json::Value as Json;

use super::json::TREE;
use super::parsed;
use crate::Value;
use crate::budget::CallBudget;
use crate::function::{Call, Chunks, Fault, Kernel, Out};
use crate::functions::kernels::{StreamingFunction, signature};
use crate::functions::text::text;
use crate::param::{ParamKind, no_entries, no_values, unlike};
use crate::registry::{Functions, join};
use crate::signature::{Arity, Holds, MemoryNeed, Signature};

/// The default number of steps that a template may take.
const FUEL: i64 = 1_000_000;

/// The maximum number of steps that a recipe may allow.
const FUEL_MOST: i64 = 100_000_000;

/// The maximum size of all inputs together, and of `values`, in bytes. As template values they take several times as
/// much memory.
const INPUTS_MOST: u64 = 16 << 20;

pub(super) fn add(functions: &mut Functions) {
    functions.add(StreamingFunction(described(), begin));
}

/// The memory for intermediate values that a call begins with, as the template counts it. If they take more, it is
/// claimed, up to the bound of the template.
const EXPRESSIONS_LEAST: u64 = 512 << 10;

/// That bound.
const EXPRESSIONS_MOST: u64 = MEMORY_BYTES as u64;

/// The memory of intermediate values, as a multiple of what the template counts: it counts neither allocations nor the
/// room in which lists grow.
const EXPRESSIONS_FACTOR: u64 = 4;

/// The memory to compile a template: per byte of it, and at most per tag, because a tag has a bounded number of words.
const COMPILED_PER_BYTE: u64 = 128;
const COMPILED_PER_TAG: u64 = 128 << 10;

/// The maximum size of a template in bytes.
const TEMPLATE_MOST: u64 = 1 << 20;

/// The memory for the inputs, as bytes and as values, for `values`, for the compiled template, and for a few intermediate
/// values.
const MEMORY: MemoryNeed = MemoryNeed {
    base: (1 << 20) + EXPRESSIONS_FACTOR * EXPRESSIONS_LEAST,
    per_input: 256,
    per_input_byte: 3,
    per_param_byte: 12,
    claims_per_input_byte: TREE,
};

fn described() -> Signature {
    let mut signature = signature(
        "template/1",
        "The rendered template, in Jinja's syntax. Its variables are the inputs, as the list `inputs` and \
         by their names, and `values`. An undefined variable is an error, and nothing is escaped by \
         default. Supported are `for` (with `if`, `else`, `break`, `continue` and the fields of `loop`), \
         `if`, and expressions with `range`. There are no assignments, other calls, other templates, files \
         or clock. A loop iterates over a variable, a part of one, or a list of these. A template has at \
         most 1 MiB, the inputs 16 MiB together, `values` 16 MiB, the intermediate values of an expression \
         32 MiB, a range 100000 numbers.",
    )
    .inputs(Arity::at_least(0))
    .needs("template", ParamKind::Text, "the template")
    .may(
        "names",
        ParamKind::list(ParamKind::Text, 0),
        no_values(),
        "names of the inputs, in order, one per input",
    )
    .may("format", ParamKind::one_of(&["text", "json"]), "text", "the format of the inputs")
    .may("values", ParamKind::Map, no_entries(), "further variables")
    .may(
        "fuel",
        ParamKind::int(1, FUEL_MOST as i128),
        FUEL,
        "the maximum number of steps; 64 bytes that the template reads, makes or writes count as one more",
    )
    .bounds_output()
    // The cost depends on the template rather than on the inputs.
    .compiles()
    .nanos_per_kib(Signature::OPAQUE);
    let (filters, tests) = (filter_names(Dialect::Plain), test_names(Dialect::Plain));
    let about = signature.about.to_mut();
    about.push_str(&format!(" Filters: {}. Tests: {}.", filters.join(", "), tests.join(", ")));
    signature.holds = Holds::Everything;
    signature.memory = MEMORY;
    signature
}

/// The format of the inputs.
#[derive(Clone, Copy)]
enum Format {
    Text,
    Json,
}

fn begin(call: &Call<'_>) -> Result<Box<dyn Kernel>, Fault> {
    let source = call.text("template")?;
    let fuel = call.number("fuel")?;
    let most = call.max_bytes()?;
    call.budget.claim(compiled_memory(source))?;
    let template = Template::compile_as(source, Dialect::Plain)
        .map_err(|error| Fault::param("template", error.located(source)))?;
    let format = if call.text("format")? == "json" { Format::Json } else { Format::Text };
    let (names, variables) = (names(call)?, values(call)?);
    if let Some(name) = names.iter().find(|name| variables.contains_key(*name)) {
        return Err(Fault::param("names", format!("{name:?} is in `values`, too")));
    }
    let bounds = Bounds { fuel, output_bytes: usize::try_from(most).unwrap_or(usize::MAX) };
    let inputs = call.sizes.iter().map(|_| Chunks::new()).collect();
    let (template, budget) = (Arc::new(template), Arc::clone(call.budget));
    Ok(Box::new(TemplateKernel {
        template,
        bounds,
        most,
        format,
        names,
        variables,
        inputs,
        held: 0,
        run: None,
        expressions: EXPRESSIONS_LEAST,
        budget,
    }))
}

/// The memory to compile a template, its syntax tree included. A larger template than is allowed is refused at once.
fn compiled_memory(source: &str) -> u64 {
    let tags =
        source.as_bytes().windows(2).filter(|pair| matches!(*pair, [b'{', b'{' | b'%'])).count() as u64;
    let bytes = (source.len() as u64).min(TEMPLATE_MOST);
    (bytes * COMPILED_PER_BYTE).min(tags * COMPILED_PER_TAG)
}

/// A template that is rendered once all inputs have arrived.
struct TemplateKernel {
    template: Arc<Template>,
    bounds: Bounds,
    /// The maximum size of the output in bytes.
    most: u64,
    format: Format,
    names: Vec<String>,
    variables: BTreeMap<String, Variable>,
    inputs: Vec<Chunks>,
    /// Bytes of input received so far.
    held: u64,
    run: Option<Run>,
    /// The memory for intermediate values, as the template counts it.
    expressions: u64,
    budget: Arc<CallBudget>,
}

impl Kernel for TemplateKernel {
    fn push(&mut self, input: usize, chunk: Bytes, _: &mut Out) -> Result<(), Fault> {
        self.held += chunk.len() as u64;
        if self.held > INPUTS_MOST {
            return Err(Fault::TooLarge { what: "the inputs of a template", most: INPUTS_MOST });
        }
        self.inputs[input].push(chunk);
        Ok(())
    }

    fn finish(&mut self, out: &mut Out) -> Result<(), Fault> {
        let (format, budget) = (self.format, Arc::clone(&self.budget));
        let read = |(index, chunks): (usize, Chunks)| match format {
            Format::Text => Ok(Variable::from(text(index, &join(chunks))?)),
            Format::Json => Ok(of_json(parsed(index, &join(chunks), &budget)?)),
        };
        let inputs = self.inputs.drain(..).enumerate().map(read).collect::<Result<Vec<Variable>, Fault>>()?;
        self.variables.extend(self.names.drain(..).zip(inputs.iter().cloned()));
        self.variables.insert("inputs".to_owned(), Variable::from(inputs));
        let values = self.template.variables().iter().map(|name| self.variables.get(name).cloned()).collect();
        // All that is left of the grant.
        let left = budget.granted().saturating_sub(budget.claimed()) / EXPRESSIONS_FACTOR;
        let more = left.min(EXPRESSIONS_MOST - EXPRESSIONS_LEAST);
        budget.claim(more * EXPRESSIONS_FACTOR)?;
        self.expressions = EXPRESSIONS_LEAST + more;
        let run = Run::new(self.template.clone(), values, self.bounds).with_memory(self.expressions as usize);
        self.run = Some(run.with_check(move || budget.check().is_ok()));
        self.resume(out)
    }

    fn resume(&mut self, out: &mut Out) -> Result<(), Fault> {
        let Some(run) = &mut self.run else { return Ok(()) };
        match run.go_on(&mut ChunkedSink(out)) {
            Ok(true) => Ok(()),
            Ok(false) => {
                out.pause();
                Ok(())
            }
            Err(error) => Err(self.fault(&error)),
        }
    }
}

impl TemplateKernel {
    fn fault(&self, error: &Error) -> Fault {
        match error.kind {
            ErrorKind::Output => Fault::TooLarge { what: "the output", most: self.most },
            ErrorKind::Fuel => Fault::param("template", format!("{error}; `fuel` allows up to {FUEL_MOST}")),
            ErrorKind::Memory if self.expressions < EXPRESSIONS_MOST => Fault::Memory {
                needed: self.budget.claimed() + EXPRESSIONS_FACTOR * self.expressions,
                granted: self.budget.granted(),
            },
            ErrorKind::Template | ErrorKind::Memory => Fault::param("template", error.to_string()),
            ErrorKind::Stopped => self.budget.check().err().unwrap_or(Fault::Stopped),
        }
    }
}

/// Writes the output of a template in chunks.
struct ChunkedSink<'a>(&'a mut Out);

impl Sink for ChunkedSink<'_> {
    fn write(&mut self, text: &str) {
        self.0.write(text.as_bytes());
    }

    fn is_full(&self) -> bool {
        self.0.is_full()
    }
}

/// Converts JSON to a template value. The entries of a map are sorted by name.
fn of_json(value: Json) -> Variable {
    match value {
        Json::Null => Variable::Null,
        Json::Bool(value) => value.into(),
        Json::String(text) => text.into(),
        Json::Number(number) => match number.as_i64() {
            Some(integer) => integer.into(),
            None => number.as_f64().unwrap_or(f64::NAN).into(),
        },
        Json::Array(values) => Variable::list(values.into_iter().map(of_json)),
        Json::Object(values) => {
            let mut map: Map = values.into_iter().map(|(key, value)| (key.into(), of_json(value))).collect();
            map.sort_keys();
            map.into()
        }
    }
}

/// More names than inputs are counted up to this many, for the message.
const NAMES_LEAST: usize = 1024;

fn names(call: &Call<'_>) -> Result<Vec<String>, Fault> {
    let names: Vec<String> =
        call.texts_most("names", call.sizes.len().max(NAMES_LEAST))?.into_iter().map(str::to_owned).collect();
    if names.iter().any(|name| name == "inputs") {
        return Err(Fault::param("names", "`inputs` is the list of all inputs"));
    }
    let inputs = call.sizes.len();
    if call.given().contains_key("names") && names.len() != inputs {
        return Err(Fault::param("names", format!("{} names for {inputs} inputs", names.len())));
    }
    let mut seen = BTreeSet::new();
    match names.iter().find(|name| !seen.insert(*name)) {
        Some(name) => Err(Fault::param("names", format!("{name:?} is there twice"))),
        None => Ok(names),
    }
}

fn values(call: &Call<'_>) -> Result<BTreeMap<String, Variable>, Fault> {
    let values = call.map("values")?;
    if values.contains_key("inputs") {
        return Err(Fault::param("values", "`inputs` is the list of all inputs"));
    }
    let values: BTreeMap<String, Variable> = values
        .iter()
        .map(|(name, value)| Ok((name.clone(), variable(value)?)))
        .collect::<Result<_, Fault>>()?;
    match values.values().map(weight).sum::<u64>() <= INPUTS_MOST {
        true => Ok(values),
        false => Err(Fault::TooLarge { what: "`values`", most: INPUTS_MOST }),
    }
}

/// The approximate size of a value in bytes.
fn weight(value: &Variable) -> u64 {
    let inside = match value {
        Variable::Text(text) => text.len() as u64,
        Variable::List(values) => values.iter().map(weight).sum(),
        Variable::Map(values) => values.iter().map(|(name, value)| name.len() as u64 + weight(value)).sum(),
        _ => 0,
    };
    size_of::<Variable>() as u64 + inside
}

fn variable(value: &Value) -> Result<Variable, Fault> {
    match value {
        Value::Null => Ok(Variable::Null),
        Value::Bool(value) => Ok((*value).into()),
        Value::Int(value) => Ok((*value).into()),
        Value::Float(value) => Ok((*value).into()),
        Value::Text(value) => Ok(value.as_str().into()),
        Value::List(values) => {
            values.iter().map(variable).collect::<Result<Vec<Variable>, Fault>>().map(Variable::from)
        }
        Value::Map(values) => values
            .iter()
            .map(|(name, value)| Ok((name.as_str().into(), variable(value)?)))
            .collect::<Result<Map, Fault>>()
            .map(Variable::from),
        Value::Bytes(_) | Value::Address(_) => Err(unlike("values", "something a template can show", value)),
    }
}
