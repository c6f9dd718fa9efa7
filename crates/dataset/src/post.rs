//! Posting JSON over HTTP, behind a trait so that a build can bring its own client.

use anabranch_engine::workload::BoxFuture;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::{Request, header};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use std::time::Duration;

/// Posts JSON. Timeouts and retries are the caller's.
pub trait Post: Send + Sync + 'static {
    /// Posts `body` to `url` and reads the whole reply.
    fn post(&self, url: &str, body: String) -> BoxFuture<PostReply, PostError>;
}

/// The reply of a server.
#[derive(Clone, Debug)]
pub struct PostReply {
    pub status: u16,
    /// The pause that the server asks for.
    pub retry_after: Option<Duration>,
    pub body: Vec<u8>,
}

/// Why there is no reply.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct PostError {
    pub message: String,
    /// Whether a retry may help.
    pub transient: bool,
}

/// The longest reply.
const MAX_REPLY: usize = 64 << 20;

/// The longest wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Posts over plain HTTP with pooled connections.
pub struct HttpPost {
    client: Client<HttpConnector, Full<Bytes>>,
}

impl HttpPost {
    /// A client. It is used inside of a tokio runtime.
    pub fn new() -> HttpPost {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        connector.set_nodelay(true);
        let client = Client::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(connector);
        HttpPost { client }
    }
}

impl Default for HttpPost {
    fn default() -> HttpPost {
        HttpPost::new()
    }
}

impl Post for HttpPost {
    fn post(&self, url: &str, body: String) -> BoxFuture<PostReply, PostError> {
        let permanent = |message: String| PostError { message, transient: false };
        let request = if url.starts_with("https:") {
            Err(permanent(format!(
                "`{url}` needs TLS, which this client does not have: use an http:// address"
            )))
        } else {
            let request = Request::post(url).header(header::CONTENT_TYPE, "application/json");
            let request = request.body(Full::new(Bytes::from(body)));
            request.map_err(|error| permanent(format!("`{url}` is not a URL: {error}")))
        };
        let client = self.client.clone();
        Box::pin(async move { exchange(client, request?).await })
    }
}

async fn exchange(
    client: Client<HttpConnector, Full<Bytes>>,
    request: Request<Full<Bytes>>,
) -> Result<PostReply, PostError> {
    let transient = |message: String| PostError { message, transient: true };
    let response = client.request(request).await.map_err(|error| transient(chain(&error)))?;
    let status = response.status().as_u16();
    let retry_after = response.headers().get(header::RETRY_AFTER).and_then(|text| text.to_str().ok());
    let retry_after = retry_after.and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
    let body = Limited::new(response.into_body(), MAX_REPLY).collect().await.map_err(|error| {
        if error.is::<http_body_util::LengthLimitError>() {
            PostError {
                message: format!("the reply is longer than {} MiB", MAX_REPLY >> 20),
                transient: false,
            }
        } else {
            transient(format!("the reply broke off: {error}"))
        }
    })?;
    Ok(PostReply { status, retry_after, body: body.to_bytes().to_vec() })
}

/// An error and its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
