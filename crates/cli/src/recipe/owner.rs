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

/// How long calls of other commands may go on once this command is done. Commands that are cut take the store over, and
/// continue by themselves.
const HANDOVER_GRACE: Duration = Duration::from_secs(2);

/// How the calls of other commands end when this command does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Handover {
    /// They may go on for [`HANDOVER_GRACE`].
    WithGrace,
    /// They are cut: the user pressed Ctrl-C and waits.
    AtOnce,
}

/// An executor in this process, and the task that serves it.
pub(super) struct Owner {
    pub(super) executor: Executor,
    folder: PathBuf,
    serving: Mutex<Option<Serving>>,
}

struct Serving {
    stop: oneshot::Sender<()>,
    task: JoinSet<()>,
}

impl Owner {
    /// Begins to serve. Without a socket, which not every file system has, other commands wait until this one ends.
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
                    // An error means that the sender was dropped, which is a stop as well.
                    service.serve_local(listener, async { drop(stopped.await) }).await;
                });
                Serving { stop, task }
            });
        Owner { executor, folder: folder.to_owned(), serving: Mutex::new(serving) }
    }

    /// Accepts no more connections, ends the calls in flight, and closes the store.
    pub(super) async fn close(&self, handover: Handover) -> Result<(), Failure> {
        let serving = self.serving.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Serving { stop, mut task }) = serving {
            // It fails only if the task has ended.
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
