//! The estimate of one column.

use super::ColumnPlan;
use super::graph::{ancestors, filled_by};
use super::statistics::{Basis, CallFigures, Statistics, quotient};
use crate::columns::TEXTS_PER_REQUEST;
use crate::config::{Column, ColumnKind, LlmOutput, OnRowError};
use crate::dry::{ColumnForecast, DryRun, ModelFacts};
use crate::output::Figures;
use crate::setup::Loaded;

/// The guess of a reply's tokens, where no reply of the model is known.
const OUTPUT_TOKENS: f64 = 200.0;
/// The guess of tokens per byte of a request.
const TOKENS_PER_BYTE: f64 = 0.25;
/// The guess of the tokens of a request by custom code.
const INPUT_TOKENS: f64 = 500.0;
/// The guess of the time of a call.
const SECONDS_PER_CALL: f64 = 2.0;
/// The guess of a value's length, for columns that nothing is known about.
const VALUE_BYTES: f64 = 20.0;
/// Cells that make a share worth something.
const ENOUGH: u64 = 10;

/// Estimates the columns of a build.
pub(super) struct Estimator<'a> {
    loaded: &'a Loaded,
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

/// Cells that will be generated.
struct Due {
    /// Their requests are known.
    lacking: f64,
    /// They depend on unknown values.
    unknown: f64,
}

/// The calls and tokens of a column.
struct Spend {
    calls: f64,
    calls_per_cell: f64,
    input_tokens: f64,
    output_tokens: f64,
    basis: Basis,
    guesses: Vec<&'static str>,
}

