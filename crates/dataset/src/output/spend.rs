//! The spend of a build, from its files.

use serde::{Deserialize, Serialize};

pub use crate::journal::Figures;

/// The calls of one column to one model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SpendLine {
    pub column: String,
    /// The alias of the model.
    pub alias: String,
    pub provider: String,
    pub model: String,
    /// Replies of the journal that took the place of calls.
    pub reused: u64,
    #[serde(flatten)]
    pub figures: Figures,
}
