//! The steps after a stage: they select, order and multiply its rows.
//!
//! Steps work on records, which have the position of a row and not its content. Each step reads the columns that it
//! needs from the files once, so memory depends on the number of rows and not on their size.

use std::cmp::Ordering;
use std::collections::HashMap;

use anabranch_template::{Bounds, is_true};
use anabranch_value::Value;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::lineage::{RowFate, StepFate, child_id};
use super::rows::StageRows;
use crate::column_type::ColumnType;
use crate::config::{SampleSize, SortKey, StepConfig, TemplateText};
use crate::error::Error;
use crate::grid::text_is_true;

/// The result of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepReport {
    /// The word of the step in the configuration, such as `dedupe`.
    pub step: String,
    /// The numbers of rows before and after it.
    pub before: u64,
    pub after: u64,
}

/// The rows that go on.
pub(crate) struct Selection {
    /// In their order.
    pub(super) records: Vec<Record>,
    /// The columns that each explode took apart, in the order of the steps.
    exploded: Vec<Vec<usize>>,
    /// The columns behind the steps.
    pub(crate) columns: Vec<(String, ColumnType)>,
    pub(super) fates: Vec<RowFate>,
    pub(crate) reports: Vec<StepReport>,
}

/// A row that goes on.
#[derive(Clone, Debug)]
pub(super) struct Record {
    /// The position among the rows of the stage.
    pub(super) position: u64,
    pub(super) id: u64,
    /// The number of the item, for each explode.
    items: SmallVec<[u32; 2]>,
}

/// Everything that steps depend on besides the rows.
#[derive(Clone, Copy)]
pub(crate) struct StepSetting<'a> {
    pub(crate) steps: &'a [StepConfig],
    pub(crate) seed: u64,
}

/// The columns of rows after these steps.
pub(crate) fn columns_after(
    mut columns: Vec<(String, ColumnType)>,
    steps: &[StepConfig],
) -> Result<Vec<(String, ColumnType)>, String> {
    for step in steps {
        let StepConfig::Explode { columns: exploded } = step else { continue };
        for name in exploded {
            let Some((_, column_type)) = columns.iter_mut().find(|(column, _)| column == name) else {
                return Err(format!("`explode` names the column `{name}`, which is not there"));
            };
            match column_type {
                ColumnType::List(item) => *column_type = (**item).clone(),
                ColumnType::Json => {}
                other => {
                    return Err(format!(
                        "`explode` takes lists apart, and the column `{name}` holds {}",
                        other.name()
                    ));
                }
            }
        }
    }
    Ok(columns)
}

/// Applies steps to rows. Blocks.
pub(crate) fn select(rows: &StageRows, setting: StepSetting<'_>) -> Result<Selection, Error> {
    let record = |(position, id): (u64, &u64)| Record { position, id: *id, items: SmallVec::new() };
    let mut selection = Selection {
        records: (0..).zip(&rows.ids).map(record).collect(),
        exploded: Vec::new(),
        columns: columns_after(rows.columns.clone(), setting.steps).map_err(Error::Setup)?,
        fates: Vec::new(),
        reports: Vec::new(),
    };
    for (number, step) in (0..).zip(setting.steps) {
        let before = selection.records.len() as u64;
        let name = match step {
            StepConfig::Filter { when } => selection.filter(rows, number, when).map(|()| "filter"),
            StepConfig::Dedupe { by } => selection.dedupe(rows, number, by).map(|()| "dedupe"),
            StepConfig::Explode { columns } => selection.explode(rows, number, columns).map(|()| "explode"),
            StepConfig::Sample { size } => {
                selection.sample(number, *size, setting.seed);
                Ok("sample")
            }
            StepConfig::Sort { by } => selection.sort(rows, by).map(|()| "sort"),
        };
        let after = selection.records.len() as u64;
        selection.reports.push(StepReport { step: name?.to_owned(), before, after });
    }
    Ok(selection)
}

