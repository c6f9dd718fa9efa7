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
use serde_json::json;
use tokio::sync::watch;
use tonic::Code;

use crate::failure::Failure;
use crate::load::{Slot, SlotRefusal};
use crate::runs::{Item, Reader};
use crate::service::Shared;

/// The interval of comments in a stream without events. Proxies and clients take a silent connection for a dead one.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// One event as text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SseEvent(String);

impl SseEvent {
    /// An event of a kind, without an id if `id` is empty. `data` is JSON without line breaks.
    pub(super) fn new(id: &str, kind: &str, data: &str) -> SseEvent {
        let mut text = String::with_capacity(data.len() + 64);
        if !id.is_empty() {
            writeln!(text, "id: {id}").expect("a String takes it all");
        }
        write!(text, "event: {kind}\ndata: {data}\n\n").expect("a String takes it all");
        SseEvent(text)
    }
}

/// The items of a log as events. `id` returns the id of the event with a number, `write` the kind and the data of each.
pub(super) fn of_log<T: Clone + Send + 'static>(
    reader: Reader<T>,
    id: impl Fn(u64) -> String + Send + Sync + 'static,
    write: fn(&T) -> SseParts<'_>,
) -> impl Stream<Item = SseEvent> + Send {
    stream::unfold((reader, id), move |(mut reader, id)| async move {
        let event = match reader.next().await? {
            Item::Event(number, event) => {
                let SseParts { kind, data } = write(&event);
                SseEvent::new(&id(number), kind, &data)
            }
            Item::Lost { count, up_to } => {
                SseEvent::new(&id(up_to), "lost", &json(&json!({ "lost": count })))
            }
        };
        Some((event, (reader, id)))
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
    _slot: Slot,
}

/// Answers with events until there are no more, the client disconnects, or the server shuts down.
pub(super) fn answer(
    shared: &Arc<Shared>,
    client: &Arc<str>,
    events: impl Stream<Item = SseEvent> + Send + 'static,
) -> Result<Response, Failure> {
    let slot = shared.runs.take_reader(client).map_err(|refused| match refused {
        SlotRefusal::Client => {
            Failure::new(Code::ResourceExhausted, "this client reads more streams of events than its share")
        }
        _ => Failure::new(Code::Unavailable, "too many clients read events; try again later"),
    })?;
    let closing = shared.closing.subscribe();
    let following = SseStream { events: events.boxed(), shared: Arc::clone(shared), closing, _slot: slot };
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
