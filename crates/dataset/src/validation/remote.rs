//! Validation by an HTTP endpoint.
//!
//! A batch of records goes out as `{"data": [{"column": value, ..}, ..]}`; the reply is
//! `{"data": [{"is_valid": true, ..}, ..]}` with one verdict per record, in order.

use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::clock::Clock;
use anabranch_model::Schema;
use anabranch_value::{Map, Value};
use futures_util::future::{Either, join_all, select};
use smallvec::smallvec;
use tokio::sync::Semaphore;

use super::Services;
use crate::column_type::ColumnType;
use crate::config::{RemoteValidator, ValidationColumn};
use crate::fault::Fault;
use crate::generator::{Cells, Contract, Generator, Grain, Output, Rows, Work};
use crate::post::{Post, PostReply};

/// The longest pause before a retry.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Characters of a server's message that an error quotes.
const QUOTED: usize = 200;

/// Fills a column with the verdicts of an endpoint.
pub(super) struct RemoteGenerator {
    contract: Contract,
    endpoint: Arc<Endpoint>,
    batch_size: usize,
}

struct Endpoint {
    config: RemoteValidator,
    schema: Option<Schema>,
    targets: Vec<String>,
    post: Arc<dyn Post>,
    clock: Arc<dyn Clock>,
    slots: Semaphore,
}

impl RemoteGenerator {
    pub(super) fn new(
        name: &str,
        column: &ValidationColumn,
        config: RemoteValidator,
        services: &Services,
    ) -> Result<RemoteGenerator, String> {
        let contract = Contract {
            grain: Grain::Batch,
            reads: column.target_columns.clone(),
            fills: vec![Output { name: name.to_owned(), column_type: ColumnType::Json }],
            stateful: false,
        };
        let slots = Semaphore::new(config.max_parallel_requests.max(1) as usize);
        let schema =
            config.output_schema.as_ref().map(|schema| Schema::new(&record_schema(schema))).transpose();
        let schema = schema.map_err(|error| format!("column `{name}`: output_schema: {error}"))?;
        let endpoint = Endpoint {
            schema,
            targets: column.target_columns.clone(),
            post: Arc::clone(&services.post),
            clock: Arc::clone(&services.clock),
            config,
            slots,
        };
        Ok(RemoteGenerator { contract, endpoint: Arc::new(endpoint), batch_size: column.batch_size })
    }
}

impl Generator for RemoteGenerator {
    fn contract(&self) -> &Contract {
        &self.contract
    }

    fn batch(&self, rows: Rows) -> Work<Vec<Result<Cells, Fault>>> {
        let endpoint = Arc::clone(&self.endpoint);
        let batch_size = self.batch_size;
        Work::future(async move {
            let row = |row: usize| {
                let entries = endpoint.targets.iter().zip(&rows.columns);
                Value::from(
                    entries.map(|(name, cells)| (name.as_str().into(), cells[row].clone())).collect::<Map>(),
                )
            };
            let records: Vec<Value> = (0..rows.ids.len()).map(row).collect();
            let batches = join_all(records.chunks(batch_size).map(|batch| endpoint.verdicts(batch))).await;
            Ok(batches.into_iter().flatten().collect())
        })
    }
}

impl Endpoint {
    /// One verdict per record. A fault of the batch is that of each of its records.
    async fn verdicts(&self, records: &[Value]) -> Vec<Result<Cells, Fault>> {
        match self.exchange(records).await {
            Ok(verdicts) => verdicts.into_iter().map(|verdict| self.checked(verdict)).collect(),
            Err(fault) => records.iter().map(|_| Err(fault.clone())).collect(),
        }
    }

