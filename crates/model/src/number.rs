//! Numbers that a request draws from a distribution.

use crate::provider::{ChatParams, Number};
use crate::request::Sampling;

impl Number {
    /// The number for one request. `random` returns numbers from 0 to below 1. It is called at most once.
    pub fn resolve(&self, random: impl FnOnce() -> f64) -> f64 {
        match self {
            Number::Fixed(number) => *number,
            Number::Uniform { low, high } => low + (high - low) * random(),
            Number::Choice { values, weights } => {
                let weight = |at: usize| match weights {
                    Some(weights) => weights.get(at).copied().unwrap_or(0.0).max(0.0),
                    None => 1.0,
                };
                let total: f64 = (0..values.len()).map(weight).sum();
                let mut left = random() * total;
                for (at, value) in values.iter().enumerate() {
                    if left < weight(at) {
                        return *value;
                    }
                    left -= weight(at);
                }
                values.last().copied().unwrap_or(0.0)
            }
        }
    }
}

impl ChatParams {
    /// The parameters for one request. `random` returns numbers from 0 to below 1.
    pub fn resolve(&self, mut random: impl FnMut() -> f64) -> Sampling {
        Sampling {
            temperature: self.temperature.as_ref().map(|number| number.resolve(&mut random)),
            top_p: self.top_p.as_ref().map(|number| number.resolve(&mut random)),
            max_tokens: self.max_tokens,
        }
    }
}
