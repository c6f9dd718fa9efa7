//! The columns of a seed.

use std::sync::Arc;

use crate::fault::Fault;
use crate::generator::{Cells, Contract, Generator, Grain, Output, Rows, Work};
use crate::seed::Seed;

/// All columns of a seed: one task per row group.
pub(crate) struct SeedColumns {
    contract: Contract,
    seed: Arc<Seed>,
}

impl SeedColumns {
    pub(crate) fn new(seed: Arc<Seed>) -> SeedColumns {
        let fills = seed.columns().iter();
        let fills =
            fills.map(|(name, column_type)| Output { name: name.clone(), column_type: column_type.clone() });
        let contract =
            Contract { grain: Grain::Batch, reads: Vec::new(), fills: fills.collect(), stateful: false };
        SeedColumns { contract, seed }
    }
}

impl Generator for SeedColumns {
    fn contract(&self) -> &Contract {
        &self.contract
    }

    /// Contents of files are read when they are needed, which blocks.
    fn batch(&self, rows: Rows) -> Work<Vec<Result<Cells, Fault>>> {
        let seed = Arc::clone(&self.seed);
        Work::blocking(move |_| {
            Ok(rows.ids.iter().map(|id| seed.read_row(*id).map(Cells::from_vec)).collect())
        })
    }
}
