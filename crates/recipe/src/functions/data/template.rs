//! Text out of a template and values.

use std::collections::BTreeMap;
use std::io;

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior, Value as Variable};
use serde_json::Value as Json;

use super::parsed;
use crate::Value;
use crate::function::{Arity, Call, Fault};
use crate::functions::support::{Body, MOST_BYTES, signature, unlike, whole};
use crate::functions::text::{shown, text};
use crate::registry::Functions;

/// Steps that a template may take, if the recipe does not say.
const FUEL: u64 = 1_000_000;

pub(super) fn add(functions: &mut Functions) {
    functions.add(whole(
        signature(
            "template/1",
            "What the template comes to, in Jinja's syntax. Its variables are the inputs, as the list `inputs` and \
             by their names, and `values`. A variable that is not there is an error; nothing is escaped; there are \
             no other templates, no files and no clock. At most 1 GiB is given.",
        )
        .inputs(Arity::at_least(0))
        .needs("template", "the template, as text")
        .may("names", "names of the inputs, in order: a list of texts; none unless said")
        .may("format", "what the inputs are: `text` or `json`; `text` unless said")
        .may("values", "a map of more variables")
        .may("fuel", "the most steps the template may take, 1 to 1000000000; 1000000 unless said")
        .nanos_per_kib(10_000),
        rendering,
    ));
}

/// What an input is.
#[derive(Clone, Copy)]
enum Format {
    Text,
    Json,
}

fn rendering(call: &Call<'_>) -> Result<Body, Fault> {
    let source = call.text("template")?.to_owned();
    let mut environment = Environment::new();
    environment.set_debug(false);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let syntax = SyntaxConfig::builder().keep_trailing_newline(true).build();
    environment.set_syntax(syntax.expect("the delimiters are the usual ones"));
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    environment.set_fuel(Some(call.number_or("fuel", 1..=1_000_000_000, FUEL)?));
    environment.add_template_owned("template", source.clone()).map_err(|error| fault(&source, &error))?;
    let format = match call.params.get("format") {
        None => Format::Text,
        Some(_) => match call.text("format")? {
            "text" => Format::Text,
            "json" => Format::Json,
            other => return Err(Fault::param("format", format!("{other:?} is not `text` or `json`"))),
        },
    };
    let names = names(call)?;
    let mut variables = values(call)?;
    if let Some(name) = names.iter().find(|name| variables.contains_key(*name)) {
        return Err(Fault::param("names", format!("{name:?} is in `values`, too")));
    }
    Ok(Box::new(move |inputs| {
        let read = |(index, bytes): (usize, &bytes::Bytes)| match format {
            Format::Text => Ok(Variable::from(text(index, bytes)?)),
            Format::Json => Ok(of_json(parsed(index, bytes)?)),
        };
        let inputs = inputs.iter().enumerate().map(read).collect::<Result<Vec<Variable>, Fault>>()?;
        variables.extend(names.into_iter().zip(inputs.iter().cloned()));
        variables.insert("inputs".to_owned(), Variable::from(inputs));
        let mut made = Bounded(Vec::new());
        let template = environment.get_template("template").map_err(|error| fault(&source, &error))?;
        match template.render_captured_to(Variable::from(variables), &mut made) {
            Ok(_) => Ok(made.0.into()),
            Err(error) if error.kind() == ErrorKind::WriteFailure => {
                Err(Fault::TooLarge { what: "the output", most: MOST_BYTES })
            }
            Err(error) => Err(fault(&source, &error)),
        }
    }))
}

fn fault(source: &str, error: &Error) -> Fault {
    let place = error.line().map(|line| format!("line {line}: ")).unwrap_or_default();
    let detail = error.detail().map(|detail| format!(": {detail}")).unwrap_or_default();
    let more = match (error.kind(), error.range().and_then(|range| source.get(range))) {
        (ErrorKind::OutOfFuel, _) => "; `fuel` allows more".to_owned(),
        (_, Some(part)) => format!(", in {}", shown(part)),
        (_, None) => String::new(),
    };
    Fault::param("template", format!("{place}{}{detail}{more}", error.kind()))
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
            values.iter().map(|(name, value)| Ok((name.clone(), variable(value)?))).collect()
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

/// A text that may not grow for ever.
struct Bounded(Vec<u8>);

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if (self.0.len() + bytes.len()) as u64 > MOST_BYTES {
            return Err(io::Error::other("too large"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
