//! `anabranch recipe du`.

use anabranch_content::{RootSpace, Space, Usage};
use anabranch_text::{count, size};
use clap::Args;
use serde_json::{Value as Json, json};

use super::at::{At, MissingStore};
use super::inside::holder;
use super::show;
use crate::failure::Failure;
use crate::out;
use crate::table::Table;

pub(super) const HELP: &str = "\
stdout: the space by kind, and per holder (a name, a pin, an import): `size` counts everything that it \
leads to, `alone` only what no other holder leads to, which a collection would free without it. \
Intermediate values that nothing holds count as `held by nothing`.

  anabranch recipe du
  anabranch recipe du --most 5 --json

Exit codes: 0 fine; 1 failed; 2 wrong usage; 3 fine, but data that had been acknowledged was lost (the \
log says what).";

/// Shows how much space is used.
#[derive(Args)]
pub(crate) struct Du {
    /// The maximum number of lines; the holders with the largest `alone` come first.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    most: u32,
    #[command(flatten)]
    at: At,
    /// As JSON, in bytes.
    #[arg(long)]
    json: bool,
}

impl Du {
    pub(crate) fn run(self) -> Result<(), Failure> {
        self.at.run(MissingStore::Refuse, async |backend| {
            let usage = backend.usage(self.most, &[]).await?;
            let on_disk = backend.status().await?.store.used_bytes;
            if self.json {
                return show::json(&as_json(&usage, on_disk));
            }
            out::data(&by_kind(&usage, on_disk).text(0))?;
            if usage.roots.is_empty() {
                return Ok(());
            }
            out::data(&format!("\n{}", by_holder(&usage).text(0)))?;
            let left_out = usage.roots_count - usage.roots.len() as u64;
            if left_out > 0 {
                let left_out = count(left_out, "more holder");
                out::note(&format!("{left_out}, with no more bytes alone; --most shows more"));
            }
            if usage.roots.iter().any(|it| it.reached.is_none()) {
                out::note("`-`: not counted, because the holders above lead to too many items");
            }
            Ok(())
        })
    }
}

/// The space of items that nothing protects.
fn loose(usage: &Usage) -> Space {
    let blobs = usage.put.blobs + usage.computed.blobs;
    let bytes = usage.put.bytes + usage.computed.bytes;
    Space {
        blobs: blobs.saturating_sub(usage.held.blobs),
        bytes: bytes.saturating_sub(usage.held.bytes),
        derivations: usage.derivations.saturating_sub(usage.held.derivations),
    }
}

fn by_kind(usage: &Usage, on_disk: u64) -> Table {
    let loose = loose(usage);
    let mut table = Table::new(["kind", "items", "size"]);
    let blobs = |space: Space| (space.blobs.to_string(), size::format(space.bytes));
    for (kind, (items, size)) in [
        ("blobs that were put", blobs(usage.put)),
        ("computed values", blobs(usage.computed)),
        ("recipes", (usage.derivations.to_string(), String::new())),
        ("remembered calls and recipes", (usage.memos.to_string(), String::new())),
        ("blobs held by nothing", blobs(loose)),
        ("recipes held by nothing", (loose.derivations.to_string(), String::new())),
        ("on disk", (String::new(), size::format(on_disk))),
    ] {
        table.row([kind.to_owned(), items, size]);
    }
    table
}

fn by_holder(usage: &Usage) -> Table {
    let mut table = Table::new(["held by", "size", "alone", "blobs", "recipes"]).whole_in_pipes();
    for RootSpace { root, reached, alone } in &usage.roots {
        let count = |count: fn(&Space) -> String| reached.as_ref().map_or_else(|| "-".to_owned(), count);
        table.row([
            holder(root),
            count(|space| size::format(space.bytes)),
            size::format(alone.bytes),
            count(|space| space.blobs.to_string()),
            count(|space| space.derivations.to_string()),
        ]);
    }
    table
}

fn as_json(usage: &Usage, on_disk: u64) -> Json {
    let blobs = |space: Space| json!({"blobs": space.blobs, "bytes": space.bytes});
    let space =
        |space: Space| json!({"blobs": space.blobs, "bytes": space.bytes, "recipes": space.derivations});
    let holder = |it: &RootSpace| json!({"held_by": holder(&it.root), "reached": it.reached.map(space), "alone": space(it.alone)});
    json!({
        "put": blobs(usage.put), "computed": blobs(usage.computed), "recipes": usage.derivations,
        "memos": usage.memos, "held": space(usage.held), "unheld": space(loose(usage)),
        "used_bytes": on_disk, "holders_count": usage.roots_count,
        "holders": usage.roots.iter().map(holder).collect::<Vec<_>>(),
    })
}
