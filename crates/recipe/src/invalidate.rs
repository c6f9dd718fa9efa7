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
        // Nothing is forgotten before all is found: the calls of recipes are found by the values of their inputs.
        let mut doomed = Vec::new();
        while !level.is_empty() {
            let skip = result.depth == 0 && terms.reach == Reach::DependentsAlone;
            if !skip {
                self.find_memos(&level, terms, &seen, &mut result, &mut doomed).await?;
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
        if terms.dry_run == DryRun::No {
            for part in doomed.chunks(PAGE) {
                self.inner.store.invalidate(part).await?;
            }
        }
        Ok(result)
    }

    /// The address of a recipe on the values of its inputs, under which its value is remembered too.
    async fn on_values(&self, address: &Address) -> Result<Option<Address>, Error> {
        let store = &self.inner.store;
        let Some(mut recipe) = self.resolve(address).await? else { return Ok(None) };
        for input in &mut recipe.inputs {
            let derivation = store.alias(input).await?.unwrap_or(*input);
            if let Some(memo) = store.recall(&derivation).await? {
                *input = memo.output;
            }
        }
        Ok(Some(recipe.address()?).filter(|on_values| on_values != address))
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

    /// Counts the memos of a level, and lists what has to be forgotten with them.
    async fn find_memos(
        &self,
        level: &[Address],
        terms: &Invalidate,
        seen: &HashSet<Address>,
        result: &mut Invalidated,
        doomed: &mut Vec<Address>,
    ) -> Result<(), Error> {
        let store = &self.inner.store;
        for part in level.chunks(PAGE) {
            let mut memos: Vec<_> = store.recall_many(part).await?.into_iter().flatten().collect();
            if result.depth == 0 {
                result.was_remembered = !memos.is_empty();
            }
            for place in 0..memos.len() {
                let Some(on_values) = self.on_values(&memos[place].derivation).await? else { continue };
                doomed.push(on_values);
                // It may be a recipe by itself, which is then forgotten too.
                if !seen.contains(&on_values) && store.derivation(&on_values).await?.is_some() {
                    memos.extend(store.recall(&on_values).await?);
                }
            }
            result.looked_at += part.len() as u64;
            result.bytes += memos.iter().map(|memo| memo.size).sum::<u64>();
            result.forgotten += memos.len() as u64;
            let room = terms.detail.saturating_sub(result.addresses.len());
            result.addresses.extend(memos.iter().map(|memo| memo.derivation).take(room));
            doomed.extend(memos.iter().map(|memo| memo.derivation));
        }
        Ok(())
    }
}
