//! The saved plan of a build, and how it compares with the build.

use std::io;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::BuildPlan;
use crate::output::{FileError, ModelMetadata, write_json};
use crate::spend::Spend;

/// The name of the file in an output folder.
pub const PLAN: &str = "plan.json";

/// Calls, tokens, money and time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Totals {
    pub calls: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// `None` if a model has no price.
    pub cost: Option<f64>,
    pub seconds: f64,
}

/// A plan, compared with the build that it was made for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanCheck {
    pub estimated: Totals,
    pub actual: Totals,
}

impl BuildPlan {
    /// Saves the plan in an output folder, which is made if it is not there. A folder with nothing but a plan is not taken
    /// for a build. Blocks.
    pub fn save(&self, folder: &Path) -> Result<(), FileError> {
        std::fs::create_dir_all(folder).map_err(|cause| FileError {
            action: "create",
            path: folder.to_owned(),
            cause,
        })?;
        write_json(&folder.join(PLAN), self)
    }

    /// The plan in an output folder; `None` if it has none, or one that is not readable. Blocks.
    pub fn read(folder: &Path) -> Result<Option<BuildPlan>, FileError> {
        let path = folder.join(PLAN);
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok(serde_json::from_str(&text).ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(FileError { action: "read", path, cause }),
        }
    }

    /// Compares the plan with the spend of a build, if it was made for this build.
    pub(crate) fn check(&self, inputs_digest: &str, rows: u64, spent: &Totals) -> Option<PlanCheck> {
        let fits = self.inputs_digest == inputs_digest && self.rows == rows;
        fits.then(|| PlanCheck { estimated: self.totals(), actual: spent.since(&self.before) })
    }

    /// The totals of the plan.
    pub fn totals(&self) -> Totals {
        Totals {
            calls: self.calls,
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            cost: self.cost,
            seconds: self.seconds,
        }
    }
}

impl Totals {
    /// The spend of a build so far.
    pub(crate) fn of(spend: &Spend, elapsed: Duration) -> Totals {
        let models = spend.models();
        let sum = |figure: fn(&ModelMetadata) -> u64| models.values().map(figure).sum();
        Totals {
            calls: sum(|model| model.calls),
            input_tokens: sum(|model| model.input_tokens),
            output_tokens: sum(|model| model.output_tokens),
            cost: models.values().try_fold(0.0, |sum, model| Some(sum + model.cost?)),
            seconds: elapsed.as_secs_f64(),
        }
    }

    /// The part of these totals that came after others.
    pub(crate) fn since(&self, before: &Totals) -> Totals {
        Totals {
            calls: self.calls.saturating_sub(before.calls),
            input_tokens: self.input_tokens.saturating_sub(before.input_tokens),
            output_tokens: self.output_tokens.saturating_sub(before.output_tokens),
            cost: self.cost.map(|cost| (cost - before.cost.unwrap_or(0.0)).max(0.0)),
            seconds: (self.seconds - before.seconds).max(0.0),
        }
    }
}
