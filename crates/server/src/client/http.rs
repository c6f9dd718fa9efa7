//! Requests with JSON and server-sent events: the part of the API that gRPC lacks, over the same connection.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use serde_json::Value;
use tonic::Code;
use tonic::body::Body;
use tonic::codegen::Service as _;
use tonic::codegen::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};
use tonic::codegen::http::{Method, Request, Response, StatusCode};

use super::{Client, Error};
use crate::failure::over_http;

/// The size limit of a response, in bytes.
const ANSWER_MOST: usize = 256 << 20;
/// The size limit of an event, in bytes.
const EVENT_MOST: usize = 16 << 20;

/// A request to the HTTP API.
#[derive(Clone, Debug)]
pub struct ApiRequest {
    method: Method,
    path: String,
    body: Option<Value>,
    idempotency_key: Option<String>,
}

impl ApiRequest {
    /// A GET request for a path, which may have a query: `/v1/runs?limit=5`.
    pub fn get(path: impl Into<String>) -> ApiRequest {
        ApiRequest { method: Method::GET, path: path.into(), body: None, idempotency_key: None }
    }

    /// A POST request with a body.
    pub fn post(path: impl Into<String>, body: Value) -> ApiRequest {
        ApiRequest { method: Method::POST, body: Some(body), ..ApiRequest::get(path) }
    }

    /// A PUT request with a body.
    pub fn put(path: impl Into<String>, body: Value) -> ApiRequest {
        ApiRequest { method: Method::PUT, ..ApiRequest::post(path, body) }
    }

    /// The same request with an idempotency key: the server executes it once even if it is sent twice.
    #[must_use]
    pub fn once(mut self, key: Option<&str>) -> ApiRequest {
        self.idempotency_key = key.map(str::to_owned);
        self
    }
}

impl Client {
    /// Sends a request to the HTTP API and returns the JSON of the response.
    pub async fn api(&self, request: &ApiRequest) -> Result<Value, Error> {
        let answer = self.send(request, "application/json").await?;
        let body = collected(answer, ANSWER_MOST).await?;
        serde_json::from_slice(&body).map_err(|error| Error::Answer(error.to_string()))
    }

    /// Follows server-sent events.
    pub async fn follow(&self, path: &str) -> Result<ServerEvents, Error> {
        let answer = self.send(&ApiRequest::get(path), "text/event-stream").await?;
        Ok(ServerEvents { body: answer.into_body(), unread: Vec::new() })
    }

    /// Sends a request; an error if the server refuses it.
    async fn send(&self, request: &ApiRequest, accepts: &'static str) -> Result<Response<Body>, Error> {
        let wrong = |error: &dyn std::fmt::Display| Error::Request(format!("{}: {error}", request.path));
        let text = request.body.as_ref().map_or_else(Bytes::new, |body| Bytes::from(body.to_string()));
        let mut built = Request::builder().method(&request.method).uri(&request.path).header(ACCEPT, accepts);
        if request.body.is_some() {
            built = built.header(CONTENT_TYPE, "application/json");
        }
        if let Some(key) = &request.idempotency_key {
            let key = HeaderValue::from_str(key).map_err(|error| wrong(&error))?;
            built = built.header(HeaderName::from_static("idempotency-key"), key);
        }
        if let Some(bearer) = self.bearer.header() {
            built = built.header(AUTHORIZATION, bearer);
        }
        let built = built.body(Body::new(Full::new(text))).map_err(|error| wrong(&error))?;
        let mut channel = self.channel.clone();
        let broken = |error: tonic::transport::Error| Error::Broken { cause: first_cause(&error) };
        std::future::poll_fn(|cx| channel.poll_ready(cx)).await.map_err(broken)?;
        let answer = channel.call(built).await.map_err(broken)?;
        match answer.status().is_success() {
            true => Ok(answer),
            false => Err(refusal(answer).await),
        }
    }
}

async fn collected(answer: Response<Body>, most: usize) -> Result<Bytes, Error> {
    let limited = http_body_util::Limited::new(answer.into_body(), most);
    let whole = limited.collect().await.map_err(|error| Error::Broken { cause: error.to_string() })?;
    Ok(whole.to_bytes())
}

