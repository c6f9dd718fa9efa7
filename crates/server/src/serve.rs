//! Serving a listener, and shutting down.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::admission::DrainReport;
use anabranch_engine::clock::Clock;
use axum::Router;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tonic::codegen::Service as _;

use crate::access::Peer;
use crate::connections::{Activity, AnswerKind, Connections, OutgoingBody};
use crate::incoming::IncomingBody;
use crate::service::{Service, Shared};
use crate::settings::Settings;

/// What became of the work when a server shut down.
#[derive(Clone, Debug)]
pub struct Served {
    /// What the engine says about runs.
    pub drained: DrainReport,
    /// Connections that were cut with calls under way.
    pub cut: usize,
}

/// A pause when the machine cannot take another connection, and between looks whether one became idle.
pub(crate) const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// How long a client may take for the head of a request, to answer a ping, and to let go of a connection.
const HEAD_TIMEOUT: Duration = Duration::from_secs(20);

/// Bytes that may be under way to here unread, of one call and of one connection.
const WINDOWS: [u32; 2] = [512 << 10, 1 << 20];

impl Service {
    /// Serves a router, the service's own or one that has more, until `shutdown` is over; then lets the calls under
    /// way end within the grace period.
    pub async fn serve(
        &self,
        listener: TcpListener,
        router: Router,
        shutdown: impl Future<Output = ()>,
    ) -> Served {
        if let Ok(bound) = listener.local_addr() {
            self.shared.hosts.bind(bound.ip());
        }
        let most = self.shared.settings.connections_most.max(1);
        let clock = Arc::clone(&self.shared.clock);
        let builder = builder(&self.shared.settings);
        let mut connections = Connections::default();
        // Accepted, without a place so far.
        let mut waiting: Option<(TcpStream, Peer)> = None;
        let mut shutdown = pin!(shutdown);
        loop {
            if connections.len() < most
                && let Some((stream, peer)) = waiting.take()
            {
                self.take((stream, peer), &mut connections, &builder, &router);
            }
            let retry = clock.sleep_until(clock.now() + RETRY_PAUSE);
            tokio::select! {
                () = &mut shutdown => break,
                Some(()) = connections.join_next() => {}
                accepted = listener.accept(), if waiting.is_none() => match accepted {
                    Ok((stream, peer)) => {
                        waiting = Some((stream, Peer::Network(peer.ip().to_canonical())));
                        if connections.len() >= most {
                            connections.close_idle();
                        }
                    }
                    // Out of files, mostly: to try again at once would only burn the processor.
                    Err(_) => clock.sleep_until(clock.now() + RETRY_PAUSE).await,
                },
                () = retry, if waiting.is_some() => connections.close_idle(),
            }
        }
        drop(listener);
        self.shut_down(connections, &*clock).await
    }

    /// Not a part of `serve`, which is compiled where it is called: connections are with the optimisation of this crate.
    fn take(
        &self,
        (stream, peer): (TcpStream, Peer),
        connections: &mut Connections,
        builder: &Builder<TokioExecutor>,
        router: &Router,
    ) {
        let shared = &self.shared;
        let activity = Activity::new(Arc::clone(&shared.clock), Arc::clone(&shared.traffic), peer);
        let activity = Arc::new(activity);
        let (builder, router) = (builder.clone(), router.clone());
        let connection = connection(builder, stream, router, Arc::clone(shared), Arc::clone(&activity));
        connections.spawn(activity, connection);
    }

    pub(crate) async fn shut_down(&self, mut connections: Connections, clock: &dyn Clock) -> Served {
        self.shared.closing.send_replace(true);
        let grace = self.shared.settings.grace;
        let end = clock.now() + grace;
        let all_closed = async { while connections.join_next().await.is_some() {} };
        let closed = async {
            tokio::select! {
                () = all_closed => {}
                () = clock.sleep_until(end) => {}
            }
        };
        let engine = self.shared.executor.engine();
        let (drained, ()) = tokio::join!(engine.drain(grace), closed);
        let cut = connections.len();
        connections.shutdown().await;
        Served { drained, cut }
    }
}

pub(crate) fn builder(settings: &Settings) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(settings.calls_most)
        .initial_stream_window_size(WINDOWS[0])
        .initial_connection_window_size(WINDOWS[1])
        .keep_alive_interval(HEAD_TIMEOUT)
        .keep_alive_timeout(HEAD_TIMEOUT);
    builder
}

/// Serves one connection. What goes wrong with it is the client's to see; the server has nobody to tell.
async fn connection(
    builder: Builder<TokioExecutor>,
    stream: TcpStream,
    router: Router,
    shared: Arc<Shared>,
    activity: Arc<Activity>,
) {
    let (clock, mut closing) = (Arc::clone(&shared.clock), shared.closing.subscribe());
    tokio::select! {
        () = first_bytes(&stream, &*clock) => {}
        () = clock.sleep_until(clock.now() + HEAD_TIMEOUT) => return,
        _ = closing.wait_for(|closing| *closing) => return,
    }
    // Without it small answers wait for the client's acknowledgement of those before; it may fail on a dead socket.
    let _ = stream.set_nodelay(true);
    answer_all(builder, stream, router, shared, activity).await;
}

/// Answers the requests of a connection until it ends, is idle for too long, or the server shuts down.
pub(crate) async fn answer_all(
    builder: Builder<TokioExecutor>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    shared: Arc<Shared>,
    activity: Arc<Activity>,
) {
    let (clock, mut closing) = (Arc::clone(&shared.clock), shared.closing.subscribe());
    let idle_timeout = shared.settings.idle_timeout;
    let calls = Arc::clone(&activity);
    let service = service_fn(move |request| answer(&router, request, &shared, &calls));
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let told_to_close = async move { drop(closing.wait_for(|closing| *closing).await) };
    let is_idle = tokio::select! {
        _ = connection.as_mut() => return,
        () = told_to_close => false,
        () = activity.unused(idle_timeout) => true,
    };
    connection.as_mut().graceful_shutdown();
    tokio::select! {
        _ = connection => {}
        () = clock.sleep_until(clock.now() + HEAD_TIMEOUT), if is_idle => {}
    }
}

/// The answer to one request, with both bodies as parts of the call.
fn answer(
    router: &Router,
    request: Request<Incoming>,
    shared: &Arc<Shared>,
    activity: &Arc<Activity>,
) -> impl Future<Output = Result<Response<OutgoingBody>, Infallible>> + use<> {
    let call = activity.begin();
    let (holding, kind) = (shared.holding(&request), AnswerKind::of(request.uri().path()));
    let mut request = request.map(|body| IncomingBody::new(body, shared, &call, holding));
    request.extensions_mut().insert(activity.peer());
    let answer = router.clone().call(request);
    async move {
        let answer = answer.await?;
        call.release();
        Ok(answer.map(|body| OutgoingBody::new(body, call, kind)))
    }
}

/// How HTTP/2 begins.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Waits until a client has sent enough to tell which HTTP it speaks, or no more will come: the timeouts of either begin
/// only then.
async fn first_bytes(stream: &TcpStream, clock: &dyn Clock) {
    let mut bytes = [0; PREFACE.len()];
    while let Ok(len @ 1..) = stream.peek(&mut bytes).await {
        if len == bytes.len() || bytes[..len] != PREFACE[..len] {
            return;
        }
        clock.sleep_until(clock.now() + RETRY_PAUSE).await;
    }
}
