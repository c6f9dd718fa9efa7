//! `anabranch recipe collect`.

use std::time::Duration;

use anabranch_content::{DryRun, Scope};
use anabranch_text::{count, duration, size};
use clap::Args;
use serde_json::json;

use super::at::{At, MissingStore};
use super::show;
use crate::failure::Failure;
use crate::out;

pub(super) const HELP: &str = "\
Keeps pins, names and imports, with everything needed to derive them, and all items younger than the \
grace period. `recipe du` says what holds the space; `recipe imports drop ID` and `recipe ref drop NAME \
--history` drop holders.

  anabranch recipe collect --dry-run --detail
  anabranch recipe collect --grace 0 --keep-recipes

Exit codes: 0 fine; 1 failed; 2 wrong usage; 3 done, but data that had been acknowledged was lost \
(the log says what).";

/// Removes what nothing holds.
#[derive(Args)]
pub(crate) struct Collect {
    /// Younger items stay, held or not: 30s, 5m, 24h, 0.
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "5m")]
    grace: Duration,
    /// Shows what would be removed, and removes nothing.
    #[arg(long)]
    dry_run: bool,
    /// Keeps all recipes, their inputs and their values.
    #[arg(long, conflicts_with = "derivable")]
    keep_recipes: bool,
    /// Removes only values that can be computed again.
    #[arg(long)]
    derivable: bool,
    /// Stops when the store is no larger than this, such as 512MiB or 10GB.
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    until_bytes: Option<u64>,
    /// Removes at most N items.
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    most: usize,
    /// Lists the removed addresses, up to 10000.
    #[arg(long)]
    detail: bool,
    #[command(flatten)]
    at: At,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

impl Collect {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let terms = anabranch_content::Collect {
            grace: self.grace,
            scope: match (self.keep_recipes, self.derivable) {
                (true, _) => Scope::KeepDerivations,
                (_, true) => Scope::Derivable,
                _ => Scope::All,
            },
            dry_run: if self.dry_run { DryRun::Yes } else { DryRun::No },
            most: self.most,
            until_bytes: self.until_bytes,
            detail: if self.detail { 10_000 } else { 0 },
        };
        self.at.run_until("stopped; the items removed so far are gone", MissingStore::Refuse, async |backend| {
            let done = backend.collect(&terms).await?;
            if self.json {
                return show::json(&json!({
                    "blobs": done.blobs, "bytes": done.bytes, "memos": done.memos,
                    "recipes": done.derivations, "held": done.held, "young": done.young, "left": done.left,
                    "removed": show::addresses(&done.removed), "dry_run": self.dry_run,
                }));
            }
            show::lines(&done.removed)?;
            let verb = if self.dry_run { "would remove" } else { "removed" };
            out::note(&format!(
                "{verb} {} ({}), {} and {}; {} held, {} younger than the grace period, {} left for a later collection",
                count(done.blobs, "blob"),
                size::format(done.bytes),
                count(done.memos, "memo"),
                count(done.derivations, "recipe"),
                count(done.held, "item"),
                done.young,
                done.left,
            ));
            Ok(())
        })
    }
}
