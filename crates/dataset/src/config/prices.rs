//! Prices of models, by which calls become money.

use std::collections::BTreeMap;

use anabranch_document::{Fields, Node, Notes, Span};
use anabranch_model::ModelConfig;
use anabranch_text::quote;

use super::draft::Draft;
use crate::output::Figures;

/// The prices of a configuration and of its models file, by alias, by model, or by `provider/model`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prices(BTreeMap<String, Price>);

/// The price of a model, as money per million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Price {
    pub input: f64,
    pub output: f64,
    /// The price of input tokens from the server's cache. Default: `input`.
    pub cached_input: Option<f64>,
}

/// A price with the place of its name.
#[derive(Clone, Debug)]
pub(super) struct DraftPrice {
    pub(super) name: String,
    pub(super) at: Span,
    pub(super) price: Price,
}

/// Tokens that a price is for.
const TOKENS: f64 = 1e6;

/// The highest accepted price per million tokens.
const PRICE_MOST: f64 = 1e6;

impl Price {
    /// The money for some tokens. Cached ones are part of the input.
    pub fn cost(&self, tokens: &Figures) -> f64 {
        let cached = tokens.cached_tokens.min(tokens.input_tokens);
        let fresh = (tokens.input_tokens - cached) as f64;
        let cached = cached as f64 * self.cached_input.unwrap_or(self.input);
        (fresh * self.input + cached + tokens.output_tokens as f64 * self.output) / TOKENS
    }
}

impl Prices {
    /// The price of a model: under its alias, else as `provider/model`, else under its name.
    pub fn of(&self, alias: &str, provider: &str, model: &str) -> Option<&Price> {
        let names = [alias, &format!("{provider}/{model}"), model];
        names.iter().find_map(|name| self.0.get(*name))
    }

    /// The money for the calls of a model; `None` if it has no price.
    pub fn cost(&self, alias: &str, provider: &str, model: &str, calls: &Figures) -> Option<f64> {
        self.of(alias, provider, model).map(|price| price.cost(calls))
    }

    /// True if there is no price at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The prices of a configuration, and those of the models file under other names.
    pub(super) fn of_drafts(own: Vec<DraftPrice>, shared: Vec<DraftPrice>) -> Prices {
        // A later entry takes the place of an earlier one.
        Prices(shared.into_iter().chain(own).map(|found| (found.name, found.price)).collect())
    }
}

/// Reads `prices`.
pub(super) fn prices(node: &Node, draft: &mut Draft, notes: &mut Notes<'_>) {
    let table = notes.as_table(node, "prices", "prices by model, such as `gpt: {input: 0.15, output: 0.6}`");
    for (key, node) in table.into_iter().flatten() {
        let of = format!("the price of {}", quote(&key.name));
        let Some(mut fields) = notes.fields(node, &of) else { continue };
        let input = fields.need("input", notes).and_then(|node| money(node, "input", notes));
        let output = fields.get("output").and_then(|node| money(node, "output", notes));
        let cached_input = fields.get("cached_input").and_then(|node| money(node, "cached_input", notes));
        fields.finish(notes);
        // A model of embeddings has no output.
        let price = Price { input: input.unwrap_or(0.0), output: output.unwrap_or(0.0), cached_input };
        draft.prices.push(DraftPrice { name: key.name.clone(), at: key.at.clone(), price });
    }
}

/// Money per million tokens.
fn money(node: &Node, name: &str, notes: &mut Notes<'_>) -> Option<f64> {
    let found = notes.as_float(node, name)?;
    if (0.0..=PRICE_MOST).contains(&found) {
        return Some(found);
    }
    let what = format!("`{name}` is money per million tokens, from 0 to {PRICE_MOST}, this is {found}");
    notes.hint(&node.at, what, None);
    None
}

/// Warns of prices that no model has.
pub(super) fn unmatched(
    prices: &[DraftPrice],
    models: &[&ModelConfig],
    aliases: &[String],
    notes: &mut Notes<'_>,
) {
    let is_matched = |name: &str| {
        aliases.iter().any(|alias| alias == name)
            || models.iter().any(|model| {
                model.alias == name
                    || model.model == name
                    || name.strip_prefix(&*model.provider).and_then(|rest| rest.strip_prefix('/'))
                        == Some(&*model.model)
            })
    };
    for DraftPrice { name, at, .. } in prices.iter().filter(|price| !is_matched(&price.name)) {
        let mut known: Vec<String> = models
            .iter()
            .map(|model| format!("{} ({}/{})", model.alias, model.provider, model.model))
            .collect();
        let without = aliases.iter().filter(|alias| !models.iter().any(|model| model.alias == **alias));
        known.extend(without.cloned());
        known.sort_unstable();
        known.dedup();
        let help = match known.is_empty() {
            true => "there is no model here".to_owned(),
            false => format!("name an alias, a model or provider/model of: {}", known.join(", ")),
        };
        notes.warn(at, format!("no model is called {}, so its price is not used", quote(name)), help);
    }
}

/// Reads the section `prices`, if it exists.
pub(super) fn section(fields: &mut Fields<'_>, draft: &mut Draft, notes: &mut Notes<'_>) {
    if let Some(node) = fields.get("prices") {
        prices(node, draft, notes);
    }
}
