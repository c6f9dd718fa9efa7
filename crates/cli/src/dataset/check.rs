//! `anabranch dataset check`.

use anabranch_dataset::LoadedConfig;
use anabranch_dataset::config::{
    Column, ColumnKind, LlmOutput, OnRowError, SampleSize, SeedSource, SortKey, StepConfig,
};
use anabranch_text::{count, quote};
use clap::Args;

use super::sources::{ConfigFiles, aliases, without_model};
use crate::failure::Failure;
use crate::out;
use crate::table::Table;

/// The end of the help text.
pub(super) const HELP: &str = "\
Every problem has its place, FILE:LINE:COLUMN, and all are reported at once. Nothing is generated,
no model is called; the seed is opened. An alias without a model is not an error here: `build` can
be given one.

  anabranch dataset check tickets.yaml
  anabranch dataset check tickets.yaml --models models.yaml

Exit codes: 0 fine; 1 refused (stderr says why); 2 wrong usage.";

/// Checks a configuration.
#[derive(Args)]
pub(crate) struct Check {
    #[command(flatten)]
    files: ConfigFiles,
}

impl Check {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let loaded = self.files.load(0)?;
        let mut text = columns(&loaded).text(0);
        for part in [stages(&loaded), seed(&loaded), models(&loaded)] {
            if !part.is_empty() {
                text.push('\n');
                text.push_str(&part);
            }
        }
        out::data(&text)?;
        let file = self.files.file.display();
        for missing in &loaded.config.missing_keys {
            let (provider, variable) = (quote(&missing.provider), &missing.variable);
            out::note(&format!(
                "note: provider {provider} has no key: the environment variable {variable} is not set"
            ));
        }
        if let Some(what) = without_model(&loaded) {
            out::note(&format!("note: {what}"));
        }
        out::note(&format!("{file}: {}", out::status(0, loaded.warnings.len())));
        Ok(())
    }
}

/// The columns, each after those that it reads.
fn columns(loaded: &LoadedConfig) -> Table {
    let config = &loaded.config;
    let dependencies = config.dependencies();
    let mut table = Table::new(["column", "kind", "reads", "model", "remarks"]);
    for number in dependencies.order {
        let column = &config.columns[number];
        let reads = dependencies.columns[number].names.join(", ");
        table.row([
            column.name.clone(),
            kind(column).to_owned(),
            reads,
            column.model_aliases().join(", "),
            remarks(column),
        ]);
    }
    table
}

/// The kind of a column, in the words of the configuration.
pub(super) fn kind(column: &Column) -> &'static str {
    match &column.kind {
        ColumnKind::Sampler(_) => "sampler",
        ColumnKind::Llm(llm) => match llm.output {
            LlmOutput::Text => "llm-text",
            LlmOutput::Code { .. } => "llm-code",
            LlmOutput::Structured { .. } => "llm-structured",
            LlmOutput::Judge { .. } => "llm-judge",
        },
        ColumnKind::Expression { .. } => "expression",
        ColumnKind::Validation(_) => "validation",
        ColumnKind::Embedding { .. } => "embedding",
        ColumnKind::Custom(_) => "custom",
    }
}

/// The special properties of a column.
fn remarks(column: &Column) -> String {
    let mut remarks = Vec::new();
    if column.drop {
        remarks.push("not in the rows".to_owned());
    }
    if column.skip.is_some() {
        remarks.push("may be skipped".to_owned());
    }
    match column.on_error {
        OnRowError::DropRow => {}
        OnRowError::KeepNull => remarks.push("null if it fails".to_owned()),
        OnRowError::FailRun => remarks.push("ends the build if it fails".to_owned()),
    }
    let side_effects = column.side_effects();
    if !side_effects.is_empty() {
        remarks.push(format!("fills {}", side_effects.join(", ")));
    }
    remarks.join("; ")
}

/// The stages with their steps; empty if the rows are only generated.
fn stages(loaded: &LoadedConfig) -> String {
    let stages = &loaded.config.stages;
    let mut text = String::new();
    for (stage, number) in stages.iter().zip(1..) {
        let mut parts = Vec::new();
        parts.extend(stage.rows.map(|rows| count(rows, "row")));
        if let Some(accept) = &stage.accept {
            let when: Vec<&str> = accept.when.iter().map(|when| &*when.source).collect();
            parts.push(format!("accepts rows where {}", when.join(" and ")));
        }
        parts.extend(stage.steps.iter().map(step));
        let columns = loaded.config.columns.iter().filter(|column| column.stage + 1 == number);
        let columns: Vec<&str> = columns.map(|column| column.name.as_str()).collect();
        let name = &stage.name;
        if stages.len() > 1 {
            let columns =
                if columns.is_empty() { "no columns of its own".to_owned() } else { columns.join(", ") };
            text.push_str(&format!("stage {number}, {name}: {columns}\n"));
            parts.iter().for_each(|part| text.push_str(&format!("  {part}\n")));
        } else {
            parts.iter().for_each(|part| text.push_str(&format!("{part}\n")));
        }
    }
    text
}

/// The description of a step.
fn step(step: &StepConfig) -> String {
    match step {
        StepConfig::Filter { when } => format!("then filter: {}", when.source),
        StepConfig::Dedupe { by } => format!("then dedupe by {}", by.join(", ")),
        StepConfig::Explode { columns } => format!("then explode {}", columns.join(", ")),
        StepConfig::Sample { size: SampleSize::Rows(rows) } => format!("then sample {}", count(*rows, "row")),
        StepConfig::Sample { size: SampleSize::Share(share) } => {
            format!("then sample {}% of the rows", share * 100.0)
        }
        StepConfig::Sort { by } => {
            let key = |key: &SortKey| format!("{}{}", key.column, if key.descending { " desc" } else { "" });
            format!("then sort by {}", by.iter().map(key).collect::<Vec<_>>().join(", "))
        }
    }
}

fn seed(loaded: &LoadedConfig) -> String {
    let (Some(seed), Some(rows)) = (&loaded.config.seed, loaded.seed_row_count()) else {
        return String::new();
    };
    let (SeedSource::Local { path }
    | SeedSource::Directory { path, .. }
    | SeedSource::FileContents { path, .. }) = &seed.source;
    let names = loaded.config.seed_columns.clone().unwrap_or_default().join(", ");
    format!("seed: {}, {}: {names}\n", path.display(), count(rows, "row"))
}

fn models(loaded: &LoadedConfig) -> String {
    let config = &loaded.config;
    let mut text = String::new();
    for alias in aliases(loaded) {
        let model = config.models.iter().find(|model| model.alias == alias);
        let what = model.map_or("no model".to_owned(), |model| {
            let provider = config.providers.iter().find(|provider| provider.name == model.provider);
            let endpoint = provider.map_or("", |provider| provider.endpoint.as_str());
            let calls = count(model.params.max_parallel_requests, "call");
            format!("{} at {} ({endpoint}), {calls} in flight at most", model.model, model.provider)
        });
        text.push_str(&format!("model {}: {what}\n", quote(alias)));
    }
    text
}
