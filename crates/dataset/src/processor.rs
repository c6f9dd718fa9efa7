//! The contract of processors, which see whole row groups or the whole dataset.

use anabranch_value::Value;

use crate::column_type::ColumnType;
use crate::fault::Fault;
use crate::generator::Output;

/// Changes rows at fixed points of a build. Each method has a default that changes nothing.
pub trait Processor: Send + Sync + 'static {
    /// The name in the configuration.
    fn name(&self) -> &str;

    /// The points at which it is called.
    fn points(&self) -> Points;

    /// The columns that [`before_batch`](Self::before_batch) adds, so that others can read them.
    fn adds(&self) -> Vec<Output> {
        Vec::new()
    }

    /// Called when the columns from samplers and seeds are filled, before all others. May add and remove rows.
    fn before_batch(&self, table: Table) -> Result<Table, Fault> {
        Ok(table)
    }

    /// Called when a row group is complete, before it is written. Must keep the number of rows.
    fn after_batch(&self, table: Table) -> Result<Table, Fault> {
        Ok(table)
    }

    /// An additional table of a complete group, which is written to a folder with the processor's name.
    fn extract(&self, table: &Table) -> Result<Option<Table>, Fault> {
        let _ = table;
        Ok(None)
    }

    /// Called with the whole dataset when all row groups are written. May add and remove rows.
    fn after_generation(&self, table: Table) -> Result<Table, Fault> {
        Ok(table)
    }
}

/// The points at which a processor is called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Points {
    pub before_batch: bool,
    pub after_batch: bool,
    pub after_generation: bool,
}

/// Rows in memory, by column.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// The rows' stable numbers. A row that a processor adds has `None`.
    pub ids: Vec<Option<u64>>,
    pub columns: Vec<TableColumn>,
}

/// A column of a [`Table`].
#[derive(Clone, Debug)]
pub struct TableColumn {
    pub name: String,
    pub column_type: ColumnType,
    pub values: Vec<Value>,
}

impl Table {
    /// A row as a map from column names to values.
    pub fn row(&self, row: usize) -> Value {
        Value::map(self.columns.iter().map(|column| (column.name.as_str(), column.values[row].clone())))
    }

    /// Adds the rows of a table with the same columns.
    pub(crate) fn append(&mut self, more: Table) {
        self.ids.extend(more.ids);
        if self.columns.is_empty() {
            self.columns = more.columns;
            return;
        }
        for (column, more) in self.columns.iter_mut().zip(more.columns) {
            column.values.extend(more.values);
        }
    }

    /// Some of the rows.
    pub(crate) fn slice(&self, rows: std::ops::Range<usize>) -> Table {
        let column = |column: &TableColumn| TableColumn {
            values: column.values[rows.clone()].to_vec(),
            name: column.name.clone(),
            column_type: column.column_type.clone(),
        };
        Table { ids: self.ids[rows.clone()].to_vec(), columns: self.columns.iter().map(column).collect() }
    }
}
