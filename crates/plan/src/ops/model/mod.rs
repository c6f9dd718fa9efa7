//! `core::model`: a score from a trained model.

mod features;

use anabranch_engine::Check;
use anabranch_rows::{Column, Kind, Rows};
use anabranch_scorer::{Output, Scorer, StoppedRun};
use arrow_array::Float64Array;
use arrow_buffer::NullBuffer;

use self::features::{Features, NullTreatment};
use super::columns::scattered;
use super::input;
use crate::error::OpError;
use crate::op::{
    Contract, Demand, Effect, Form, Mark, Node, NodePlan, Op, ParamKind, ParamSpec, RowsNeeded, Spec, Takes,
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

/// A model, and the columns that it reads.
struct RowScorer {
    scorer: Scorer,
    features: Features,
    missing: NullTreatment,
}

impl Op for Model {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn plan(&self, node: &mut Node<'_>) -> Option<NodePlan> {
        let schema = node.input(0);
        let scorer = read(node);
        let missing = missing(node);
        let entry = node.key("out_key")?;
        let kind = node.writable("out_key", entry)?;
        if kind != Kind::Float {
            node.problem("out_key", format!("key `{}` is {kind}, not float", entry.name));
        }
        let scorer = scorer?;
        let features = Features::resolve(node, &scorer, schema)?;
        let mut schema = schema.clone();
        schema.add(entry.key, Kind::Float);
        let (key, nullable, name) = (entry.key, entry.nullable, entry.name.clone());
        let takes = Takes::passing(features.keys()).making([key]).rows(RowsNeeded::AsAsked);
        let scorer = RowScorer { scorer, features, missing: missing? };
        Some(NodePlan::new(schema, [takes], move |demand: &Demand, _| {
            if !demand.keys.has(key) {
                return Form::compute(0.0, |inputs, _, _| Ok(input(inputs, 0).clone()));
            }
            Form::extend(scorer.cost(), 1, move |rows, _, check| {
                let scores = scorer.scores(rows, check)?;
                if !nullable
                    && scores.nulls().is_some()
                    && let Some(position) = (0..rows.len()).find(|at| scores.is_null(*at))
                {
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

/// The model that the parameters give.
fn read(node: &mut Node<'_>) -> Option<Scorer> {
    let kind = node.text("kind")?;
    if kind == "linear" && node.arg("output").is_some() {
        node.problem("output", "a linear model has one output; leave it out");
    }
    let read = match (kind, node.text("file"), node.json("model")) {
        (_, Some(_), Some(_)) => {
            Err(("model".to_owned(), "`file` is given as well; one of them must go".to_owned()))
        }
        ("linear", None, Some(model)) => Scorer::linear(model).map_err(|what| ("model".to_owned(), what)),
        ("linear", None, None) => Err(("model".to_owned(), "neither `model` nor `file` is given".to_owned())),
        (_, None, Some(_)) => {
            Err(("model".to_owned(), format!("only linear models are written here; give the {kind} `file`")))
        }
        (_, None, None) => Err(("file".to_owned(), format!("a {kind} model needs one"))),
        (kind, Some(file), None) => {
            let output = if node.text("output") == Some("raw") { Output::Raw } else { Output::Transformed };
            text_of(node, file)
                .and_then(|text| match kind {
                    "lightgbm" => Scorer::lightgbm(&text, output),
                    "xgboost" => Scorer::xgboost(&text, output),
                    _ => Scorer::linear_text(&text),
                })
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

/// The text of a file within the size limit of models.
fn text_of(node: &Node<'_>, file: &str) -> Result<String, String> {
    let bytes = node.read_file(file, MAX_BYTES)?;
    str::from_utf8(&bytes).map(str::to_owned).map_err(|_| {
        "not text; LightGBM models are saved as text, XGBoost models with a name that ends in `.json`"
            .to_owned()
    })
}

fn missing(node: &mut Node<'_>) -> Option<NullTreatment> {
    let linear = node.text("kind") == Some("linear");
    Some(match node.text("missing") {
        Some("null") => NullTreatment::Null,
        Some("zero") => NullTreatment::Zero,
        Some("model") if linear => {
            let help = "`null` or `zero`";
            node.problem_with_help("missing", "a linear model does not know what to do with null", help);
            return None;
        }
        None if linear => NullTreatment::Null,
        _ => NullTreatment::Model,
    })
}

impl RowScorer {
    /// About how long a row takes, in nanoseconds.
    fn cost(&self) -> f64 {
        0.7 * self.features.len() as f64 + self.scorer.cost()
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
            let done = self.scorer.score(&values[..count * width], scored, &mut || check.should_stop());
            done.map_err(|StoppedRun| OpError::Stopped)?;
            if self.missing == NullTreatment::Null {
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
