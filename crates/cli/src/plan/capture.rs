//! `anabranch plan capture`, and where captures are kept.

use std::path::{Path, PathBuf};

use anabranch_content::{Address, Config, Store};
use anabranch_plan_inspect::capture;
use clap::Args;

use super::run::Run;
use crate::failure::Failure;
use crate::out;

pub(super) const HELP: &str = "\
stdout: the answer, as `plan run` writes it. stderr: the address of the capture, also of a request that
failed. `plan replay ADDRESS` answers it again, the same to the byte, without its sources.

  anabranch plan capture feed --request '{\"user_id\": 1}' --store captures --set monday

Exit codes: 0 answered; 1 refused or failed; 2 wrong usage.";

/// Answers one request and keeps all that its answer came from.
#[derive(Args)]
pub(crate) struct Capture {
    #[command(flatten)]
    run: Run,
    #[command(flatten)]
    store: StoreAt,
    /// The set that it becomes part of; without this option it is kept by itself.
    #[arg(long, value_name = "NAME")]
    set: Option<String>,
}

/// Where captures are kept.
#[derive(Args)]
pub(crate) struct StoreAt {
    /// The folder of the store that keeps captures; made if it is not there.
    #[arg(long, value_name = "DIR")]
    store: PathBuf,
}

/// Where a capture goes.
pub(super) struct Keep {
    store: Store,
    set: Option<String>,
}

impl StoreAt {
    /// Opens a store that is there already.
    pub(super) fn open_old(&self) -> Result<Store, Failure> {
        open_old(&self.store)
    }
}

/// Opens a store that is there already.
pub(super) fn open_old(folder: &Path) -> Result<Store, Failure> {
    match Store::is_in(folder) {
        true => open(folder),
        false => Err(Failure::of(format!("there is no store in {}", folder.display()))),
    }
}

fn open(folder: &Path) -> Result<Store, Failure> {
    Store::open(folder, Config::default())
        .map_err(|error| Failure::of(format!("{}: {error}", folder.display())))
}

impl Capture {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let keep = Keep { store: open(&self.store.store)?, set: self.set };
        self.run.run_and(Some(keep))
    }
}

impl Keep {
    /// Where the capture goes.
    pub(super) fn place(&self) -> (&Store, Option<&str>) {
        (&self.store, self.set.as_deref())
    }

    /// Tells what became of the capture, and gives the store up.
    pub(super) async fn told(self, capture: Result<Address, capture::Error>) -> Result<(), Failure> {
        out::note(&format!("captured: {}", capture?));
        self.store.close().await.map_err(|error| Failure::Failed(Box::new(error)))
    }
}

/// An address on the command line.
pub(super) fn address(text: &str) -> Result<Address, String> {
    text.parse().map_err(|error: anabranch_content::ParseError| error.to_string())
}
