//! The typed configuration.

use std::path::PathBuf;
use std::sync::Arc;

use anabranch_model::{ModelConfig, Provider};
use anabranch_sampler::{Convert, Sampler};
use anabranch_template::Template;
use anabranch_value::Value;

use super::prices::Prices;
use super::run_options::RunOptions;
use crate::column_type::ColumnType;

/// A checked configuration. Names refer to columns that exist, templates compile, and there is no cycle.
#[derive(Clone, Debug)]
pub struct Config {
    /// The name for messages and metadata, usually the file's stem.
    pub name: String,
    /// In the order of the file, of all stages.
    pub columns: Vec<Column>,
    /// At least one. The last has no steps.
    pub stages: Vec<StageConfig>,
    pub models: Vec<ModelConfig>,
    pub providers: Vec<Provider>,
    pub prices: Prices,
    pub seed: Option<SeedConfig>,
    pub constraints: Vec<Constraint>,
    pub processors: Vec<ProcessorConfig>,
    pub run: RunOptions,
    /// The names of the seed's columns; `None` if there is no seed, or it was not opened.
    pub seed_columns: Option<Vec<String>>,
    /// The unset environment variables that should hold keys of providers, for providers that columns use.
    pub missing_keys: Vec<MissingKey>,
    /// The file's text without secrets, which is stored in the output folder.
    pub source: Arc<str>,
    /// A digest of everything that decides about values. It excludes models, providers and run options.
    pub digest: String,
}

/// A provider whose key is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingKey {
    pub provider: String,
    /// The environment variable that is not set.
    pub variable: String,
}

/// Columns that are generated together. Each stage after the first starts from the rows of the one before it.
#[derive(Clone, Debug, Default)]
pub struct StageConfig {
    pub name: String,
    /// The number of rows. Default: the requested number for the first stage, and all rows of the previous stage for a
    /// later one.
    pub rows: Option<u64>,
    /// The rows that are kept.
    pub accept: Option<Accept>,
    /// The steps after the stage, in order.
    pub steps: Vec<StepConfig>,
}

/// The rows that a stage keeps. It generates more until it has the requested number of them.
#[derive(Clone, Debug)]
pub struct Accept {
    /// Conditions, all of which must be true.
    pub when: Vec<TemplateText>,
    /// The most rows that are generated. Default: [`Accept::CANDIDATES_PER_ROW`] times the rows.
    pub max_candidates: Option<u64>,
}

impl Accept {
    /// The default of the most rows that are generated per requested row.
    pub const CANDIDATES_PER_ROW: u64 = 10;
}

/// A step between two stages.
#[derive(Clone, Debug)]
pub enum StepConfig {
    /// Keeps the rows for which the condition is true.
    Filter { when: TemplateText },
    /// Keeps the first of the rows with equal values in these columns.
    Dedupe { by: Vec<String> },
    /// Makes one row per item of these columns, which are lists of the same length.
    Explode { columns: Vec<String> },
    /// Keeps some rows by chance.
    Sample { size: SampleSize },
    /// Orders the rows.
    Sort { by: Vec<SortKey> },
}

/// The size of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SampleSize {
    Rows(u64),
    /// Between 0 and 1.
    Share(f64),
}

/// A column that rows are ordered by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortKey {
    pub column: String,
    pub descending: bool,
}

/// One column.
#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    /// The number of its stage, from 0.
    pub stage: usize,
    /// Left out of the output.
    pub drop: bool,
    pub skip: Option<Skip>,
    /// Skipped as well if a column that it reads was skipped.
    pub propagate_skip: bool,
    pub on_error: OnRowError,
    pub kind: ColumnKind,
    /// `file:line:col` of the column, for messages at run time.
    pub place: String,
    /// The digest of its definition without its name.
    pub digest: String,
    /// The digest of everything that decides about its random numbers. A renamed or moved column keeps them.
    pub identity: String,
    /// The number of columns before it with the same identity.
    pub twin: u64,
}

/// The condition under which a cell is skipped, and its value then.
#[derive(Clone, Debug)]
pub struct Skip {
    pub when: TemplateText,
    pub value: Value,
}

/// The fate of a row whose cell failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnRowError {
    /// The row is left out of the output, and recorded in the errors table.
    #[default]
    DropRow,
    /// The cell is null, and the error is recorded in the errors table.
    KeepNull,
    /// The build ends.
    FailRun,
}

/// A compiled template with its place in the file.
#[derive(Clone)]
pub struct TemplateText {
    pub template: Arc<Template>,
    pub source: Arc<str>,
    /// `file:line:col` of the text.
    pub place: String,
}

impl std::fmt::Debug for TemplateText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.source)
    }
}

/// The producer of a column.
#[derive(Clone, Debug)]
pub enum ColumnKind {
    Sampler(SamplerColumn),
    Llm(LlmColumn),
    Expression { expr: TemplateText, dtype: Dtype },
    Validation(ValidationColumn),
    Embedding { target_column: String, model_alias: String },
    Custom(CustomColumn),
}

/// A column of sampled values.
#[derive(Clone, Debug)]
pub struct SamplerColumn {
    pub sampler: Sampler,
    /// Bare expressions over other sampler and seed columns, each with the sampler that applies where it is true; the last
    /// true one wins.
    pub conditional: Vec<(TemplateText, Sampler)>,
    pub convert_to: Option<Convert>,
}

/// A column that a chat model fills.
#[derive(Clone, Debug)]
pub struct LlmColumn {
    pub prompt: TemplateText,
    pub system_prompt: Option<TemplateText>,
    pub model_alias: String,
    pub with_trace: Trace,
    pub extract_reasoning_content: bool,
    pub output: LlmOutput,
}

