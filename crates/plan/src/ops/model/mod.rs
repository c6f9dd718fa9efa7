//! `core::model`: a score from a trained model.

mod features;
mod forest;
mod lightgbm;
mod linear;
mod xgboost;

use anabranch_engine::Check;
use anabranch_rows::{Column, Kind, Rows};
use arrow_array::Float64Array;
use arrow_buffer::NullBuffer;
use serde_json::Value;

use self::features::{Features, Missing};
use self::forest::Forest;
use self::linear::Linear;
use super::columns::scattered;
use super::input;
use crate::error::OpError;
use crate::op::{
    Contract, Demand, Effect, Form, Mark, Node, Op, ParamKind, ParamSpec, Planned, RowsNeeded, Spec, Takes,
};

pub(super) struct Model;

static SPEC: Spec = Spec {
    name: "core::model",
    doc: "Writes the score that a trained model gives each active row to a column.",
    inputs: 1,
    params: &[
        ParamSpec::required("out_key", ParamKind::Key, "the float column to write"),
        ParamSpec::required(
            "kind",
            ParamKind::Choice(&["linear", "lightgbm", "xgboost"]),
            "weights; trees of a LightGBM text file; trees of an XGBoost JSON file",
        ),
        ParamSpec::optional("file", ParamKind::Text, "the model's file; relative to the plan's folder"),
        ParamSpec::optional(
            "model",
            ParamKind::Json,
            "a linear model itself: {\"intercept\": number, \"weights\": {feature: number}}",
        ),
        ParamSpec::optional(
            "features",
            ParamKind::Json,
            "{feature: key, by name or number}; a feature that is not listed is the key of its name",
        ),
        ParamSpec::optional(
            "missing",
            ParamKind::Choice(&["null", "zero", "model"]),
            "a null feature makes the score null, counts as 0, or goes where the model sends it; `null` for linear \
             models and `model` for trees if not given",
        ),
        ParamSpec::optional(
            "output",
            ParamKind::Choice(&["raw", "transformed"]),
            "of trees: their sum, or what the objective makes of it; `transformed` if not given",
        ),
    ],
    writes: Effect::FromParam("out_key"),
    contract: Contract::SameRows,
    mark: Mark::Auto,
    distinct: false,
};

/// The largest model file.
const MAX_BYTES: u64 = 64 << 20;
/// Rows that go through the model together.
const CHUNK: usize = 64;

/// A model that was read.
enum Scoring {
    Linear(Linear),
    Forest(Forest),
}

/// The names of a model's features.
struct Names {
    /// Those that its score depends on, in the order it reads them.
    used: Vec<String>,
    all: Vec<String>,
}

/// A model and what it needs to know of rows.
struct Scorer {
    scoring: Scoring,
    features: Features,
    missing: Missing,
}

impl Op for Model {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn plan(&self, node: &mut Node<'_>) -> Option<Planned> {
        let schema = node.input(0);
        let scoring = read(node);
        let missing = missing(node);
        let entry = node.key("out_key")?;
        let kind = node.writable("out_key", entry)?;
        if kind != Kind::Float {
            node.problem("out_key", format!("key `{}` is {kind}, not float", entry.name));
        }
        let (scoring, names) = scoring?;
        let features = Features::resolve(node, &names, schema)?;
        let mut schema = schema.clone();
        schema.add(entry.key, Kind::Float);
        let (key, nullable, name) = (entry.key, entry.nullable, entry.name.clone());
        let takes = Takes::passing(features.keys()).making([key]).rows(RowsNeeded::AsAsked);
        let scorer = Scorer { scoring, features, missing: missing? };
        Some(Planned::new(schema, [takes], move |demand: &Demand, _| {
            if !demand.keys.has(key) {
                return Form::compute(0.0, |inputs, _, _| Ok(input(inputs, 0).clone()));
            }
            Form::compute(scorer.cost(), move |inputs, _, check| {
                let rows = input(inputs, 0);
                let scores = scorer.scores(rows, check)?;
                if let Some(position) = (0..rows.len()).find(|at| !nullable && scores.is_null(*at)) {
                    let id = id_at(rows, position);
                    return Err(OpError::Value(format!(
                        "null for key `{name}`, which is not nullable, at the row with id {id}; \
                         `missing: \"zero\"` or a fill before it would give it a value"
                    )));
                }
                Ok(rows.with_column(key, scattered(scores, rows)))
            })
        }))
    }
}

fn id_at(rows: &Rows, position: usize) -> i64 {
    rows.batch().ids()[rows.row(position)]
}

