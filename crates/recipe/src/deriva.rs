//! Deriva's recipes: other addresses for the same computations.
//!
//! Deriva addresses a recipe by the hash of its own encoding. A recipe from Deriva is stored as one of ours, with the
//! same function, inputs and parameters, and Deriva's address becomes its alias. Both are in one record, so neither can
//! exist without the other. Its inputs remain Deriva's addresses, which are resolved when a value is computed, so
//! recipes can be put in any order. Blobs have the same addresses in both systems.

use std::collections::{BTreeMap, HashSet};

use anabranch_content::{Address, Derivation, NewDerivation, Value};

use crate::error::Error;
use crate::events::Event;
use crate::executor::Executor;
use crate::invalidate::{Invalidate, Reach};
use crate::recipe::{CONTEXT, FunctionId, Params, Recipe};

/// A recipe in Deriva's form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DerivaRecipe {
    /// The function.
    pub function: FunctionId,
    /// Deriva's addresses of its inputs.
    pub inputs: Vec<Address>,
    /// The parameters. In Deriva's protocol all of them are text.
    pub params: BTreeMap<String, String>,
}

impl DerivaRecipe {
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

    /// Decodes a recipe; `None` if the bytes are not Deriva's encoding of a recipe, or if it has parameters that are
    /// not text. Deriva sorts parameters by name, so unsorted parameters are not accepted.
    pub fn decode(bytes: &[u8]) -> Option<DerivaRecipe> {
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
        rest.is_empty().then_some(DerivaRecipe { function, inputs, params })
    }

    /// The address of the recipe in Deriva.
    pub fn address(&self) -> Address {
        Address::of(&self.encode())
    }
}

/// The tag of text in the encoding.
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

/// An executor addressed by Deriva's addresses.
#[derive(Clone, Copy, Debug)]
pub struct Deriva<'a> {
    executor: &'a Executor,
}

impl Executor {
    /// A view of the executor that uses Deriva's addresses.
    pub fn deriva(&self) -> Deriva<'_> {
        Deriva { executor: self }
    }
}

impl DerivaRecipe {
    /// The same recipe in our form.
    fn recipe(&self) -> Recipe {
        let text = |(name, text): (&String, &String)| (name.clone(), Value::Text(text.clone()));
        let params: Params = self.params.iter().map(text).collect();
        Recipe { function: self.function.clone(), inputs: self.inputs.clone(), params }
    }

    /// A recipe in Deriva's form; `None` if it has parameters that are not text.
    fn of(recipe: Recipe) -> Option<DerivaRecipe> {
        let text = |(name, value)| match value {
            Value::Text(text) => Some((name, text)),
            _ => None,
        };
        let params = recipe.params.into_iter().map(text).collect::<Option<_>>()?;
        Some(DerivaRecipe { function: recipe.function, inputs: recipe.inputs, params })
    }
}

/// Deriva's address of one of our recipes; `None` for other derivations.
pub fn deriva_address(derivation: &Derivation) -> Option<Address> {
    if derivation.context != CONTEXT.0 {
        return None;
    }
    Some(DerivaRecipe::of(Recipe::decode(&derivation.bytes).ok()?)?.address())
}

impl Deriva<'_> {
    /// Stores a recipe without checking its function or inputs. Returns its address in Deriva.
    pub async fn put_recipe(&self, theirs: &DerivaRecipe) -> Result<Address, Error> {
        let store = &self.executor.inner.store;
        let alias = theirs.address();
        let described = NewDerivation { bytes: theirs.recipe().encode()?.into(), alias: Some(alias) };
        let put = store.put_derivations(CONTEXT, &[described]).await?[0];
        if put.new {
            self.executor.inner.events.tell(|| Event::Added { address: put.address });
            if store.size(&alias).await?.is_some() {
                // Deriva's encoding of the recipe was put as a blob before. Values computed from that blob are now
                // wrong, because the address stands for the recipe's value.
                let terms = Invalidate { reach: Reach::DependentsAlone, ..Invalidate::default() };
                self.executor.invalidate(&alias, &terms).await?;
            }
        }
        Ok(alias)
    }

    /// Our address for one of Deriva's: the recipe's own address, or the blob's unchanged address.
    pub async fn find(&self, theirs: &Address) -> Result<Address, Error> {
        Ok(self.executor.inner.store.alias(theirs).await?.unwrap_or(*theirs))
    }

    /// Deriva's address for one of ours, which may be the same.
    pub async fn theirs(&self, ours: &Address) -> Result<Address, Error> {
        Ok(self.executor.inner.store.status(ours).await?.alias.unwrap_or(*ours))
    }

    /// Replaces our addresses in an error by Deriva's, because Deriva's clients do not know ours.
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
            // A failed lookup must not hide the reported error.
            *address = self.theirs(address).await.unwrap_or(*address);
        }
        error
    }

    /// The recipe at one of Deriva's addresses; `None` if there is none.
    pub async fn resolve(&self, theirs: &Address) -> Result<Option<DerivaRecipe>, Error> {
        let found = self.executor.inner.store.derivation(theirs).await?;
        match found.filter(|found| found.alias == Some(*theirs)) {
            Some(found) => Ok(DerivaRecipe::of(Recipe::decode(&found.bytes)?)),
            None => Ok(None),
        }
    }

    /// Pins a blob or a recipe, which need not exist yet. Returns whether the pin is new.
    pub async fn pin(&self, theirs: &Address) -> Result<bool, Error> {
        Ok(self.executor.inner.store.pin(theirs).await?)
    }

    /// Removes a pin. Returns whether there was one.
    pub async fn unpin(&self, theirs: &Address) -> Result<bool, Error> {
        Ok(self.executor.inner.store.unpin(theirs).await?)
    }

    /// The pinned addresses as Deriva knows them, at most `most`.
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

/// The number of addresses read at a time.
const PAGE: usize = 1024;

/// The contexts under which a store of format 1 kept Deriva's addresses: as derivations whose bytes are the target
/// address. The targets are not used, because some of them are the wrong recipe.
const OLD_TO_OURS: &str = "# anabranch 2026-11 deriva address";
const OLD_TO_THEIRS: &str = "# anabranch 2026-11 address for deriva";
const OLD_UNRESOLVED: &str = "anabranch 2026-11 recipe over deriva addresses";

impl Executor {
    /// Migrates Deriva's recipes from a store of format 1. Each recipe is put again from Deriva's own encoding, and its
    /// pin moves along. Does nothing if the store is already upgraded. After a crash the migration starts over.
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
                        let Some(recipe) = encoding.and_then(|bytes| DerivaRecipe::decode(&bytes)) else {
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
        // A recipe may have been computed from the encoding of an input instead of its value. All values that depend on
        // such a value are wrong too.
        let terms = Invalidate { reach: Reach::Dependents, ..Invalidate::default() };
        self.forget_from(moved, &terms, usize::MAX).await?;
        Ok(store.finish_upgrade().await?)
    }
}

fn old_key(bytes: &[u8]) -> Option<Address> {
    bytes.try_into().ok().map(Address::from_bytes)
}
