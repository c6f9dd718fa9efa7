//! Recipes as Deriva has them: other addresses for the same computations.
//!
//! Deriva names a recipe by the hash of an encoding of its own. A recipe that comes from Deriva is kept as ours, with the
//! same function, inputs and parameters, and Deriva's address is its alias: both are one record, so neither is ever there
//! without the other. Its inputs stay Deriva's addresses, which are looked up when a value is computed. So the order in
//! which recipes are put does not matter. Blobs have the same addresses in both systems.

use std::collections::{BTreeMap, HashSet};

use anabranch_content::{Address, Derivation, NewDerivation, Value};

use crate::error::Error;
use crate::events::Event;
use crate::executor::Executor;
use crate::invalidate::{Invalidate, Reach};
use crate::recipe::{CONTEXT, FunctionId, Params, Recipe};

/// A recipe in Deriva's terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Theirs {
    /// The function.
    pub function: FunctionId,
    /// Deriva's addresses of what it reads.
    pub inputs: Vec<Address>,
    /// Parameters; over the wire all of them are text.
    pub params: BTreeMap<String, String>,
}

impl Theirs {
    /// The bytes that Deriva hashes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let text = |text: &str, bytes: &mut Vec<u8>| {
            bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
            bytes.extend_from_slice(text.as_bytes());
        };
        text(&self.function.name, &mut bytes);
        text(&self.function.version, &mut bytes);
        bytes.extend_from_slice(&(self.inputs.len() as u64).to_le_bytes());
        self.inputs.iter().for_each(|input| bytes.extend_from_slice(input.as_bytes()));
        bytes.extend_from_slice(&(self.params.len() as u64).to_le_bytes());
        for (name, value) in &self.params {
            text(name, &mut bytes);
            bytes.extend_from_slice(&TEXT.to_le_bytes());
            text(value, &mut bytes);
        }
        bytes
    }

    /// The recipe with these bytes; nothing if there is none, or one with other than text parameters. Deriva sorts
    /// parameters by name, so bytes in which they are not sorted are not its encoding.
    pub fn decode(bytes: &[u8]) -> Option<Theirs> {
        let mut rest = bytes;
        let function = FunctionId::new(take_text(&mut rest)?, take_text(&mut rest)?);
        let count = take_number(&mut rest)?;
        let inputs = take(&mut rest, count.checked_mul(32)?)?;
        let address = |bytes: &[u8]| Address::from_bytes(bytes.try_into().expect("32 bytes at a time"));
        let inputs = inputs.chunks_exact(32).map(address).collect();
        let mut params = BTreeMap::new();
        for _ in 0..take_number(&mut rest)? {
            let name = take_text(&mut rest)?;
            let tag = take(&mut rest, 4)?;
            let is_sorted = params.last_key_value().is_none_or(|(last, _)| *last < name);
            if tag != TEXT.to_le_bytes() || !is_sorted {
                return None;
            }
            params.insert(name, take_text(&mut rest)?);
        }
        rest.is_empty().then_some(Theirs { function, inputs, params })
    }

    /// Deriva's address of it.
    pub fn address(&self) -> Address {
        Address::of(&self.encode())
    }
}

/// How the encoding marks text.
const TEXT: u32 = 0;

fn take<'a>(rest: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(len)?;
    *rest = left;
    Some(taken)
}

fn take_number(rest: &mut &[u8]) -> Option<usize> {
    let number = u64::from_le_bytes(take(rest, 8)?.try_into().expect("eight bytes"));
    usize::try_from(number).ok()
}

fn take_text(rest: &mut &[u8]) -> Option<String> {
    let len = take_number(rest)?;
    String::from_utf8(take(rest, len)?.to_vec()).ok()
}

/// An executor under Deriva's addresses.
#[derive(Clone, Copy, Debug)]
pub struct Deriva<'a> {
    executor: &'a Executor,
}