/// The error of a refused request, from its status and the server's message.
async fn refusal(answer: Response<Body>) -> Error {
    const CODES: [Code; 11] = [
        Code::InvalidArgument,
        Code::NotFound,
        Code::FailedPrecondition,
        Code::Aborted,
        Code::OutOfRange,
        Code::ResourceExhausted,
        Code::Cancelled,
        Code::Unimplemented,
        Code::Unavailable,
        Code::DeadlineExceeded,
        Code::DataLoss,
    ];
    let status = answer.status();
    let text = collected(answer, ANSWER_MOST).await.unwrap_or_default();
    let said: Value = serde_json::from_slice(&text).unwrap_or_default();
    let (word, message) = (said["error"]["code"].as_str(), said["error"]["message"].as_str());
    let by_word = CODES.into_iter().find(|code| Some(over_http(*code).1) == word);
    let code = match (status, by_word) {
        (StatusCode::UNAUTHORIZED, _) => Code::Unauthenticated,
        (StatusCode::FORBIDDEN, _) => Code::PermissionDenied,
        (_, Some(code)) => code,
        // A proxy in front of a server that does not answer.
        (StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT, None)
            if word.is_none() =>
        {
            Code::Unavailable
        }
        _ => Code::Unknown,
    };
    let message = message.map_or_else(|| format!("the server answers {status}"), str::to_owned);
    Error::Call { code, message }
}

fn first_cause(error: &dyn std::error::Error) -> String {
    let mut first = error;
    while let Some(cause) = first.source() {
        first = cause;
    }
    first.to_string()
}

/// A stream of server-sent events.
pub struct ServerEvents {
    body: Body,
    unread: Vec<u8>,
}

/// One server-sent event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerEvent {
    /// Its number, if it has one.
    pub id: Option<u64>,
    /// Its kind.
    pub kind: String,
    /// Its data, as text.
    pub data: String,
}

impl ServerEvents {
    /// The next event; `None` once the server has ended the stream.
    pub async fn next(&mut self) -> Option<Result<ServerEvent, Error>> {
        loop {
            while let Some(end) = self.unread.windows(2).position(|pair| pair == b"\n\n") {
                let text: Vec<u8> = self.unread.drain(..end + 2).collect();
                if let Some(event) = ServerEvent::parse(&String::from_utf8_lossy(&text)) {
                    return Some(Ok(event));
                }
            }
            if self.unread.len() > EVENT_MOST {
                return Some(Err(Error::Answer(format!("an event has more than {EVENT_MOST} bytes"))));
            }
            match self.body.frame().await? {
                Ok(frame) => self.unread.extend(frame.into_data().unwrap_or_default()),
                Err(status) => return Some(Err(Error::Broken { cause: status.message().to_owned() })),
            }
        }
    }
}

impl ServerEvent {
    /// `None` for a comment.
    fn parse(text: &str) -> Option<ServerEvent> {
        let field = |name: &str| {
            let lines = text.lines().filter_map(move |line| line.strip_prefix(name)?.strip_prefix(':'));
            lines.map(|value| value.strip_prefix(' ').unwrap_or(value)).collect::<Vec<_>>()
        };
        let data = field("data");
        let kind = field("event").last().map_or("message", |kind| kind).to_owned();
        let id = field("id").last().and_then(|id| id.parse().ok());
        (!data.is_empty()).then(|| ServerEvent { id, kind, data: data.join("\n") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_proxy_in_front_of_a_server_that_is_away_says_that_it_may_be_back() {
        let code = async |status: u16, body: &'static str| {
            let answer = Response::builder().status(status).body(Body::new(Full::from(body))).unwrap();
            let Error::Call { code, message } = refusal(answer).await else { panic!("it is refused") };
            assert!(message.contains(&status.to_string()), "{message}");
            code
        };
        for status in [502, 503, 504] {
            assert_eq!(
                code(status, "<html>MalformedMessage Gateway</html>").await,
                Code::Unavailable,
                "{status}"
            );
        }
        // This is the word of our own server: a plan's source has failed.
        let own = r#"{"error": {"code": "internal", "message": "502"}}"#;
        assert_eq!(code(502, own).await, Code::Unknown);
        assert_eq!(code(500, "<html>oh</html>").await, Code::Unknown);
    }

    #[test]
    fn events_are_read_from_their_lines() {
        let event = ServerEvent::parse("id: 7\nevent: end\ndata: {\"a\": 1}\n\n").unwrap();
        assert_eq!((event.id, &*event.kind, &*event.data), (Some(7), "end", "{\"a\": 1}"));
        assert_eq!(ServerEvent::parse(": still here\n\n"), None);
    }
}
