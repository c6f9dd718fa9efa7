//! Serving a listener, and shutting down.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::admission::DrainReport;
use anabranch_engine::clock::Clock;
use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::service::Service;
use crate::settings::Settings;

/// What became of the work when a server shut down.
#[derive(Clone, Debug)]
pub struct Served {
    /// What the engine says about runs.
    pub drained: DrainReport,
    /// Connections that were cut with calls under way.
    pub cut: usize,
}

/// A pause when the machine cannot take another connection.
const BREATH: Duration = Duration::from_millis(100);

/// How long a client may take for the head of a request, and to answer when it is asked whether it is there.
const PATIENCE: Duration = Duration::from_secs(20);

/// Bytes that may be under way to here unread, of one call and of one connection.
const WINDOWS: [u32; 2] = [1 << 20, 4 << 20];

impl Service {
    /// Serves a router, the service's own or one that has more, until `shutdown` is over; then lets the calls under
    /// way end within the grace period.
    pub async fn serve(
        &self,
        listener: TcpListener,
        router: Router,
        shutdown: impl Future<Output = ()>,
    ) -> Served {
        let settings = &self.shared.settings;
        if let Ok(bound) = listener.local_addr() {
            self.shared.hosts.bind(bound.ip());
        }
        let clock = Arc::clone(self.shared.executor.engine().clock());
        let builder = builder(settings);
        let mut connections = JoinSet::new();
        let mut shutdown = pin!(shutdown);
        loop {
            let room = connections.len() < settings.connections_most;
            let accepted = tokio::select! {
                () = &mut shutdown => break,
                Some(_) = connections.join_next() => continue,
                accepted = listener.accept(), if room => accepted,
            };
            match accepted {
                Ok((stream, _)) => self.take(stream, &mut connections, &builder, &router, &clock),
                // Out of files, mostly: to try again at once would only burn the processor.
                Err(_) => clock.sleep_until(clock.now() + BREATH).await,
            }
        }
        drop(listener);
        self.rest(connections, &*clock).await
    }

    /// Not a part of `serve`, which is compiled where it is called: connections are with the optimisation of this crate.
    fn take(
        &self,
        stream: TcpStream,
        connections: &mut JoinSet<()>,
        builder: &Builder<TokioExecutor>,
        router: &Router,
        clock: &Arc<dyn Clock>,
    ) {
        let closing = self.shared.closing.subscribe();
        let (builder, router, clock) = (builder.clone(), router.clone(), Arc::clone(clock));
        connections.spawn(connection(builder, stream, router, closing, clock));
    }

    async fn rest(&self, mut connections: JoinSet<()>, clock: &dyn Clock) -> Served {
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

fn builder(settings: &Settings) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(PATIENCE);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(settings.calls_most)
        .initial_stream_window_size(WINDOWS[0])
        .initial_connection_window_size(WINDOWS[1])
        .keep_alive_interval(PATIENCE)
        .keep_alive_timeout(PATIENCE);
    builder
}

/// Serves one connection. What goes wrong with it is the client's to see; the server has nobody to tell.
async fn connection(
    builder: Builder<TokioExecutor>,
    stream: TcpStream,
    router: Router,
    mut closing: watch::Receiver<bool>,
    clock: Arc<dyn Clock>,
) {
    tokio::select! {
        () = first_words(&stream, &*clock) => {}
        () = clock.sleep_until(clock.now() + PATIENCE) => return,
        _ = closing.wait_for(|closing| *closing) => return,
    }
    // Without it small answers wait for the client's acknowledgement of those before; it may fail on a dead socket.
    let _ = stream.set_nodelay(true);
    let service = TowerToHyperService::new(router);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = closing.wait_for(|closing| *closing) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// How HTTP/2 begins.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Until a client has sent enough to tell which HTTP it speaks, or no more will come: the patience of either begins only
/// then.
async fn first_words(stream: &TcpStream, clock: &dyn Clock) {
    let mut words = [0; PREFACE.len()];
    while let Ok(len @ 1..) = stream.peek(&mut words).await {
        if len == words.len() || words[..len] != PREFACE[..len] {
            return;
        }
        clock.sleep_until(clock.now() + BREATH).await;
    }
}
