//! `anabranch recipe pin`, `unpin` and `pins`.

use anabranch_content::Address;
use clap::Args;
use serde_json::{Value as Json, json};

use super::at::{At, MissingStore};
use super::backend::Backend;
use super::show;
use crate::failure::Failure;
use crate::out;

/// Pins addresses.
#[derive(Args)]
pub(crate) struct Pin {
    #[command(flatten)]
    targets: TargetArguments,
}

/// Removes pins.
#[derive(Args)]
pub(crate) struct Unpin {
    #[command(flatten)]
    targets: TargetArguments,
}

/// Lists pinned addresses.
#[derive(Args)]
pub(crate) struct Pins {
    #[command(flatten)]
    at: At,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// Which addresses, and where.
#[derive(Args)]
struct TargetArguments {
    /// Addresses, the first 6 or more digits of them, or names.
    #[arg(value_name = "TARGET", required = true)]
    targets: Vec<String>,
    #[command(flatten)]
    at: At,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// The number of pins that are read at a time.
const PAGE: u16 = 1000;

impl Pin {
    pub(crate) fn run(self) -> Result<(), Failure> {
        self.targets
            .each("pinned", "was pinned already", &async |backend, address| backend.pin(address).await)
    }
}

impl Unpin {
    pub(crate) fn run(self) -> Result<(), Failure> {
        self.targets
            .each("unpinned", "was not pinned", &async |backend, address| backend.unpin(address).await)
    }
}

impl TargetArguments {
    fn each(
        self,
        done: &str,
        not: &str,
        act: &impl AsyncFn(&Backend, Address) -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
        self.at.run(MissingStore::Refuse, async |backend| {
            let mut json = Vec::new();
            for address in backend.find_all(&self.targets).await? {
                let changed = act(backend, address).await?;
                json.push(json!({"address": address.to_string(), "changed": changed}));
                if !self.json {
                    out::note(&format!("{address} {}", if changed { done } else { not }));
                }
            }
            if self.json { show::json(&Json::from(json)) } else { Ok(()) }
        })
    }
}

impl Pins {
    pub(crate) fn run(self) -> Result<(), Failure> {
        self.at.run(MissingStore::Refuse, async |backend| {
            let pins = all(backend).await?;
            if self.json {
                return show::json(&show::addresses(&pins).into());
            }
            if pins.is_empty() {
                out::note("no pins; `anabranch recipe pin TARGET` sets one");
            }
            show::lines(&pins)
        })
    }
}

/// All pins.
pub(super) async fn all(backend: &Backend) -> Result<Vec<Address>, Failure> {
    let mut pins: Vec<Address> = Vec::new();
    loop {
        let page = backend.pins(pins.last().copied(), PAGE).await?;
        let is_last = page.len() < usize::from(PAGE);
        pins.extend(page);
        if is_last {
            return Ok(pins);
        }
    }
}
