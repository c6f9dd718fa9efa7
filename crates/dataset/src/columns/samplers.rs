//! The columns of all samplers: one task per row group, so that constraints between them are checked in one place.

use std::sync::Arc;

use anabranch_engine::{Cost, Dag};
use anabranch_sampler::{ColumnKey, CompiledConvert, CompiledSampler, Date, FieldType, Sampler};
use anabranch_template::{Bounds, Template, is_true};
use anabranch_value::Value;

use crate::column_type::ColumnType;
use crate::config::{Comparison, Constraint, ConstraintRhs, SamplerColumn, TemplateText};
use crate::fault::Fault;
use crate::generator::{Cells, Contract, Generator, Grain, Output, Rows, Work};

/// Values that are drawn for a cell before its constraints count as impossible.
const MAX_ROUNDS: u32 = 1_000;

/// The day that ages of persons count up to. Fixed, so that a dataset does not depend on the day it is built.
const AS_OF: (i32, u32, u32) = (2026, 1, 1);

/// All sampler columns.
pub(crate) struct Samplers {
    contract: Contract,
    columns: Arc<Columns>,
}

/// A sampler column.
pub(crate) struct SamplerParts<'c> {
    pub(crate) name: &'c str,
    pub(crate) sampler: &'c SamplerColumn,
    /// Its random numbers.
    pub(crate) key: ColumnKey,
}

struct Columns {
    /// In the order of the contract.
    samplers: Vec<SamplerTask>,
    /// The order in which they are drawn.
    order: Vec<usize>,
}

struct SamplerTask {
    name: String,
    key: ColumnKey,
    usual: Draw,
    conditional: Vec<(Condition, Draw)>,
    convert: Option<CompiledConvert>,
    constraints: Vec<Check>,
}

/// A sampler, and where its input is.
struct Draw {
    sampler: CompiledSampler,
    input: Option<Input>,
}

/// The source of a value: another sampler, or a column of the seed.
#[derive(Clone, Copy)]
enum Input {
    Sampler(usize),
    Read(usize),
}

struct Condition {
    text: TemplateText,
    inputs: Vec<Input>,
}

/// A constraint on the values of a column.
struct Check {
    operator: Comparison,
    rhs: Rhs,
    text: String,
}

enum Rhs {
    Number(f64),
    Sampler(usize),
}

impl Samplers {
    /// The generator of all sampler columns; other names in conditions are columns of the seed.
    pub(crate) fn new(columns: &[SamplerParts<'_>], constraints: &[Constraint]) -> Result<Samplers, String> {
        let mut names =
            Names { samplers: columns.iter().map(|column| column.name).collect(), reads: Vec::new() };
        let samplers: Vec<SamplerTask> = columns
            .iter()
            .map(|column| SamplerTask::new(column, &mut names))
            .collect::<Result<_, String>>()?;
        let mut all = Columns { samplers, order: Vec::new() };
        for constraint in constraints {
            all.constrain(constraint, &names)?;
        }
        all.order = all.sort()?;
        let fills = columns
            .iter()
            .map(|column| Output { name: column.name.to_owned(), column_type: type_of(column.sampler) });
        let contract =
            Contract { grain: Grain::Batch, reads: names.reads, fills: fills.collect(), stateful: false };
        Ok(Samplers { contract, columns: Arc::new(all) })
    }
}

/// The names that conditions and samplers can read.
struct Names<'n> {
    samplers: Vec<&'n str>,
    /// Columns of the seed that are read.
    reads: Vec<String>,
}

impl Names<'_> {
    fn input(&mut self, name: &str) -> Input {
        if let Some(number) = self.samplers.iter().position(|known| *known == name) {
            return Input::Sampler(number);
        }
        if let Some(number) = self.reads.iter().position(|known| known == name) {
            return Input::Read(number);
        }
        self.reads.push(name.to_owned());
        Input::Read(self.reads.len() - 1)
    }
}