impl Selection {
    /// The number of rows.
    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// Visits the values of some columns for every record, in no particular order of records.
    fn visit(
        &self,
        rows: &StageRows,
        columns: &[usize],
        mut visit: impl FnMut(usize, &[Value]),
    ) -> Result<(), Error> {
        let mut order: Vec<usize> = (0..self.records.len()).collect();
        order.sort_by_key(|record| self.records[*record].position);
        let mut order = order.into_iter().peekable();
        let mut values = Vec::with_capacity(columns.len());
        rows.visit(columns, 0..rows.len(), |start, table| {
            let end = start + table.ids.len() as u64;
            while let Some(number) = order.next_if(|record| self.records[*record].position < end) {
                let record = &self.records[number];
                let row = (record.position - start) as usize;
                values.clear();
                let cells = table.columns.iter().zip(columns);
                values.extend(cells.map(|(column, number)| self.item(record, *number, &column.values[row])));
                visit(number, &values);
            }
            Ok(())
        })
    }

    /// The value of a column for a record, out of that of its row.
    pub(super) fn item(&self, record: &Record, column: usize, value: &Value) -> Value {
        let mut found = value;
        for (columns, item) in self.exploded.iter().zip(&record.items) {
            if columns.contains(&column) {
                found = found.as_list().and_then(|list| list.get(*item as usize)).unwrap_or(&Value::Null);
            }
        }
        found.clone()
    }

    /// Keeps the records that have no fate.
    fn keep(&mut self, number: u32, mut fates: Vec<Option<StepFate>>) {
        let mut record = 0;
        let all = &mut self.fates;
        self.records.retain(|found| {
            let fate = fates[record].take();
            record += 1;
            let is_kept = fate.is_none();
            all.extend(fate.map(|fate| RowFate { row: found.id, step: number, fate }));
            is_kept
        });
    }

    fn filter(&mut self, rows: &StageRows, number: u32, when: &TemplateText) -> Result<(), Error> {
        let columns = numbers(rows, when.template.variables())?;
        let mut fates = vec![None; self.records.len()];
        self.visit(rows, &columns, |record, values| {
            fates[record] = match is_met(when, values) {
                Ok(true) => None,
                Ok(false) => Some(StepFate::FilteredOut),
                Err(message) => Some(StepFate::Failed(message)),
            };
        })?;
        self.keep(number, fates);
        Ok(())
    }

    fn dedupe(&mut self, rows: &StageRows, number: u32, by: &[String]) -> Result<(), Error> {
        let columns = numbers(rows, by)?;
        let mut digests = vec![[0; 16]; self.records.len()];
        self.visit(rows, &columns, |record, values| {
            let hash = blake3::hash(Value::list(values.iter().cloned()).to_json().as_bytes());
            digests[record].copy_from_slice(&hash.as_bytes()[..16]);
        })?;
        let mut seen: HashMap<[u8; 16], u64> = HashMap::new();
        let mut fates = Vec::with_capacity(digests.len());
        for (record, digest) in self.records.iter().zip(digests) {
            let first = *seen.entry(digest).or_insert(record.id);
            fates.push((first != record.id).then_some(StepFate::Duplicate(first)));
        }
        self.keep(number, fates);
        Ok(())
    }

    fn explode(&mut self, rows: &StageRows, number: u32, names: &[String]) -> Result<(), Error> {
        let columns = numbers(rows, names)?;
        let mut lengths: Vec<Result<usize, String>> = vec![Ok(0); self.records.len()];
        self.visit(rows, &columns, |record, values| lengths[record] = length(names, values))?;
        let mut records = Vec::new();
        for (record, length) in std::mem::take(&mut self.records).into_iter().zip(lengths) {
            let mut note = |row, fate| self.fates.push(RowFate { row, step: number, fate });
            match length {
                Ok(0) => note(record.id, StepFate::Empty),
                Err(message) => note(record.id, StepFate::Failed(message)),
                Ok(length) => {
                    for item in 0..length as u32 {
                        let id = child_id(record.id, item);
                        note(id, StepFate::Item { parent: record.id, item });
                        let mut items = record.items.clone();
                        items.push(item);
                        records.push(Record { position: record.position, id, items });
                    }
                }
            }
        }
        self.records = records;
        self.exploded.push(columns);
        Ok(())
    }

