//! A configuration while it is read: typed as far as it could be, with the places that later checks point at.

use std::sync::Arc;

use anabranch_document::Span;
use anabranch_model::{ModelConfig, Provider};

use super::prices::DraftPrice;
use super::run_options::RunOptions;
use super::types::{Column, Constraint, ProcessorConfig, SeedConfig, StageConfig};

/// All that a file says.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub columns: Vec<DraftColumn>,
    pub stages: Vec<DraftStage>,
    pub models: Vec<DraftModel>,
    pub providers: Vec<DraftProvider>,
    pub prices: Vec<DraftPrice>,
    /// The provider of models that name none.
    pub default_provider: Option<String>,
    pub seed: Option<(SeedConfig, Span)>,
    /// A seed is configured, even if it could not be read.
    pub has_seed: bool,
    pub constraints: Vec<DraftConstraint>,
    pub processors: Vec<DraftProcessor>,
    pub run: RunOptions,
    pub digest: String,
}

#[derive(Debug)]
pub(super) struct DraftColumn {
    pub name: String,
    /// The place of the name.
    pub at: Span,
    /// `None` if something required is missing or wrong.
    pub column: Option<Column>,
    pub references: Vec<Reference>,
    /// Names in single braces in a prompt, which may be meant as references.
    pub braces: Vec<(String, Span)>,
    pub side_effects: Vec<String>,
    /// The locations of fields that later checks need.
    pub spots: Vec<(&'static str, Span)>,
    /// The number of its stage in the file.
    pub written_stage: usize,
    /// The number of its stage. Stages of the file are split where the number of rows changes.
    pub stage: usize,
}

#[derive(Debug)]
pub(super) struct DraftStage {
    pub stage: StageConfig,
    /// The references of its steps and conditions.
    pub references: Vec<Reference>,
}

impl DraftColumn {
    /// The place of a field, or of the name.
    pub(super) fn spot(&self, field: &str) -> &Span {
        self.spots.iter().find(|(name, _)| *name == field).map_or(&self.at, |(_, at)| at)
    }
}

/// A name that must resolve.
#[derive(Clone, Debug)]
pub(super) struct Reference {
    pub name: String,
    /// The place of the whole text.
    pub at: Span,
    pub role: Role,
    /// The template that the name is in.
    pub source: Option<Arc<str>>,
}

/// The purpose of a reference, which decides which names it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A template in this field.
    Template(&'static str),
    /// `skip.when`.
    Skip,
    /// A key of `conditional_params`: of samplers and seeds only.
    Condition,
    /// A field that is the name of a column.
    Target(&'static str),
    /// `category` of a subcategory.
    Parent,
    /// `reference_column_name` of a timedelta.
    Date,
}

#[derive(Debug)]
pub(super) struct DraftModel {
    pub config: ModelConfig,
    /// The location of the provider's name, or of the alias if it has none.
    pub at: Span,
    pub names_provider: bool,
    /// Whether the kind of generation is given, or follows from the parameters.
    pub has_kind: bool,
}

#[derive(Debug)]
pub(super) struct DraftProvider {
    pub provider: Provider,
    /// The environment variable with the key, which is not set.
    pub missing: Option<String>,
    /// The places of secrets: a key that is written out, values of headers.
    pub secrets: Vec<Span>,
}

#[derive(Debug)]
pub(super) struct DraftConstraint {
    pub constraint: Constraint,
    pub target_at: Span,
    pub rhs_at: Span,
}

#[derive(Debug)]
pub(super) struct DraftProcessor {
    pub processor: ProcessorConfig,
    pub at: Span,
    pub references: Vec<Reference>,
    /// Patterns of columns to drop.
    pub patterns: Vec<(String, Span)>,
}
