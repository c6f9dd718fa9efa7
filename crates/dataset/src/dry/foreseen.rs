//! The calls of a row as far as the journal knows them.

use std::sync::Arc;
use std::time::Duration;

use anabranch_model::{ChatReply, ChatRequest, Usage};

use crate::fault::Fault;
use crate::generator::{Cells, Prepared};

/// The calls of a row, looked up and not made.
#[derive(Debug)]
pub struct Foreseen {
    pub outcome: ForeseenOutcome,
    /// The calls in their order, up to the first of a conversation that is lacking: the others depend on its reply.
    pub calls: Vec<ForeseenCall>,
}

/// The outcome of the calls of a row.
#[derive(Debug)]
pub enum ForeseenOutcome {
    /// The recorded replies give these values.
    Known(Cells),
    /// A reply is lacking.
    Lacking,
    /// The recorded replies end in a failure.
    Failed(Fault),
}

/// A call with the reply that the journal has for it.
#[derive(Clone, Debug)]
pub struct ForeseenCall {
    pub asked: Asked,
    /// `None` if the journal lacks it.
    pub recorded: Option<RecordedCall>,
}

/// The request of a call.
#[derive(Clone, Debug)]
pub enum Asked {
    /// A conversation.
    Chat(ChatRequest),
    /// A text of an embedding. A request carries several.
    Text(Arc<str>),
}

impl Asked {
    /// The length of the request's texts, in bytes.
    pub fn bytes(&self) -> u64 {
        match self {
            Asked::Chat(request) => request.messages.iter().map(|message| message.text.len() as u64).sum(),
            Asked::Text(text) => text.len() as u64,
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
    /// When it was recorded, in milliseconds since 1970.
    pub at_ms: u64,
}

/// The answer of a model.
#[derive(Clone, Debug)]
pub enum Answer {
    Reply(ChatReply),
    /// The model refused to answer, with these words.
    Refusal(String),
    /// A vector of so many dimensions.
    Vector(usize),
}

impl Foreseen {
    /// A row whose values need no call.
    pub fn known(cells: Cells) -> Foreseen {
        Foreseen { outcome: ForeseenOutcome::Known(cells), calls: Vec::new() }
    }

    /// A row with a call that nothing is known about.
    pub fn lacking() -> Foreseen {
        Foreseen { outcome: ForeseenOutcome::Lacking, calls: Vec::new() }
    }
}

impl From<Prepared> for Foreseen {
    fn from(prepared: Prepared) -> Foreseen {
        match prepared {
            Prepared::Cells(cells) => Foreseen::known(cells),
            Prepared::Call(_) => Foreseen::lacking(),
        }
    }
}
