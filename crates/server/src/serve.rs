//! Serves listeners, and shuts down.

use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anabranch_engine::admission::DrainReport;
use anabranch_engine::clock::Clock;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response, Version};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::access::Peer;
use crate::connections::{Activity, Connections};
use crate::heads::{HeadWatch, WatchedStream};
use crate::incoming::IncomingBody;
use crate::outgoing::{AnswerKind, OutgoingBody};
use crate::responder::Responder;
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

/// The HTTP/2 flow control windows, in bytes: of one call, and of one connection. A connection may have so much in memory
/// that no call has read, beside the byte budget of unfinished requests. A smaller window of connections would let one call
/// whose body is not read, such as an upload that waits for its slot, hold up all other calls of its connection; a smaller
/// one of calls would slow uploads from far away.
const WINDOWS: [u32; 2] = [512 << 10, 1 << 20];

/// The listeners of a server.
#[derive(Debug, Default)]
pub struct Listeners {
    /// The listener for other machines.
    pub network: Option<TcpListener>,
    /// A Unix socket for other commands of the same user. The permissions of the socket decide who may connect.
    pub local: Option<UnixListener>,
}

impl From<TcpListener> for Listeners {
    fn from(network: TcpListener) -> Listeners {
        Listeners { network: Some(network), local: None }
    }
}

impl From<UnixListener> for Listeners {
    fn from(local: UnixListener) -> Listeners {
        Listeners { network: None, local: Some(local) }
    }
}

impl Service {
    /// Serves listeners until `shutdown` completes. Then waits for the calls in flight for up to the grace period.
    pub async fn serve(
        &self,
        listeners: impl Into<Listeners>,
        shutdown: impl Future<Output = ()>,
    ) -> ShutdownReport {
        let told = async {
            shutdown.await;
            self.shared.closing.send_replace(true);
        };
        let ((), connections) = tokio::join!(told, self.accept_all(listeners.into()));
        self.shut_down(connections).await
    }

    /// Accepts connections until the server shuts down. Separate from the generic `serve`, which is compiled in the calling
    /// crate, so that connections have this crate's optimization.
    async fn accept_all(&self, listeners: Listeners) -> [Connections; 2] {
        let Listeners { network, local } = listeners;
        let network = async {
            match network {
                Some(listener) => self.accept(listener).await,
                None => Connections::default(),
            }
        };
        let local = async {
            match local {
                Some(listener) => self.accept_local(listener).await,
                None => Connections::default(),
            }
        };
        tokio::join!(network, local).into()
    }