/// The format of a reply.
#[derive(Clone, Debug)]
pub enum LlmOutput {
    Text,
    Code {
        lang: CodeLang,
    },
    /// A JSON schema.
    Structured {
        schema: Value,
    },
    Judge {
        scores: Vec<Score>,
    },
}

/// One score of a judge.
#[derive(Clone, Debug)]
pub struct Score {
    pub name: String,
    pub description: String,
    /// Options (whole numbers or text) with their descriptions.
    pub options: Vec<(Value, String)>,
}

/// The messages of a call that are kept in an additional column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trace {
    #[default]
    None,
    LastMessage,
    AllMessages,
}

/// A language as the configuration names it, for instance `python` or `sql:ansi`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeLang(pub &'static str);

impl CodeLang {
    /// All languages.
    pub const ALL: [&'static str; 21] = [
        "bash",
        "c",
        "cobol",
        "cpp",
        "csharp",
        "go",
        "java",
        "javascript",
        "kotlin",
        "python",
        "ruby",
        "rust",
        "scala",
        "swift",
        "typescript",
        "sql:sqlite",
        "sql:tsql",
        "sql:bigquery",
        "sql:mysql",
        "sql:postgres",
        "sql:ansi",
    ];

    /// The language of this name.
    pub fn new(name: &str) -> Option<CodeLang> {
        CodeLang::ALL.into_iter().find(|known| *known == name).map(CodeLang)
    }
}

/// The type of an expression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dtype {
    Int,
    Float,
    #[default]
    Str,
    Bool,
}

/// A column that says whether values of others are valid.
#[derive(Clone, Debug)]
pub struct ValidationColumn {
    pub target_columns: Vec<String>,
    pub batch_size: usize,
    pub validator: Validator,
}

/// The program or server that validates values.
#[derive(Clone, Debug)]
pub enum Validator {
    Code { lang: CodeLang },
    Remote(RemoteValidator),
}

/// A validator behind an HTTP endpoint.
#[derive(Clone, Debug)]
pub struct RemoteValidator {
    pub endpoint_url: String,
    pub output_schema: Option<Value>,
    pub timeout: std::time::Duration,
    pub max_retries: u32,
    pub retry_backoff: f64,
    pub max_parallel_requests: u32,
}

/// A column that a program outside fills.
#[derive(Clone, Debug)]
pub struct CustomColumn {
    pub worker: WorkerConfig,
    /// The name of the function in the worker.
    pub function: String,
    pub params: Value,
    pub required_columns: Vec<String>,
    pub side_effect_columns: Vec<String>,
    pub model_aliases: Vec<String>,
    /// Whether a call is for a row group instead of a row.
    pub full_column: bool,
    pub stateful: bool,
    /// The types of the column and its side-effect columns. An unnamed one holds JSON of any shape.
    pub column_types: Vec<(String, ColumnType)>,
    /// The longest silence of a worker during a call. Default: 10 minutes.
    pub timeout: std::time::Duration,
    /// Makes any number of rows from one (`allow_resize`).
    pub resizes: bool,
}

/// The address of a custom column's program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum WorkerConfig {
    /// A child process that speaks JSON lines on stdin and stdout.
    Command { command: Vec<String> },
    /// An HTTP endpoint.
    Http { url: String },
}

/// Rows that exist before anything is generated.
#[derive(Clone, Debug)]
pub struct SeedConfig {
    pub source: SeedSource,
    pub order: SeedOrder,
    pub selection: Option<SeedSelection>,
}

/// The location of a seed.
#[derive(Clone, Debug)]
pub enum SeedSource {
    /// A file, or a pattern with `*` in its last part.
    Local {
        path: PathBuf,
    },
    Directory {
        path: PathBuf,
        file_pattern: String,
        recursive: bool,
    },
    FileContents {
        path: PathBuf,
        file_pattern: String,
        recursive: bool,
        encoding: String,
    },
}

/// The order of a seed's rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SeedOrder {
    #[default]
    Ordered,
    Shuffle,
}

/// The part of a seed that is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeedSelection {
    /// Rows, both inclusive.
    IndexRange { start: u64, end: u64 },
    /// One of several equal blocks; the last takes the remainder.
    Partition { index: u64, num_partitions: u64 },
}

/// A condition that sampled rows satisfy.
#[derive(Clone, Debug)]
pub struct Constraint {
    pub target_column: String,
    pub operator: Comparison,
    pub rhs: ConstraintRhs,
    pub place: String,
}

/// The operator of a constraint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Lt,
    Le,
    Gt,
    Ge,
}

/// The right-hand side of a constraint.
#[derive(Clone, Debug)]
pub enum ConstraintRhs {
    Number(f64),
    Column(String),
}

/// A processor under its name.
#[derive(Clone, Debug)]
pub struct ProcessorConfig {
    pub name: String,
    pub kind: ProcessorKind,
}

/// The kind of a processor.
#[derive(Clone, Debug)]
pub enum ProcessorKind {
    /// Column names; `*` and `?` match as in file names.
    DropColumns {
        column_names: Vec<String>,
    },
    SchemaTransform {
        template: TransformNode,
    },
}

/// A JSON value whose texts are templates.
#[derive(Clone, Debug)]
pub enum TransformNode {
    Text(TemplateText),
    List(Vec<TransformNode>),
    Map(Vec<(String, TransformNode)>),
    Fixed(Value),
}
