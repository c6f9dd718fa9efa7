//! The spend of a build: calls, tokens, time and money since it began, over all of its runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use crate::budget::{Budget, MeteredSpend};
use crate::config::Prices;
use crate::error::Error;
use crate::journal::{Journal, LedgerTotals};
use crate::output::{BuildStatus, ColumnSpend, Figures, Metadata, ModelMetadata, SpendLine, read_status};

/// Tells the calls of each column and model in this run so far.
type Usage = Arc<dyn Fn() -> Vec<SpendLine> + Send + Sync>;

/// The spend of a build.
pub(crate) struct Spend {
    /// The calls of this run.
    usage: Usage,
    pub(crate) prices: Prices,
    /// The identity of the build.
    build: String,
    /// The calls of the build's earlier runs.
    before: Vec<SpendLine>,
    /// The time of the build's earlier runs.
    pub(crate) ran_before: Duration,
    /// The time for this run, and its end.
    pub(crate) end_by: Option<(Duration, Instant)>,
}

impl Default for Spend {
    fn default() -> Spend {
        Spend::new(Arc::new(Vec::new), Prices::default())
    }
}

impl Spend {
    pub(crate) fn new(usage: Usage, prices: Prices) -> Spend {
        let (build, before) = (String::new(), Vec::new());
        Spend { usage, prices, build, before, ran_before: Duration::ZERO, end_by: None }
    }

    /// Begins a run, with the earlier spend of a continued build. Blocks.
    ///
    /// The journal has counted all recorded calls, including those of a killed run. Calls of runs without a journal are
    /// in the last report. Neither exceeds the actual spend, so the larger count is right.
    pub(crate) fn begin(
        &mut self,
        folder: &Path,
        before: Option<&Metadata>,
        name: &str,
        journal: Option<&Journal>,
    ) -> Option<Journal> {
        let before = before.filter(|before| !before.build.is_empty());
        self.build = before.map_or_else(|| new_build(folder), |before| before.build.clone());
        let journal = journal.map(|journal| journal.for_build(name, &self.build));
        let status = before.and_then(|before| {
            read_status(folder).ok().filter(|status: &BuildStatus| status.build == before.build)
        });
        let metadata = before.map(|before| (&*before.calls, before.elapsed_ms));
        let status = status.as_ref().map(|status| (&*status.calls, status.elapsed_ms));
        let recorded =
            journal.as_ref().map_or_else(Vec::new, |journal| recorded(&journal.ledger(), &self.build));
        for (calls, elapsed_ms) in [metadata, status, Some((&*recorded, 0))].into_iter().flatten() {
            self.before = merged(std::mem::take(&mut self.before), calls, |line, other| {
                line.figures = line.figures.max(other.figures);
                line.reused = line.reused.max(other.reused);
            });
            self.ran_before = self.ran_before.max(Duration::from_millis(elapsed_ms));
        }
        journal
    }

    /// Refuses a budget of money if a model has no price.
    pub(crate) fn check(&self, budget: &Budget) -> Result<(), Error> {
        let lines = (self.usage)();
        let is_unpriced =
            |line: &&SpendLine| self.prices.of(&line.alias, &line.provider, &line.model).is_none();
        let unpriced: BTreeSet<String> = lines
            .iter()
            .filter(is_unpriced)
            .map(|line| format!("`{}` ({}/{})", line.alias, line.provider, line.model))
            .collect();
        if budget.max_cost.is_none() || unpriced.is_empty() {
            return Ok(());
        }
        let unpriced: Vec<String> = unpriced.into_iter().collect();
        Err(Error::Setup(format!(
            "--max-cost needs the price of every model; the price of {} is missing: add it under `prices:` of the \
             configuration or the models file, such as `prices: {{ALIAS: {{input: 0.15, output: 0.60}}}}` for money per \
             million tokens",
            unpriced.join(", ")
        )))
    }

    /// The spend of earlier runs, as a meter counts it.
    pub(crate) fn metered(&self) -> MeteredSpend {
        let mut spent = MeteredSpend::default();
        for line in &self.before {
            spent.answered += line.figures.calls;
            spent.tokens += line.figures.input_tokens + line.figures.output_tokens;
            spent.cost += cost(line, &self.prices).unwrap_or(0.0);
        }
        spent
    }

    /// The calls of the build so far.
    pub(crate) fn calls(&self) -> Vec<SpendLine> {
        merged(self.before.clone(), &(self.usage)(), |line, other| {
            line.figures += other.figures;
            line.reused += other.reused;
        })
    }

    /// The calls and tokens of this run, by alias.
    pub(crate) fn models_of_run(&self) -> BTreeMap<String, ModelMetadata> {
        models(&(self.usage)(), &self.prices)
    }

