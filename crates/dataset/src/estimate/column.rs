//! The estimate of one column.

use super::ColumnPlan;
use super::spend::custom;
use super::statistics::{Basis, CallFigures, Statistics};
use crate::config::{Column, ColumnKind, LlmOutput};
use crate::dry::{ColumnForecast, DryRun, ModelFacts};
use crate::output::Figures;
use crate::setup::LoadedConfig;

/// The guess of the time of a call.
const SECONDS_PER_CALL: f64 = 2.0;

/// Estimates the columns of a build.
pub(super) struct Estimator<'a> {
    pub(super) loaded: &'a LoadedConfig,
    pub(super) run: &'a DryRun,
}

/// The estimate of a column.
pub(super) struct Estimate {
    pub(super) plan: ColumnPlan,
    pub(super) calls_per_cell: f64,
    pub(super) seconds_per_call: f64,
    /// Requests in flight at the same time.
    pub(super) at_once: f64,
    pub(super) guesses: Vec<String>,
}

impl<'a> Estimator<'a> {
    pub(super) fn new(loaded: &'a LoadedConfig, run: &'a DryRun) -> Estimator<'a> {
        Estimator { loaded, run }
    }

    pub(super) fn provider(&self, alias: &str) -> &str {
        self.model(alias).map_or("", |model| &model.provider)
    }

    fn model(&self, alias: &str) -> Option<&ModelFacts> {
        self.run.models.iter().find(|model| model.alias == alias)
    }

    pub(super) fn statistics(&self, found: &ColumnForecast) -> Statistics {
        let config = |name: &str| self.loaded.config.columns.iter().find(|column| column.name == name);
        let own = config(&found.name).map(form);
        Statistics::of(self.run, found, |name| config(name).map(form) == own)
    }

    /// The estimates of all columns that ask models, in the order of the configuration.
    pub(super) fn columns(&self) -> Vec<Estimate> {
        let columns = self.loaded.config.columns.iter();
        let forecast = |name: &str| self.run.columns.iter().find(|column| column.name == name);
        let found = columns.filter_map(|column| Some((column, forecast(&column.name)?)));
        found
            .filter(|(_, found)| !found.models.is_empty())
            .map(|(column, found)| self.column(column, found))
            .collect()
    }

    fn column(&self, column: &Column, found: &ColumnForecast) -> Estimate {
        let statistics = self.statistics(found);
        let due = self.due(found);
        let spend = match &column.kind {
            ColumnKind::Embedding { .. } => self.embedding(found, &due, &statistics),
            ColumnKind::Custom(_) => custom(&due, &statistics),
            _ => self.conversation(column, found, &due, &statistics),
        };
        let alias = &found.models[0];
        let facts = self.model(alias).cloned().unwrap_or_default();
        let seconds = statistics.ratio(CallFigures::seconds_per_call);
        let at_once = match &column.kind {
            ColumnKind::Embedding { .. } => facts.parallel,
            _ => facts.limit,
        };
        let generate = due.lacking + due.unknown;
        let plan = ColumnPlan {
            name: column.name.clone(),
            alias: alias.clone(),
            model: facts.model.clone(),
            cells: found.cells() + found.on_disk,
            reused: found.reused + found.on_disk,
            generate: generate.round() as u64,
            skipped: found.skipped,
            failed: found.failed,
            calls: spend.calls.ceil() as u64,
            input_tokens: spend.input_tokens.round() as u64,
            output_tokens: spend.output_tokens.round() as u64,
            cost: None,
            why: self.why(column, found),
            basis: spend.basis.word().to_owned(),
        };
        let figures = Figures {
            input_tokens: plan.input_tokens,
            output_tokens: plan.output_tokens,
            ..Figures::default()
        };
        let plan = ColumnPlan {
            cost: self.loaded.config.prices.cost(alias, &facts.provider, &plan.model, &figures),
            ..plan
        };
        let mut guesses = spend.guesses;
        if seconds.is_none() {
            guesses.push("2 seconds per call");
        }
        if found.lacking_may_be_skipped + found.unknown_may_be_skipped > 0 && self.skip_share(found).is_none()
        {
            guesses.push("no cell is skipped");
        }
        let guesses = if plan.calls == 0 { Vec::new() } else { guesses };
        Estimate {
            guesses: guesses.into_iter().map(|guess| format!("`{}`: {guess}", column.name)).collect(),
            calls_per_cell: spend.calls_per_cell,
            seconds_per_call: seconds.map_or(SECONDS_PER_CALL, |(seconds, _)| seconds),
            at_once: f64::from(at_once),
            plan,
        }
    }

    /// The reason why cells of a column are generated.
    fn why(&self, column: &Column, found: &ColumnForecast) -> String {
        let earlier = self.run.earlier.as_ref();
        let is_new = earlier.is_some_and(|earlier| !earlier.columns.contains(&column.name));
        let of_old_rows = match earlier {
            None => "not built yet",
            Some(_) if is_new => "new column",
            Some(_) => "new prompt or model, or not built yet",
        };
        let unknown = match &column.kind {
            ColumnKind::Custom(_) => "custom code asks models",
            _ if earlier.is_none() => "not built yet",
            _ => "inputs change",
        };
        let new_rows = if earlier.is_some() && !is_new { found.lacking_new_rows } else { 0 };
        let parts =
            [(found.lacking - new_rows, of_old_rows), (new_rows, "new rows"), (found.unknown, unknown)];
        let mut reasons: Vec<(u64, &str)> = Vec::new();
        for (cells, why) in parts.into_iter().filter(|(cells, _)| *cells > 0) {
            match reasons.iter_mut().find(|(_, known)| *known == why) {
                Some((sum, _)) => *sum += cells,
                None => reasons.push((cells, why)),
            }
        }
        match &reasons[..] {
            [(_, why)] => (*why).to_owned(),
            reasons => {
                let reasons: Vec<String> =
                    reasons.iter().map(|(cells, why)| format!("{cells} {why}")).collect();
                reasons.join(", ")
            }
        }
    }
}

/// The form of a column's replies: columns of the same form are alike.
fn form(column: &Column) -> &'static str {
    match &column.kind {
        ColumnKind::Llm(llm) => match llm.output {
            LlmOutput::Text => "text",
            LlmOutput::Code { .. } => "code",
            LlmOutput::Structured { .. } => "structured",
            LlmOutput::Judge { .. } => "judge",
        },
        ColumnKind::Embedding { .. } => "embedding",
        ColumnKind::Custom(_) => "custom",
        _ => "",
    }
}

impl Basis {
    fn word(self) -> &'static str {
        match self {
            Basis::Column => "measured",
            Basis::Model => "other columns of the model",
            Basis::Guess => "guess",
        }
    }
}
