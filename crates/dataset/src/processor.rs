//! The contract of processors, which see whole row groups or the whole dataset.

use anabranch_value::Value;

use crate::column_type::ColumnType;
use crate::fault::Fault;

/// Changes rows at fixed points of a build. Each method has a default that changes nothing.
pub trait Processor: Send + Sync + 'static {
    /// The name in the configuration.
    fn name(&self) -> &str;

    /// Called when the columns from samplers and seeds are there, before all others. May add and remove rows.
    fn before_batch(&self, table: Table) -> Result<Table, Fault> {
        Ok(table)
    }

    /// Called when a row group is complete, before it is written. Must keep the number of rows.
    fn after_batch(&self, table: Table) -> Result<Table, Fault> {
        Ok(table)
    }

    /// Called with the whole dataset when all row groups are written. May add and remove rows.
    fn after_generation(&self, table: Table) -> Result<Table, Fault> {
        Ok(table)
    }
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
