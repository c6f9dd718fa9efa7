//! One call to a worker, and the worker's requests to models during it.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use anabranch_engine::retry::Severity;
use anabranch_engine::workload::BoxFuture;
use anabranch_value::Value;
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use futures_util::stream::FuturesUnordered;

use super::message::{self, Line};
use super::process::{Process, WaitingCall};
use super::worker::Worker;
use crate::config::WorkerConfig;
use crate::fault::Fault;

/// Asks models on behalf of custom code.
pub trait Ask: Send + Sync + 'static {
    /// Asks a model for a reply.
    fn ask(&self, question: Question) -> BoxFuture<String, Fault>;
}

/// A request of custom code to a model.
#[derive(Clone, Debug)]
pub struct Question {
    /// The column that is filled.
    pub column: Arc<str>,
    /// The row; `None` if a group is filled.
    pub row: Option<u64>,
    /// The worker's number of the question, unique within one call.
    pub number: u64,
    /// The alias of the model, which the column declares.
    pub model: String,
    /// A list of messages with `role` and `content`.
    pub messages: Value,
}

/// Refuses all questions.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoModels;

impl Ask for NoModels {
    fn ask(&self, question: Question) -> BoxFuture<String, Fault> {
        let message = format!("the model `{}` cannot be asked here", question.model);
        Box::pin(async move { Err(Fault::permanent("model", message)) })
    }
}

/// A call, apart from its id.
pub(super) struct Call {
    pub(super) column: Arc<str>,
    pub(super) row: Option<u64>,
    pub(super) model_aliases: Arc<[String]>,
    /// The longest silence of the worker.
    pub(super) timeout: Duration,
    /// The entries of the call object besides its id.
    pub(super) entries: Vec<(&'static str, Value)>,
}

impl Call {
    fn text(&self, id: u64) -> String {
        let id = [("id", Value::Int(id as i64))];
        Value::map(id.into_iter().chain(self.entries.iter().cloned())).to_json()
    }
}

/// The next event of a call.
enum Next {
    Line(Option<Line>),
    Answer(u64, Result<String, Fault>),
    Late,
}

impl Worker {
    /// Calls a function and returns the line with its answer.
    pub(super) async fn call(&self, call: Call) -> Result<Line, Fault> {
        let closed = |_| Fault::permanent("worker", "the worker is closed");
        let _slot = self.slots.acquire().await.map_err(closed)?;
        match &self.config {
            WorkerConfig::Command { command } => {
                let process = self.process(command)?;
                let mut waiting = process.enter()?;
                let line = call.text(waiting.id);
                self.send(&process, line, call.timeout).await?;
                self.converse(&process, &mut waiting, &call).await
            }
            WorkerConfig::Http { url } => self.post(url, &call).await,
        }
    }

    /// Waits for the answer, and serves the worker's questions to models.
    async fn converse(
        &self,
        process: &Process,
        waiting: &mut WaitingCall<'_>,
        call: &Call,
    ) -> Result<Line, Fault> {
        let mut questions = FuturesUnordered::new();
        loop {
            let clock = &self.options.clock;
            let mut late = clock.sleep_until(clock.now() + call.timeout);
            let next = poll_fn(|cx| {
                if let Poll::Ready(line) = waiting.lines.poll_recv(cx) {
                    return Poll::Ready(Next::Line(line));
                }
                if let Poll::Ready(Some((number, reply))) = questions.poll_next_unpin(cx) {
                    return Poll::Ready(Next::Answer(number, reply));
                }
                // Time that models take is not the worker's.
                if questions.is_empty() { late.as_mut().poll(cx).map(|()| Next::Late) } else { Poll::Pending }
            });
            match next.await {
                Next::Line(None) => {
                    let stopped = || Fault::transient("worker", "the worker was stopped");
                    return Err(process.end().unwrap_or_else(stopped));
                }
                Next::Line(Some(line)) => match line.ask {
                    None => return line.into_answer(),
                    Some(number) => {
                        let reply = self.question(call, number, line);
                        questions.push(async move { (number, reply.await) });
                    }
                },
                Next::Answer(number, reply) => {
                    let answer = message::answer(waiting.id, number, reply);
                    self.send(process, answer, call.timeout).await?;
                }
                Next::Late => return Err(self.late(process, call.timeout)),
            }
        }
    }

