//! The behaviour of a server of language models.

use std::sync::Arc;
use std::time::Duration;

use anabranch_value::Value;

use super::answer;

/// How a [`ModelServer`](super::ModelServer) behaves. The default answers every call at once.
#[derive(Clone, Default)]
pub struct ModelScript {
    /// Decides, with the content of a request, about jitter and faults, so that a run can be repeated.
    pub seed: u64,
    /// The time of each call.
    pub latency: Duration,
    /// The most that is added to the time of a call.
    pub jitter: Duration,
    /// Calls in flight at the same time; more are answered by 429.
    pub limit: Option<usize>,
    /// The header `retry-after` of such a 429, if it has one.
    pub retry_after: Option<String>,
    /// Faults; the first one that a call draws is played.
    pub faults: Vec<ModelFault>,
    /// A native schema (`response_format` or a forced tool) is answered by 422.
    pub refuses_schemas: bool,
    /// The text of a reply, instead of the server's own.
    pub reply: Option<ReplyScript>,
    /// The length of embeddings; 0 is 8.
    pub dimensions: usize,
    /// Headers that are added to good replies and to 429s.
    pub headers: Option<HeaderScript>,
}

/// Makes the text of a reply to a call.
pub type ReplyScript = Arc<dyn Fn(&ModelCall) -> String + Send + Sync>;

/// Makes headers for the answer to a call, from it and the number of calls so far, this one included.
pub type HeaderScript = Arc<dyn Fn(&ModelCall, usize) -> Vec<(String, String)> + Send + Sync>;

/// A fault that some calls meet.
#[derive(Clone, Debug)]
pub struct ModelFault {
    /// The share of requests that draw it.
    pub percent: u64,
    /// How often the same request meets it; later tries go well. `None` is always.
    pub times: Option<u32>,
    pub kind: ModelFaultKind,
}

/// What a fault does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelFaultKind {
    /// An error with this status, and `retry-after` if it is given.
    Status(u16, Option<String>),
    /// A body that is not JSON.
    Malformed,
    /// A body that breaks off.
    Truncated,
    /// No answer until the client gives up.
    Hang,
    /// The connection is reset.
    Reset,
}

/// One request, as it arrived.
#[derive(Clone, Debug)]
pub struct ModelCall {
    pub path: String,
    /// Headers with names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Value,
}

impl ModelCall {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }

    /// The texts of the user's messages.
    pub fn prompt(&self) -> String {
        answer::prompt(&self.body)
    }
}