impl SamplerTask {
    fn new(parts: &SamplerParts<'_>, names: &mut Names<'_>) -> Result<SamplerTask, String> {
        let SamplerParts { name, sampler: column, key } = parts;
        let fault = |error: anabranch_sampler::Error| format!("column `{name}`: {error}");
        let mut draw = |sampler: &Sampler| -> Result<Draw, String> {
            let as_of = Date::new(AS_OF.0, AS_OF.1, AS_OF.2).expect("it is a day of the calendar");
            let input = sampler.depends_on().map(|parent| names.input(parent));
            Ok(Draw { sampler: sampler.compile(as_of).map_err(fault)?, input })
        };
        let usual = draw(&column.sampler)?;
        let draws: Vec<Draw> =
            column.conditional.iter().map(|(_, sampler)| draw(sampler)).collect::<Result<_, _>>()?;
        let condition = |text: &TemplateText, names: &mut Names<'_>| Condition {
            inputs: text.template.variables().iter().map(|name| names.input(name)).collect(),
            text: text.clone(),
        };
        let conditions =
            column.conditional.iter().map(|(text, _)| condition(text, names)).collect::<Vec<_>>();
        Ok(SamplerTask {
            name: (*name).to_owned(),
            key: key.clone(),
            usual,
            conditional: conditions.into_iter().zip(draws).collect(),
            convert: column
                .convert_to
                .as_ref()
                .map(|convert| convert.compile().map_err(fault))
                .transpose()?,
            constraints: Vec::new(),
        })
    }

    fn inputs(&self) -> impl Iterator<Item = usize> {
        let draws = std::iter::once(&self.usual).chain(self.conditional.iter().map(|(_, draw)| draw));
        let draws = draws.filter_map(|draw| draw.input);
        let conditions = self.conditional.iter().flat_map(|(condition, _)| condition.inputs.iter().copied());
        let others = draws.chain(conditions).filter_map(|input| match input {
            Input::Sampler(number) => Some(number),
            Input::Read(_) => None,
        });
        others.chain(self.constraints.iter().filter_map(|check| match check.rhs {
            Rhs::Sampler(number) => Some(number),
            Rhs::Number(_) => None,
        }))
    }
}

impl Columns {
    fn constrain(&mut self, constraint: &Constraint, names: &Names<'_>) -> Result<(), String> {
        let find = |name: &str| {
            names.samplers.iter().position(|known| *known == name).ok_or_else(|| {
                format!("{}: the constraint names `{name}`, which is not a sampler column", constraint.place)
            })
        };
        let target = find(&constraint.target_column)?;
        let (rhs, rhs_text) = match &constraint.rhs {
            ConstraintRhs::Number(number) => (Rhs::Number(*number), number.to_string()),
            ConstraintRhs::Column(name) => (Rhs::Sampler(find(name)?), format!("`{name}`")),
        };
        let operator = match constraint.operator {
            Comparison::Lt => "<",
            Comparison::Le => "<=",
            Comparison::Gt => ">",
            Comparison::Ge => ">=",
        };
        let text = format!("`{}` {operator} {rhs_text}", constraint.target_column);
        self.samplers[target].constraints.push(Check { operator: constraint.operator, rhs, text });
        Ok(())
    }

    fn sort(&self) -> Result<Vec<usize>, String> {
        let inputs: Vec<Vec<usize>> = self
            .samplers
            .iter()
            .map(|task| {
                let mut inputs: Vec<usize> = task.inputs().collect();
                inputs.sort_unstable();
                inputs.dedup();
                inputs
            })
            .collect();
        let mut circle = None;
        let order = Dag::sort(&inputs, |found| circle = circle.take().or(Some(found.to_owned())));
        match circle {
            None => Ok(order),
            Some(circle) => {
                let names: Vec<&str> = circle.iter().map(|number| &*self.samplers[*number].name).collect();
                Err(format!("sampler columns depend on each other in a circle: {}", names.join(", ")))
            }
        }
    }

    /// Draws the values of a row. `read` has the values of the seed columns that are used.
    fn row(&self, id: u64, read: &[&Value]) -> Result<Cells, Fault> {
        // The raw values, for samplers that depend on others, and the converted ones.
        let mut drawn = vec![Value::Null; self.samplers.len()];
        let mut cells = vec![Value::Null; self.samplers.len()];
        for number in &self.order {
            let task = &self.samplers[*number];
            let here = |fault: Fault| Fault { column: Some(task.name.clone()), ..fault };
            let draw = task.choose(&cells, read).map_err(here)?;
            let input = draw.input.map(|input| match input {
                Input::Sampler(number) => &drawn[number],
                Input::Read(number) => read[number],
            });
            let (raw, cell) = task.draw(draw, id, input.cloned().as_ref(), &cells).map_err(here)?;
            (drawn[*number], cells[*number]) = (raw, cell);
        }
        Ok(Cells::from_vec(cells))
    }
}

