//! The generator of a custom column.

use std::sync::Arc;

use anabranch_value::{Map, Value};

use super::call::Call;
use super::message::WorkerError;
use super::worker::{Function, Worker, WorkerOptions};
use crate::column_type::ColumnType;
use crate::config::{CustomColumn, WorkerConfig};
use crate::fault::Fault;
use crate::generator::{Cells, Contract, Generator, Grain, Output, Row, Rows, Work};

/// The generators of custom columns, in their order. Columns with the same command or address share a worker.
pub fn generators(columns: &[(&str, &CustomColumn)], options: &WorkerOptions) -> Vec<Box<dyn Generator>> {
    let mut workers: Vec<(&WorkerConfig, Vec<Function>)> = Vec::new();
    for (name, column) in columns {
        let function = Function {
            name: column.function.clone(),
            column: (*name).to_owned(),
            required_columns: column.required_columns.clone(),
            side_effect_columns: column.side_effect_columns.clone(),
            full_column: column.full_column,
        };
        match workers.iter_mut().find(|(config, _)| **config == column.worker) {
            Some((_, functions)) => functions.push(function),
            None => workers.push((&column.worker, vec![function])),
        }
    }
    let workers: Vec<Arc<Worker>> = workers
        .into_iter()
        .map(|(config, functions)| Arc::new(Worker::new(config.clone(), functions, options.clone())))
        .collect();
    let generator = |(name, column): &(&str, &CustomColumn)| {
        let worker = workers.iter().find(|worker| worker.config == column.worker);
        let worker = Arc::clone(worker.expect("there is one per configuration"));
        Box::new(CustomGenerator::new(name, column, worker)) as Box<dyn Generator>
    };
    columns.iter().map(generator).collect()
}

/// Fills a column, and its side-effect columns, by a worker.
struct CustomGenerator {
    contract: Contract,
    worker: Arc<Worker>,
    column: Arc<str>,
    config: CustomColumn,
    model_aliases: Arc<[String]>,
}

impl CustomGenerator {
    fn new(name: &str, column: &CustomColumn, worker: Arc<Worker>) -> CustomGenerator {
        let names = std::iter::once(name).chain(column.side_effect_columns.iter().map(String::as_str));
        let output = |name: &str| {
            let declared = column.column_types.iter().find(|(known, _)| known == name);
            let column_type = declared.map_or(ColumnType::Json, |(_, column_type)| column_type.clone());
            // One item per row that is made; the step behind the stage takes the lists apart.
            let column_type =
                if column.resizes { ColumnType::List(Box::new(column_type)) } else { column_type };
            Output { name: name.to_owned(), column_type }
        };
        let contract = Contract {
            grain: if column.full_column { Grain::Batch } else { Grain::Cell },
            reads: column.required_columns.clone(),
            fills: names.map(output).collect(),
            stateful: column.stateful,
        };
        let model_aliases = column.model_aliases.clone().into();
        CustomGenerator { contract, worker, column: name.into(), config: column.clone(), model_aliases }
    }

    fn call(&self, row: Option<u64>, rows: (&'static str, Value)) -> Call {
        let entries = vec![
            ("function", Value::from(self.config.function.as_str())),
            ("column", Value::from(&*self.column)),
            ("params", self.config.params.clone()),
            rows,
        ];
        Call {
            column: Arc::clone(&self.column),
            row,
            model_aliases: Arc::clone(&self.model_aliases),
            timeout: self.config.timeout,
            entries,
        }
    }

    fn record<'v>(&self, values: impl Iterator<Item = &'v Value>) -> Value {
        let names = self.contract.reads.iter();
        names.zip(values).map(|(name, value)| (name.as_str().into(), value.clone())).collect::<Map>().into()
    }
}

impl Generator for CustomGenerator {
    fn contract(&self) -> &Contract {
        &self.contract
    }

