//! Response bodies. A response keeps its call open, is given to the connection piece by piece, and is charged to the byte
//! budget of unread responses.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::http::StatusCode;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, ETAG};
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use crate::budget::ByteShare;
use crate::connections::{Call, Wait};
use crate::failure::refusal;
use crate::observe::ObservedBody;

/// The most bytes that are given to the connection at a time. The client must read about as many per stall timeout.
const PIECE: usize = 32 << 10;

/// Larger responses and frames are charged.
const CHARGED: usize = 64 << 10;

/// The body of a response.
pub(crate) struct OutgoingBody {
    inner: ObservedBody,
    call: Arc<Call>,
    kind: AnswerKind,
    /// The rest of a frame that has more than a piece.
    rest: Bytes,
    /// The bytes of the response in memory, if they are charged.
    share: Option<ByteShare>,
}

/// The reason why a response may have nothing to send for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerKind {
    /// The server is computing it.
    Value,
    /// The same, and the server gives it up itself if its client does not read it.
    Archive,
    /// No event has happened.
    Subscription,
}

impl AnswerKind {
    pub(crate) fn of(path: &str) -> AnswerKind {
        match path.rsplit('/').next() {
            Some("Events" | "Watch" | "ServerReflectionInfo" | "events") => AnswerKind::Subscription,
            Some("Export") => AnswerKind::Archive,
            _ => AnswerKind::Value,
        }
    }
}

impl OutgoingBody {
    /// A response whose bytes are charged until they are read. If there is no room for them, the response is replaced.
    pub(crate) fn answer(
        answer: Response<ObservedBody>,
        call: Arc<Call>,
        kind: AnswerKind,
    ) -> Response<OutgoingBody> {
        let length = answer.body().size_hint().exact().map_or(0, |length| length as usize);
        let (answer, share) = match (length > CHARGED).then(|| call.try_take_unread(length)) {
            Some(None) => {
                let message =
                    "responses that are not read take all of their memory; read them, then try again";
                let refusal = refusal(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message);
                (replaced(answer, refusal), None)
            }
            share => (answer, share.flatten()),
        };
        answer.map(|inner| OutgoingBody { inner, call, kind, rest: Bytes::new(), share })
    }

    /// The next frame, of at most a piece.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if !self.rest.is_empty() {
            let piece = self.rest.split_to(self.rest.len().min(PIECE));
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        let frame = Pin::new(&mut self.inner).poll_frame(cx);
        let Poll::Ready(Some(Ok(frame))) = frame else { return frame };
        match frame.into_data() {
            Ok(data) if data.len() > PIECE => {
                let held = self.share.as_ref().map_or(0, ByteShare::bytes);
                if data.len() > CHARGED && held < data.len() {
                    self.share = None;
                    self.share = self.call.try_take_unread(data.len());
                    if self.share.is_none() {
                        let error =
                            std::io::Error::other("responses that are not read take all of their memory");
                        return Poll::Ready(Some(Err(axum::Error::new(error))));
                    }
                }
                self.rest = data;
                self.poll_piece(cx)
            }
            Ok(data) => Poll::Ready(Some(Ok(Frame::data(data)))),
            Err(frame) => Poll::Ready(Some(Ok(frame))),
        }
    }
}

/// The refusal instead of a response. The headers that every response has stay.
fn replaced(answer: Response<ObservedBody>, refusal: Response) -> Response<ObservedBody> {
    let (mut head, body) = answer.into_parts();
    head.status = refusal.status();
    for name in [CONTENT_LENGTH, CONTENT_ENCODING, CONTENT_DISPOSITION, CONTENT_RANGE, ETAG] {
        head.headers.remove(name);
    }
    let headers = refusal.headers().clone();
    headers.into_iter().filter_map(|(name, value)| Some((name?, value))).for_each(|(name, value)| {
        head.headers.insert(name, value);
    });
    Response::from_parts(head, body.replaced_by(refusal))
}

impl Body for OutgoingBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.call.set_waiting(Wait::Nothing);
        let frame = self.poll_piece(cx);
        // After a frame, the body is polled again only when the client has read it.
        let wait = match (&frame, self.kind) {
            // Nothing is left that could wait for the client.
            (Poll::Ready(Some(_)), _) if self.is_end_stream() => Wait::Nothing,
            (Poll::Ready(Some(_)), AnswerKind::Value) => Wait::Reader,
            (Poll::Ready(Some(_)), _) => Wait::Client,
            (Poll::Pending, AnswerKind::Subscription) => Wait::Idle,
            // The body of the request knows if the response waits for more of it.
            (Poll::Pending, _) => return frame,
            (Poll::Ready(None), _) => Wait::Nothing,
        };
        self.call.set_waiting(wait);
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (inner, rest) = (self.inner.size_hint(), self.rest.len() as u64);
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower() + rest);
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper + rest);
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use anabranch_recipe::{Executor, Functions};
    use http_body_util::BodyExt as _;

    use super::*;
    use crate::access::Peer;
    use crate::connections::Activity;
    use crate::{Service, Settings};

    /// The calls of one client of a service.
    fn activity(unfinished_most: usize) -> Arc<Activity> {
        let settings = Settings { unfinished_most, ..Settings::default() };
        let shared = Service::new(Executor::in_memory(Functions::builtin()).unwrap(), settings).shared;
        Arc::new(Activity::new(Arc::clone(&shared.clock), Arc::clone(&shared.traffic), Peer::Unknown))
    }

    fn answer(activity: &Arc<Activity>, len: usize) -> Response<OutgoingBody> {
        let body = ObservedBody::unobserved(vec![7_u8; len].into());
        let answer =
            Response::builder().header("x-request-id", "r1").header(ETAG, "\"a\"").body(body).unwrap();
        OutgoingBody::answer(answer, activity.begin(), AnswerKind::Value)
    }

    #[tokio::test]
    async fn unread_responses_are_bounded() {
        let activity = activity(1 << 20);
        let first = answer(&activity, 400_000);
        let refused = answer(&activity, 400_000);
        assert_eq!((first.status(), refused.status()), (StatusCode::OK, StatusCode::SERVICE_UNAVAILABLE));
        let kept = ["x-request-id", "etag", "content-type"].map(|name| refused.headers().contains_key(name));
        assert_eq!(kept, [true, false, true], "the headers of the response, but for those of its body");
        assert_eq!(answer(&activity, CHARGED).status(), StatusCode::OK, "small ones are not counted");
        assert_eq!(first.into_body().collect().await.unwrap().to_bytes(), vec![7; 400_000]);
        assert_eq!(answer(&activity, 400_000).status(), StatusCode::OK);
    }

    #[tokio::test]
    async fn a_large_frame_is_sent_in_pieces() {
        let mut body = answer(&activity(1 << 20), 3 * PIECE + 1).into_body();
        let mut lengths = Vec::new();
        while !body.is_end_stream() {
            assert_eq!(
                body.size_hint().exact(),
                Some((3 * PIECE + 1 - lengths.iter().sum::<usize>()) as u64)
            );
            lengths.push(body.frame().await.unwrap().unwrap().into_data().unwrap().len());
        }
        assert_eq!(lengths, [PIECE, PIECE, PIECE, 1]);
    }
}
