//! Validation columns: a verdict per row about the code or the values of other columns.
//!
//! Code is checked by `ruff` or `sqlfluff` if they are on the path, else by a parser. The verdict's field `validator`
//! names the tool. A remote validator receives records over HTTP. Every row has its own verdict. Dropped rows are not
//! checked, and a failed batch affects only its own rows.

mod child;
mod code;
mod python;
mod remote;
mod sql;
mod tools;

use std::sync::Arc;

use anabranch_engine::clock::Clock;

pub use tools::Tools;

use crate::config::{ValidationColumn, Validator};
use crate::generator::Generator;
use crate::post::Post;

/// The services that validators use: tools, HTTP client, clock.
#[derive(Clone)]
pub struct Services {
    pub tools: Tools,
    pub post: Arc<dyn Post>,
    /// The clock of pauses and timeouts of remote calls.
    pub clock: Arc<dyn Clock>,
}

/// The generator of a validation column. The error message includes advice.
pub fn generator(
    name: &str,
    column: &ValidationColumn,
    services: &Services,
) -> Result<Box<dyn Generator>, String> {
    if column.target_columns.is_empty() || column.batch_size == 0 {
        return Err(format!(
            "the validation column `{name}` needs a target column and a batch size of at least 1"
        ));
    }
    match &column.validator {
        Validator::Code { lang } => {
            Ok(Box::new(code::CodeGenerator::new(name, column, *lang, &services.tools)?))
        }
        Validator::Remote(remote) => {
            Ok(Box::new(remote::RemoteGenerator::new(name, column, remote.clone(), services)?))
        }
    }
}