    fn cell(&self, row: Row<'_>) -> Work<Cells> {
        let call = self.call(Some(row.id), ("row", self.record(row.values.iter())));
        let (worker, fills, resizes) =
            (Arc::clone(&self.worker), self.contract.fills.clone(), self.config.resizes);
        Work::future(async move {
            let line = worker.call(call).await?;
            let values = line.values.ok_or_else(|| wrong(r#"the answer has no "values""#))?;
            match (&values, resizes) {
                (Value::List(rows), true) => lists(rows, &fills),
                (row, true) => lists(std::slice::from_ref(row), &fills),
                (row, false) => cells(row, &fills),
            }
        })
    }

    fn batch(&self, rows: Rows) -> Work<Vec<Result<Cells, Fault>>> {
        let count = rows.ids.len();
        let records = (0..count).map(|row| self.record(rows.columns.iter().map(|column| &column[row])));
        let call = self.call(None, ("rows", Value::list(records.collect::<Vec<_>>())));
        let (worker, fills, resizes) =
            (Arc::clone(&self.worker), self.contract.fills.clone(), self.config.resizes);
        Work::future(async move {
            let line = worker.call(call).await?;
            let rows = line.rows.ok_or_else(|| wrong(r#"the answer has no "rows""#))?;
            if resizes {
                return resized(rows, count, &fills);
            }
            if rows.len() != count {
                return Err(wrong(format!(
                    "the answer has {} rows for {count}: a custom column keeps the number of rows",
                    rows.len()
                )));
            }
            Ok(rows.iter().map(|values| row_cells(values, &fills)).collect())
        })
    }
}

/// The rows that a batch became, each with its source row: the row that `from_row` names, else the row at the same
/// index, else the last one.
fn resized(rows: Vec<Value>, count: usize, fills: &[Output]) -> Result<Vec<Result<Cells, Fault>>, Fault> {
    let mut made: Vec<Vec<Value>> = vec![Vec::new(); count];
    for (place, row) in rows.into_iter().enumerate() {
        let from = match row.get(FROM_ROW) {
            None => place.min(count - 1),
            Some(Value::Int(from)) if (0..count as i64).contains(from) => *from as usize,
            Some(other) => {
                let what =
                    format!("`{FROM_ROW}` is {}, expected the number of a row, from 0", other.to_json());
                return Err(wrong(what));
            }
        };
        let row = match row {
            Value::Map(map) => map
                .iter()
                .filter(|(name, _)| &***name != FROM_ROW)
                .map(|(name, value)| (Arc::clone(name), value.clone()))
                .collect::<Map>()
                .into(),
            other => other,
        };
        made[from].push(row);
    }
    Ok(made.iter().map(|rows| lists(rows, fills)).collect())
}

/// The field with the source row of a new row.
const FROM_ROW: &str = "from_row";

/// The cells of several rows, as one list per column.
fn lists(rows: &[Value], fills: &[Output]) -> Result<Cells, Fault> {
    let items: Vec<Output> = fills
        .iter()
        .map(|fill| {
            let column_type = match &fill.column_type {
                ColumnType::List(item) => (**item).clone(),
                other => other.clone(),
            };
            Output { name: fill.name.clone(), column_type }
        })
        .collect();
    let rows = rows.iter().map(|row| cells(row, &items)).collect::<Result<Vec<Cells>, Fault>>()?;
    let column = |number: usize| Value::list(rows.iter().map(|row| row[number].clone()));
    Ok((0..fills.len()).map(column).collect())
}

/// The cells of one row of a batch, or its error.
fn row_cells(values: &Value, fills: &[Output]) -> Result<Cells, Fault> {
    match values.get("error") {
        Some(error) if fills.iter().all(|fill| fill.name != "error") => Err(WorkerError::of_row(error)
            .map_or_else(|| wrong("an error without a message"), WorkerError::fault)),
        _ => cells(values, fills),
    }
}

/// The cells of one row: exactly the declared columns, each of its type.
fn cells(values: &Value, fills: &[Output]) -> Result<Cells, Fault> {
    let map =
        values.as_map().ok_or_else(|| wrong(format!("a row is {}, expected an object", values.kind())))?;
    if let Some(extra) = map.keys().find(|name| fills.iter().all(|fill| fill.name != ***name)) {
        return Err(wrong(format!(
            "the worker filled the column `{extra}`: add it to `side_effect_columns`"
        )));
    }
    let cell = |fill: &Output| {
        let value = map.get(fill.name.as_str());
        let value =
            value.ok_or_else(|| wrong(format!("the worker did not fill the column `{}`", fill.name)))?;
        fitted(value, &fill.column_type).ok_or_else(|| {
            wrong(format!("the column `{}` got {}, which is not its type", fill.name, value.kind()))
        })
    };
    fills.iter().map(cell).collect()
}

/// The value as one of the type, if it is.
fn fitted(value: &Value, column_type: &ColumnType) -> Option<Value> {
    match (value, column_type) {
        (Value::Null, _) | (_, ColumnType::Json) => Some(value.clone()),
        (Value::Bool(_), ColumnType::Bool) => Some(value.clone()),
        (Value::Int(_), ColumnType::Int) => Some(value.clone()),
        (Value::Int(int), ColumnType::Float) => Some(Value::Float(*int as f64)),
        (Value::Float(_), ColumnType::Float) => Some(value.clone()),
        (Value::Text(_), ColumnType::Text) => Some(value.clone()),
        (Value::List(items), ColumnType::List(item)) => {
            Some(items.iter().map(|value| fitted(value, item)).collect::<Option<Vec<Value>>>()?.into())
        }
        (Value::Map(map), ColumnType::Struct(fields)) => {
            let field = |(name, field): &(String, ColumnType)| {
                let value = map.get(name.as_str()).map_or(Some(Value::Null), |value| fitted(value, field))?;
                Some((name.as_str().into(), value))
            };
            Some(fields.iter().map(field).collect::<Option<Map>>()?.into())
        }
        _ => None,
    }
}

fn wrong(message: impl Into<String>) -> Fault {
    Fault::permanent("reply_format", message)
}
