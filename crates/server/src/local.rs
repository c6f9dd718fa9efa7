//! Serves a Unix socket, for other commands of the same user.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};

use crate::access::Peer;
use crate::connections::{Activity, Connections};
use crate::serve::{Protocol, RETRY_PAUSE, answer_all, arrived, builder, closed};
use crate::service::Service;

impl Service {
    /// Accepts connections of a Unix socket, for gRPC calls, until the server shuts down. The router is built for the first
    /// connection, so that a process without connections does not pay for it.
    pub(crate) async fn accept_local(&self, listener: UnixListener) -> Connections {
        let shared = &self.shared;
        let clock = Arc::clone(&shared.clock);
        let builder = builder(&shared.settings);
        let mut responder = None;
        let mut connections = Connections::default();
        let mut take = |connections: &mut Connections, stream: UnixStream| {
            let responder = responder.get_or_insert_with(|| self.responder()).clone();
            let traffic = Arc::clone(&shared.traffic);
            let activity = Arc::new(Activity::new(Arc::clone(&shared.clock), traffic, Peer::Socket));
            let calls = Arc::clone(&activity);
            connections
                .spawn(activity, answer_all(builder.clone(), stream, Protocol::Http2, responder, calls));
        };
        let mut closed = pin!(closed(shared, || Duration::ZERO));
        loop {
            let room = connections.len() < shared.settings.connections_most;
            let accepted = tokio::select! {
                () = &mut closed => break,
                Some(()) = connections.join_next() => continue,
                accepted = listener.accept(), if room => accepted,
            };
            match accepted {
                Ok((stream, _)) => take(&mut connections, stream),
                // The usual cause is that no file descriptor is free. An immediate retry would only burn CPU time.
                Err(_) => clock.sleep_until(clock.now() + RETRY_PAUSE).await,
            }
        }
        let room = shared.settings.connections_most.saturating_sub(connections.len());
        for (stream, _) in arrived(listener.into_std(), std::os::unix::net::UnixListener::accept).take(room) {
            if stream.set_nonblocking(true).is_ok()
                && let Ok(stream) = UnixStream::from_std(stream)
            {
                take(&mut connections, stream);
            }
        }
        connections
    }
}
