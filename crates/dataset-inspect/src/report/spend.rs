//! Calls, tokens and money.

use anabranch_dataset::output::{ColumnSpend, Metadata};
use serde::Serialize;

/// The calls, tokens and money of a build.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BuildSpend {
    pub calls: u64,
    /// Replies of the journal that took the place of calls.
    pub reused: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// `None` if no model has a price.
    pub cost: Option<f64>,
    /// True if a model without a price was called: the cost is a part of the whole.
    pub cost_is_partial: bool,
    /// By column; by model alias if an older version wrote the metadata.
    pub lines: Vec<ColumnSpent>,
}

/// The calls, tokens and money of a column.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ColumnSpent {
    pub name: String,
    #[serde(flatten)]
    pub spend: ColumnSpend,
}

impl BuildSpend {
    /// The sum of the metadata's columns.
    pub(crate) fn of(metadata: &Metadata) -> BuildSpend {
        let mut spent = BuildSpend { lines: lines(metadata), ..BuildSpend::default() };
        for ColumnSpent { spend, .. } in &spent.lines {
            spent.calls += spend.calls;
            spent.reused += spend.reused;
            spent.input_tokens += spend.input_tokens;
            spent.output_tokens += spend.output_tokens;
            match spend.cost {
                Some(cost) => *spent.cost.get_or_insert(0.0) += cost,
                None => spent.cost_is_partial |= spend.calls > 0,
            }
        }
        spent
    }
}

fn lines(metadata: &Metadata) -> Vec<ColumnSpent> {
    if !metadata.spent.is_empty() {
        // In the order of the columns; others, such as dropped ones of a stage, follow.
        let place =
            |name: &str| metadata.columns.iter().position(|column| column.name == name).unwrap_or(usize::MAX);
        let spent = metadata.spent.iter();
        let mut lines: Vec<ColumnSpent> =
            spent.map(|(name, spend)| ColumnSpent { name: name.clone(), spend: spend.clone() }).collect();
        lines.sort_by_key(|line| place(&line.name));
        return lines;
    }
    let models = metadata.models.iter().map(|(alias, used)| ColumnSpent {
        name: alias.clone(),
        spend: ColumnSpend {
            alias: alias.clone(),
            model: used.model.clone(),
            calls: used.calls,
            reused: used.reused,
            input_tokens: used.input_tokens,
            output_tokens: used.output_tokens,
            ..ColumnSpend::default()
        },
    });
    models.collect()
}
