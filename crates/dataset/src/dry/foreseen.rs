//! The calls of a row as far as the journal knows them.

use std::sync::Arc;
use std::time::Duration;

use anabranch_model::{ChatReply, ChatRequest, Usage};

use crate::fault::Fault;
use crate::generator::{Cells, PreparedRow};

/// The calls of a row, looked up and not made.
#[derive(Debug)]
pub struct ForeseenRow {
    pub outcome: ForeseenOutcome,
    /// The calls in order, up to the first lacking one of a conversation. Later ones depend on its reply.
    pub calls: Vec<ForeseenCall>,
}

/// The outcome of the calls of a row.
#[derive(Debug)]
pub enum ForeseenOutcome {
    /// The recorded replies result in these values.
    Known(Cells),
    /// A reply is lacking.
    Lacking,
    /// The recorded replies end in a failure.
    Failed(Fault),
}

/// A call with the reply that the journal has for it.
#[derive(Clone, Debug)]
pub struct ForeseenCall {
    pub asked: CallRequest,
    /// `None` if the journal lacks it.
    pub recorded: Option<RecordedCall>,
}

/// The request of a call.
#[derive(Clone, Debug)]
pub enum CallRequest {
    /// A conversation.
    Chat(ChatRequest),
    /// A text of an embedding. A request carries several.
    Text(Arc<str>),
}

impl CallRequest {
    /// The length of the request's texts, in bytes.
    pub fn bytes(&self) -> u64 {
        match self {
            CallRequest::Chat(request) => {
                request.messages.iter().map(|message| message.text.len() as u64).sum()
            }
            CallRequest::Text(text) => text.len() as u64,
        }
    }
}

/// A reply of the journal.
#[derive(Clone, Debug)]
pub struct RecordedCall {
    pub answer: Answer,
    pub usage: Usage,
    /// The time from the request to the reply. Of texts that were embedded together, the first has the time of all.
    pub took: Option<Duration>,
    /// The time of recording, in milliseconds since 1970.
    pub at_ms: u64,
}

/// The answer of a model.
#[derive(Clone, Debug)]
pub enum Answer {
    Reply(ChatReply),
    /// The model refused to answer, with these words.
    Refusal(String),
    /// A vector with this number of dimensions.
    Vector(usize),
}

impl ForeseenRow {
    /// A row whose values need no call.
    pub fn known(cells: Cells) -> ForeseenRow {
        ForeseenRow { outcome: ForeseenOutcome::Known(cells), calls: Vec::new() }
    }

    /// A row with a call that nothing is known about.
    pub fn lacking() -> ForeseenRow {
        ForeseenRow { outcome: ForeseenOutcome::Lacking, calls: Vec::new() }
    }
}

impl From<PreparedRow> for ForeseenRow {
    fn from(prepared: PreparedRow) -> ForeseenRow {
        match prepared {
            PreparedRow::Cells(cells) => ForeseenRow::known(cells),
            PreparedRow::Call(_) => ForeseenRow::lacking(),
        }
    }
}
