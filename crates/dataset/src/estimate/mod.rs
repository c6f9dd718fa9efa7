//! Estimates: the calls, tokens, money and time of a build, from a dry run of it.

mod column;
mod file;
mod graph;
mod shares;
mod spend;
mod statistics;
mod time;

use serde::{Deserialize, Serialize};

pub use file::{PLAN, PlanCheck, Totals};

use crate::dry::DryRun;
use crate::setup::LoadedConfig;
use column::Estimator;

/// The plan of a build: the cells that it will reuse and those that it will pay for, saved as `plan.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BuildPlan {
    pub rows: u64,
    /// A digest of everything that decides about the values. A build with another digest does not fit the plan.
    pub inputs_digest: String,
    /// The rows on disk that stay.
    pub rows_on_disk: u64,
    /// Whether nothing is left to do.
    pub is_complete: bool,
    /// The inputs that differ from the dataset in the folder. The build needs `--replace`.
    pub differ: Vec<String>,
    /// The columns that ask models, in the order of the configuration.
    pub columns: Vec<ColumnPlan>,
    /// The cells whose replies are recorded, or that are on disk.
    pub reused: u64,
    pub calls: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// `None` if a model that will be asked has no price.
    pub cost: Option<f64>,
    pub seconds: f64,
    /// Figures that are guesses, in words.
    pub guesses: Vec<String>,
    /// The spend of the journal when the plan was made. Later spend belongs to the plan.
    pub before: Totals,
}

/// The plan of a column that asks a model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ColumnPlan {
    pub name: String,
    /// The alias of its model; for custom code the first one.
    pub alias: String,
    pub model: String,
    pub cells: u64,
    pub reused: u64,
    /// Cells that will be generated.
    pub generate: u64,
    /// Cells that are skipped, as far as it is known.
    pub skipped: u64,
    /// Cells whose recorded replies failed.
    pub failed: u64,
    pub calls: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cost: Option<f64>,
    /// A description of why cells are generated; empty if none is.
    pub why: String,
    /// The source of the figures: `measured`, `other columns of the model`, or `guess`.
    pub basis: String,
}

impl BuildPlan {
    /// Makes the plan of a build from its dry run.
    pub fn new(loaded: &LoadedConfig, run: &DryRun) -> BuildPlan {
        let estimator = Estimator::new(loaded, run);
        let estimates: Vec<column::Estimate> = estimator.columns();
        let sum = |figure: fn(&ColumnPlan) -> u64| estimates.iter().map(|found| figure(&found.plan)).sum();
        let is_priced = |found: &column::Estimate| found.plan.cost.is_some() || found.plan.calls == 0;
        let cost = estimates.iter().all(is_priced);
        let cost = cost.then(|| estimates.iter().filter_map(|found| found.plan.cost).sum());
        BuildPlan {
            rows: run.rows,
            inputs_digest: run.inputs_digest.clone(),
            rows_on_disk: run.rows_on_disk,
            is_complete: run.is_complete,
            differ: run.differ.clone(),
            reused: sum(|column| column.reused),
            calls: sum(|column| column.calls),
            input_tokens: sum(|column| column.input_tokens),
            output_tokens: sum(|column| column.output_tokens),
            cost,
            seconds: time::seconds(&estimator, &estimates),
            guesses: estimates.iter().flat_map(|found| found.guesses.clone()).collect(),
            columns: estimates.into_iter().map(|found| found.plan).collect(),
            before: run.spent.clone(),
        }
    }
}
