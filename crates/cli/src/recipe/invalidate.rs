//! `anabranch recipe invalidate`.

use anabranch_content::DryRun;
use anabranch_recipe::Reach;
use anabranch_text::{count, size};
use clap::Args;
use serde_json::json;

use super::at::{At, MissingStore};
use super::show;
use crate::failure::Failure;
use crate::out;

/// Forgets the value of a recipe.
#[derive(Args)]
pub(crate) struct Invalidate {
    /// An address, the first 6 or more digits of one, or a name; of a blob with --cascade, all that was made from it.
    #[arg(value_name = "TARGET")]
    target: String,
    /// Forgets the values of everything made from it, too.
    #[arg(long)]
    cascade: bool,
    /// Shows what would be forgotten, and forgets nothing.
    #[arg(long)]
    dry_run: bool,
    /// Lists the recipes whose values are forgotten.
    #[arg(long)]
    detail: bool,
    #[command(flatten)]
    at: At,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// The most addresses that are listed.
const LISTED: usize = 10_000;

impl Invalidate {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let terms = anabranch_recipe::Invalidate {
            reach: if self.cascade { Reach::Dependents } else { Reach::Alone },
            dry_run: if self.dry_run { DryRun::Yes } else { DryRun::No },
            detail: if self.detail { LISTED } else { 0 },
        };
        self.at.run_until(
            "stopped; the values forgotten so far will be computed again",
            MissingStore::Refuse,
            async |backend| {
                let address = backend.find(&self.target).await?;
                let done = backend.invalidate(address, &terms).await?;
                if self.json {
                    return show::json(&json!({
                        "forgotten": done.forgotten, "looked_at": done.looked_at, "depth": done.depth,
                        "bytes": done.bytes, "addresses": show::addresses(&done.addresses),
                        "dry_run": self.dry_run,
                    }));
                }
                show::lines(&done.addresses)?;
                let verb = if self.dry_run { "would forget" } else { "forgot" };
                out::note(&format!(
                    "{verb} {} ({}); {} visited",
                    count(done.forgotten, "value"),
                    size::format(done.bytes),
                    count(done.looked_at, "item"),
                ));
                Ok(())
            },
        )
    }
}
