//! Text out of a template and values.
//!
//! Anybody may send a template, so it runs in bounded memory and time whatever it says: it is read into steps
//! ([`compile`]), each of which takes fuel for what it looks at ([`work`]); what expressions make is bounded, and has no
//! name that more could be made of; what comes out is given as it comes ([`run`]).

mod code;
mod compile;
mod evaluate;
mod filters;
mod kinds;
mod operators;
mod run;
mod work;

use std::collections::BTreeMap;

use bytes::Bytes;
use minijinja::Value as Variable;
use serde_json::Value as Json;

use self::evaluate::{Halt, Scope};
use self::run::Run;
use self::work::{MADE_MOST, Stop, Work};
use super::parsed;
use crate::Value;
use crate::function::{Arity, Call, Chunks, Fault, Holds, Kernel, Out, Signature};
use crate::functions::support::{MAX_BYTES, Streamed, signature, unlike};
use crate::functions::text::{shown, text};
use crate::registry::{Functions, join};

/// Steps that a template may take, if the recipe does not say.
const FUEL: u64 = 1_000_000;

/// The most steps that a recipe may allow.
const FUEL_MOST: u64 = 100_000_000;

/// The most bytes of all inputs, and of `values`: as values of a template they take several times as much.
const INPUTS_MOST: u64 = 16 << 20;

pub(super) fn add(functions: &mut Functions) {
    functions.add(Streamed(described(), begin));
}

fn described() -> Signature {
    let mut signature = signature(
        "template/1",
        "What the template comes to, in Jinja's syntax. Its variables are the inputs, as the list `inputs` and by their \
         names, and `values`. A variable that is not there is an error; nothing is escaped unless asked. There are `for` \
         (with `if`, `else`, `break`, `continue` and what `loop` knows), `if`, and expressions with `range`; values get \
         no other names, nothing else can be called, and there are no other templates, no files and no clock. A loop \
         goes over a variable, a part of one, or a list of such. The template has at most 1 MiB, the inputs 16 MiB \
         together, `values` 16 MiB, what an expression makes on its way 32 MiB, a range 100000 numbers.",
    )
    .inputs(Arity::at_least(0))
    .needs("template", "the template, as text")
    .may("names", "names of the inputs, in order: a list of texts; none unless said")
    .may("format", "what the inputs are: `text` or `json`; `text` unless said")
    .may("values", "a map of more variables")
    .may(
        "fuel",
        "the most steps the template may take, one more for each 64 bytes it looks at, makes or gives, 1 to 100000000; \
         1000000 unless said",
    )
    .may("max_bytes", MAX_BYTES)
    // It is the template that costs, not the inputs.
    .nanos_per_kib(Signature::OPAQUE);
    let filters: Vec<&str> = filters::FILTERS.iter().map(|filter| filter.name).collect();
    let tests: Vec<&str> = kinds::TESTS.iter().map(|test| test.name).collect();
    let about = signature.about.to_mut();
    about.push_str(&format!(" Filters: {}. Tests: {}.", filters.join(", "), tests.join(", ")));
    signature.holds = Holds::Everything;
    signature
}

/// What an input is.
#[derive(Clone, Copy)]
enum Format {
    Text,
    Json,
}

fn begin(call: &Call<'_>) -> Result<Box<dyn Kernel>, Fault> {
    let source = Bytes::copy_from_slice(call.text("template")?.as_bytes());
    let fuel = call.number_or("fuel", 1..=FUEL_MOST, FUEL)?;
    let most = call.max_bytes()?;
    let steps = compile::compile(&source).map_err(|halt| fault(&source, halt, fuel))?;
    let format = match call.params.get("format") {
        None => Format::Text,
        Some(_) => match call.text("format")? {
            "text" => Format::Text,
            "json" => Format::Json,
            other => return Err(Fault::param("format", format!("{other:?} is not `text` or `json`"))),
        },
    };
    let (names, variables) = (names(call)?, values(call)?);
    if let Some(name) = names.iter().find(|name| variables.contains_key(*name)) {
        return Err(Fault::param("names", format!("{name:?} is in `values`, too")));
    }
    let scope = Scope { variables, loops: Vec::new() };
    let run = Run { steps, at: 0, scope, work: Work { fuel, made: 0 }, given: 0, most };
    let inputs = call.sizes.iter().map(|_| Chunks::new()).collect();
    Ok(Box::new(Template { source, fuel, format, names, inputs, held: 0, run }))
}

/// A template that waits for its inputs, then runs.
struct Template {
    source: Bytes,
    fuel: u64,
    format: Format,
    names: Vec<String>,
    inputs: Vec<Chunks>,
    /// Bytes of the inputs.
    held: u64,
    run: Run,
}

impl Kernel for Template {
    fn push(&mut self, input: usize, chunk: Bytes, _: &mut Out) -> Result<(), Fault> {
        self.held += chunk.len() as u64;
        if self.held > INPUTS_MOST {
            return Err(Fault::TooLarge { what: "the inputs of a template", most: INPUTS_MOST });
        }
        self.inputs[input].push(chunk);
        Ok(())
    }

