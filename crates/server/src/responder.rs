//! Answers requests: the guard and the observation around the router.

use std::sync::Arc;

use axum::BoxError;
use axum::Router;
use axum::body::Body as AnyBody;
use axum::http::{Request, Response};
use bytes::Bytes;
use hyper::body::Body;
use tonic::codegen::Service as _;

use crate::access::Peer;
use crate::api::Place;
use crate::http::plans;
use crate::observe::{CallInfo, ObservedBody, observed};
use crate::service::Shared;

/// Answers the requests of a service. A handle: clones share the router.
#[derive(Clone)]
pub(crate) struct Responder {
    shared: Arc<Shared>,
    /// The routes behind the guard.
    router: Router,
}

impl Responder {
    pub(crate) fn new(shared: Arc<Shared>, router: Router) -> Responder {
        Responder { shared, router }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The response to a request.
    pub(crate) async fn answer<B>(self, peer: Peer, request: Request<B>) -> Response<ObservedBody>
    where
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<BoxError>,
    {
        let Responder { shared, router } = self;
        let place = Place::of(request.method(), request.uri().path());
        let handle = |call, request| handle(&shared, router, place, call, request);
        observed(&shared, place, peer, request, handle).await
    }
}

async fn handle<B>(
    shared: &Arc<Shared>,
    mut router: Router,
    place: Place,
    call: CallInfo,
    request: Request<B>,
) -> axum::response::Response
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    // Requests for plans are many and short: the router would take longer than some of them.
    if let Some(entry) = plans::named_entry(shared, place, request.uri().path()) {
        return plans::answer(shared, &entry, call, request).await;
    }
    let mut request = request.map(AnyBody::new);
    request.extensions_mut().insert(call);
    let Ok(answer) = router.call(request).await;
    answer
}