impl Executor {
    /// The executor under Deriva's addresses.
    pub fn deriva(&self) -> Deriva<'_> {
        Deriva { executor: self }
    }
}

impl Theirs {
    /// The same recipe in our terms.
    fn recipe(&self) -> Recipe {
        let text = |(name, text): (&String, &String)| (name.clone(), Value::Text(text.clone()));
        let params: Params = self.params.iter().map(text).collect();
        Recipe { function: self.function.clone(), inputs: self.inputs.clone(), params }
    }

    /// A recipe in Deriva's terms; nothing if it has other than text parameters.
    fn of(recipe: Recipe) -> Option<Theirs> {
        let text = |(name, value)| match value {
            Value::Text(text) => Some((name, text)),
            _ => None,
        };
        let params = recipe.params.into_iter().map(text).collect::<Option<_>>()?;
        Some(Theirs { function: recipe.function, inputs: recipe.inputs, params })
    }
}

/// Deriva's address of a recipe of ours; nothing for other derivations.
pub(crate) fn deriva_address(derivation: &Derivation) -> Option<Address> {
    if derivation.context != CONTEXT.0 {
        return None;
    }
    Some(Theirs::of(Recipe::decode(&derivation.bytes).ok()?)?.address())
}

impl Deriva<'_> {
    /// Keeps a recipe, whatever its function and inputs; answers Deriva's address of it.
    pub async fn put_recipe(&self, theirs: &Theirs) -> Result<Address, Error> {
        let store = &self.executor.inner.store;
        let alias = theirs.address();
        let described = NewDerivation { bytes: theirs.recipe().encode()?.into(), alias: Some(alias) };
        let put = store.put_derivations(CONTEXT, &[described]).await?[0];
        if put.new {
            self.executor.inner.events.tell(|| Event::Added { address: put.address });
            if store.size(&alias).await?.is_some() {
                // Somebody has put Deriva's encoding of the recipe as a blob. What was computed from the blob is not
                // what it stands for now.
                let terms = Invalidate { reach: Reach::DependentsAlone, ..Invalidate::default() };
                self.executor.invalidate(&alias, &terms).await?;
            }
        }
        Ok(alias)
    }

    /// Our address for one of Deriva's: of a recipe, or that of a blob as it is.
    pub async fn find(&self, theirs: &Address) -> Result<Address, Error> {
        Ok(self.executor.inner.store.alias(theirs).await?.unwrap_or(*theirs))
    }

    /// Deriva's address for one of ours, which may be the same.
    pub async fn theirs(&self, ours: &Address) -> Result<Address, Error> {
        Ok(self.executor.inner.store.status(ours).await?.alias.unwrap_or(*ours))
    }

    /// An error with Deriva's addresses instead of ours: its clients have never seen ours.
    pub async fn error_in_their_terms(&self, mut error: Error) -> Error {
        let addresses = match &mut error {
            Error::NotFound { address, needed_by, .. } => [Some(address), needed_by.as_mut()],
            Error::NotARecipe { address }
            | Error::Function { address, .. }
            | Error::Panicked { address, .. }
            | Error::Lost { address, .. } => [Some(address), None],
            _ => [None, None],
        };
        for address in addresses.into_iter().flatten() {
            // An error in the look-up must not hide the one that is reported.
            *address = self.theirs(address).await.unwrap_or(*address);
        }
        error
    }

    /// The recipe at one of Deriva's addresses; nothing if there is none.
    pub async fn resolve(&self, theirs: &Address) -> Result<Option<Theirs>, Error> {
        let found = self.executor.inner.store.derivation(theirs).await?;
        match found.filter(|found| found.alias == Some(*theirs)) {
            Some(found) => Ok(Theirs::of(Recipe::decode(&found.bytes)?)),
            None => Ok(None),
        }
    }

    /// Pins a blob or a recipe, there or still to come; says whether that is new.
    pub async fn pin(&self, theirs: &Address) -> Result<bool, Error> {
        Ok(self.executor.inner.store.pin(theirs).await?)
    }

    /// Removes a pin; says whether there was one.
    pub async fn unpin(&self, theirs: &Address) -> Result<bool, Error> {
        Ok(self.executor.inner.store.unpin(theirs).await?)
    }

    /// Pinned addresses as Deriva knows them: at most so many.
    pub async fn pins(&self, most: usize) -> Result<Vec<Address>, Error> {
        let store = &self.executor.inner.store;
        let mut seen = HashSet::new();
        let mut pins = Vec::new();
        let mut after = None;
        loop {
            let page = store.pins(after, PAGE).await?;
            for status in store.statuses(&page).await? {
                let theirs = status.alias.unwrap_or(status.address);
                if seen.insert(theirs) {
                    pins.push(theirs);
                }
            }
            pins.truncate(most);
            match page.last() {
                Some(last) if page.len() == PAGE && pins.len() < most => after = Some(*last),
                _ => return Ok(pins),
            }
        }
    }
}

