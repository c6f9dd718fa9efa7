//! The rows of a stage that has ended, read by their positions.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::PathBuf;

use anabranch_value::Value;

use super::lineage::child_id;
use crate::column_type::ColumnType;
use crate::output::{FileError, RowFile, cannot};
use crate::processor::{Table, TableColumn};

/// The rows of a stage that has ended.
pub(crate) struct StageRows {
    pub(crate) columns: Vec<(String, ColumnType)>,
    /// The ids of the rows, by position.
    pub(crate) ids: Vec<u64>,
    parts: Parts,
    /// Tells whether the rows are the same as before; empty for rows in memory.
    pub(crate) digest: String,
}

enum Parts {
    Memory(Table),
    Files(Vec<Part>),
}

/// A file with the rows at these positions.
struct Part {
    path: PathBuf,
    positions: Range<u64>,
}

impl StageRows {
    /// The rows of a table.
    pub(crate) fn in_memory(table: Table) -> StageRows {
        let columns =
            table.columns.iter().map(|column| (column.name.clone(), column.column_type.clone())).collect();
        let ids = (0..).zip(&table.ids).map(|(position, id)| id_at(position, *id)).collect();
        StageRows { columns, ids, parts: Parts::Memory(table), digest: String::new() }
    }

    /// The rows of files with columns of these types. Blocks.
    pub(crate) fn in_files(
        columns: Vec<(String, ColumnType)>,
        files: Vec<PathBuf>,
    ) -> Result<StageRows, FileError> {
        let (mut ids, mut parts) = (Vec::new(), Vec::with_capacity(files.len()));
        let mut hasher = blake3::Hasher::new();
        for path in files {
            let start = ids.len() as u64;
            let found = RowFile::open(&path)?;
            if found.ids().len() as u64 != found.rows() {
                let what = io::Error::other("it does not say which rows it has");
                return Err(cannot("read", &path)(what));
            }
            ids.extend((start..).zip(found.ids()).map(|(position, id)| id_at(position, *id)));
            let file = File::open(&path).map_err(cannot("read", &path))?;
            hasher.update_reader(file).map_err(cannot("read", &path))?;
            parts.push(Part { path, positions: start..ids.len() as u64 });
        }
        let digest = hasher.finalize().to_hex()[..32].to_owned();
        Ok(StageRows { columns, ids, parts: Parts::Files(parts), digest })
    }

    pub(crate) fn len(&self) -> u64 {
        self.ids.len() as u64
    }

    pub(crate) fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|(column, _)| column == name)
    }

    /// The id of the row at a position. Positions behind the last row start over, with ids of their own.
    pub(crate) fn id(&self, position: u64) -> u64 {
        let (cycle, position) = (position / self.len(), position % self.len());
        let id = self.ids[position as usize];
        if cycle == 0 { id } else { child_id(id, (cycle as u32) | 1 << 31) }
    }

    /// The rows at some positions, which start over behind the last row. Blocks.
    pub(crate) fn read(&self, positions: Range<u64>) -> Result<Table, FileError> {
        let all: Vec<usize> = (0..self.columns.len()).collect();
        let mut table = self.empty_table(&all);
        let mut from = positions.start;
        while from < positions.end && !self.ids.is_empty() {
            let start = from % self.len();
            let end = self.len().min(start + (positions.end - from));
            self.visit(&all, start..end, |_, part| {
                table.append(part);
                Ok::<(), FileError>(())
            })?;
            from += end - start;
        }
        table.ids = positions.map(|position| Some(self.id(position))).collect();
        Ok(table)
    }

    fn empty_table(&self, columns: &[usize]) -> Table {
        let column = |number: &usize| {
            let (name, column_type) = self.columns[*number].clone();
            TableColumn { name, column_type, values: Vec::new() }
        };
        Table { ids: Vec::new(), columns: columns.iter().map(column).collect() }
    }

    /// Visits some columns of the rows at these positions, some rows at a time, each time with the position of the first.
    /// Blocks.
    pub(crate) fn visit<E: From<FileError>>(
        &self,
        columns: &[usize],
        positions: Range<u64>,
        mut visit: impl FnMut(u64, Table) -> Result<(), E>,
    ) -> Result<(), E> {
        let parts = match &self.parts {
            Parts::Files(parts) => parts,
            Parts::Memory(table) => {
                let part = table.slice(positions.start as usize..positions.end as usize);
                let columns = columns.iter().map(|column| part.columns[*column].clone()).collect();
                return visit(positions.start, Table { ids: part.ids, columns });
            }
        };
        let first = parts.partition_point(|part| part.positions.end <= positions.start);
        let end = parts.partition_point(|part| part.positions.start < positions.end).max(first);
        for part in &parts[first..end] {
            let from = part.positions.start.max(positions.start);
            let to = part.positions.end.min(positions.end);
            // A file has no rows if none of its candidates was accepted.
            if from >= to {
                continue;
            }
            let mut position = from;
            let names: Vec<&str> = columns.iter().map(|column| &*self.columns[*column].0).collect();
            let inside = from - part.positions.start..to - part.positions.start;
            for table in RowFile::open_part(&part.path, &names, inside)? {
                let mut table = table?;
                // They come in the order of the file.
                table.columns.sort_by_key(|column| names.iter().position(|name| *name == column.name));
                for (column, number) in table.columns.iter_mut().zip(columns) {
                    let column_type = &self.columns[*number].1;
                    if holds_json(column_type) {
                        column.values.iter_mut().for_each(|value| *value = parsed(value, column_type));
                    }
                    column.column_type = column_type.clone();
                }
                let start = position;
                position += table.ids.len() as u64;
                visit(start, table)?;
            }
        }
        Ok(())
    }
}

/// A row that a processor added has no id of its own.
fn id_at(position: u64, id: Option<u64>) -> u64 {
    id.unwrap_or_else(|| child_id(u64::MAX, position as u32))
}

fn holds_json(column_type: &ColumnType) -> bool {
    match column_type {
        ColumnType::Json => true,
        ColumnType::List(item) => holds_json(item),
        ColumnType::Struct(fields) => fields.iter().any(|(_, field)| holds_json(field)),
        ColumnType::Bool | ColumnType::Int | ColumnType::Float | ColumnType::Text => false,
    }
}

/// A value as it was before it was stored: values of any shape are stored as JSON text.
fn parsed(value: &Value, column_type: &ColumnType) -> Value {
    match (column_type, value) {
        (ColumnType::Json, Value::Text(text)) => Value::from_json(text).unwrap_or_else(|_| value.clone()),
        (ColumnType::List(item), Value::List(values)) => {
            Value::list(values.iter().map(|value| parsed(value, item)))
        }
        (ColumnType::Struct(fields), Value::Map(map)) => Value::map(fields.iter().map(|(name, field)| {
            (name.as_str(), map.get(name.as_str()).map_or(Value::Null, |value| parsed(value, field)))
        })),
        _ => value.clone(),
    }
}
