//! `anabranch recipe status`.

use anabranch_content::Health;
use anabranch_text::{count, size};
use clap::Args;
use serde_json::{Value as Json, json};

use super::at::{At, MissingStore};
use super::show;
use crate::failure::Failure;

/// Shows counts and sizes.
#[derive(Args)]
pub(crate) struct Status {
    #[command(flatten)]
    at: At,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

impl Status {
    pub(crate) fn run(self) -> Result<(), Failure> {
        self.at.run(MissingStore::Refuse, async |backend| {
            let status = backend.status().await?;
            let store = &status.store;
            let is_remote = backend.is_remote();
            if self.json {
                let mut json = json!({
                    "recipes": store.derivations, "memos": store.memos, "blobs": store.blobs,
                    "blob_bytes": store.blob_bytes, "used_bytes": store.used_bytes, "pins": store.pins,
                    "refs": store.names, "functions": status.functions, "health": health_json(&store.health),
                });
                if is_remote {
                    json["gets"] = status.gets.into();
                    json["hits"] = status.hits.into();
                    json["computed"] = status.computed.into();
                    json["failed"] = status.failed.into();
                    json["computing"] = status.computing.into();
                }
                return show::json(&json);
            }
            let mut facts = vec![
                ("recipes", format!("{}, and {} remembered values", store.derivations, store.memos)),
                ("blobs", format!("{}, {}", store.blobs, size::format(store.blob_bytes))),
                ("on disk", size::format(store.used_bytes)),
                ("pins", store.pins.to_string()),
                ("names", store.names.to_string()),
                ("functions", status.functions.to_string()),
                ("health", store.health.to_string()),
            ];
            // The counters start with the process, so they are only useful for a server.
            if is_remote {
                facts.push(("gets", format!("{}, {}", status.gets, count(status.hits, "cache hit"))));
                facts.push(("computed", format!("{}, {} failed", status.computed, status.failed)));
                facts.push(("computing", status.computing.to_string()));
            }
            show::facts(&facts)
        })
    }
}

fn health_json(health: &Health) -> Json {
    json!({
        "fine": health.is_fine(), "lost": health.lost, "damaged": health.damaged,
        "diverged": health.diverged, "failures": health.failures,
        "index_damaged": health.index_damaged, "index_rebuilt": health.index_rebuilt,
        "over_quota": health.over_quota,
    })
}