/// So many addresses are read at a time.
const PAGE: usize = 1024;

/// How a store of format 1 kept Deriva's addresses: as derivations, whose bytes are the address that leads to another.
/// What they led to is not used: some led to the wrong recipe.
const OLD_TO_OURS: &str = "# anabranch 2026-11 deriva address";
const OLD_TO_THEIRS: &str = "# anabranch 2026-11 address for deriva";
const OLD_UNRESOLVED: &str = "anabranch 2026-11 recipe over deriva addresses";

impl Executor {
    /// Moves what a store of format 1 kept of Deriva's recipes: each is put again, from Deriva's own encoding of it, and
    /// its pin follows. Does nothing for a store that is upgraded; after a crash it begins anew.
    pub(crate) async fn upgrade(&self) -> Result<(), Error> {
        let store = &self.inner.store;
        if store.opened().upgrade_from.is_none() {
            return Ok(());
        }
        let mut after = None;
        let mut moved = Vec::new();
        loop {
            let page = store.derivations(after, PAGE).await?;
            let mut described = Vec::new();
            let mut old = Vec::new();
            for address in &page {
                let Some(found) = store.derivation(address).await? else { continue };
                match &*found.context {
                    OLD_TO_OURS => {
                        let theirs = old_key(&found.bytes);
                        let Some(theirs) = theirs else { continue };
                        let encoding = store.get(&theirs).await?;
                        let Some(recipe) = encoding.and_then(|bytes| Theirs::decode(&bytes)) else {
                            continue;
                        };
                        let bytes = recipe.recipe().encode()?.into();
                        described.push(NewDerivation { bytes, alias: Some(theirs) });
                        if store.status(address).await?.pinned {
                            store.pin(&theirs).await?;
                        }
                        old.push(*address);
                    }
                    OLD_TO_THEIRS => {
                        if let Some(ours) = old_key(&found.bytes)
                            && store.status(address).await?.pinned
                        {
                            store.unpin(&ours).await?;
                        }
                        old.push(*address);
                    }
                    OLD_UNRESOLVED => old.push(*address),
                    _ => {}
                }
            }
            let puts = store.put_derivations(CONTEXT, &described).await?;
            moved.extend(puts.into_iter().map(|put| put.address));
            for address in &old {
                store.unpin(address).await?;
            }
            store.remove_derivations(&old).await?;
            match page.last() {
                Some(last) if page.len() == PAGE => after = Some(*last),
                _ => break,
            }
        }
        // A recipe may have been computed from the encoding of another instead of from its value. What was computed from
        // such a value is wrong, too.
        let terms = Invalidate { reach: Reach::Dependents, ..Invalidate::default() };
        self.forget_from(moved, &terms, usize::MAX).await?;
        Ok(store.finish_upgrade().await?)
    }
}

fn old_key(bytes: &[u8]) -> Option<Address> {
    bytes.try_into().ok().map(Address::from_bytes)
}