    /// Posts a batch, and retries if that may help.
    async fn exchange(&self, records: &[Value]) -> Result<Vec<Value>, Fault> {
        let body = Value::map([("data", Value::list(records.to_vec()))]).to_json();
        for attempt in 1.. {
            let (fault, pause) = match self.attempt(&body).await {
                Ok(reply) if reply.status == 200 => {
                    return self
                        .read(&reply, records.len())
                        .map_err(|fault| Fault { attempts: attempt, ..fault });
                }
                Ok(reply) => {
                    let said: String = String::from_utf8_lossy(&reply.body).chars().take(QUOTED).collect();
                    let message = format!("answered with status {}: {said}", reply.status);
                    let again = matches!(reply.status, 429 | 500 | 502 | 503 | 504);
                    (self.fault(message), again.then_some(reply.retry_after))
                }
                Err((message, again)) => (self.fault(message), again.then_some(None)),
            };
            match pause {
                Some(asked_for) if attempt <= self.config.max_retries => {
                    let pause = asked_for.unwrap_or_else(|| self.pause(attempt)).min(LONGEST_PAUSE);
                    self.clock.sleep_until(self.clock.now() + pause).await;
                }
                _ => return Err(Fault { attempts: attempt, ..fault }),
            }
        }
        Err(self.fault("was not tried"))
    }

    /// The pause behind this attempt (from 1): 1 s, then longer by the configured factor.
    fn pause(&self, attempt: u32) -> Duration {
        let seconds = self.config.retry_backoff.max(1.0).powi(i32::try_from(attempt - 1).unwrap_or(i32::MAX));
        Duration::try_from_secs_f64(seconds).unwrap_or(LONGEST_PAUSE)
    }

    /// One request, or a message and whether a retry may help.
    async fn attempt(&self, body: &str) -> Result<PostReply, (String, bool)> {
        let _slot = self.slots.acquire().await.map_err(|_| ("was closed".to_owned(), false))?;
        let late = self.clock.sleep_until(self.clock.now() + self.config.timeout);
        match select(self.post.post(&self.config.endpoint_url, body.to_owned()), late).await {
            Either::Left((reply, _)) => reply.map_err(|error| (format!("failed: {error}"), error.transient)),
            Either::Right(_) => {
                Err((format!("did not answer within {} s", self.config.timeout.as_secs_f64()), true))
            }
        }
    }

    fn read(&self, reply: &PostReply, expected: usize) -> Result<Vec<Value>, Fault> {
        let text = String::from_utf8_lossy(&reply.body);
        let body = Value::from_json(&text).map_err(|error| self.fault(format!("answered {error}")))?;
        let verdicts = body.get("data").and_then(Value::as_list);
        let verdicts = verdicts.ok_or_else(|| self.fault(r#"answered without a list "data""#))?;
        if verdicts.len() != expected {
            let message = format!("answered {} verdicts for {expected} records", verdicts.len());
            return Err(self.fault(message));
        }
        Ok(verdicts.to_vec())
    }

    fn checked(&self, verdict: Value) -> Result<Cells, Fault> {
        if !matches!(verdict.get("is_valid"), Some(Value::Bool(_) | Value::Null)) {
            return Err(self.fault(format!("answered a verdict without `is_valid`: {}", verdict.kind())));
        }
        if let Some(schema) = &self.schema {
            // Only checked: a field that the schema does not name is part of the verdict, too.
            schema.fit(verdict.clone()).map_err(|problems| {
                let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
                let problems = problems.join("; ");
                self.fault(format!("answered a verdict that does not fit `output_schema`: {problems}"))
            })?;
        }
        Ok(smallvec![verdict])
    }

    /// Retries are over when there is a fault, so that no more of them are made.
    fn fault(&self, message: impl std::fmt::Display) -> Fault {
        Fault::permanent(
            "remote_validator",
            format!("the validator at {} {message}", self.config.endpoint_url),
        )
    }
}

/// The schema of a verdict: that of the items of `data` if the schema describes the whole reply.
fn record_schema(root: &Value) -> Value {
    let data = root.get("properties").and_then(|properties| properties.get("data"));
    let Some(Value::Map(items)) = data.and_then(|data| data.get("items")) else { return root.clone() };
    let mut record = (**items).clone();
    // References lead to the definitions of the whole.
    for name in ["$defs", "definitions"] {
        if let Some(definitions) = root.get(name) {
            record.entry(name.into()).or_insert_with(|| definitions.clone());
        }
    }
    record.into()
}
