//! `anabranch recipe scrub`.

use anabranch_text::{count, size};
use clap::Args;
use serde_json::json;

use super::at::{At, MissingStore};
use super::show;
use crate::failure::Failure;
use crate::out;

pub(super) const HELP: &str = "\
Damaged items are moved to quarantine and are missing from then on; recipes compute their values again.

Exit codes: 0 all is well; 1 something is damaged, or the scrub failed; 2 wrong usage; 3 all is well \
now, but data that had been acknowledged was lost (the log says what).";

/// Checks everything.
#[derive(Args)]
pub(crate) struct Scrub {
    /// The read rate limit in MiB per second; default: no limit, 32 on a server.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..1 << 40))]
    mib_per_second: Option<u64>,
    #[command(flatten)]
    at: At,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

impl Scrub {
    pub(crate) fn run(self) -> Result<(), Failure> {
        self.at.run_until(
            "stopped; damage that was found so far is in quarantine",
            MissingStore::Refuse,
            async |backend| {
                let found = backend.scrub(self.mib_per_second.map(|mib| mib << 20)).await?;
                let is_fine =
                    found.damaged.is_empty() && found.unreadable.is_empty() && found.index.is_none();
                if self.json {
                    show::json(&json!({
                        "records": found.records, "files": found.files, "bytes": found.bytes,
                        "damaged": show::addresses(&found.damaged), "unreadable": found.unreadable.len(),
                        "index": found.index,
                    }))?;
                } else {
                    show::lines(&found.damaged)?;
                    let (records, files) = (count(found.records, "record"), count(found.files, "large blob"));
                    out::note(&format!("read {records} and {files}, {}", size::format(found.bytes)));
                    out::note(&match is_fine {
                        true => "all is well".to_owned(),
                        false => format!(
                            "{} damaged, {} unreadable; the index is {}",
                            count(found.damaged.len(), "value"),
                            count(found.unreadable.len(), "stretch of the log"),
                            found.index.as_deref().unwrap_or("fine"),
                        ),
                    });
                }
                if is_fine { Ok(()) } else { Err(Failure::Reported) }
            },
        )
    }
}
