//! Forgets the values of recipes.

use std::collections::HashSet;

use anabranch_content::{Address, DryRun};

use crate::error::Error;
use crate::events::Event;
use crate::executor::Executor;

/// The values to forget.
#[derive(Clone, Debug, Default)]
pub struct Invalidate {
    /// The recipes that it applies to.
    pub reach: Reach,
    /// Only reports what would be forgotten.
    pub dry_run: DryRun,
    /// The maximum number of addresses to list.
    pub detail: usize,
}

/// The recipes that an invalidation applies to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// The address alone.
    #[default]
    Alone,
    /// The address, and everything derived from it.
    Dependents,
    /// Everything derived from the address, but not the address itself.
    DependentsAlone,
}

/// The result of an invalidation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidationReport {
    /// Whether the value of the address itself was remembered.
    pub was_remembered: bool,
    /// The number of forgotten values.
    pub forgotten: u64,
    /// The number of recipes visited.
    pub looked_at: u64,
    /// The largest distance of a visited recipe from the address.
    pub depth: u32,
    /// Total size of the forgotten values in bytes. They stay stored until they are collected.
    pub bytes: u64,
    /// The recipes whose values were forgotten, up to `detail` of them.
    pub addresses: Vec<Address>,
}

/// The number of dependents read at a time.
const PAGE: usize = 1024;

impl Executor {
    /// Forgets the value of a recipe and, depending on `reach`, the values derived from it.
    pub async fn invalidate(
        &self,
        address: &Address,
        terms: &Invalidate,
    ) -> Result<InvalidationReport, Error> {
        let address = self.inner.store.alias(address).await?.unwrap_or(*address);
        let result = self.forget_from(vec![address], terms, self.inner.config.recipes_most).await?;
        let count = result.forgotten;
        if count > 0 && terms.dry_run == DryRun::No {
            self.inner.events.tell(|| Event::Invalidated { address, count });
        }
        Ok(result)
    }

    /// Forgets the values of recipes. Fails if more than `most` recipes would be visited.
    pub(crate) async fn forget_from(
        &self,
        addresses: Vec<Address>,
        terms: &Invalidate,
        most: usize,
    ) -> Result<InvalidationReport, Error> {
        let mut result = InvalidationReport::default();
        let mut seen: HashSet<Address> = addresses.iter().copied().collect();
        let mut level = addresses;
        // Everything is found before anything is forgotten, because the calls of recipes are found by the values of
        // their inputs.
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

    /// The address of a recipe with its inputs replaced by their values. Its value is also remembered under this
    /// address.
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

    /// Counts the memos of a level, and adds the addresses to forget to `doomed`.
    async fn find_memos(
        &self,
        level: &[Address],
        terms: &Invalidate,
        seen: &HashSet<Address>,
        result: &mut InvalidationReport,
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
                // This address may also be a recipe in its own right, whose value is then forgotten too.
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