impl<'a> Estimator<'a> {
    pub(super) fn new(loaded: &'a Loaded, run: &'a DryRun) -> Estimator<'a> {
        Estimator { loaded, run }
    }

    pub(super) fn provider(&self, alias: &str) -> &str {
        self.model(alias).map_or("", |model| &model.provider)
    }

    fn model(&self, alias: &str) -> Option<&ModelFacts> {
        self.run.models.iter().find(|model| model.alias == alias)
    }

    fn statistics(&self, found: &ColumnForecast) -> Statistics {
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

    /// The cells of a column that will be generated: those that may be skipped count by the share of skipped ones.
    fn due(&self, found: &ColumnForecast) -> Due {
        let kept = 1.0 - self.skip_share(found).unwrap_or(0.0);
        let part =
            |all: u64, may_be_skipped: u64| (all - may_be_skipped) as f64 + may_be_skipped as f64 * kept;
        let lacking = part(found.lacking, found.lacking_may_be_skipped);
        let unknown = part(found.unknown, found.unknown_may_be_skipped);
        Due { lacking, unknown: unknown * self.survival(found) }
    }

    /// The share of skipped cells, in rows where it is known.
    fn skip_share(&self, found: &ColumnForecast) -> Option<f64> {
        let (mut skipped, mut all) = (0, 0);
        for column in std::iter::once(found).chain(self.run.sample_of(&found.name)) {
            let perhaps = column.lacking_may_be_skipped + column.unknown_may_be_skipped;
            skipped += column.skipped;
            all += column.cells() - perhaps;
        }
        if all >= ENOUGH {
            return quotient(skipped, all);
        }
        let earlier = self.earlier(&found.name)?;
        quotient(earlier.skipped, earlier.skipped + earlier.finished + earlier.failed)
    }

    /// The share of rows that come as far as a column: a cell that fails before it may drop the row.
    fn survival(&self, found: &ColumnForecast) -> f64 {
        let parents = ancestors(self.run, found);
        let open = parents.iter().filter(|parent| parent.lacking + parent.unknown > 0);
        let failing: f64 = open.map(|parent| 1.0 - self.failed_share(parent)).product();
        // A row that is not accepted is left as soon as that is known.
        let is_behind = |accept: &&ColumnForecast| {
            let is_parent = |read: &String| parents.iter().any(|parent| parent.fills.contains(read));
            accept.fills.is_empty() && accept.reads.iter().all(is_parent)
        };
        let accepting = self.run.columns.iter().filter(is_behind);
        failing * accepting.map(|accept| self.accepted_share(accept)).product::<f64>()
    }

    /// The share of accepted rows: of those that are known, or of the earlier build.
    fn accepted_share(&self, accept: &ColumnForecast) -> f64 {
        let (mut accepted, mut all) = (accept.computed, accept.computed + accept.failed);
        if all < ENOUGH
            && let Some(earlier) = &self.run.earlier
        {
            accepted = earlier.stages.iter().map(|stage| stage.rows + stage.surplus).sum();
            all = accepted + earlier.stages.iter().map(|stage| stage.rejected).sum::<u64>();
        }
        quotient(accepted, all).unwrap_or(1.0)
    }

    fn failed_share(&self, found: &ColumnForecast) -> f64 {
        let config = self.loaded.config.columns.iter().find(|column| column.name == found.name);
        if config.is_none_or(|column| column.on_error != OnRowError::DropRow) {
            return 0.0;
        }
        let (mut failed, mut all) = (0, 0);
        for column in std::iter::once(found).chain(self.run.sample_of(&found.name)) {
            failed += column.failed;
            all += column.failed + column.reused + column.computed;
        }
        if all < ENOUGH
            && let Some(earlier) = self.earlier(&found.name)
        {
            (failed, all) = (earlier.failed, earlier.failed + earlier.finished);
        }
        quotient(failed, all).unwrap_or(0.0)
    }

    fn earlier(&self, name: &str) -> Option<&crate::progress::ColumnSnapshot> {
        let earlier = self.run.earlier.as_ref()?;
        earlier.cells.iter().find(|column| column.name == name)
    }

    fn conversation(
        &self,
        column: &Column,
        found: &ColumnForecast,
        due: &Due,
        statistics: &Statistics,
    ) -> Spend {
        let mut guesses = Vec::new();
        let is_text = matches!(&column.kind, ColumnKind::Llm(llm) if matches!(llm.output, LlmOutput::Text));
        let of_column =
            statistics.ratio(CallFigures::calls_per_cell).filter(|(_, basis)| *basis == Basis::Column);
        let calls_per_cell = of_column.map_or(1.0, |(calls, _)| calls);
        if of_column.is_none() && !is_text {
            guesses.push("every reply fits at once");
        }
        let (tokens_per_byte, input_basis) =
            statistics.ratio(CallFigures::tokens_per_byte).unwrap_or((TOKENS_PER_BYTE, Basis::Guess));
        let (output, output_basis) =
            statistics.ratio(CallFigures::output_per_call).unwrap_or((OUTPUT_TOKENS, Basis::Guess));
        if input_basis == Basis::Guess {
            guesses.push("4 bytes per token");
        }
        if output_basis == Basis::Guess {
            guesses.push("200 tokens per reply");
        }
        let (lacking_bytes, unknown_bytes) = self.request_bytes(column, found, statistics);
        let first = due.lacking * lacking_bytes + due.unknown * unknown_bytes;
        let further = statistics.own.further_length().unwrap_or(1.0);
        let bytes = first * (1.0 + (calls_per_cell - 1.0) * further);
        let calls = (due.lacking + due.unknown) * calls_per_cell;
        Spend {
            calls,
            calls_per_cell,
            input_tokens: bytes * tokens_per_byte,
            output_tokens: calls * output,
            basis: input_basis.max(output_basis),
            guesses,
        }
    }

    /// The mean length of the first request of cells that are lacking, and of those that are unknown.
    fn request_bytes(&self, column: &Column, found: &ColumnForecast, statistics: &Statistics) -> (f64, f64) {
        let requests = found.lacking_requests;
        let lacking = quotient(requests.bytes, requests.count);
        let of_column = lacking
            .or_else(|| statistics.own.first_bytes_per_cell())
            .or_else(|| statistics.column.bytes_per_call());
        let unknown = of_column.unwrap_or_else(|| self.rendered_bytes(column, found));
        (lacking.unwrap_or(unknown), unknown)
    }

    /// The length of a prompt by those of the values that it reads.
    fn rendered_bytes(&self, column: &Column, found: &ColumnForecast) -> f64 {
        let words = match &column.kind {
            ColumnKind::Llm(llm) => {
                let system = llm.system_prompt.as_ref().map_or(0, |system| system.source.len());
                let form = match &llm.output {
                    LlmOutput::Text => 0,
                    LlmOutput::Code { .. } => 100,
                    LlmOutput::Structured { schema } => 200 + schema.to_json().len(),
                    LlmOutput::Judge { scores } => 400 + 200 * scores.len(),
                };
                llm.prompt.source.len() + system + form
            }
            ColumnKind::Expression { expr, .. } => expr.source.len(),
            _ => 0,
        };
        let values: f64 = found.reads.iter().map(|read| self.value_bytes(read)).sum();
        words as f64 + values
    }

    /// The mean length of a column's values.
    fn value_bytes(&self, name: &str) -> f64 {
        let Some(found) = filled_by(self.run, name) else { return VALUE_BYTES };
        let sampled = self.run.sample_of(&found.name);
        let known = std::iter::once(found).chain(sampled).find(|column| column.values.count > 0);
        if let Some(known) = known {
            return quotient(known.values.bytes, known.values.count).unwrap_or(VALUE_BYTES);
        }
        let config = self.loaded.config.columns.iter().find(|column| column.name == found.name);
        match config.map(|column| (column, &column.kind)) {
            Some((_, ColumnKind::Llm(_))) => {
                let statistics = self.statistics(found);
                let tokens = statistics.ratio(CallFigures::output_per_call);
                tokens.map_or(OUTPUT_TOKENS, |(tokens, _)| tokens) / TOKENS_PER_BYTE
            }
            Some((column, ColumnKind::Expression { .. })) => self.rendered_bytes(column, found),
            _ => VALUE_BYTES,
        }
    }

    fn embedding(&self, found: &ColumnForecast, due: &Due, statistics: &Statistics) -> Spend {
        let mut guesses = Vec::new();
        let requests = found.lacking_requests;
        let texts_per_cell = quotient(requests.count, found.lacking)
            .or_else(|| quotient(statistics.own.calls, statistics.own.cells))
            .unwrap_or(1.0);
        let texts = (due.lacking + due.unknown) * texts_per_cell;
        let bytes = quotient(requests.bytes, requests.count)
            .or_else(|| statistics.own.bytes_per_call())
            .unwrap_or_else(|| found.reads.iter().map(|read| self.value_bytes(read)).sum());
        let (tokens_per_byte, basis) =
            statistics.ratio(CallFigures::tokens_per_byte).unwrap_or((TOKENS_PER_BYTE, Basis::Guess));
        if basis == Basis::Guess {
            guesses.push("4 bytes per token");
        }
        let texts_per_request = quotient(statistics.column.cells, statistics.column.calls);
        if texts_per_request.is_none() {
            guesses.push("32 texts per request");
        }
        let texts_per_request = texts_per_request.unwrap_or(TEXTS_PER_REQUEST as f64).max(1.0);
        Spend {
            calls: texts / texts_per_request,
            calls_per_cell: texts_per_cell / texts_per_request,
            input_tokens: texts * bytes * tokens_per_byte,
            output_tokens: 0.0,
            basis,
            guesses,
        }
    }

    /// Why cells of a column are generated.
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

/// Custom code decides about its calls: the estimate is the most that earlier calls suggest.
fn custom(due: &Due, statistics: &Statistics) -> Spend {
    let figures = [CallFigures::calls_per_cell, CallFigures::input_per_call, CallFigures::output_per_call];
    let [calls, input, output] = figures.map(|figure| statistics.ratio(figure));
    let mut guesses = vec!["no reply of the journal is used again"];
    if calls.is_none() {
        guesses.push("1 call per cell");
    }
    let calls_per_cell = calls.map_or(1.0, |(calls, _)| calls);
    let calls = (due.lacking + due.unknown) * calls_per_cell;
    let basis = input.map_or(Basis::Guess, |(_, basis)| basis);
    let (input, output) = (
        input.map_or(INPUT_TOKENS, |(tokens, _)| tokens),
        output.map_or(OUTPUT_TOKENS, |(tokens, _)| tokens),
    );
    Spend {
        calls,
        calls_per_cell,
        input_tokens: calls * input,
        output_tokens: calls * output,
        basis,
        guesses,
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
