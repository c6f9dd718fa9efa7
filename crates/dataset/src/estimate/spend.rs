//! The calls and tokens of a column's cells.

use super::column::Estimator;
use super::graph::filled_by;
use super::shares::Due;
use super::statistics::{Basis, CallFigures, Statistics, quotient};
use crate::columns::TEXTS_PER_REQUEST;
use crate::config::{Column, ColumnKind, LlmOutput};
use crate::dry::ColumnForecast;

/// The guess of a reply's tokens, where no reply of the model is known.
const OUTPUT_TOKENS: f64 = 200.0;
/// The guess of tokens per byte of a request.
const TOKENS_PER_BYTE: f64 = 0.25;
/// The guess of the tokens of a request by custom code.
const INPUT_TOKENS: f64 = 500.0;
/// The guess of a value's length, for columns without any known value.
const VALUE_BYTES: f64 = 20.0;

/// The calls and tokens of a column.
pub(super) struct Spend {
    pub(super) calls: f64,
    pub(super) calls_per_cell: f64,
    pub(super) input_tokens: f64,
    pub(super) output_tokens: f64,
    pub(super) basis: Basis,
    pub(super) guesses: Vec<&'static str>,
}

impl Estimator<'_> {
    pub(super) fn conversation(
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

    /// The mean length of the first request of lacking cells, and of unknown cells.
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

    pub(super) fn embedding(&self, found: &ColumnForecast, due: &Due, statistics: &Statistics) -> Spend {
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
}

/// Custom code decides about its calls: the estimate is the most that earlier calls suggest.
pub(super) fn custom(due: &Due, statistics: &Statistics) -> Spend {
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