    async fn accept(&self, listener: TcpListener) -> Connections {
        if let Ok(bound) = listener.local_addr() {
            self.shared.hosts.bind(bound.ip());
        }
        let most = self.shared.settings.connections_most.max(1);
        let clock = Arc::clone(&self.shared.clock);
        let builder = builder(&self.shared.settings);
        let responder = self.responder();
        let mut connections = Connections::default();
        // An accepted connection that waits for a slot.
        let mut waiting: Option<(TcpStream, Peer)> = None;
        let mut closed = pin!(closed(&self.shared, || Duration::ZERO));
        loop {
            if connections.len() < most
                && let Some((stream, peer)) = waiting.take()
            {
                self.take((stream, peer), &mut connections, &builder, &responder);
            }
            let retry = clock.sleep_until(clock.now() + RETRY_PAUSE);
            tokio::select! {
                () = &mut closed => break,
                Some(()) = connections.join_next() => {}
                accepted = listener.accept(), if waiting.is_none() => match accepted {
                    Ok((stream, address)) => {
                        let peer = peer(address);
                        waiting = connections.make_room(peer, most).then_some((stream, peer));
                        if waiting.is_none() {
                            self.shared.traffic.refused.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                    // The usual cause is that no file descriptor is free. An immediate retry would only burn CPU time.
                    Err(_) => clock.sleep_until(clock.now() + RETRY_PAUSE).await,
                },
                () = retry, if waiting.is_some() => connections.close_idle(),
            }
        }
        let arrived = arrived(listener.into_std(), std::net::TcpListener::accept);
        let arrived = arrived.filter_map(|(stream, address)| Some((nonblocking(stream)?, peer(address))));
        for (stream, peer) in waiting.into_iter().chain(arrived).take(most) {
            self.take((stream, peer), &mut connections, &builder, &responder);
        }
        connections
    }

    fn take(
        &self,
        (stream, peer): (TcpStream, Peer),
        connections: &mut Connections,
        builder: &Builder<TokioExecutor>,
        responder: &Responder,
    ) {
        let shared = &self.shared;
        let activity = Activity::new(Arc::clone(&shared.clock), Arc::clone(&shared.traffic), peer);
        let activity = Arc::new(activity);
        let connection = connection(builder.clone(), stream, responder.clone(), Arc::clone(&activity));
        connections.spawn(activity, connection);
    }

    /// Ends the connections of all listeners, then the work that they could ask for.
    async fn shut_down(&self, mut connections: [Connections; 2]) -> ShutdownReport {
        let clock = &*self.shared.clock;
        let end = clock.now() + self.shared.settings.grace;
        // Builds save their work in flight first.
        if let Some(datasets) = &self.shared.datasets {
            datasets.stop();
            tokio::select! {
                () = datasets.stopped() => {}
                () = clock.sleep_until(end) => {}
            }
        }
        let all_closed = async {
            for connections in &mut connections {
                while connections.join_next().await.is_some() {}
            }
        };
        tokio::select! {
            () = all_closed => {}
            () = clock.sleep_until(end) => {}
        }
        // The engine refuses new work only after that: a request whose body is still arriving was accepted, too.
        let engine = self.shared.executor.engine();
        let drained = engine.drain(end.saturating_duration_since(clock.now())).await;
        let cut = connections.iter().map(Connections::with_calls).sum();
        for connections in &mut connections {
            connections.shutdown().await;
        }
        ShutdownReport { drained, cut }
    }
}

/// The client of a connection.
fn peer(address: SocketAddr) -> Peer {
    Peer::Network(address.ip().to_canonical())
}

/// The connections that clients have made and that were not accepted before a shutdown. Their clients may have sent
/// requests. The runtime learns of such connections only some time later, so the system is asked.
pub(crate) fn arrived<L, S, A>(
    listener: io::Result<L>,
    accept: impl Fn(&L) -> io::Result<(S, A)>,
) -> impl Iterator<Item = (S, A)> {
    let listener = listener.ok();
    std::iter::from_fn(move || {
        let listener = listener.as_ref()?;
        loop {
            match accept(listener) {
                Ok(connection) => return Some(connection),
                // This client has given up; others wait behind it.
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                Err(_) => return None,
            }
        }
    })
}

fn nonblocking(stream: std::net::TcpStream) -> Option<TcpStream> {
    stream.set_nonblocking(true).ok()?;
    TcpStream::from_std(stream).ok()
}

pub(crate) fn builder(settings: &Settings) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    // The timeout of heads is that of `HeadWatch`.
    builder.http1().header_read_timeout(None).max_headers(HEADERS_MOST).max_buf_size(HEAD_MOST);
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
    responder: Responder,
    activity: Arc<Activity>,
) {
    let shared = responder.shared();
    // Otherwise small responses wait for the client's acknowledgements. The call may fail on a dead socket.
    let _ = stream.set_nodelay(true);
    let clock = Arc::clone(&shared.clock);
    let late = clock.sleep_until(clock.now() + HEAD_TIMEOUT);
    let closed = closed(shared, || NEW_WAIT);
    let tls = shared.tls.as_ref().map(|tls| TlsAcceptor::from(tls.config(&*clock)));
    let begun = async {
        match tls {
            None => {
                let protocol = first_bytes(&stream, &*clock).await;
                Some(BegunConnection::Plain(stream, protocol))
            }
            // The usual cause of an error is a client that speaks another protocol.
            Some(tls) => tls.accept(stream).await.ok().map(|stream| BegunConnection::Tls(Box::new(stream))),
        }
    };
    let begun = tokio::select! {
        biased;
        begun = begun => begun,
        () = late => None,
        () = closed => None,
    };
    match begun {
        None => {}
        Some(BegunConnection::Plain(stream, protocol)) => {
            answer_all(builder, stream, protocol, responder, activity).await;
        }
        Some(BegunConnection::Tls(stream)) => {
            let is_h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
            let protocol = if is_h2 { Protocol::Http2 } else { Protocol::Http1 };
            answer_all(builder, stream, protocol, responder, activity).await;
        }
    }
}

/// The time for which a connection whose client has not sent anything stays open once the server shuts down. Its client
/// has just connected, so it is about to send a request, or has done so.
const NEW_WAIT: Duration = Duration::from_secs(1);

/// The same for an idle connection: the runtime learns of bytes that have arrived only some time later. A client has
/// [`NEW_WAIT`] for the rest of a head.
const IDLE_WAIT: Duration = Duration::from_millis(100);

/// Completes so long after the server has begun to shut down.
pub(crate) async fn closed(shared: &Shared, wait: impl FnOnce() -> Duration) {
    // An error means that the service is gone.
    drop(shared.closing.subscribe().wait_for(|closing| *closing).await);
    let wait = wait();
    if !wait.is_zero() {
        shared.clock.sleep_until(shared.clock.now() + wait).await;
    }
}

/// A connection whose client has started to send.
enum BegunConnection {
    Plain(TcpStream, Protocol),
    Tls(Box<TlsStream<TcpStream>>),
}

/// The protocol of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    Http2,
}

