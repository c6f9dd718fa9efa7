//! The location of recipes: a folder, the server that owns it, or a server by its address.

use std::path::PathBuf;

use anabranch_content::Store;
use clap::Args;

use super::backend::Backend;
use super::credentials;
use super::interrupt::Interrupt;
use super::options::StoreOptions;
use super::owner::Handover;
use super::place::Place;
use super::remote::Remote;
use crate::failure::Failure;
use crate::wait;

/// The store or server that a command works on.
#[derive(Args)]
pub(crate) struct At {
    #[command(flatten)]
    remote: Remote,
    #[command(flatten)]
    options: StoreOptions,
}

/// The behaviour if there is no store.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MissingStore {
    Make,
    Refuse,
}

impl At {
    /// Does `work` there, and closes the store afterwards in any case. Fails with [`Failure::Lost`] if the work
    /// succeeded but the store lost acknowledged data.
    pub(super) fn run<T>(
        &self,
        missing: MissingStore,
        work: impl AsyncFnOnce(&Backend) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.run_until("stopped", missing, work)
    }

    /// The same, with a message for Ctrl-C about the data that stays.
    pub(super) fn run_until<T>(
        &self,
        stopped: &str,
        missing: MissingStore,
        work: impl AsyncFnOnce(&Backend) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.run_with(stopped, missing, || Ok(()), async |backend, ()| work(backend).await)
    }

    /// The same for work with input, which is read before the store is opened. Reading may block.
    pub(super) fn run_with<I, T>(
        &self,
        stopped: &str,
        missing: MissingStore,
        read: impl FnOnce() -> Result<I, Failure>,
        work: impl AsyncFnOnce(&Backend, I) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let runtime = runtime()?;
        let interrupt = Interrupt::listen(&runtime, stopped)?;
        let input = read()?;
        let backend = wait::on(&runtime, Box::pin(interrupt.or(self.open(missing))))?;
        let result = wait::on(&runtime, Box::pin(interrupt.or(work(&backend, input))));
        let result = result.map_err(credentials::explained);
        let handover = match result {
            Err(Failure::Interrupted) => Handover::AtOnce,
            _ => Handover::WithGrace,
        };
        let closed = wait::on(&runtime, Box::pin(backend.close(handover)));
        let checked = backend.health().map_or(Ok(()), |health| self.options.check(&health));
        match result {
            // A closed output is fine, but lost data is not.
            Err(Failure::OutputClosed) => checked.and(Err(Failure::OutputClosed)),
            result => {
                let value = result?;
                closed.and(checked).map(|()| value)
            }
        }
    }

    /// Whether a server is named.
    pub(super) fn is_remote(&self) -> bool {
        self.remote.is_named()
    }

    /// The folder of the store. It is meaningless if a server is named.
    pub(super) fn folder(&self) -> Result<PathBuf, Failure> {
        self.remote.folder()
    }

    async fn open(&self, missing: MissingStore) -> Result<Backend, Failure> {
        if let Some(server) = self.remote.named()? {
            return Backend::open(Place::Server { server }).await;
        }
        let folder = self.folder()?;
        if missing == MissingStore::Refuse && !Store::is_in(&folder) {
            let searched = if self.remote.names_folder() { "" } else { " here, nor in a folder above" };
            return Err(Failure::of(format!(
                "there is no store in {}{searched}; `anabranch recipe put FILE` makes one, --data DIR names another",
                folder.display()
            )));
        }
        Backend::open(Place::Folder { folder, config: self.options.config() }).await
    }
}

/// The runtime of commands. The command's own thread may block on files; the threads of the runtime do not.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    wait::runtime(tokio::runtime::Builder::new_multi_thread().worker_threads(2))
}
