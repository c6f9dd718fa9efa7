//! The condition under which a row is kept.

use anabranch_value::Value;

use super::llm::position;
use crate::config::TemplateText;
use crate::fault::Fault;
use crate::generator::{Cells, Contract, Generator, Grain, Row, Work};
use crate::stages::is_met;

/// Fills no column. It fails for rows that are not accepted, as soon as they have the values that the conditions read.
pub(crate) struct Accepts {
    contract: Contract,
    conditions: Vec<Condition>,
}

struct Condition {
    when: TemplateText,
    /// The places of its variables among the columns that are read.
    reads: Vec<usize>,
}

/// The class of the fault of a row that is not accepted.
pub(crate) const REJECTED: &str = "rejected";

impl Accepts {
    pub(crate) fn new(when: &[TemplateText]) -> Accepts {
        let mut reads: Vec<String> = Vec::new();
        let conditions = when.iter().map(|when| Condition {
            reads: when.template.variables().iter().map(|name| position(&mut reads, name)).collect(),
            when: when.clone(),
        });
        let conditions = conditions.collect();
        Accepts {
            contract: Contract { grain: Grain::Cell, reads, fills: Vec::new(), stateful: false },
            conditions,
        }
    }
}

impl Generator for Accepts {
    fn contract(&self) -> &Contract {
        &self.contract
    }

    fn cell(&self, row: Row<'_>) -> Work<Cells> {
        for Condition { when, reads } in &self.conditions {
            let values: Vec<Value> = reads.iter().map(|column| row.values[*column].clone()).collect();
            match is_met(when, &values) {
                Ok(true) => {}
                Ok(false) => return Work::Ready(Err(Fault::permanent(REJECTED, &*when.source))),
                Err(message) => return Work::Ready(Err(Fault::permanent("accept", message))),
            }
        }
        Work::Ready(Ok(Cells::new()))
    }
}
