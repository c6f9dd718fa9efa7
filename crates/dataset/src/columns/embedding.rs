//! Columns of embeddings. Requests of rows that wait at the same time are sent together.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use anabranch_model::{EmbedRequest, Error, Model as _};
use anabranch_value::Value;
use futures_util::future::{Either, select};
use tokio::sync::{Notify, oneshot};

use super::foresee::recorded;
use super::model_call::{ModelCall, model_fault};
use super::paid_model::PaidModel;
use crate::column_type::ColumnType;
use crate::dry::{CallRequest, ForeseenCall, ForeseenOutcome, ForeseenRow};
use crate::fault::Fault;
use crate::generator::{Call, Cells, Contract, Generator, Grain, Output, PreparedRow, Row, Work};
use crate::journal::Entry;

/// Texts per request.
pub(crate) const TEXTS_PER_REQUEST: usize = 32;

/// A column of embeddings.
pub(crate) struct Embedding {
    contract: Contract,
    batcher: Arc<Batcher>,
}

impl Embedding {
    /// `requests` is the number of requests in flight at the same time.
    pub(crate) fn new(name: &str, target: &str, call: &ModelCall, requests: usize) -> Embedding {
        let vector = ColumnType::List(Box::new(ColumnType::Float));
        let fields = vec![
            ("embeddings".to_owned(), ColumnType::List(Box::new(vector))),
            ("num_embeddings".to_owned(), ColumnType::Int),
            ("dimension".to_owned(), ColumnType::Int),
        ];
        let contract = Contract {
            grain: Grain::Call,
            reads: vec![target.to_owned()],
            fills: vec![Output { name: name.to_owned(), column_type: ColumnType::Struct(fields) }],
            stateful: false,
        };
        let batcher = Batcher {
            model: call.model.for_column(name),
            requests: requests.max(1),
            state: Mutex::default(),
            may_lead: Notify::new(),
        };
        Embedding { contract, batcher: Arc::new(batcher) }
    }
}

impl Generator for Embedding {
    fn contract(&self) -> &Contract {
        &self.contract
    }

    fn prepare(&self, row: Row<'_>) -> Work<PreparedRow> {
        let texts = match texts(&row.values[0]) {
            Ok(texts) => texts,
            Err(fault) => return Work::Ready(Err(fault)),
        };
        let (batcher, id) = (Arc::clone(&self.batcher), row.id);
        let cells = |vectors| -> Cells { std::iter::once(value(vectors)).collect() };
        Work::future(async move {
            let recorded = batcher.model.recorded_vectors(&texts).await;
            if let Some(vectors) = recorded.map_err(|error| model_fault(&error))? {
                return Ok(PreparedRow::Cells(cells(vectors)));
            }
            // The texts are shared with the row.
            Ok(PreparedRow::Call(Call::new(0, move || {
                let (batcher, texts) = (Arc::clone(&batcher), texts.clone());
                async move { batcher.embed(texts, id).await.map(cells) }
            })))
        })
    }

    fn foresee(&self, row: Row<'_>) -> Work<ForeseenRow> {
        let texts = match texts(&row.values[0]) {
            Ok(texts) => texts,
            Err(fault) => return Work::Ready(Err(fault)),
        };
        let model = self.batcher.model.clone();
        Work::future(async move { foreseen(&model, texts).await.map_err(|error| model_fault(&error)) })
    }
}

/// The vectors of texts, as far as the journal has them.
async fn foreseen(model: &PaidModel, texts: Vec<Arc<str>>) -> Result<ForeseenRow, Error> {
    let (mut calls, mut vectors) = (Vec::with_capacity(texts.len()), Vec::new());
    for text in texts {
        let found = model.recorded_text(&text).await?;
        if let Some(Entry::Vector(found)) = found.as_ref().map(|found| &found.entry) {
            vectors.push(found.vector.clone());
        }
        calls.push(ForeseenCall { asked: CallRequest::Text(text), recorded: found.map(recorded) });
    }
    let outcome = match vectors.len() == calls.len() {
        true => ForeseenOutcome::Known(std::iter::once(value(vectors)).collect()),
        false => ForeseenOutcome::Lacking,
    };
    Ok(ForeseenRow { outcome, calls })
}

