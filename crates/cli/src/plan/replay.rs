//! `anabranch plan replay`.

use anabranch_plan_inspect::capture::{Capture, NodeRows, Replayer};
use anabranch_text::count;
use clap::Args;

use super::capture::{StoreAt, address, find};
use super::run::{ledger, table};
use crate::failure::Failure;
use crate::out;
use crate::wait;

pub(super) const HELP: &str = "\
stdout: the answer, with the same bytes as when it was captured. If the captured request failed, its error goes to \
stderr. With --node: the rows of that node at the time of the request; if the request failed, only nodes before the \
failed one have rows.

An ADDRESS may be shortened to its first digits, at least 4, if no other capture begins with them.

  anabranch plan replay 1f3a --store captures
  anabranch plan replay 1f3a --store captures --node ranked

Exit codes: 0 answered, the same; 1 failed, or not the same (stderr says so); 2 wrong usage.";

/// Answers a captured request again.
#[derive(Args)]
pub(crate) struct Replay {
    /// The capture.
    #[arg(value_name = "ADDRESS", value_parser = address)]
    capture: String,
    #[command(flatten)]
    store: StoreAt,
    /// The rows of this node, as a table, instead of the answer.
    #[arg(long, value_name = "ID")]
    node: Option<String>,
    /// The rows of the node as JSON, as in an answer.
    #[arg(long, requires = "node")]
    json: bool,
}

impl Replay {
    pub(crate) fn run(self) -> Result<(), Failure> {
        wait::here(Box::pin(self.answer()))
    }

    async fn answer(self) -> Result<(), Failure> {
        let store = self.store.open_old()?;
        let capture = Capture::load(&store, find(&store, &self.capture).await?).await?;
        if let Some(node) = &self.node {
            return self.rows(&Replayer::default().node(&capture, node).await?);
        }
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
    fn rows(&self, found: &NodeRows) -> Result<(), Failure> {
        let NodeRows { node, answer, registries } = found;
        if self.json {
            let mut line = Vec::new();
            answer.write_json(&registries.keys, &mut line);
            line.push(b'\n');
            return out::data(str::from_utf8(&line).expect("JSON is text"));
        }
        let rows = answer.candidates().count() as u64;
        out::note(&format!("{node}: {}", count(rows, "row")));
        if !answer.ledger.is_empty() {
            out::note(&format!("degraded:\n{}", ledger(answer).text(2).trim_end()));
        }
        out::data(&table(answer, registries).text(0))
    }
}
