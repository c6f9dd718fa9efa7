//! Where recipes are kept: a folder, the server that owns it, or a server by its address.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anabranch_content::{Error as StoreError, Store};
use anabranch_engine::clock::{Clock as _, SystemClock};
use anabranch_recipe::{Error, Executor, Functions};
use anabranch_server::Client;
use clap::Args;

use super::backend::Backend;
use super::options::StoreOptions;
use crate::failure::Failure;
use crate::wait;

/// Where recipes are kept.
#[derive(Args)]
pub(crate) struct At {
    /// The folder of the store; if a server has it, that is talked to.
    #[arg(
        long,
        value_name = "DIR",
        env = "ANABRANCH_DATA",
        default_value = ".anabranch",
        hide_env_values = true
    )]
    data: PathBuf,
    /// The server to talk to, http://HOST:PORT, whatever --data says.
    #[arg(long, value_name = "URL", env = "ANABRANCH_SERVER", hide_env_values = true)]
    server: Option<String>,
    #[command(flatten)]
    options: StoreOptions,
}

/// Whether a store is made where there is none.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    Make,
    Refuse,
}

/// How long another command may have the store before this one gives up.
const WAIT: Duration = Duration::from_secs(5);

/// How long a server may take to shut down, which it does within ten seconds, and give the store up.
const SHUTDOWN_WAIT: Duration = Duration::from_secs(15);

/// How often it is looked whether that is over.
const LOOK: Duration = Duration::from_millis(20);

impl At {
    /// Does something there, and closes the store afterwards whatever came of it. Work that was done fails with
    /// [`Failure::Lost`] if the store lost acknowledged data.
    pub(super) fn run<T>(
        &self,
        missing: Missing,
        work: impl AsyncFnOnce(&Backend) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let runtime = runtime()?;
        let backend = wait::on(&runtime, Box::pin(self.open(missing)))?;
        let result = wait::on(&runtime, Box::pin(work(&backend)));
        let closed = wait::on(&runtime, Box::pin(backend.close()));
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

    async fn open(&self, missing: Missing) -> Result<Backend, Failure> {
        if let Some(url) = &self.server {
            return Ok(Backend::Remote(connect(url).await?));
        }
        let folder = &self.data;
        if missing == Missing::Refuse && !Store::is_in(folder) {
            return Err(Failure::of(format!(
                "there is no store in {}; `anabranch recipe put FILE` makes one, --data DIR names another",
                folder.display()
            )));
        }
        let began = SystemClock.now();
        loop {
            let refused = match Executor::open_with(folder, Functions::builtin(), self.options.config()).await
            {
                Ok(executor) => return Ok(Backend::Local(executor)),
                Err(Error::Store(error @ StoreError::Owned { .. })) => error,
                Err(error) => return Err(unopened(folder, &error)),
            };
            let StoreError::Owned { listens_on, .. } = &refused else { unreachable!("matched above") };
            let mut patience = WAIT;
            if let Some(listens_on) = listens_on {
                // A server that shuts down still has the store, but listens no more.
                match Client::connect(&format!("http://{listens_on}")).await {
                    Ok(client) => return Ok(Backend::Remote(client)),
                    Err(_) => patience = SHUTDOWN_WAIT,
                }
            }
            if SystemClock.now() - began >= patience {
                return Err(Failure::of(format!(
                    "{}: {refused}; wait until that ends, or have `anabranch serve` share the store",
                    folder.display()
                )));
            }
            SystemClock.sleep_until(SystemClock.now() + LOOK).await;
        }
    }
}

/// The runtime of commands: the thread of the command itself may wait for files, these threads do not.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    wait::runtime(tokio::runtime::Builder::new_multi_thread().worker_threads(2))
}

async fn connect(url: &str) -> Result<Client, Failure> {
    if url.starts_with("https://") {
        let message = format!("--server {url}: this version has no TLS; name a server with http://");
        return Err(Failure::Wrong(message));
    }
    match url.starts_with("http://") {
        true => Ok(Client::connect(url).await?),
        false => Err(Failure::Wrong(format!("--server {url}: an address looks like http://127.0.0.1:7421"))),
    }
}

pub(crate) fn unopened(folder: &Path, error: &Error) -> Failure {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
    Failure::of(format!("{}: {error}{cause}", folder.display()))
}
