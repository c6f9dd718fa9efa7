//! Recipes as Deriva has them: other addresses for the same computations.
//!
//! Deriva names a recipe by the hash of an encoding of its own. A table beside ours keeps which recipe that is, so its
//! clients find what they put, and share what is computed with everybody else. Blobs have the same addresses in both.
//!
//! Deriva's encoding is kept as a blob, whose address then is just Deriva's address of the recipe; what stands in the
//! table comes before blobs, so nobody can put bytes in a recipe's place.

use std::borrow::Cow;
use std::collections::BTreeMap;

use anabranch_content::{Address, Class, Context, Derivation, Store, Value};
use futures_util::future::try_join;

use crate::error::Error;
use crate::executor::Executor;
use crate::recipe::{CONTEXT, FunctionId, Recipe};

/// Deriva's address to ours.
const TO_OURS: Context<'static> = Context("# anabranch 2026-11 deriva address");

/// Our address to Deriva's.
const TO_THEIRS: Context<'static> = Context("# anabranch 2026-11 address for deriva");

/// Recipes with inputs that Deriva's table does not have yet: they are Deriva's addresses.
pub(crate) const UNRESOLVED: Context<'static> = Context("anabranch 2026-11 recipe over deriva addresses");

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

    /// The recipe with these bytes; nothing if there is none, or one with other than text parameters.
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
            if tag != TEXT.to_le_bytes() {
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

impl Deriva<'_> {
    /// Keeps a recipe, whatever its function and inputs; answers Deriva's address of it.
    pub async fn put_recipe(&self, theirs: &Theirs) -> Result<Address, Error> {
        let store = &self.executor.inner.store;
        let (recipe, context) = self.translate(theirs).await?;
        let encoding = recipe.encode()?;
        let ours = Address::derive(context, &encoding);
        let canonical = theirs.encode();
        let address = Address::of(&canonical);
        let (there, back) = ([ours, address], [address]);
        let table = try_join(
            store.put_derivation(TO_OURS, address.as_bytes().to_vec(), &there),
            store.put_derivation(TO_THEIRS, ours.as_bytes().to_vec(), &back),
        );
        let kept = try_join(
            store.put_derivation(context, encoding, &recipe.inputs),
            store.put(canonical, Class::Acknowledged),
        );
        try_join(kept, table).await?;
        Ok(address)
    }

    /// Our recipe for theirs, and the context that its address is derived in.
    async fn translate(&self, theirs: &Theirs) -> Result<(Recipe, Context<'static>), Error> {
        let store = &self.executor.inner.store;
        let mut inputs = Vec::with_capacity(theirs.inputs.len());
        let mut context = CONTEXT;
        for input in &theirs.inputs {
            match self.ours(input).await? {
                Some(ours) => inputs.push(ours),
                None if store.size(input).await?.is_some() => inputs.push(*input),
                None => {
                    // What it is will show when it is there.
                    context = UNRESOLVED;
                    inputs.clone_from(&theirs.inputs);
                    break;
                }
            }
        }
        let params = theirs.params.iter().map(|(name, text)| (name.clone(), Value::Text(text.clone())));
        let recipe = Recipe { function: theirs.function.clone(), inputs, params: params.collect() };
        Ok((recipe, context))
    }

    /// Our address for one of Deriva's: of a recipe, or that of a blob as it is.
    pub async fn find(&self, theirs: &Address) -> Result<Address, Error> {
        Ok(self.ours(theirs).await?.unwrap_or(*theirs))
    }

    /// Our address of a recipe of Deriva's; nothing if it is none.
    pub async fn ours(&self, theirs: &Address) -> Result<Option<Address>, Error> {
        entry(&self.executor.inner.store, TO_OURS, theirs).await
    }

    /// Deriva's address for one of ours, which may be the same.
    pub async fn theirs(&self, ours: &Address) -> Result<Address, Error> {
        let theirs = entry(&self.executor.inner.store, TO_THEIRS, ours).await?;
        Ok(theirs.unwrap_or(*ours))
    }

    /// The recipe at one of Deriva's addresses; nothing if there is none.
    pub async fn resolve(&self, theirs: &Address) -> Result<Option<Theirs>, Error> {
        if self.ours(theirs).await?.is_none() {
            return Ok(None);
        }
        let bytes = self.executor.inner.store.get(theirs).await?;
        Ok(bytes.and_then(|bytes| Theirs::decode(&bytes)))
    }

    /// Pins a blob or a recipe, and its place in the table; says whether that is new.
    pub async fn pin(&self, theirs: &Address) -> Result<bool, Error> {
        let store = &self.executor.inner.store;
        match self.ours(theirs).await? {
            Some(ours) => {
                store.pin(&Address::derive(TO_THEIRS, ours.as_bytes())).await?;
                store.pin(&Address::derive(TO_OURS, theirs.as_bytes())).await?;
                Ok(store.pin(&ours).await?)
            }
            None => Ok(store.pin(theirs).await?),
        }
    }

    /// Takes a pin back; says whether there was one.
    pub async fn unpin(&self, theirs: &Address) -> Result<bool, Error> {
        let store = &self.executor.inner.store;
        match self.ours(theirs).await? {
            Some(ours) => {
                store.unpin(&Address::derive(TO_THEIRS, ours.as_bytes())).await?;
                store.unpin(&Address::derive(TO_OURS, theirs.as_bytes())).await?;
                Ok(store.unpin(&ours).await?)
            }
            None => Ok(store.unpin(theirs).await?),
        }
    }

    /// What is pinned, in Deriva's addresses: at most so many.
    pub async fn pins(&self, most: usize) -> Result<Vec<Address>, Error> {
        let store = &self.executor.inner.store;
        let mut pins = Vec::new();
        let mut after = None;
        loop {
            let page = store.pins(after, 1024).await?;
            for pin in &page {
                match store.derivation(pin).await? {
                    Some(Derivation { context, .. }) if Context(&context).is_table() => {}
                    _ => pins.push(self.theirs(pin).await?),
                }
            }
            pins.truncate(most);
            match page.last() {
                Some(last) if page.len() == 1024 && pins.len() < most => after = Some(*last),
                _ => return Ok(pins),
            }
        }
    }
}

/// What a table has under a key.
async fn entry(store: &Store, table: Context<'_>, key: &Address) -> Result<Option<Address>, Error> {
    let found = store.derivation(&Address::derive(table, key.as_bytes())).await?;
    Ok(found.and_then(|found| found.inputs.first().copied()))
}

/// What a recipe reads, in our addresses; nothing if the derivation is no recipe. What one of Deriva's reads is looked up
/// now.
pub(crate) async fn inputs<'a>(
    store: &Store,
    found: &'a Derivation,
) -> Result<Option<Cow<'a, [Address]>>, Error> {
    if found.context == CONTEXT.0 {
        return Ok(Some(Cow::Borrowed(&found.inputs)));
    }
    if found.context != UNRESOLVED.0 {
        return Ok(None);
    }
    let mut inputs = found.inputs.clone();
    for input in &mut inputs {
        *input = entry(store, TO_OURS, input).await?.unwrap_or(*input);
    }
    Ok(Some(Cow::Owned(inputs)))
}

/// The recipe that a derivation describes; nothing if it describes something else.
pub(crate) async fn described(store: &Store, found: &Derivation) -> Result<Option<Recipe>, Error> {
    match inputs(store, found).await? {
        Some(inputs) => Ok(Some(Recipe { inputs: inputs.into_owned(), ..Recipe::decode(&found.bytes)? })),
        None => Ok(None),
    }
}