/// The model that the parameters give, and the names of its features.
fn read(node: &mut Node<'_>) -> Option<(Scoring, Names)> {
    let kind = node.text("kind")?;
    if kind == "linear" && node.arg("output").is_some() {
        node.problem("output", "a linear model has one output; leave it out");
    }
    let read = match (kind, node.text("file"), node.json("model")) {
        (_, Some(_), Some(_)) => {
            Err(("model".to_owned(), "`file` is given as well; one of them must go".to_owned()))
        }
        ("linear", None, Some(model)) => linear::parse(model).map_err(|what| ("model".to_owned(), what)),
        ("linear", None, None) => Err(("model".to_owned(), "neither `model` nor `file` is given".to_owned())),
        (_, None, Some(_)) => {
            Err(("model".to_owned(), format!("only linear models are written here; give the {kind} `file`")))
        }
        (_, None, None) => Err(("file".to_owned(), format!("a {kind} model needs one"))),
        (kind, Some(file), None) => {
            let transformed = node.text("output") != Some("raw");
            text_of(node, file)
                .and_then(|text| from_text(kind, &text, transformed))
                .map_err(|what| (format!("file `{file}`"), what))
        }
    };
    match read {
        Ok(model) => Some(model),
        Err((field, what)) => {
            node.problem(&field, what);
            None
        }
    }
}

fn from_text(kind: &str, text: &str, transformed: bool) -> Result<(Scoring, Names), String> {
    match kind {
        "lightgbm" => lightgbm::parse(text)?.into_scoring(transformed),
        "xgboost" => xgboost::parse(text)?.into_scoring(transformed),
        _ => {
            let model: Value = serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
            linear::parse(&model)
        }
    }
}

/// The text of a file that is no larger than a model may be.
fn text_of(node: &Node<'_>, file: &str) -> Result<String, String> {
    let bytes = node.read_file(file, MAX_BYTES)?;
    str::from_utf8(&bytes).map(str::to_owned).map_err(|_| {
        "not text; LightGBM models are saved as text, XGBoost models with a name that ends in `.json`"
            .to_owned()
    })
}

fn missing(node: &mut Node<'_>) -> Option<Missing> {
    let linear = node.text("kind") == Some("linear");
    Some(match node.text("missing") {
        Some("null") => Missing::Null,
        Some("zero") => Missing::Zero,
        Some("model") if linear => {
            let help = "`null` or `zero`";
            node.problem_with_help("missing", "a linear model does not know what to do with null", help);
            return None;
        }
        None if linear => Missing::Null,
        _ => Missing::Model,
    })
}

impl Scorer {
    /// Nanoseconds a row.
    fn cost(&self) -> f64 {
        let features = 2.0 * self.features.len() as f64;
        features
            + match &self.scoring {
                Scoring::Linear(_) => 5.0 + features,
                Scoring::Forest(forest) => forest.cost(),
            }
    }

    /// The score of each active row, in their order.
    fn scores(&self, rows: &Rows, check: &Check<'_>) -> Result<Column, OpError> {
        let reader = self.features.reader(rows, self.missing);
        let width = self.features.len();
        let mut values = vec![0.0; CHUNK * width];
        let mut valid = [true; CHUNK];
        let mut scores: Vec<f64> = Vec::with_capacity(rows.len());
        let mut all_valid: Vec<bool> = Vec::new();
        for start in (0..rows.len()).step_by(CHUNK) {
            let count = CHUNK.min(rows.len() - start);
            if check.should_stop() {
                return Err(OpError::Stopped);
            }
            reader.read(start, &mut values[..count * width], &mut valid[..count]);
            scores.resize(start + count, 0.0);
            let scored = &mut scores[start..];
            match &self.scoring {
                Scoring::Linear(linear) => linear.score(&values, scored),
                Scoring::Forest(forest) => forest.score(&values, width, scored, check)?,
            }
            if self.missing == Missing::Null {
                all_valid.extend_from_slice(&valid[..count]);
            }
            let odd = |(at, score): (usize, &f64)| valid[at] && !score.is_finite();
            if let Some(at) = scored.iter().enumerate().position(odd) {
                let id = id_at(rows, start + at);
                return Err(OpError::Value(format!(
                    "the score is not a finite number at the row with id {id}"
                )));
            }
        }
        let nulls = (!all_valid.is_empty()).then(|| NullBuffer::from(all_valid));
        Ok(Column::Float(Float64Array::new(scores.into(), nulls.filter(|nulls| nulls.null_count() > 0))))
    }
}
