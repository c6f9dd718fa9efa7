//! `anabranch recipe rm`.

use anabranch_content::{Address, RemovedItems, Root};
use anabranch_server::{ClientError, Code};
use anabranch_text::{count, size};
use clap::Args;
use serde_json::{Value as Json, json};

use super::at::{At, MissingStore};
use super::backend::Backend;
use super::inside::way_out;
use super::show;
use crate::failure::Failure;
use crate::out;

pub(super) const HELP: &str = "\
Removes blobs, recipes and values that nothing holds. A recipe goes with its computed value, unless \
that is also the value of another recipe. An item that a name, a pin, an import or another recipe \
holds is refused, and the error names the holder. `recipe collect` removes everything that nothing holds.
stderr: the removed items, and the bytes that this frees.

  anabranch recipe rm 4f1c92ab --dry-run
  anabranch recipe rm --value 4f1c92ab      # only its value; the recipe stays

Exit codes: 0 removed; 1 refused, not found or failed; 2 wrong usage; 3 removed, but data that had been \
acknowledged was lost (the log says what).";

/// Removes single items.
#[derive(Args)]
pub(crate) struct Rm {
    /// Addresses, the first 6 or more digits of them, or names.
    #[arg(value_name = "TARGET", required = true)]
    targets: Vec<String>,
    /// Removes the values of recipes; the recipes stay.
    #[arg(long)]
    value: bool,
    /// Says what would be removed, and removes nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    at: At,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

impl Rm {
    pub(crate) fn run(self) -> Result<(), Failure> {
        self.at.run_until(
            "stopped; the items removed so far are gone",
            MissingStore::Refuse,
            async |backend| {
                let mut waiting = backend.find_all(&self.targets).await?;
                if self.value {
                    for address in &mut waiting {
                        *address = value_of(backend, *address).await?;
                    }
                }
                waiting.sort_unstable();
                waiting.dedup();
                let mut removed = Vec::new();
                let result = self.remove_all(backend, waiting, &mut removed).await;
                // The items that were removed before a refusal are gone.
                if result.is_ok() || !removed.is_empty() {
                    self.show(&removed)?;
                }
                result
            },
        )
    }

    fn show(&self, removed: &[(Address, RemovedItems)]) -> Result<(), Failure> {
        if self.json {
            return show::json(&self.as_json(removed));
        }
        let verb = if self.dry_run { "would remove" } else { "removed" };
        for (address, items) in removed {
            out::note(&format!("{verb} {address}: {}", in_words(items)));
        }
        let verb = if self.dry_run { "would free" } else { "freed" };
        out::note(&format!("{verb} {}", size::format(freed(removed))));
        Ok(())
    }

    /// Removes all addresses. An item that another one of them reads is removed after it.
    async fn remove_all(
        &self,
        backend: &Backend,
        mut waiting: Vec<Address>,
        removed: &mut Vec<(Address, RemovedItems)>,
    ) -> Result<(), Failure> {
        loop {
            let (mut refused, mut why) = (Vec::new(), None);
            let before = removed.len();
            for address in waiting {
                match self.remove(backend, address, removed).await {
                    Ok(items) => removed.push((address, items)),
                    Err(failure) if is_held(&failure) => {
                        refused.push(address);
                        why.get_or_insert((address, failure));
                    }
                    Err(failure) => return Err(failure),
                }
            }
            let Some((address, failure)) = why else { return Ok(()) };
            if removed.len() == before {
                return Err(with_way_out(backend, address, failure).await);
            }
            waiting = refused;
        }
    }

    async fn remove(
        &self,
        backend: &Backend,
        address: Address,
        removed: &[(Address, RemovedItems)],
    ) -> Result<RemovedItems, Failure> {
        if !self.dry_run {
            return backend.remove(address).await;
        }
        let after: Vec<Address> = removed.iter().map(|(address, _)| *address).collect();
        backend.would_remove(address, &after).await
    }

    fn as_json(&self, removed: &[(Address, RemovedItems)]) -> Json {
        let one = |(address, items): &(Address, RemovedItems)| {
            json!({
                "address": address.to_string(), "bytes": items.blob, "recipe": items.derivation,
                "memos": items.memos,
            })
        };
        let removed_json: Vec<Json> = removed.iter().map(one).collect();
        json!({"removed": removed_json, "freed_bytes": freed(removed), "dry_run": self.dry_run})
    }
}

/// The address of a recipe's remembered value.
async fn value_of(backend: &Backend, address: Address) -> Result<Address, Failure> {
    let found = backend.resolve(address).await?;
    if found.recipe.is_none() {
        return Err(Failure::of(format!("{address} is not a recipe; without --value, blobs are removed")));
    }
    let memo = found.memo.ok_or_else(|| Failure::of(format!("{address} has no stored value")))?;
    Ok(memo.output)
}

/// The refusal, with the command that drops the holder.
async fn with_way_out(backend: &Backend, address: Address, failure: Failure) -> Failure {
    let Failure::Failed(error) = &failure else { return failure };
    let Ok(usage) = backend.usage(HOLDERS_MOST, &[address]).await else {
        return Failure::of(format!("{error}; remove that first"));
    };
    let message = error.to_string().replace("derivation ", "recipe ");
    // An item can have several holders. The one in the message holds it directly, if it is not another recipe.
    let mut all = usage.roots.into_iter().map(|space| space.root);
    let named = all.find(|root| message.contains(&in_message(root)));
    let any = usage.holders.into_iter().next().flatten().map(|holder| holder.root);
    match named.or(any) {
        Some(root) => Failure::of(format!("{message}; {}", way_out(&root))),
        None => Failure::of(format!("{message}; remove that first")),
    }
}

/// The most holders that are searched for the one in a message.
const HOLDERS_MOST: u32 = 1000;

/// A holder as the store's message names it.
fn in_message(root: &Root) -> String {
    match root {
        Root::Name(name) | Root::History(name) => format!("name {name:?} holds it"),
        Root::Pin(pin) => format!("a pin of {pin} holds it"),
        Root::Import { id, .. } => format!("import {id} ("),
    }
}

fn is_held(failure: &Failure) -> bool {
    let Failure::Failed(error) = failure else { return false };
    let is_local = matches!(error.downcast_ref(), Some(anabranch_content::Error::Held { .. }));
    is_local || matches!(error.downcast_ref(), Some(ClientError::Call { code: Code::FailedPrecondition, .. }))
}

fn freed(removed: &[(Address, RemovedItems)]) -> u64 {
    removed.iter().filter_map(|(_, items)| items.blob).sum()
}

fn in_words(items: &RemovedItems) -> String {
    let bytes = items.blob.map(size::format);
    match (items.derivation, bytes) {
        (true, Some(bytes)) => format!("the recipe and its value, {bytes}"),
        (true, None) => "the recipe".to_owned(),
        (false, Some(bytes)) => format!("the blob, {bytes}"),
        (false, None) => count(items.memos, "memo"),
    }
}
