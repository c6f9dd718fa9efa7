//! One pass over the rows.

use std::collections::HashMap;
use std::path::PathBuf;

use anabranch_dataset::output::{FileError, Metadata, RowFile};
use anabranch_dataset::processor::Table;
use anabranch_value::Value;
use serde::Serialize;

use crate::column::{Collector, ColumnStats};

/// A row that is shown.
#[derive(Clone, Debug, Serialize)]
pub struct Sample {
    /// The row's stable number.
    pub id: Option<u64>,
    /// The number, or the path of a row that was made from another one: `17.3`.
    pub name: Option<String>,
    /// The cells by column. Very long texts are cut.
    pub row: Value,
}

/// The figures of all rows.
pub(super) struct Rows {
    pub(super) count: u64,
    pub(super) columns: Vec<ColumnStats>,
    pub(super) samples: Vec<Sample>,
}

/// Rows that are shown.
const SAMPLES: u64 = 5;
/// Characters of a text, and items of a list, that a shown row has.
const KEPT_CHARACTERS: usize = 20_000;
const KEPT_ITEMS: usize = 50;

/// Reads the rows of these files.
pub(super) fn read(files: &[PathBuf], metadata: &Metadata) -> Result<Rows, FileError> {
    let mut collectors: Vec<Collector> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut rows = Rows { count: 0, columns: Vec::new(), samples: Vec::new() };
    // The first row, and others at the same distance.
    let distance = (metadata.actual_num_records / SAMPLES).max(1);
    for file in files {
        for table in RowFile::open(file)? {
            let table = table?;
            for column in &table.columns {
                let place = *places.entry(column.name.clone()).or_insert_with(|| {
                    collectors.push(Collector::new(&column.name, &column.column_type));
                    collectors.len() - 1
                });
                column.values.iter().for_each(|value| collectors[place].add(value));
            }
            let (first, count) = (rows.count, table.ids.len() as u64);
            rows.count += count;
            let wanted = (first..first + count).filter(|row| row % distance == 0);
            let left = (SAMPLES as usize).saturating_sub(rows.samples.len());
            rows.samples.extend(wanted.take(left).map(|row| sample(&table, (row - first) as usize)));
        }
    }
    rows.columns = collectors.iter().map(Collector::finish).collect();
    // Text that is JSON is known as such by the metadata only.
    for column in &mut rows.columns {
        if let Some(known) = metadata.columns.iter().find(|known| known.name == column.name) {
            column.column_type.clone_from(&known.column_type);
        }
    }
    Ok(rows)
}

fn sample(table: &Table, row: usize) -> Sample {
    Sample { id: table.ids[row], name: None, row: bounded(&table.row(row)) }
}

/// A value of bounded size.
fn bounded(value: &Value) -> Value {
    match value {
        Value::Text(text) => match text.char_indices().nth(KEPT_CHARACTERS) {
            Some((end, _)) => format!("{}… (cut)", &text[..end]).into(),
            None => value.clone(),
        },
        Value::List(items) if items.len() > KEPT_ITEMS => {
            let rest = format!("… {} more", items.len() - KEPT_ITEMS);
            Value::list(items.iter().take(KEPT_ITEMS).map(bounded).chain([rest.into()]))
        }
        Value::List(items) => Value::list(items.iter().map(bounded)),
        Value::Map(map) => Value::map(map.iter().map(|(name, value)| (&**name, bounded(value)))),
        other => other.clone(),
    }
}