    /// The calls and tokens of the build so far, by alias.
    pub(crate) fn models(&self) -> BTreeMap<String, ModelMetadata> {
        models(&self.calls(), &self.prices)
    }

    /// Writes the spend so far into the metadata.
    pub(crate) fn note(&self, metadata: &mut Metadata, elapsed: Duration) {
        metadata.calls = self.calls();
        metadata.spent = columns(&metadata.calls, &self.prices);
        metadata.models = models(&metadata.calls, &self.prices);
        metadata.build.clone_from(&self.build);
        metadata.elapsed_ms = elapsed.as_millis() as u64;
    }

    /// Writes the spend so far into the state of the build.
    pub(crate) fn note_status(&self, status: &mut BuildStatus) {
        status.calls = self.calls();
        status.spent = columns(&status.calls, &self.prices);
        status.models = models(&status.calls, &self.prices);
        status.build.clone_from(&self.build);
    }
}

/// An identity that no other build has.
#[allow(clippy::disallowed_methods, reason = "the time only tells builds apart")]
fn new_build(folder: &Path) -> String {
    let text = format!("{} {:?} {}", folder.display(), SystemTime::now(), std::process::id());
    blake3::hash(text.as_bytes()).to_hex()[..16].to_owned()
}

/// The calls of a build that a journal has counted.
fn recorded(ledger: &LedgerTotals, build: &str) -> Vec<SpendLine> {
    let own = ledger.iter().filter(|(origin, _)| origin.build == build);
    own.map(|(origin, figures)| {
        let (provider, model) = origin.model.split_once('/').unwrap_or(("", &origin.model));
        SpendLine {
            column: origin.column.clone(),
            alias: origin.alias.clone(),
            provider: provider.to_owned(),
            model: model.to_owned(),
            reused: 0,
            figures: *figures,
        }
    })
    .collect()
}

/// Lines with those of another list put into them.
fn merged(
    mut lines: Vec<SpendLine>,
    others: &[SpendLine],
    put: impl Fn(&mut SpendLine, &SpendLine),
) -> Vec<SpendLine> {
    for other in others {
        let same = |line: &&mut SpendLine| {
            line.column == other.column && line.alias == other.alias && line.model == other.model
        };
        match lines.iter_mut().find(same) {
            Some(line) => put(line, other),
            None => lines.push(other.clone()),
        }
    }
    lines.sort_by(|one, other| (&one.column, &one.alias).cmp(&(&other.column, &other.alias)));
    lines
}

fn cost(line: &SpendLine, prices: &Prices) -> Option<f64> {
    prices.cost(&line.alias, &line.provider, &line.model, &line.figures)
}

/// The spend by column. A custom column may use several models.
fn columns(lines: &[SpendLine], prices: &Prices) -> BTreeMap<String, ColumnSpend> {
    let mut columns: BTreeMap<String, ColumnSpend> = BTreeMap::new();
    for line in lines {
        let Figures { calls, input_tokens, output_tokens, cached_tokens, took_ms, .. } = line.figures;
        let cost = cost(line, prices);
        let spend = columns
            .entry(line.column.clone())
            .or_insert_with(|| ColumnSpend { cost: Some(0.0), ..ColumnSpend::default() });
        for (names, name) in [(&mut spend.alias, &line.alias), (&mut spend.model, &line.model)] {
            if !names.split(", ").any(|known| known == name) {
                names.push_str(if names.is_empty() { "" } else { ", " });
                names.push_str(name);
            }
        }
        spend.calls += calls;
        spend.reused += line.reused;
        spend.input_tokens += input_tokens;
        spend.output_tokens += output_tokens;
        spend.cached_tokens += cached_tokens;
        spend.took_ms += took_ms;
        spend.cost = spend.cost.zip(cost).map(|(sum, cost)| sum + cost);
    }
    columns
}

/// The spend by alias.
fn models(lines: &[SpendLine], prices: &Prices) -> BTreeMap<String, ModelMetadata> {
    let mut models: BTreeMap<String, ModelMetadata> = BTreeMap::new();
    for line in lines {
        let cost = cost(line, prices);
        let model = models.entry(line.alias.clone()).or_insert_with(|| ModelMetadata {
            model: line.model.clone(),
            cost: Some(0.0),
            ..ModelMetadata::default()
        });
        model.calls += line.figures.calls;
        model.reused += line.reused;
        model.input_tokens += line.figures.input_tokens;
        model.output_tokens += line.figures.output_tokens;
        model.cached_tokens += line.figures.cached_tokens;
        model.cost = model.cost.zip(cost).map(|(sum, cost)| sum + cost);
    }
    models
}