    fn finish(&mut self, out: &mut Out) -> Result<(), Fault> {
        let format = self.format;
        let read = |(index, chunks): (usize, Chunks)| match format {
            Format::Text => Ok(Variable::from(text(index, &join(chunks))?)),
            Format::Json => Ok(of_json(parsed(index, &join(chunks))?)),
        };
        let inputs = self.inputs.drain(..).enumerate().map(read).collect::<Result<Vec<Variable>, Fault>>()?;
        let variables = &mut self.run.scope.variables;
        variables.extend(self.names.drain(..).zip(inputs.iter().cloned()));
        variables.insert("inputs".to_owned(), Variable::from(inputs));
        self.resume(out)
    }

    fn resume(&mut self, out: &mut Out) -> Result<(), Fault> {
        let most = self.run.most;
        self.run.go_on(out).map_err(|halt| match halt.stop {
            Stop::Given => Fault::TooLarge { what: "the output", most },
            _ => fault(&self.source, halt, self.fuel),
        })
    }
}

fn fault(source: &Bytes, halt: Halt, fuel: u64) -> Fault {
    let Halt { place, stop } = halt;
    let before = &source[..place.start.min(source.len())];
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let problem = match stop {
        Stop::Wrong(problem) => problem,
        Stop::Fuel => format!("more than {fuel} steps; `fuel` allows up to {FUEL_MOST}").into(),
        Stop::Made => format!("makes more than {MADE_MOST} bytes on its way; make less of it at once").into(),
        Stop::Given => "gives too much".into(),
    };
    let part = match source.get(place).map(String::from_utf8_lossy) {
        Some(part) if !part.is_empty() => format!(", in {}", shown(&part)),
        _ => String::new(),
    };
    Fault::param("template", format!("line {line}: {problem}{part}"))
}

fn of_json(value: Json) -> Variable {
    match value {
        Json::Null => Variable::from(()),
        Json::Bool(value) => value.into(),
        Json::String(text) => text.into(),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => number.into(),
            (None, Some(number)) => number.into(),
            (None, None) => number.as_f64().expect("a number is one of the three").into(),
        },
        Json::Array(values) => values.into_iter().map(of_json).collect(),
        Json::Object(values) => {
            Variable::from_pairs(values.into_iter().map(|(key, value)| (key, of_json(value))))
        }
    }
}

fn names(call: &Call<'_>) -> Result<Vec<String>, Fault> {
    const ALLOWED: &str = "a list of texts, one for each input";
    let Some(value) = call.params.get("names") else { return Ok(Vec::new()) };
    let Value::List(list) = value else { return Err(unlike("names", ALLOWED, value)) };
    let name = |value: &Value| match value {
        Value::Text(name) if name == "inputs" => {
            Err(Fault::param("names", "`inputs` is the list of all inputs"))
        }
        Value::Text(name) => Ok(name.clone()),
        other => Err(unlike("names", ALLOWED, other)),
    };
    let names = list.iter().map(name).collect::<Result<Vec<String>, Fault>>()?;
    let inputs = call.sizes.len();
    if names.len() != inputs {
        return Err(Fault::param("names", format!("{} names for {inputs} inputs", names.len())));
    }
    match (1..names.len()).find(|index| names[..*index].contains(&names[*index])) {
        Some(index) => Err(Fault::param("names", format!("{:?} is there twice", names[index]))),
        None => Ok(names),
    }
}

fn values(call: &Call<'_>) -> Result<BTreeMap<String, Variable>, Fault> {
    match call.params.get("values") {
        None => Ok(BTreeMap::new()),
        Some(Value::Map(values)) if values.contains_key("inputs") => {
            Err(Fault::param("values", "`inputs` is the list of all inputs"))
        }
        Some(Value::Map(values)) => {
            let values: BTreeMap<String, Variable> = values
                .iter()
                .map(|(name, value)| Ok((name.clone(), variable(value)?)))
                .collect::<Result<_, Fault>>()?;
            let mut work = Work { fuel: u64::MAX, made: 0 };
            match values.values().map(|value| work.weigh(value)).sum::<Result<usize, Stop>>() {
                Ok(bytes) if bytes as u64 <= INPUTS_MOST => Ok(values),
                _ => Err(Fault::TooLarge { what: "`values`", most: INPUTS_MOST }),
            }
        }
        Some(other) => Err(unlike("values", "a map", other)),
    }
}

fn variable(value: &Value) -> Result<Variable, Fault> {
    match value {
        Value::Null => Ok(Variable::from(())),
        Value::Bool(value) => Ok((*value).into()),
        Value::Int(value) => Ok((*value).into()),
        Value::Float(value) => Ok((*value).into()),
        Value::Text(value) => Ok(value.into()),
        Value::List(values) => {
            values.iter().map(variable).collect::<Result<Vec<Variable>, Fault>>().map(Variable::from)
        }
        Value::Map(values) => values
            .iter()
            .map(|(name, value)| Ok((name.clone(), variable(value)?)))
            .collect::<Result<BTreeMap<String, Variable>, Fault>>()
            .map(Variable::from),
        Value::Bytes(_) | Value::Address(_) => Err(unlike("values", "something a template can show", value)),
    }
}
