//! The server of a command: named by its address, or the one that serves the store.

use std::path::PathBuf;

use anabranch_content::Store;
use anabranch_server::{Client, ServerAddress};
use clap::Args;

use super::credentials::{self, Credentials};
use super::data_folder::{self, DataFolder};
use super::interrupt::Interrupt;
use super::place;
use crate::failure::Failure;
use crate::wait;

/// A store, or a server by its address.
#[derive(Args)]
pub(crate) struct Remote {
    #[command(flatten)]
    data: DataFolder,
    /// The server to use instead of the store of --data: http://HOST:PORT or https://HOST:PORT.
    #[arg(long, value_name = "URL", env = "ANABRANCH_SERVER", hide_env_values = true)]
    server: Option<String>,
    #[command(flatten)]
    credentials: Credentials,
}

impl Remote {
    /// The folder of the store. It is meaningless if a server is named.
    pub(crate) fn folder(&self) -> Result<PathBuf, Failure> {
        match self.data.find() {
            Err(_) if self.is_named() => Ok(data_folder::NAME.into()),
            found => found,
        }
    }

    /// True if the user named the folder of the store.
    pub(crate) fn names_folder(&self) -> bool {
        self.data.given().is_some()
    }

    /// Whether a server is named.
    pub(crate) fn is_named(&self) -> bool {
        self.server.is_some()
    }

    /// The server that the user named.
    pub(crate) fn named(&self) -> Result<Option<ServerAddress>, Failure> {
        self.server.as_deref().map(|url| self.credentials.address(url, &self.folder()?)).transpose()
    }

    /// The server that the user named, or the one that serves the store.
    pub(crate) fn server(&self) -> Result<ServerAddress, Failure> {
        if let Some(named) = self.named()? {
            return Ok(named);
        }
        let folder = self.folder()?;
        match Store::announced(&folder) {
            Some(url) => self.credentials.address(&url, &folder),
            None => Err(Failure::of(format!(
                "no server serves {}; `anabranch serve` starts one, --server URL names another",
                folder.display()
            ))),
        }
    }
}

/// Calls a server until Ctrl-C is pressed. The message describes what is left behind then.
pub(crate) fn ask<T>(
    server: &ServerAddress,
    stopped: &str,
    work: impl AsyncFnOnce(&Client) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let runtime = super::runtime()?;
    let interrupt = Interrupt::listen(&runtime, stopped)?;
    let asked = async {
        let client = place::connect(server).await?;
        work(&client).await
    };
    wait::on(&runtime, Box::pin(interrupt.or(asked))).map_err(credentials::explained)
}
