//! Trained models that score rows of numbers.
//!
//! A [`Scorer`] is a linear model, or the trees that LightGBM or XGBoost saved to a file. It is checked when it is
//! read: every number is finite, every path through a tree ends at a leaf. It knows its features by name. The caller
//! passes their values in the order of [`Scorer::features`].
//!
//! ```
//! use anabranch_scorer::Scorer;
//! let model = serde_json::json!({"intercept": 1.0, "weights": {"age": 2.0, "price": -1.0}});
//! let scorer = Scorer::linear(&model)?;
//! assert_eq!(scorer.features(), ["age", "price"]);
//! let (rows, mut scores) = ([3.0, 4.0, 0.0, 1.0], [0.0; 2]);
//! scorer.score(&rows, &mut scores, &mut || false).expect("nothing stops it");
//! assert_eq!(scores, [3.0, 0.0]);
//! # Ok::<(), String>(())
//! ```

mod linear;
mod forest;
mod lightgbm;
mod xgboost;

use forest::{Forest, Trees};
use linear::Linear;
use serde_json::Value;

/// A model that was read and checked.
pub struct Scorer {
    model: Model,
    used: Vec<String>,
    all: Vec<String>,
}

enum Model {
    Linear(Linear),
    Forest(Forest),
}

/// The number that a model of trees gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// The sum of the leaves.
    Raw,
    /// The sum, transformed by the model's objective, such as a probability.
    Transformed,
}

/// A run that was stopped before its scores were complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoppedRun;

impl Scorer {
    /// Reads `{"intercept": number, "weights": {feature: number}}`.
    pub fn linear(model: &Value) -> Result<Scorer, String> {
        let (linear, names) = linear::parse(model)?;
        Ok(Scorer { model: Model::Linear(linear), used: names.clone(), all: names })
    }

    /// Reads a linear model from the text of a JSON file.
    pub fn linear_text(text: &str) -> Result<Scorer, String> {
        let model: Value = serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
        Scorer::linear(&model)
    }

    /// Reads a model that LightGBM saved as text.
    pub fn lightgbm(text: &str, output: Output) -> Result<Scorer, String> {
        Scorer::trees(lightgbm::parse(text)?, output)
    }

    /// Reads a model that XGBoost saved as JSON.
    pub fn xgboost(text: &str, output: Output) -> Result<Scorer, String> {
        Scorer::trees(xgboost::parse(text)?, output)
    }

    fn trees(trees: Trees, output: Output) -> Result<Scorer, String> {
        let (forest, used, all) = trees.into_forest(output)?;
        Ok(Scorer { model: Model::Forest(forest), used, all })
    }

    /// The features that a score depends on, in the order in which [`Scorer::score`] reads them.
    pub fn features(&self) -> &[String] {
        &self.used
    }

    /// All features that the model was trained with.
    pub fn all_features(&self) -> &[String] {
        &self.all
    }

    /// About how long a row takes, in nanoseconds.
    pub fn cost(&self) -> f64 {
        match &self.model {
            Model::Linear(_) => 1.0 + 0.5 * self.used.len() as f64,
            Model::Forest(forest) => forest.cost(),
        }
    }

    /// Writes one score per row to `scores`. `values` holds the features row by row; NaN is a missing value. Calls
    /// `stop` regularly, and stops once that returns `true`.
    pub fn score(
        &self,
        values: &[f64],
        scores: &mut [f64],
        stop: &mut dyn FnMut() -> bool,
    ) -> Result<(), StoppedRun> {
        match &self.model {
            Model::Linear(linear) => {
                linear.score(values, scores);
                Ok(())
            }
            Model::Forest(forest) => forest.score(values, self.used.len(), scores, stop),
        }
    }
}