impl SamplerTask {
    /// The sampler for a row: that of the last condition that is true.
    fn choose(&self, cells: &[Value], read: &[&Value]) -> Result<&Draw, Fault> {
        for (Condition { text, inputs }, draw) in self.conditional.iter().rev() {
            let values: Vec<Value> = inputs
                .iter()
                .map(|input| match input {
                    Input::Sampler(number) => cells[*number].clone(),
                    Input::Read(number) => read[*number].clone(),
                })
                .collect();
            let template: &Template = &text.template;
            match template.evaluate(&values, Bounds::default()) {
                Ok(value) if is_true(&value) => return Ok(draw),
                Ok(_) => {}
                Err(error) => return Err(Fault::permanent("template", format!("{}: {error}", text.place))),
            }
        }
        Ok(&self.usual)
    }

    /// A value that satisfies all constraints, as drawn and as converted.
    fn draw(
        &self,
        draw: &Draw,
        id: u64,
        input: Option<&Value>,
        cells: &[Value],
    ) -> Result<(Value, Value), Fault> {
        let fault = |error: anabranch_sampler::Error| Fault::permanent("sampler", error.to_string());
        let rounds = if self.constraints.is_empty() { 1 } else { MAX_ROUNDS };
        for round in 0..rounds {
            let raw = draw.sampler.sample(&mut self.key.stream(id, round), input).map_err(fault)?;
            let cell = match &self.convert {
                Some(convert) => convert.apply(&raw).map_err(fault)?,
                None => raw.clone(),
            };
            if self.constraints.iter().all(|check| check.holds(&cell, cells)) {
                return Ok((raw, cell));
            }
        }
        let texts: Vec<&str> = self.constraints.iter().map(|check| &*check.text).collect();
        let what = format!(
            "none of {MAX_ROUNDS} values satisfied {}; widen the sampler's range or the constraint",
            texts.join(" and ")
        );
        Err(Fault::permanent("constraint", what))
    }
}

impl Check {
    fn holds(&self, cell: &Value, cells: &[Value]) -> bool {
        let rhs = match self.rhs {
            Rhs::Number(number) => Some(number),
            Rhs::Sampler(number) => cells[number].as_number(),
        };
        let (Some(cell), Some(rhs)) = (cell.as_number(), rhs) else { return false };
        match self.operator {
            Comparison::Lt => cell < rhs,
            Comparison::Le => cell <= rhs,
            Comparison::Gt => cell > rhs,
            Comparison::Ge => cell >= rhs,
        }
    }
}

impl Generator for Samplers {
    fn contract(&self) -> &Contract {
        &self.contract
    }

    fn batch(&self, rows: Rows) -> Work<Vec<Result<Cells, Fault>>> {
        let columns = Arc::clone(&self.columns);
        let job = move |check: &anabranch_engine::Check<'_>| {
            let mut results = Vec::with_capacity(rows.ids.len());
            for (row, id) in rows.ids.iter().enumerate() {
                if row % 64 == 0 && check.should_stop() {
                    return Err(Fault::permanent("stopped", "the build ended"));
                }
                let read: Vec<&Value> = rows.columns.iter().map(|column| &column[row]).collect();
                results.push(columns.row(*id, &read));
            }
            Ok(results)
        };
        Work::Job(Box::new(job), Cost::Unknown)
    }
}

/// The type of a sampler column: that of all its samplers, or any value if they differ.
fn type_of(column: &SamplerColumn) -> ColumnType {
    if let Some(convert) = &column.convert_to {
        return column_type(convert.value_type());
    }
    let mut types =
        std::iter::once(&column.sampler).chain(column.conditional.iter().map(|(_, sampler)| sampler));
    let mut types = types.by_ref().map(|sampler| column_type(sampler.value_type()));
    let first = types.next().unwrap_or(ColumnType::Json);
    types.fold(first, |known, other| match (known, other) {
        (known, other) if known == other => known,
        (ColumnType::Int, ColumnType::Float) | (ColumnType::Float, ColumnType::Int) => ColumnType::Float,
        _ => ColumnType::Json,
    })
}

fn column_type(field: FieldType) -> ColumnType {
    match field {
        FieldType::Text => ColumnType::Text,
        FieldType::Int => ColumnType::Int,
        FieldType::Float => ColumnType::Float,
        FieldType::Bool => ColumnType::Bool,
        FieldType::Struct(fields) => ColumnType::Struct(
            fields.iter().map(|(name, field)| ((*name).to_owned(), column_type(*field))).collect(),
        ),
    }
}
