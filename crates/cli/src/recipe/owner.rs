//! A store that this process owns and serves to other commands on its socket.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anabranch_recipe::Executor;
use anabranch_server::{Service, Settings};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tracing::debug;

use super::socket;
use crate::failure::Failure;

/// The grace period for the calls of other commands once this command is done. Commands whose calls are cut off take
/// over the store, and continue by themselves.
const HANDOVER_GRACE: Duration = Duration::from_secs(2);

/// The way in which the calls of other commands end when this command does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Handover {
    /// They may continue for [`HANDOVER_GRACE`].
    WithGrace,
    /// They are cut off, because the user pressed Ctrl-C and waits.
    AtOnce,
}

/// An executor in this process, and the task that serves it.
pub(super) struct Owner {
    pub(super) executor: Executor,
    folder: PathBuf,
    serving: Mutex<Option<ServingTask>>,
}

struct ServingTask {
    stop: oneshot::Sender<()>,
    task: JoinSet<()>,
}

impl Owner {
    /// Starts to serve. Not every file system has sockets. Without one, other commands wait until this one ends.
    pub(super) fn new(executor: Executor, folder: &Path) -> Owner {
        let serving = socket::bind(folder)
            .inspect_err(|error| debug!(%error, "other commands cannot connect to this one"))
            .ok()
            .map(|listener| {
                let settings = Settings { grace: HANDOVER_GRACE, ..Settings::default() };
                let service = Service::new(executor.clone(), settings);
                let (stop, stopped) = oneshot::channel::<()>();
                let mut task = JoinSet::new();
                task.spawn(async move {
                    // An error means that the sender was dropped, which also means stop.
                    service.serve(listener, async { drop(stopped.await) }).await;
                });
                ServingTask { stop, task }
            });
        Owner { executor, folder: folder.to_owned(), serving: Mutex::new(serving) }
    }

    /// Stops accepting connections, ends the calls in flight, and closes the store.
    pub(super) async fn close(&self, handover: Handover) -> Result<(), Failure> {
        let serving = self.serving.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(ServingTask { stop, mut task }) = serving {
            // This fails only if the task has ended.
            let _ = stop.send(());
            if handover == Handover::AtOnce {
                task.abort_all();
            }
            while task.join_next().await.is_some() {}
            // The next owner replaces a socket that cannot be removed.
            let _ = socket::remove(&self.folder);
        }
        Ok(self.executor.store().clone().close().await?)
    }
}