/// Serves the requests of a connection until it ends, is idle or sends a head for too long, or the server shuts down.
pub(crate) async fn answer_all(
    builder: Builder<TokioExecutor>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    protocol: Protocol,
    responder: Responder,
    activity: Arc<Activity>,
) {
    let shared = Arc::clone(responder.shared());
    let clock = Arc::clone(&shared.clock);
    let idle_timeout = shared.settings.idle_timeout;
    let (calls, heads) = (Arc::clone(&activity), HeadWatch::new(Arc::clone(&clock)));
    let stream = WatchedStream::new(stream, Arc::clone(&heads));
    let watch = Arc::clone(&heads);
    let service = service_fn(move |request| answer(&responder, request, &calls, &watch));
    let builder = match protocol {
        Protocol::Http1 => builder.http1_only(),
        Protocol::Http2 => builder.http2_only(),
    };
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let is_http1 = protocol == Protocol::Http1;
    // HTTP/2 tells its client which requests were accepted.
    let open_for = || match (heads.is_new(), is_http1) {
        (true, _) => NEW_WAIT,
        (false, true) => IDLE_WAIT,
        (false, false) => Duration::ZERO,
    };
    let is_idle = tokio::select! {
        biased;
        _ = connection.as_mut() => return,
        () = closed(&shared, open_for) => false,
        () = activity.unused(idle_timeout) => true,
        // HTTP/2 has pings for that.
        () = heads.late(HEAD_TIMEOUT, || activity.has_calls()), if is_http1 => return,
    };
    let sleep = |wait| clock.sleep_until(clock.now() + wait);
    if is_http1 && !is_idle && heads.has_begun() && !activity.has_calls() {
        // A graceful shutdown would drop the beginning of a head. The response to it closes the connection.
        let begun = async {
            while !activity.has_calls() && heads.has_begun() {
                sleep(RETRY_PAUSE).await;
            }
        };
        tokio::select! {
            biased;
            _ = connection.as_mut() => return,
            () = begun => {}
            () = sleep(NEW_WAIT) => return,
        }
    }
    connection.as_mut().graceful_shutdown();
    tokio::select! {
        _ = connection => {}
        () = sleep(HEAD_TIMEOUT), if is_idle => {}
    }
}

/// The response to one request. Both bodies keep the call open.
fn answer(
    responder: &Responder,
    request: Request<Incoming>,
    activity: &Arc<Activity>,
    heads: &Arc<HeadWatch>,
) -> impl Future<Output = Result<Response<OutgoingBody>, Infallible>> + use<> {
    heads.complete();
    let (shared, call) = (Arc::clone(responder.shared()), activity.begin());
    let (holding, kind) = (shared.holding(&request), AnswerKind::of(request.uri().path()));
    let is_http1 = request.version() <= Version::HTTP_11;
    let request = request.map(|body| IncomingBody::new(body, &shared, &call, holding));
    let (responder, peer, heads) = (responder.clone(), activity.peer(), Arc::clone(heads));
    async move {
        // A future that is made outside and moved in here would take its memory twice, in each connection.
        let mut answer = call.scope(responder.answer(peer, request)).await;
        call.release();
        heads.complete();
        // The connection may learn of the shutdown only after it has sent this head.
        if is_http1 && *shared.closing.borrow() {
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        Ok(OutgoingBody::answer(answer, call, kind))
    }
}

/// The first bytes of an HTTP/2 connection.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Waits until the client has sent enough to recognize its HTTP version, or has stopped sending. The timeouts of either
/// version start only then.
async fn first_bytes(stream: &TcpStream, clock: &dyn Clock) -> Protocol {
    let mut bytes = [0; PREFACE.len()];
    while let Ok(len @ 1..) = stream.peek(&mut bytes).await {
        if bytes[..len] != PREFACE[..len] {
            break;
        }
        if len == bytes.len() {
            return Protocol::Http2;
        }
        clock.sleep_until(clock.now() + RETRY_PAUSE).await;
    }
    Protocol::Http1
}

#[cfg(test)]
mod tests {
    use anabranch_recipe::{Executor, Functions};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// The end of a request and the shutdown may come so close together that the connection learns of both at once.
    #[tokio::test]
    async fn a_response_during_a_shutdown_closes_its_connection() {
        let service = Service::new(Executor::in_memory(Functions::builtin()).unwrap(), Settings::default());
        let shared = &service.shared;
        let (mut client, stream) = tokio::io::duplex(1 << 10);
        let (clock, traffic) = (Arc::clone(&shared.clock), Arc::clone(&shared.traffic));
        let activity = Arc::new(Activity::new(clock, traffic, Peer::Unknown));
        let (builder, responder) = (builder(&shared.settings), service.responder());
        let mut answers =
            pin!(answer_all(builder, stream, Protocol::Http1, responder, Arc::clone(&activity)));
        let head = b"POST /v1/blobs HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n";
        client.write_all(head).await.unwrap();
        while !activity.has_calls() {
            tokio::select! { biased; () = &mut answers => panic!("no request"), () = tokio::task::yield_now() => {} }
        }
        client.write_all(b"ok").await.unwrap();
        shared.closing.send_replace(true);
        let mut answer = String::new();
        tokio::join!(answers, async { client.read_to_string(&mut answer).await.unwrap() });
        assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
        assert!(answer.contains("connection: close"), "{answer}");
    }
}
