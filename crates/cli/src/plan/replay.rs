//! `anabranch plan replay`.

use anabranch_content::Address;
use anabranch_plan::captures::{Capture, Replayer};
use clap::Args;

use super::capture::{StoreAt, address};
use crate::failure::Failure;
use crate::out;

pub(super) const HELP: &str = "\
stdout: the answer, the same bytes as when it was captured. What a captured request failed with is on
stderr, as it was then.

Exit codes: 0 answered, the same; 1 failed, or not the same (stderr says so); 2 wrong usage.";

/// Answers a captured request again.
#[derive(Args)]
pub(crate) struct Replay {
    /// The capture.
    #[arg(value_name = "ADDRESS", value_parser = address)]
    capture: Address,
    #[command(flatten)]
    store: StoreAt,
}

impl Replay {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::of(format!("no event loop: {error}")))?;
        runtime.block_on(self.answer())
    }

    async fn answer(self) -> Result<(), Failure> {
        let store = self.store.open_old()?;
        let capture = Capture::load(&store, self.capture).await?;
        let replayed = Replayer::default().replay(&capture).await?;
        if replayed.answer.is_ok() {
            let mut line = replayed.bytes;
            line.push(b'\n');
            out::data(str::from_utf8(&line).expect("JSON is text"))?;
        }
        match (replayed.answer, replayed.same) {
            (Ok(_), true) => Ok(()),
            (Err(failure), true) => Err(Failure::Failed(Box::new(failure))),
            (answer, false) => {
                let failed =
                    answer.err().map(|failure| format!(": it failed: {failure}")).unwrap_or_default();
                let captured = String::from_utf8_lossy(&capture.answer).into_owned();
                Err(Failure::of(format!("this is not what was captured{failed}; that was {captured}")))
            }
        }
    }
}
