//! The public face of a template.

use anabranch_value::Value;

use crate::code::{Step, Term};
use crate::compile::compile;
use crate::error::{Error, Halt};
use crate::run::{Inputs, State};
use crate::{filters, tests};

/// A compiled template.
pub struct Template {
    /// The source, with delimiters around a bare expression.
    source: String,
    /// The bytes that were put in front of a bare expression.
    shift: usize,
    pub(crate) dialect: Dialect,
    variables: Vec<String>,
    pub(crate) steps: Vec<Step>,
    pub(crate) slots: usize,
    /// The step of a template that is a single expression.
    single: Option<usize>,
}

/// The rules of a template, fixed when it is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// All of this crate. Values print as in Python's Jinja, lists and maps as JSON; one trailing newline is dropped.
    Dataset,
    /// The rules of recipes: no names beside inputs and loops, no calls, no conversions between kinds of values.
    Plain,
}

/// The bounds of one run of a template.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Steps of the evaluator; one more per 64 bytes that it reads or makes.
    pub fuel: u64,
    /// Bytes of the rendered text.
    pub output_bytes: usize,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { fuel: 1_000_000, output_bytes: 4 << 20 }
    }
}

impl Template {
    /// Compiles a template in the dataset dialect.
    pub fn compile(source: &str) -> Result<Template, Error> {
        Template::compile_as(source, Dialect::Dataset)
    }

    /// Compiles a template in a dialect.
    pub fn compile_as(source: &str, dialect: Dialect) -> Result<Template, Error> {
        Template::read(source.to_owned(), 0, dialect).map_err(Halt::into_error)
    }

    /// Compiles a bare expression, as between `{{` and `}}`. Error places are relative to the bare expression.
    pub fn expression(source: &str) -> Result<Template, Error> {
        const OPEN: &str = "{{ ";
        let wrapped = format!("{OPEN}{source} }}}}");
        let template = Template::read(wrapped, OPEN.len(), Dialect::Dataset);
        let template = template.map_err(|halt| shifted(halt, OPEN.len(), source.len()).into_error())?;
        match template.single {
            Some(_) => Ok(template),
            None => Err(Error {
                place: 0..source.len(),
                message: "is not a single expression".to_owned(),
                kind: crate::ErrorKind::Template,
            }),
        }
    }

    fn read(source: String, shift: usize, dialect: Dialect) -> Result<Template, Halt> {
        let code = compile(&source, dialect)?;
        let single = single(&code.steps);
        Ok(Template {
            source,
            shift,
            dialect,
            variables: code.inputs,
            steps: code.steps,
            slots: code.slots,
            single,
        })
    }

    /// The names that the template reads and does not define, in the order of first use.
    pub fn variables(&self) -> &[String] {
        &self.variables
    }

    /// The text that the template renders to, with one value per name in [`variables`](Self::variables).
    pub fn render(&self, values: &[Value], bounds: Bounds) -> Result<String, Error> {
        let mut text = String::new();
        let mut state = State::new(self, bounds);
        match state.go_on(self, Inputs::All(values), &mut text) {
            Ok(_) => Ok(text),
            Err(halt) => Err(self.error(halt, bounds)),
        }
    }

    /// The value of a template that is a single expression, with its type; the rendered text of any other.
    ///
    /// White space around the expression does not count.
    pub fn evaluate(&self, values: &[Value], bounds: Bounds) -> Result<Value, Error> {
        let Some(Step::Show(term)) = self.single.map(|step| &self.steps[step]) else {
            return self.render(values, bounds).map(Value::from);
        };
        let value = State::new(self, bounds).value(Inputs::All(values), term);
        value.map_err(|halt| self.error(halt, bounds))
    }

    /// The error of a run.
    pub(crate) fn error(&self, halt: Halt, bounds: Bounds) -> Error {
        let bare = &self.source[self.shift..];
        let bare = if self.shift > 0 { bare.strip_suffix(" }}").unwrap_or(bare) } else { bare };
        shifted(halt, self.shift, bare.len()).in_run(bare, bounds.fuel, bounds.output_bytes)
    }
}

/// A halt with its place in a source that begins so much later.
fn shifted(halt: Halt, shift: usize, len: usize) -> Halt {
    let moved = |at: usize| at.saturating_sub(shift).min(len);
    Halt { place: moved(halt.place.start)..moved(halt.place.end), stop: halt.stop }
}

fn single(steps: &[Step]) -> Option<usize> {
    let is_space = |step: &Step| matches!(step, Step::Text(text, _) if text.trim().is_empty());
    let mut others = steps.iter().enumerate().filter(|(_, step)| !is_space(step));
    match (others.next(), others.next()) {
        (Some((index, Step::Show(Term { .. }))), None) => Some(index),
        _ => None,
    }
}

/// The names of all filters of a dialect.
pub fn filter_names(dialect: Dialect) -> Vec<&'static str> {
    filters::names(dialect)
}

/// The names of all tests of a dialect, as they stand after `is`.
pub fn test_names(dialect: Dialect) -> Vec<&'static str> {
    tests::names(dialect)
}