/// The texts of a cell: one, or a list of them.
fn texts(value: &Value) -> Result<Vec<Arc<str>>, Fault> {
    let text = |value: &Value| match value {
        Value::Text(text) if !text.trim().is_empty() => Ok(Arc::clone(text)),
        Value::Text(_) => Err(Fault::permanent("empty", "there is no text to embed")),
        other => {
            Err(Fault::permanent("type", format!("only text can be embedded, this is {}", other.kind())))
        }
    };
    match value {
        Value::List(values) if !values.is_empty() => values.iter().map(text).collect(),
        other => text(other).map(|text| vec![text]),
    }
}

fn value(vectors: Vec<Vec<f64>>) -> Value {
    let (count, dimension) = (vectors.len() as i64, vectors.first().map_or(0, Vec::len) as i64);
    let vectors = vectors.into_iter().map(|vector| Value::list(vector.into_iter().map(Value::Float)));
    let parts = [
        ("embeddings", Value::list(vectors)),
        ("num_embeddings", count.into()),
        ("dimension", dimension.into()),
    ];
    Value::map(parts)
}

/// Joins the texts of several rows into one request. A row that finds a request free sends it for all that wait (it leads);
/// the others wait for their part of the reply.
struct Batcher {
    model: PaidModel,
    /// Requests in flight at the same time.
    requests: usize,
    state: Mutex<State>,
    /// A request became free.
    may_lead: Notify,
}

#[derive(Default)]
struct State {
    in_flight: usize,
    waiting: VecDeque<WaitingRow>,
}

struct WaitingRow {
    texts: Vec<Arc<str>>,
    sample: u64,
    reply: oneshot::Sender<Result<Vec<Vec<f64>>, Fault>>,
}

/// A request in flight.
struct Lead<'b>(&'b Batcher);

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        self.0.lock().in_flight -= 1;
        self.0.may_lead.notify_one();
    }
}

impl Batcher {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn embed(&self, texts: Vec<Arc<str>>, sample: u64) -> Result<Vec<Vec<f64>>, Fault> {
        // If the leading row is dropped, its request is lost, and the rows that waited for it start over.
        loop {
            let (reply, mut receiver) = oneshot::channel();
            self.lock().waiting.push_back(WaitingRow { texts: texts.clone(), sample, reply });
            loop {
                let free = self.may_lead.notified();
                if let Some(lead) = self.lead() {
                    // Rows that are ready at the same time join.
                    let mut yielded = false;
                    std::future::poll_fn(|cx| {
                        if std::mem::replace(&mut yielded, true) {
                            return Poll::Ready(());
                        }
                        cx.waker().wake_by_ref();
                        Poll::Pending
                    })
                    .await;
                    self.send().await;
                    drop(lead);
                }
                match select(&mut receiver, std::pin::pin!(free)).await {
                    Either::Left((Ok(result), _)) => return result,
                    Either::Left((Err(_), _)) => break,
                    Either::Right(_) => {}
                }
            }
        }
    }

    /// Starts a request, if the limit allows it and texts are waiting.
    fn lead(&self) -> Option<Lead<'_>> {
        let mut state = self.lock();
        if state.in_flight >= self.requests || state.waiting.is_empty() {
            return None;
        }
        state.in_flight += 1;
        Some(Lead(self))
    }

    /// Sends the waiting texts, up to one request, and distributes the reply.
    async fn send(&self) {
        let batch = self.take_batch();
        if batch.is_empty() {
            return;
        }
        let texts: Arc<[Arc<str>]> = batch.iter().flat_map(|waiting| waiting.texts.iter().cloned()).collect();
        let reply = self.model.embed(EmbedRequest { texts, sample: batch[0].sample }).await;
        match reply {
            Ok(reply) => {
                let mut vectors = reply.vectors.into_iter();
                for WaitingRow { texts, reply, .. } in batch {
                    let part: Vec<Vec<f64>> = vectors.by_ref().take(texts.len()).collect();
                    // A row that has been dropped in the meantime does not wait any more.
                    let _ = reply.send(Ok(part));
                }
            }
            Err(error) => {
                let fault = model_fault(&error);
                batch.into_iter().for_each(|waiting| drop(waiting.reply.send(Err(fault.clone()))));
            }
        }
    }

    fn take_batch(&self) -> Vec<WaitingRow> {
        let mut state = self.lock();
        let (mut batch, mut count) = (Vec::new(), 0);
        while let Some(next) = state.waiting.front() {
            if count > 0 && count + next.texts.len() > TEXTS_PER_REQUEST {
                break;
            }
            let next = state.waiting.pop_front().expect("it is in front");
            if !next.reply.is_closed() {
                count += next.texts.len();
                batch.push(next);
            }
        }
        batch
    }
}
