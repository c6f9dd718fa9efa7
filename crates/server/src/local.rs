//! Serving a Unix socket, for other commands of the same user.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::serve::{Served, builder};
use crate::service::Service;

/// The pause after a connection could not be accepted, mostly because the process has too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

impl Service {
    /// Serves the calls of gRPC on a Unix socket until `shutdown` ends; then lets the calls in flight end within the
    /// grace period. The permissions of the socket decide who may connect. The router is built for the first
    /// connection, so that a process without any pays nothing for it.
    pub async fn serve_local(&self, listener: UnixListener, shutdown: impl Future<Output = ()>) -> Served {
        let settings = &self.shared.settings;
        let clock = Arc::clone(self.shared.executor.engine().clock());
        let builder = builder(settings).http2_only();
        let mut router = None;
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
                Ok((stream, _)) => {
                    let router = router.get_or_insert_with(|| self.router()).clone();
                    let closing = self.shared.closing.subscribe();
                    connections.spawn(connection(builder.clone(), stream, router, closing));
                }
                Err(_) => clock.sleep_until(clock.now() + ACCEPT_PAUSE).await,
            }
        }
        drop(listener);
        self.rest(connections, &*clock).await
    }
}

async fn connection(
    builder: Builder<TokioExecutor>,
    stream: UnixStream,
    router: Router,
    mut closing: watch::Receiver<bool>,
) {
    let service = TowerToHyperService::new(router);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = closing.wait_for(|closing| *closing) => connection.as_mut().graceful_shutdown(),
    }
    // The client sees how its connection ends; the server has nobody to tell.
    let _ = connection.await;
}
