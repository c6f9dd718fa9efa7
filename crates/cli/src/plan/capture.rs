//! `anabranch plan capture`, and the store of captures.

use std::path::{Path, PathBuf};

use anabranch_content::{Address, Config, Store};
use anabranch_plan_inspect::capture;
use clap::Args;

use super::run::Run;
use crate::failure::Failure;
use crate::out;

pub(super) const HELP: &str = "\
stdout: the answer, as `plan run` writes it. stderr: the address of the capture, also if the request failed. \
`plan replay ADDRESS` answers the request again with the same bytes, without its sources.

  anabranch plan capture feed --request '{\"user_id\": 1}' --store captures --set monday

Exit codes: 0 answered; 1 refused or failed; 2 wrong usage.";

/// Answers one request and stores it.
#[derive(Args)]
pub(crate) struct Capture {
    #[command(flatten)]
    run: Run,
    #[command(flatten)]
    store: StoreAt,
    /// The set that the capture is added to; by default none.
    #[arg(long, value_name = "NAME")]
    set: Option<String>,
}

/// The store of captures.
#[derive(Args)]
pub(crate) struct StoreAt {
    /// The folder of the capture store; `plan capture` creates it.
    #[arg(long, value_name = "DIR")]
    store: PathBuf,
}

/// The destination of a capture.
pub(super) struct CaptureTarget {
    store: Store,
    set: Option<String>,
}

impl StoreAt {
    /// Opens an existing store.
    pub(super) fn open_old(&self) -> Result<Store, Failure> {
        open_old(&self.store)
    }
}

/// Opens an existing store.
pub(super) fn open_old(folder: &Path) -> Result<Store, Failure> {
    match Store::is_in(folder) {
        true => open(folder),
        false => Err(Failure::of(format!(
            "there is no capture store in {}; `anabranch plan capture` creates one",
            folder.display()
        ))),
    }
}

fn open(folder: &Path) -> Result<Store, Failure> {
    Store::open(folder, Config::default())
        .map_err(|error| Failure::of(format!("{}: {error}", folder.display())))
}

impl Capture {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let keep = CaptureTarget { store: open(&self.store.store)?, set: self.set };
        self.run.run_and(Some(keep))
    }
}

impl CaptureTarget {
    /// The store and the set of the capture.
    pub(super) fn place(&self) -> (&Store, Option<&str>) {
        (&self.store, self.set.as_deref())
    }

    /// Reports the address of the capture, and closes the store.
    pub(super) async fn told(self, capture: Result<Address, capture::Error>) -> Result<(), Failure> {
        out::note(&format!("captured: {}", capture?));
        self.store.close().await.map_err(|error| Failure::Failed(Box::new(error)))
    }
}

/// The fewest digits of an address prefix.
const FEWEST_DIGITS: usize = 4;
/// The most captures with the same prefix that are listed.
const LISTED: usize = 10;

/// Parses an address or its first digits.
pub(super) fn address(text: &str) -> Result<String, String> {
    let digits = text.len();
    if !text.bytes().all(|byte| byte.is_ascii_hexdigit()) || !(FEWEST_DIGITS..=64).contains(&digits) {
        return Err(format!(
            "expected the address of a capture: 64 hex digits, or at least its first {FEWEST_DIGITS}; \
             `anabranch plan captures` lists them"
        ));
    }
    Ok(text.to_owned())
}

/// The capture with this address or prefix.
pub(super) async fn find(store: &Store, text: &str) -> Result<Address, Failure> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let found = capture::captures_with_prefix(store, text, LISTED + 1).await?;
    match &found[..] {
        [address] => Ok(*address),
        [] => Err(Failure::of(format!("no capture has an address that begins with {text}"))),
        several => {
            let more = if several.len() > LISTED { "\n  ..." } else { "" };
            let list: Vec<String> =
                several.iter().take(LISTED).map(|address| format!("\n  {address}")).collect();
            let list = list.concat();
            Err(Failure::of(format!("the addresses of several captures begin with {text}:{list}{more}")))
        }
    }
}
