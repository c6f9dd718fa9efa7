//! The submission of a client, and the parts of it that are stored.

use std::time::Duration;

use anabranch_dataset::Budget;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tonic::Code;

use crate::failure::Failure;
use crate::observe::TraceHeaders;
use crate::runs::RunId;

/// The body of a submission.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SubmissionBody {
    /// An object, or YAML as text.
    config: Value,
    #[serde(default)]
    models: Option<Value>,
    #[serde(default)]
    rows: Option<u64>,
    #[serde(default)]
    seed: u64,
    #[serde(default)]
    demo: bool,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    budget: BudgetBody,
}

/// The spending limits of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct BudgetBody {
    max_calls: Option<u64>,
    max_tokens: Option<u64>,
    max_cost: Option<f64>,
    /// A duration such as `90s` or `2h`.
    deadline: Option<String>,
}

impl BudgetBody {
    pub(super) fn budget(&self) -> Result<Budget, String> {
        let deadline = self.deadline.as_deref().map(anabranch_text::duration::parse).transpose();
        let deadline: Option<Duration> = deadline.map_err(|error| format!("`budget.deadline`: {error}"))?;
        let BudgetBody { max_calls, max_tokens, max_cost, .. } = *self;
        if max_cost.is_some_and(|cost| !(cost.is_finite() && cost >= 0.0)) {
            return Err("`budget.max_cost` is a number of at least 0".to_owned());
        }
        Ok(Budget { max_calls, max_tokens, max_cost, deadline })
    }
}

/// A parsed submission.
#[derive(Debug)]
pub(crate) struct Submission {
    pub(super) config: FileText,
    pub(super) models: Option<FileText>,
    pub(super) rows: Option<u64>,
    pub(super) seed: u64,
    pub(super) demo: bool,
    pub(super) name: Option<String>,
    pub(super) budget: BudgetBody,
    pub(super) digest: String,
    pub(super) idempotency_key: Option<String>,
    /// The name of the caller.
    pub(super) client: String,
    /// The distributed trace that the job belongs to.
    pub(super) trace: Option<TraceHeaders>,
}

/// The text of a JSON or YAML file.
#[derive(Debug)]
pub(super) struct FileText {
    pub(super) ending: &'static str,
    pub(super) text: String,
}

impl Submission {
    /// Parses a body.
    pub(crate) fn read(body: &[u8], key: Option<String>) -> Result<Submission, Failure> {
        let bad = |message: String| Failure::new(Code::InvalidArgument, message);
        let digest = digest(body);
        let read: SubmissionBody = serde_json::from_slice(body)
            .map_err(|error| bad(format!("the body is not a dataset: {error}")))?;
        let SubmissionBody { config, models, rows, seed, demo, name, budget } = read;
        budget.budget().map_err(bad)?;
        if let Some(name) = &name
            && (name.is_empty() || name.len() > NAME_MOST || name.chars().any(char::is_control))
        {
            return Err(bad(format!("`name` has 1 to {NAME_MOST} bytes and no control characters")));
        }
        if key.as_ref().is_some_and(|key| key.is_empty() || key.len() > NAME_MOST) {
            return Err(bad(format!("`Idempotency-Key` has 1 to {NAME_MOST} bytes")));
        }
        Ok(Submission {
            config: text("config", config)?,
            models: models.map(|models| text("models", models)).transpose()?,
            rows,
            seed,
            demo,
            name,
            budget,
            digest,
            idempotency_key: key,
            client: String::new(),
            trace: None,
        })
    }

    /// The same submission of a client.
    pub(crate) fn with_client(self, client: &str) -> Submission {
        Submission { client: client.to_owned(), ..self }
    }

    /// The same submission as a part of a distributed trace.
    pub(crate) fn with_trace(self, trace: Option<TraceHeaders>) -> Submission {
        Submission { trace, ..self }
    }
}

/// The most bytes of a name or a key.
const NAME_MOST: usize = 200;

fn text(field: &str, value: Value) -> Result<FileText, Failure> {
    match value {
        Value::String(text) => Ok(FileText { ending: "yaml", text }),
        Value::Object(_) => Ok(FileText { ending: "json", text: value.to_string() }),
        _ => {
            let message = format!("`{field}` is an object, or YAML as text");
            Err(Failure::new(Code::InvalidArgument, message))
        }
    }
}

/// A digest that tells different bodies apart.
fn digest(body: &[u8]) -> String {
    anabranch_content::Address::of(body).to_string()
}

/// A job, as stored in its folder.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Spec {
    pub(super) id: RunId,
    pub(super) name: String,
    pub(super) rows: u64,
    pub(super) seed: u64,
    pub(super) demo: bool,
    pub(super) budget: BudgetBody,
    /// The name of the configuration in the folder.
    pub(super) config: String,
    /// The name of the models file in the folder, if the client sent one.
    pub(super) models: Option<String>,
    pub(super) digest: String,
    pub(super) idempotency_key: Option<String>,
    /// The name of the caller, as of its token. Earlier versions did not store it.
    #[serde(default)]
    pub(super) client: String,
    /// The headers of calls to model servers.
    #[serde(default)]
    pub(super) trace: Option<TraceHeaders>,
    pub(super) submitted_ms: u64,
    /// The kinds of the columns, by name.
    pub(super) kinds: Vec<(String, String)>,
}

/// The end of a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct JobEnd {
    /// `complete`, `failed` or `stopped`.
    pub(super) state: String,
    pub(super) error: Option<String>,
    pub(super) run: RunId,
    pub(super) rows: u64,
    pub(super) failed_cells: u64,
}

impl JobEnd {
    pub(super) fn stopped(run: RunId, why: &str) -> JobEnd {
        JobEnd { state: "stopped".to_owned(), error: Some(why.to_owned()), run, rows: 0, failed_cells: 0 }
    }

    pub(super) fn failed(run: RunId, why: String) -> JobEnd {
        JobEnd { state: "failed".to_owned(), error: Some(why), run, rows: 0, failed_cells: 0 }
    }
}
