//! Where recipes are kept: a folder, the server that owns it, or a server by its address.

use std::path::PathBuf;

use anabranch_content::Store;
use clap::Args;

use super::backend::Backend;
use super::credentials::{self, Credentials};
use super::data_folder::DataFolder;
use super::interrupt::Interrupt;
use super::options::StoreOptions;
use super::owner::Handover;
use super::place::Place;
use crate::failure::Failure;
use crate::wait;

/// The store or server that a command works on.
#[derive(Args)]
pub(crate) struct At {
    #[command(flatten)]
    data: DataFolder,
    /// The server to talk to, http://HOST:PORT or https://HOST:PORT, whatever --data says.
    #[arg(long, value_name = "URL", env = "ANABRANCH_SERVER", hide_env_values = true)]
    server: Option<String>,
    #[command(flatten)]
    credentials: Credentials,
    #[command(flatten)]
    options: StoreOptions,
}

/// Whether a store is made where there is none.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    Make,
    Refuse,
}

impl At {
    /// Does something there, and closes the store afterwards whatever came of it. Work that was done fails with
    /// [`Failure::Lost`] if the store lost acknowledged data.
    pub(super) fn run<T>(
        &self,
        missing: Missing,
        work: impl AsyncFnOnce(&Backend) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.run_until("stopped", missing, work)
    }

    /// The same, with a message for Ctrl-C that says what is kept.
    pub(super) fn run_until<T>(
        &self,
        stopped: &str,
        missing: Missing,
        work: impl AsyncFnOnce(&Backend) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let runtime = runtime()?;
        let interrupt = Interrupt::listen(&runtime, stopped)?;
        let backend = wait::on(&runtime, Box::pin(interrupt.or(self.open(missing))))?;
        let result = wait::on(&runtime, Box::pin(interrupt.or(work(&backend))));
        let result = result.map_err(credentials::explained);
        let handover = match result {
            Err(Failure::Interrupted) => Handover::AtOnce,
            _ => Handover::WithGrace,
        };
        let closed = wait::on(&runtime, Box::pin(backend.close(handover)));
        let checked = backend.health().map_or(Ok(()), |health| self.options.check(&health));
        match result {
            // Nobody reads the output any more, which is fine; a loss is not.
            Err(Failure::Unheard) => checked.and(Err(Failure::Unheard)),
            result => {
                let value = result?;
                closed.and(checked).map(|()| value)
            }
        }
    }

    /// Whether a server is named.
    pub(super) fn is_remote(&self) -> bool {
        self.server.is_some()
    }

    /// The folder of the store. With a server it says nothing.
    pub(super) fn folder(&self) -> PathBuf {
        self.data.find()
    }

    async fn open(&self, missing: Missing) -> Result<Backend, Failure> {
        if let Some(url) = &self.server {
            let server = self.credentials.address(url, &self.data.find())?;
            return Backend::open(Place::Server { server }).await;
        }
        let folder = self.data.find();
        if missing == Missing::Refuse && !Store::is_in(&folder) {
            return Err(Failure::of(format!(
                "there is no store in {}; `anabranch recipe put FILE` makes one, --data DIR names another",
                folder.display()
            )));
        }
        Backend::open(Place::Folder { folder, config: self.options.config() }).await
    }
}

/// The runtime of commands: the thread of the command itself may wait for files, these threads do not.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    wait::runtime(tokio::runtime::Builder::new_multi_thread().worker_threads(2))
}
