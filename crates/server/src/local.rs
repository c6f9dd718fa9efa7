//! Serves a Unix socket, for other commands of the same user.

use std::pin::pin;
use std::sync::Arc;

use tokio::net::UnixListener;

use crate::access::Peer;
use crate::connections::{Activity, Connections};
use crate::serve::{RETRY_PAUSE, ShutdownReport, answer_all, builder};
use crate::service::Service;

impl Service {
    /// Serves gRPC calls on a Unix socket until `shutdown` completes, then waits for the calls in flight for up to the
    /// grace period. The permissions of the socket decide who may connect. The router is built for the first
    /// connection, so that a process without connections does not pay for it.
    pub async fn serve_local(
        &self,
        listener: UnixListener,
        shutdown: impl Future<Output = ()>,
    ) -> ShutdownReport {
        let shared = &self.shared;
        let clock = Arc::clone(&shared.clock);
        let builder = builder(&shared.settings).http2_only();
        let mut router = None;
        let mut connections = Connections::default();
        let mut shutdown = pin!(shutdown);
        loop {
            let room = connections.len() < shared.settings.connections_most;
            let accepted = tokio::select! {
                () = &mut shutdown => break,
                Some(()) = connections.join_next() => continue,
                accepted = listener.accept(), if room => accepted,
            };
            match accepted {
                Ok((stream, _)) => {
                    let router = router.get_or_insert_with(|| self.router()).clone();
                    let traffic = Arc::clone(&shared.traffic);
                    let activity = Arc::new(Activity::new(Arc::clone(&shared.clock), traffic, Peer::Socket));
                    let (shared, own) = (Arc::clone(shared), Arc::clone(&activity));
                    connections.spawn(activity, answer_all(builder.clone(), stream, router, shared, own));
                }
                // The usual cause is that no file descriptor is free. An immediate retry would only burn CPU time.
                Err(_) => clock.sleep_until(clock.now() + RETRY_PAUSE).await,
            }
        }
        drop(listener);
        self.shut_down(connections, &*clock).await
    }
}
