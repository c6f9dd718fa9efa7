//! The map of a Cluster's slots. Its own task renews it, so that this continues even if the request that started it is
//! gone.

use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::tasks::AbortOnDrop;
use futures_util::future::{Either, FutureExt as _, Shared, select};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::sync::oneshot;

use super::connection::Failure;
use super::encode::command;
use super::node::Node;
use super::servers::{Inner, Routes};
use super::sink::{Sink, Value};
use super::slots;
use crate::source::Error;

/// The minimum age of a map before it is renewed.
const MAP_AGE: Duration = Duration::from_millis(100);

/// If a server has not answered after this time, the next one is asked as well.
const HEAD_START: Duration = Duration::from_millis(50);

/// A renewal in progress.
pub(super) struct Refresh {
    done: Shared<oneshot::Receiver<Result<(), Error>>>,
    _task: AbortOnDrop,
}

impl Inner {
    /// Starts to renew the map, unless that is in progress or was done recently.
    pub(super) fn refresh_soon(self: &Arc<Self>) {
        let seen = self.lock().routes.clone();
        let _under_way = self.begin_refresh(seen.as_ref());
    }

    /// Waits until the map is renewed, unless it is no longer the one in `seen`, or was renewed recently.
    pub(super) async fn refreshed(self: &Arc<Self>, seen: Option<&Arc<Routes>>) -> Result<(), Error> {
        let Some(done) = self.begin_refresh(seen) else { return Ok(()) };
        done.await.unwrap_or_else(|_| {
            let cause = "the map of the Cluster's slots was not read to its end".into();
            Err(Error::Connect { endpoint: Arc::clone(&self.config.endpoint), cause })
        })
    }

    /// The renewal in progress, or a new one; `None` if none is needed.
    fn begin_refresh(
        self: &Arc<Self>,
        seen: Option<&Arc<Routes>>,
    ) -> Option<Shared<oneshot::Receiver<Result<(), Error>>>> {
        let now = self.world.clock.now();
        let mut state = self.lock();
        if let Some(refresh) = &state.refresh {
            return Some(refresh.done.clone());
        }
        if let Some(current) = &state.routes {
            let changed = seen.is_none_or(|seen| !Arc::ptr_eq(seen, current));
            if changed || now.saturating_duration_since(current.made) < MAP_AGE {
                return None;
            }
        }
        let (tell, done) = oneshot::channel();
        let done = done.shared();
        let inner = Arc::clone(self);
        let task = self.world.tasks.spawn(Box::pin(async move {
            let outcome = look(&inner).await;
            let finished = inner.lock().refresh.take();
            // There may be no receiver.
            let _ = tell.send(outcome);
            drop(finished);
        }));
        state.refresh = Some(Refresh { done: done.clone(), _task: task });
        Some(done)
    }
}

/// Asks the known servers for the map, the latest known first, since configured ones may be gone. One that does not
/// answer soon does not hold up the next.
async fn look(inner: &Inner) -> Result<(), Error> {
    let mut nodes = inner.lock().nodes.clone();
    let mut asked = FuturesUnordered::new();
    let mut failure = None;
    loop {
        let next = nodes.pop();
        let last = next.is_none();
        asked.extend(next.map(|node| ask(inner, node)));
        let head_start = inner.world.clock.sleep_until(inner.world.clock.now() + HEAD_START);
        let answer = match last {
            true => asked.next().await,
            false => match select(asked.next(), head_start).await {
                Either::Left((answer, _)) => answer,
                Either::Right(_) => continue,
            },
        };
        match answer {
            Some(Ok(ranges)) => {
                inner.install(&ranges);
                return Ok(());
            }
            Some(Err(error)) => _ = failure.get_or_insert(error),
            None if last => return Err(failure.expect("at least one server was asked and did not answer")),
            None => {}
        }
    }
}

async fn ask(inner: &Inner, node: Arc<Node>) -> Result<Vec<slots::Range>, Error> {
    let mut bytes = Vec::new();
    command(&mut bytes, &["CLUSTER", "SLOTS"]);
    let refused = |message: String| inner.config.refused("CLUSTER SLOTS".to_owned(), message);
    let sink = match node.send(node.next_link(), bytes, Sink::values(), 1, false).await {
        Ok(sink) => sink,
        Err(Failure::Error(error)) => return Err(error),
        Err(Failure::Malformed { found, .. }) => return Err(refused(found.0.into_owned())),
    };
    let reply = sink.into_values().pop().unwrap_or(Value::Null);
    slots::map(&reply, &node.address.0).map_err(refused)
}
