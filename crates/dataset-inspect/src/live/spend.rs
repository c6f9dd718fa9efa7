//! The spend of a build: calls, tokens and money, as parts of its progress and of its report.

use std::collections::BTreeMap;

use anabranch_dataset::output::ModelMetadata;
use anabranch_text::money;

use crate::number::grouped;

/// The calls and tokens of all models.
pub struct LiveSpend {
    calls: u64,
    reused: u64,
    tokens_in: u64,
    tokens_out: u64,
    /// `None` if no model has a price.
    cost: Option<f64>,
}

/// The money of all models that have a price; `None` if none has.
pub fn cost(usage: &BTreeMap<String, ModelMetadata>) -> Option<f64> {
    usage.values().filter_map(|used| used.cost).reduce(|sum, cost| sum + cost)
}

impl LiveSpend {
    /// Puts the models together.
    pub fn of(usage: &BTreeMap<String, ModelMetadata>) -> LiveSpend {
        let sum = |number: fn(&ModelMetadata) -> u64| usage.values().map(number).sum();
        LiveSpend {
            calls: sum(|used| used.calls),
            reused: sum(|used| used.reused),
            tokens_in: sum(|used| used.input_tokens),
            tokens_out: sum(|used| used.output_tokens),
            cost: cost(usage),
        }
    }

    /// A line for a terminal; `None` if there was nothing to pay for.
    pub fn line(&self) -> Option<String> {
        let LiveSpend { calls, reused, tokens_in, tokens_out, cost } = self;
        (calls + reused > 0).then(|| {
            format!(
                "  {} calls answered, {} from the journal; tokens: {} in, {} out{}",
                grouped(*calls),
                grouped(*reused),
                grouped(*tokens_in),
                grouped(*tokens_out),
                cost.map_or_else(String::new, |cost| format!("; {}", money::format(cost)))
            )
        })
    }

    /// The spend in words: `12 calls, 1,000 tokens in, 200 out, $0.0123`.
    pub fn words(&self) -> String {
        let LiveSpend { calls, tokens_in, tokens_out, cost, .. } = self;
        let noun = if *calls == 1 { "call" } else { "calls" };
        let cost = cost.map_or_else(String::new, |cost| format!(", {}", money::format(cost)));
        let tokens = format!("{} tokens in, {} out", grouped(*tokens_in), grouped(*tokens_out));
        format!("{} {noun}, {tokens}{cost}", grouped(*calls))
    }

    /// The same in short, each part with its rank: the higher ones can be left out.
    pub fn parts(&self) -> impl Iterator<Item = (u8, String)> {
        let LiveSpend { calls, reused, tokens_in, tokens_out, cost } = *self;
        let calls = (calls > 0).then(|| (1, format!("{} calls", grouped(calls))));
        let reused = (reused > 0).then(|| (2, format!("{} reused", grouped(reused))));
        let tokens = (tokens_in + tokens_out > 0)
            .then(|| (4, format!("tokens {}+{}", thousands(tokens_in), thousands(tokens_out))));
        let cost = cost.filter(|cost| *cost > 0.0).map(|cost| (1, money::format(cost)));
        [calls, reused, cost, tokens].into_iter().flatten()
    }
}

/// A number in three digits or so: `950`, `12k`, `3.4M`.
fn thousands(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..1_000_000 => format!("{}k", number / 1_000),
        _ => format!("{:.1}M", number as f64 / 1e6),
    }
}
