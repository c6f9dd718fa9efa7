//! Serves a listener, and shuts down.

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
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tonic::codegen::Service as _;

use crate::access::Peer;
use crate::connections::{Activity, AnswerKind, Connections, OutgoingBody};
use crate::incoming::IncomingBody;
use crate::service::{Service, Shared};
use crate::settings::Settings;

/// The result of a shutdown.
#[derive(Clone, Debug)]
pub struct ShutdownReport {
    /// The engine's report about its runs.
    pub drained: DrainReport,
    /// The number of connections that were closed with calls in flight.
    pub cut: usize,
}

/// The pause after a failed accept, and between checks for an idle connection.
pub(crate) const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// The timeout of a client for sending the head of a request, answering a ping, and closing a connection.
const HEAD_TIMEOUT: Duration = Duration::from_secs(20);

/// The most headers of a request, and the most bytes of its head.
const HEADERS_MOST: usize = 100;
const HEAD_MOST: usize = 64 << 10;

/// The HTTP/2 flow control windows, in bytes: of one call, and of one connection.
const WINDOWS: [u32; 2] = [512 << 10, 1 << 20];

impl Service {
    /// Serves a router, the service's own or one that extends it, until `shutdown` completes. Then waits for the calls
    /// in flight for up to the grace period.
    pub async fn serve(
        &self,
        listener: TcpListener,
        router: Router,
        shutdown: impl Future<Output = ()>,
    ) -> ShutdownReport {
        if let Ok(bound) = listener.local_addr() {
            self.shared.hosts.bind(bound.ip());
        }
        let most = self.shared.settings.connections_most.max(1);
        let clock = Arc::clone(&self.shared.clock);
        let builder = builder(&self.shared.settings);
        let mut connections = Connections::default();
        // An accepted connection that waits for a slot.
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
                    // The usual cause is that no file descriptor is free. An immediate retry would only burn CPU time.
                    Err(_) => clock.sleep_until(clock.now() + RETRY_PAUSE).await,
                },
                () = retry, if waiting.is_some() => connections.close_idle(),
            }
        }
        drop(listener);
        self.shut_down(connections, &*clock).await
    }

    /// Separate from the generic `serve`, which is compiled in the calling crate, so that connections have this crate's
    /// optimization.
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

    pub(crate) async fn shut_down(&self, mut connections: Connections, clock: &dyn Clock) -> ShutdownReport {
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
        // Builds save their work in flight before the engine refuses new work.
        if let Some(datasets) = &self.shared.datasets {
            datasets.stop();
            tokio::select! {
                () = datasets.stopped() => {}
                () = clock.sleep_until(end) => {}
            }
        }
        let engine = self.shared.executor.engine();
        let (drained, ()) = tokio::join!(engine.drain(end.saturating_duration_since(clock.now())), closed);
        let cut = connections.len();
        connections.shutdown().await;
        ShutdownReport { drained, cut }
    }
}

pub(crate) fn builder(settings: &Settings) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_headers(HEADERS_MOST)
        .max_buf_size(HEAD_MOST);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(HEAD_MOST as u32)
        .max_concurrent_streams(settings.calls_most)
        .initial_stream_window_size(WINDOWS[0])
        .initial_connection_window_size(WINDOWS[1])
        .keep_alive_interval(HEAD_TIMEOUT)
        .keep_alive_timeout(HEAD_TIMEOUT);
    builder
}

/// Serves one connection. The client sees its errors. The server does not report them.
async fn connection(
    builder: Builder<TokioExecutor>,
    stream: TcpStream,
    router: Router,
    shared: Arc<Shared>,
    activity: Arc<Activity>,
) {
    // Otherwise small responses wait for the client's acknowledgements. The call may fail on a dead socket.
    let _ = stream.set_nodelay(true);
    let (clock, mut closing) = (Arc::clone(&shared.clock), shared.closing.subscribe());
    let late = clock.sleep_until(clock.now() + HEAD_TIMEOUT);
    let tls = shared.tls.as_ref().map(|tls| TlsAcceptor::from(tls.config(&*clock)));
    let begun = async {
        match tls {
            None => {
                first_bytes(&stream, &*clock).await;
                Some(BegunConnection::Plain(stream))
            }
            // The usual cause of an error is a client that speaks another protocol.
            Some(tls) => tls.accept(stream).await.ok().map(|stream| BegunConnection::Tls(Box::new(stream))),
        }
    };
    let begun = tokio::select! {
        begun = begun => begun,
        () = late => None,
        _ = closing.wait_for(|closing| *closing) => None,
    };
    match begun {
        None => {}
        Some(BegunConnection::Plain(stream)) => answer_all(builder, stream, router, shared, activity).await,
        Some(BegunConnection::Tls(stream)) => {
            let is_h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
            let builder = if is_h2 { builder.http2_only() } else { builder.http1_only() };
            answer_all(builder, stream, router, shared, activity).await;
        }
    }
}

/// A connection whose client has started to send.
enum BegunConnection {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// Serves the requests of a connection until it ends, is idle for too long, or the server shuts down.
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

/// The response to one request. Both bodies keep the call open.
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

/// The first bytes of an HTTP/2 connection.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Waits until the client has sent enough to recognize its HTTP version, or has stopped sending. The timeouts of either
/// version start only then.
async fn first_bytes(stream: &TcpStream, clock: &dyn Clock) {
    let mut bytes = [0; PREFACE.len()];
    while let Ok(len @ 1..) = stream.peek(&mut bytes).await {
        if len == bytes.len() || bytes[..len] != PREFACE[..len] {
            return;
        }
        clock.sleep_until(clock.now() + RETRY_PAUSE).await;
    }
}