    /// Keeps the rows whose draws are lowest. A row's draw follows from its id: rows that come or go change no other's.
    fn sample(&mut self, number: u32, size: SampleSize, seed: u64) {
        let draw = |record: &Record| {
            let mut hasher = blake3::Hasher::new_derive_key("anabranch 2026 dataset: samples of rows");
            hasher.update(&seed.to_le_bytes()).update(&number.to_le_bytes()).update(&record.id.to_le_bytes());
            let bytes = *hasher.finalize().as_bytes();
            u64::from_le_bytes(bytes[..8].try_into().expect("a hash has more than 8 bytes"))
        };
        let draws: Vec<u64> = self.records.iter().map(draw).collect();
        let wanted = match size {
            SampleSize::Rows(rows) => usize::try_from(rows).unwrap_or(usize::MAX),
            SampleSize::Share(share) => (self.records.len() as f64 * share).round() as usize,
        };
        let mut order: Vec<usize> = (0..draws.len()).collect();
        order.sort_by_key(|record| (draws[*record], self.records[*record].id));
        let mut fates = vec![None; draws.len()];
        order.into_iter().skip(wanted).for_each(|record| fates[record] = Some(StepFate::NotDrawn));
        self.keep(number, fates);
    }

    fn sort(&mut self, rows: &StageRows, by: &[SortKey]) -> Result<(), Error> {
        let names: Vec<String> = by.iter().map(|key| key.column.clone()).collect();
        let columns = numbers(rows, &names)?;
        let mut keys: Vec<SmallVec<[Value; 1]>> = vec![SmallVec::new(); self.records.len()];
        self.visit(rows, &columns, |record, values| keys[record] = values.iter().cloned().collect())?;
        let mut order: Vec<usize> = (0..keys.len()).collect();
        // A stable sort: rows with equal keys stay in their order.
        order.sort_by(|one, other| {
            let keys = keys[*one].iter().zip(&keys[*other]).zip(by);
            let mut orders = keys.map(|((one, other), key)| compare(one, other, key.descending));
            orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        });
        let mut records: Vec<Option<Record>> =
            std::mem::take(&mut self.records).into_iter().map(Some).collect();
        self.records = order.into_iter().filter_map(|record| records[record].take()).collect();
        Ok(())
    }
}

/// The columns of these names.
fn numbers(rows: &StageRows, names: &[String]) -> Result<Vec<usize>, Error> {
    let number = |name: &String| {
        rows.column(name)
            .ok_or_else(|| Error::Setup(format!("a step reads the column `{name}`, which is not there")))
    };
    names.iter().map(number).collect()
}

/// Whether a condition is true for a row.
pub(crate) fn is_met(when: &TemplateText, values: &[Value]) -> Result<bool, String> {
    match when.template.evaluate(values, Bounds::default()) {
        Ok(value) => Ok(means_yes(&value)),
        Err(error) => Err(format!("{}: {error}", when.place)),
    }
}

/// Tells whether a value means yes. The value of a validation column says so in its field `is_valid`.
fn means_yes(value: &Value) -> bool {
    match value {
        // A template of several parts renders to text.
        Value::Text(text) => text_is_true(text),
        Value::Map(map) => map.get("is_valid").map_or_else(|| is_true(value), means_yes),
        other => is_true(other),
    }
}

/// The common length of lists.
fn length(names: &[String], values: &[Value]) -> Result<usize, String> {
    let mut found: Option<usize> = None;
    for (name, value) in names.iter().zip(values) {
        let length = match value {
            Value::Null => 0,
            Value::List(items) => items.len(),
            other => return Err(format!("column `{name}` holds {}, not a list", other.kind())),
        };
        match found {
            Some(other) if other != length => {
                return Err(format!(
                    "the lists differ in length: {other} items in `{}`, {length} in `{name}`",
                    names[0]
                ));
            }
            _ => found = Some(length),
        }
    }
    Ok(found.unwrap_or(0))
}

/// Numbers before text before everything else; nulls last, whichever way the order goes.
fn compare(one: &Value, other: &Value, descending: bool) -> Ordering {
    let rank = |value: &Value| match value {
        Value::Bool(_) => 0,
        Value::Int(_) | Value::Float(_) => 1,
        Value::Text(_) => 2,
        Value::List(_) | Value::Map(_) => 3,
        Value::Null => 4,
    };
    if one.is_null() || other.is_null() {
        return one.is_null().cmp(&other.is_null());
    }
    let order = rank(one).cmp(&rank(other)).then_with(|| match (one, other) {
        (Value::Bool(one), Value::Bool(other)) => one.cmp(other),
        (Value::Int(one), Value::Int(other)) => one.cmp(other),
        (Value::Text(one), Value::Text(other)) => one.cmp(other),
        _ => match (one.as_number(), other.as_number()) {
            (Some(one), Some(other)) => one.total_cmp(&other),
            _ => one.to_json().cmp(&other.to_json()),
        },
    });
    if descending { order.reverse() } else { order }
}
