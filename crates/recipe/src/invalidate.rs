//! Forgets the values of recipes.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use anabranch_content::{Address, BuildAddress, DroppedImport, DryRun, Memo};

use crate::error::Error;
use crate::events::Event;
use crate::execute::CHAIN_MOST;
use crate::executor::Executor;
use crate::pace::Pace;
use crate::recipe::{CONTEXT, MalformedRecipe, Recipe, encode_checked};
use crate::signature::Holds;

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

/// The maximum number of recipes remembered as [`Links`]. A chain needs as many as can be fused.
const LINKS_MOST: usize = 4096;

/// A recipe of a chain that may have been fused.
struct Link {
    /// The recipe with its inputs replaced by their values, as far as they are remembered.
    on_values: Recipe,
    /// The size of its inputs in bytes.
    total: u64,
    streams: bool,
    /// Its only input, if it streams.
    before: Option<Address>,
}

/// The recipes looked at last.
type Links = HashMap<Address, Arc<Link>, BuildAddress>;

/// The result of the search of an invalidation.
#[derive(Default)]
struct FoundCalls {
    /// The addresses whose memos are to be forgotten. Each has one.
    doomed: HashSet<Address, BuildAddress>,
    links: Links,
    pace: Pace,
}

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

    /// Drops an import, as [`Store::drop_import`](anabranch_content::Store::drop_import) does, and forgets the values that
    /// were derived from the memos that it brought.
    pub async fn drop_import(&self, id: &str) -> Result<Option<DroppedImport>, Error> {
        let store = &self.inner.store;
        let imported = store.imported_memos(id).await?;
        let terms = Invalidate { reach: Reach::DependentsAlone, ..Invalidate::default() };
        let derived = self.forget_from(imported, &terms, self.inner.config.recipes_most).await?;
        let dropped = store.drop_import(id).await?;
        Ok(dropped.map(|it| DroppedImport { memos: it.memos + derived.forgotten, ..it }))
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
        let mut found = FoundCalls::default();
        while !level.is_empty() {
            let skip = result.depth == 0 && terms.reach == Reach::DependentsAlone;
            if !skip {
                self.find_memos(&level, terms, &seen, &mut result, &mut found).await?;
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
            let doomed: Vec<Address> = found.doomed.into_iter().collect();
            for part in doomed.chunks(PAGE) {
                self.inner.store.invalidate(part).await?;
            }
        }
        Ok(result)
    }

    /// The addresses of a recipe with its inputs replaced by their values, or by the call that it may have been fused
    /// with. Its value may also be remembered under them. If the value of an input is not remembered, an address is
    /// missing, and that call stays remembered; a get then finds that the recipe was invalidated after the call.
    async fn calls_of(
        &self,
        address: &Address,
        links: &mut Links,
        pace: &mut Pace,
    ) -> Result<Vec<Address>, Error> {
        let (mut calls, mut later, mut at) = (Vec::new(), Vec::<Arc<Link>>::new(), *address);
        while let Some(link) = self.link(&at, links).await? {
            if !later.is_empty() && !link.streams {
                break;
            }
            if later.is_empty() || link.total >= self.inner.config.fuse_from {
                let mut call = call_on(&link.on_values, &link.on_values.inputs)?;
                for stage in later.iter().rev() {
                    pace.step().await;
                    call = call_on(&stage.on_values, &[call])?;
                }
                calls.push(call);
            }
            match link.before {
                Some(before) if later.len() + 1 < CHAIN_MOST => at = before,
                _ => break,
            }
            later.push(link);
        }
        calls.retain(|call| call != address);
        Ok(calls)
    }

    async fn link(&self, address: &Address, links: &mut Links) -> Result<Option<Arc<Link>>, Error> {
        if let Some(link) = links.get(address) {
            return Ok(Some(Arc::clone(link)));
        }
        let store = &self.inner.store;
        let Some(mut on_values) = self.resolve(address).await? else { return Ok(None) };
        let (mut total, mut before) = (0, None);
        for input in &mut on_values.inputs {
            let derivation = store.alias(input).await?.unwrap_or(*input);
            before = Some(derivation);
            total += match store.recall(&derivation).await? {
                Some(memo) => {
                    *input = memo.output;
                    memo.size
                }
                None => store.size(input).await?.unwrap_or(0),
            };
        }
        let function = self.inner.functions.get(&on_values.function);
        let streams = function.is_some_and(|function| function.signature().holds == Holds::Chunks);
        let before = before.filter(|_| streams && on_values.inputs.len() == 1);
        let link = Arc::new(Link { on_values, total, streams, before });
        if links.len() >= LINKS_MOST {
            links.clear();
        }
        links.insert(*address, Arc::clone(&link));
        Ok(Some(link))
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

    /// Counts the memos of a level and of its calls, and adds them to `doomed`.
    async fn find_memos(
        &self,
        level: &[Address],
        terms: &Invalidate,
        seen: &HashSet<Address>,
        result: &mut InvalidationReport,
        found: &mut FoundCalls,
    ) -> Result<(), Error> {
        let store = &self.inner.store;
        let FoundCalls { doomed, links, pace } = found;
        for part in level.chunks(PAGE) {
            let own = store.recall_many(part).await?.into_iter().flatten();
            let mut memos: Vec<Memo> = own.filter(|memo| doomed.insert(memo.derivation)).collect();
            if result.depth == 0 {
                result.was_remembered = !memos.is_empty();
            }
            for address in part {
                pace.step().await;
                let calls = self.calls_of(address, links, pace).await?;
                // A call may be remembered although its recipe is not.
                for memo in store.recall_many(&calls).await?.into_iter().flatten() {
                    let call = memo.derivation;
                    // This address may also be a recipe in its own right, whose value is then forgotten too.
                    if doomed.insert(call)
                        && !seen.contains(&call)
                        && store.derivation(&call).await?.is_some()
                    {
                        memos.push(memo);
                    }
                }
            }
            result.looked_at += part.len() as u64;
            result.bytes += memos.iter().map(|memo| memo.size).sum::<u64>();
            result.forgotten += memos.len() as u64;
            let room = terms.detail.saturating_sub(result.addresses.len());
            result.addresses.extend(memos.iter().map(|memo| memo.derivation).take(room));
        }
        Ok(())
    }
}

/// The address of a recipe on these inputs.
fn call_on(recipe: &Recipe, inputs: &[Address]) -> Result<Address, MalformedRecipe> {
    let encoding = encode_checked(&recipe.function, inputs.iter(), &recipe.params)?;
    Ok(Address::derive(CONTEXT, &encoding))
}