    fn question(&self, call: &Call, number: u64, line: Line) -> BoxFuture<String, Fault> {
        let model = line.model.unwrap_or_default();
        if !call.model_aliases.contains(&model) {
            let message = format!(
                "the column `{}` asks the model `{model}`, which is not in its `model_aliases`: add it there",
                call.column
            );
            return Box::pin(async move { Err(Fault::permanent("model", message)) });
        }
        let (column, row) = (Arc::clone(&call.column), call.row);
        let messages = line.messages.unwrap_or_default();
        self.options.ask.ask(Question { column, row, number, model, messages })
    }

    async fn send(&self, process: &Process, line: String, timeout: Duration) -> Result<(), Fault> {
        let clock = &self.options.clock;
        let late = clock.sleep_until(clock.now() + timeout);
        match select(pin!(process.lines.send(line)), late).await {
            Either::Left((Ok(()), _)) => Ok(()),
            Either::Left((Err(_), _)) => {
                Err(process.end().unwrap_or_else(|| Fault::transient("worker", "the worker was stopped")))
            }
            Either::Right(_) => Err(self.late(process, timeout)),
        }
    }

    /// The fault of a call without a message for its timeout. A worker that was silent to all calls is killed.
    fn late(&self, process: &Process, timeout: Duration) -> Fault {
        let seconds = timeout.as_secs_f64();
        let since = self.options.clock.now().checked_sub(timeout);
        let killed = since.is_some_and(|since| process.kill_if_silent_since(since));
        let what = match (killed, process.is_ready()) {
            (true, false) => "the worker did not become ready and was killed",
            (true, true) => "the worker said nothing at all and was killed",
            (false, _) => "the call was not answered",
        };
        Fault::transient(
            "timeout",
            format!("{what} within {seconds} s; `timeout` of the column sets the time"),
        )
    }

    async fn post(&self, url: &str, call: &Call) -> Result<Line, Fault> {
        let clock = &self.options.clock;
        let late = clock.sleep_until(clock.now() + call.timeout);
        let reply = match select(self.options.post.post(url, call.text(1)), late).await {
            Either::Left((reply, _)) => reply,
            Either::Right(_) => {
                let message =
                    format!("the worker at {url} did not answer within {} s", call.timeout.as_secs_f64());
                return Err(Fault::transient("timeout", message));
            }
        };
        let reply = reply.map_err(|error| {
            let message = format!("the worker at {url}: {error}");
            if error.transient {
                Fault::transient("worker", message)
            } else {
                Fault::permanent("worker", message)
            }
        })?;
        let said = String::from_utf8_lossy(&reply.body);
        if reply.status != 200 {
            let message =
                format!("the worker at {url} answered {}: {}", reply.status, message::quoted(&said));
            let severity = match reply.status {
                429 | 503 => Severity::Throttled { retry_after: reply.retry_after },
                500 | 502 | 504 => Severity::Transient,
                _ => Severity::Permanent,
            };
            return Err(Fault { severity, ..Fault::permanent("worker", message) });
        }
        let line: Line = serde_json::from_str(&said).map_err(|error| {
            let message = format!("the worker at {url} answered ({error}): {}", message::quoted(&said));
            Fault::permanent("reply_format", message)
        })?;
        line.into_answer()
    }
}

impl Line {
    fn into_answer(self) -> Result<Line, Fault> {
        match self.error {
            Some(error) => Err(error.fault()),
            None => Ok(self),
        }
    }
}
