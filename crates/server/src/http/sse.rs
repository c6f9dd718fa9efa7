//! Server-sent events. A stream sends comments while nothing happens, and ends when the server shuts down.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt};
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tonic::Code;

use crate::failure::Failure;
use crate::runs::{Item, Reader};
use crate::service::Shared;

/// The interval of comments in a stream without events. Proxies and clients take a silent connection for a dead one.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// One event as text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SseEvent(String);

impl SseEvent {
    /// An event of a kind. `data` is JSON without line breaks.
    pub(super) fn new(id: Option<u64>, kind: &str, data: &str) -> SseEvent {
        let mut text = String::with_capacity(data.len() + 48);
        if let Some(id) = id {
            writeln!(text, "id: {id}").expect("a String takes it all");
        }
        write!(text, "event: {kind}\ndata: {data}\n\n").expect("a String takes it all");
        SseEvent(text)
    }

    fn lost(count: u64, up_to: u64) -> SseEvent {
        SseEvent::new(Some(up_to), "lost", &format!("{{\"lost\":{count}}}"))
    }
}

/// The items of a log as events. `write` returns the kind and the data of each.
pub(super) fn of_log<T: Clone + Send + 'static>(
    reader: Reader<T>,
    write: fn(&T) -> SseParts<'_>,
) -> impl Stream<Item = SseEvent> + Send {
    stream::unfold(reader, move |mut reader| async move {
        let event = match reader.next().await? {
            Item::Event(number, event) => {
                let SseParts { kind, data } = write(&event);
                SseEvent::new(Some(number), kind, &data)
            }
            Item::Lost { count, up_to } => SseEvent::lost(count, up_to),
        };
        Some((event, reader))
    })
}

/// The kind of an event and its data.
pub(super) struct SseParts<'a> {
    pub(super) kind: &'a str,
    pub(super) data: std::borrow::Cow<'a, str>,
}

/// Data as JSON text.
pub(super) fn json(data: &impl Serialize) -> String {
    serde_json::to_string(data).unwrap_or_else(|_| "null".to_owned())
}

struct SseStream {
    events: BoxStream<'static, SseEvent>,
    shared: Arc<Shared>,
    closing: watch::Receiver<bool>,
    _place: OwnedSemaphorePermit,
}

/// Answers with events until there are no more, the client disconnects, or the server shuts down.
pub(super) fn answer(
    shared: &Arc<Shared>,
    events: impl Stream<Item = SseEvent> + Send + 'static,
) -> Result<Response, Failure> {
    let Some(place) = shared.runs.take_reader() else {
        return Err(Failure::new(Code::Unavailable, "too many clients read events; try again later"));
    };
    let closing = shared.closing.subscribe();
    let following = SseStream { events: events.boxed(), shared: Arc::clone(shared), closing, _place: place };
    let body = stream::unfold(following, async |mut following| {
        let clock = &following.shared.clock;
        let text = tokio::select! {
            biased;
            event = following.events.next() => event?.0,
            _ = following.closing.wait_for(|closing| *closing) => return None,
            () = clock.sleep_until(clock.now() + KEEP_ALIVE) => ":\n\n".to_owned(),
        };
        Some((Ok::<_, Infallible>(Bytes::from(text)), following))
    });
    // The comment tells clients immediately that the stream has begun.
    let begun = stream::once(async { Ok(Bytes::from_static(b":\n\n")) });
    let headers = [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-store")];
    Ok((headers, Body::from_stream(begun.chain(body))).into_response())
}
