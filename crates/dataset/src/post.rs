//! Posting JSON over HTTP, behind a trait so that a build can bring its own client.

use std::time::Duration;

use anabranch_engine::retry::{Classified, Severity};
use anabranch_engine::workload::BoxFuture;
use anabranch_model::{HttpClient, JsonReply};

/// Posts JSON. Timeouts and retries are the caller's.
pub trait Post: Send + Sync + 'static {
    /// Posts `body` to `url` and reads the whole reply.
    fn post(&self, url: &str, body: String) -> BoxFuture<PostReply, PostError>;
}

/// The reply of a server.
#[derive(Clone, Debug)]
pub struct PostReply {
    pub status: u16,
    /// The pause that the server requests.
    pub retry_after: Option<Duration>,
    pub body: Vec<u8>,
}

/// The reason why there is no reply.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct PostError {
    pub message: String,
    /// Whether a retry may help.
    pub transient: bool,
}

/// The longest time for one request.
const TIMEOUT: Duration = Duration::from_secs(600);

impl Post for HttpClient {
    fn post(&self, url: &str, body: String) -> BoxFuture<PostReply, PostError> {
        let reply = self.post_json(url, body, TIMEOUT);
        Box::pin(async move {
            match reply.await {
                Ok(JsonReply { status, retry_after, body }) => Ok(PostReply { status, retry_after, body }),
                Err(error) => {
                    let transient = error.severity() != Severity::Permanent;
                    Err(PostError { message: error.to_string(), transient })
                }
            }
        })
    }
}
