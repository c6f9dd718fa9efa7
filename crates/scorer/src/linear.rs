//! Linear models.

use serde_json::{Map, Value};

/// Weights of features.
pub(crate) struct Linear {
    intercept: f64,
    weights: Vec<f64>,
}

/// Reads `{"intercept": number, "weights": {feature: number}}`; returns the names of the features too.
pub(crate) fn parse(model: &Value) -> Result<(Linear, Vec<String>), String> {
    let fields = model.as_object().ok_or("not an object with `intercept` and `weights`")?;
    if let Some(other) = fields.keys().find(|name| *name != "intercept" && *name != "weights") {
        return Err(format!("unexpected field `{other}`; there are `intercept` and `weights`"));
    }
    let intercept = match fields.get("intercept") {
        None => 0.0,
        Some(value) => finite(value).ok_or("`intercept` is not a finite number")?,
    };
    let weights: &Map<String, Value> =
        fields.get("weights").and_then(Value::as_object).ok_or("`weights` is not an object of numbers")?;
    let mut names = Vec::new();
    let mut values = Vec::new();
    for (name, value) in weights {
        names.push(name.clone());
        values.push(finite(value).ok_or_else(|| format!("the weight of `{name}` is not a finite number"))?);
    }
    Ok((Linear { intercept, weights: values }, names))
}

fn finite(value: &Value) -> Option<f64> {
    value.as_f64().filter(|value| value.is_finite())
}

impl Linear {
    /// The scores of rows, whose features come one row after the other.
    pub(crate) fn score(&self, values: &[f64], scores: &mut [f64]) {
        let width = self.weights.len();
        for (at, score) in scores.iter_mut().enumerate() {
            let row = &values[at * width..(at + 1) * width];
            let terms = row.iter().zip(&self.weights).map(|(value, weight)| value * weight);
            *score = terms.fold(self.intercept, |sum, term| sum + term);
        }
    }
}
