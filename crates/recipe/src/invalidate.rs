//! Forgetting what recipes came to.

use std::collections::HashSet;

use anabranch_content::{Address, DryRun};

use crate::error::Error;
use crate::events::Event;
use crate::executor::Executor;

/// What to forget.
#[derive(Clone, Debug, Default)]
pub struct Invalidate {
    /// How far it goes.
    pub reach: Reach,
    /// Just find out what would be forgotten.
    pub dry_run: DryRun,
    /// List at most so many addresses.
    pub detail: usize,
}

/// How far an invalidation goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// The address alone.
    #[default]
    Alone,
    /// The address, and all that was made from it.
    Dependents,
    /// All that was made from it, but not the address itself.
    DependentsAlone,
}

/// What was forgotten.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Invalidated {
    /// The address itself was remembered.
    pub was_remembered: bool,
    /// How many were remembered, and are not any more.
    pub forgotten: u64,
    /// How many recipes were looked at.
    pub looked_at: u64,
    /// How far away from the address the farthest of them is.
    pub depth: u32,
    /// Bytes of the values that were forgotten; they stay until they are collected.
    pub bytes: u64,
    /// What was forgotten, as far as it is listed.
    pub addresses: Vec<Address>,
}

/// So many dependents are read at a time.
const PAGE: usize = 1024;

impl Executor {
    /// Forgets what a recipe came to, and if asked, what everything made from it did.
    pub async fn invalidate(&self, address: &Address, terms: &Invalidate) -> Result<Invalidated, Error> {
        let address = self.inner.store.alias(address).await?.unwrap_or(*address);
        let result = self.forget_from(vec![address], terms, self.inner.config.recipes_most).await?;
        let count = result.forgotten;
        if count > 0 && terms.dry_run == DryRun::No {
            self.inner.events.tell(|| Event::Invalidated { address, count });
        }
        Ok(result)
    }

    /// Forgets what recipes came to, of at most so many.
    pub(crate) async fn forget_from(
        &self,
        addresses: Vec<Address>,
        terms: &Invalidate,
        most: usize,
    ) -> Result<Invalidated, Error> {
        let mut result = Invalidated::default();
        let mut seen: HashSet<Address> = addresses.iter().copied().collect();
        let mut level = addresses;
        while !level.is_empty() {
            let skip = result.depth == 0 && terms.reach == Reach::DependentsAlone;
            if !skip {
                self.forget(&level, terms, &mut result).await?;
            }
            let mut next = Vec::new();
            if terms.reach != Reach::Alone {
                for address in &level {
                    self.dependents_of(address, &mut seen, &mut next).await?;
                    if seen.len() > most {
                        let way_out = "raise `recipes_most`";
                        return Err(Error::TooMany {
                            what: "recipes to be invalidated",
                            most: most as u64,
                            way_out,
                        });
                    }
                }
            }
            result.depth += u32::from(!next.is_empty());
            level = next;
        }
        Ok(result)
    }

    async fn dependents_of(
        &self,
        address: &Address,
        seen: &mut HashSet<Address>,
        next: &mut Vec<Address>,
    ) -> Result<(), Error> {
        let mut after = None;
        loop {
            let page = self.inner.store.dependents(address, after, PAGE).await?;
            next.extend(page.iter().filter(|dependent| seen.insert(**dependent)));
            match page.last() {
                Some(last) if page.len() == PAGE => after = Some(*last),
                _ => return Ok(()),
            }
        }
    }

    async fn forget(
        &self,
        level: &[Address],
        terms: &Invalidate,
        result: &mut Invalidated,
    ) -> Result<(), Error> {
        for part in level.chunks(PAGE) {
            let memos: Vec<_> = self.inner.store.recall_many(part).await?.into_iter().flatten().collect();
            if result.depth == 0 {
                result.was_remembered = !memos.is_empty();
            }
            result.looked_at += part.len() as u64;
            result.bytes += memos.iter().map(|memo| memo.size).sum::<u64>();
            result.forgotten += memos.len() as u64;
            let addresses: Vec<Address> = memos.iter().map(|memo| memo.derivation).collect();
            let room = terms.detail.saturating_sub(result.addresses.len());
            result.addresses.extend(addresses.iter().take(room));
            if terms.dry_run == DryRun::No && !addresses.is_empty() {
                self.inner.store.invalidate(&addresses).await?;
            }
        }
        Ok(())
    }
}
