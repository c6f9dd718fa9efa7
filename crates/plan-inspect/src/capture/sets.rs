//! Sets of captures, listed a page at a time.
//!
//! A name for each capture would be enough, but names are listed all at once, and set one after another, each waiting
//! for the disk. So a set is a derivation with a name. A member of the set is a pinned derivation that reads the set
//! and the capture: the store lists the derivations that read an address in order, and the pins of many captures are
//! written to disk together.

use anabranch_content::{Address, Context, Store, Value};

use super::error::Error;

/// Captures.
pub(super) const CAPTURE: Context<'_> = Context("anabranch 2026 plan capture");
const SET: Context<'_> = Context("anabranch 2026 set of plan captures");
const MEMBER: Context<'_> = Context("anabranch 2026 member of a set of plan captures");

/// The prefix of the names of sets.
const PREFIX: &str = "captures/";

/// The longest name of a set.
const LONGEST_NAME: usize = 100;

/// The captures of a set, a page at a time.
#[derive(Clone, Debug)]
pub struct Members {
    store: Store,
    set: Address,
    after: Option<Address>,
}

/// The names of the sets that a store has.
pub async fn capture_sets(store: &Store) -> Result<Vec<String>, Error> {
    let names = store.names().await?.into_iter();
    Ok(names.filter_map(|(name, _)| name.strip_prefix(PREFIX).map(str::to_owned)).collect())
}

/// The captures of a set.
pub async fn captures(store: &Store, set: &str) -> Result<Members, Error> {
    check_name(set)?;
    match store.named(&format!("{PREFIX}{set}")).await? {
        Some(address) => Ok(Members { store: store.clone(), set: address, after: None }),
        None => Err(Error::NoSet { set: set.to_owned(), known: capture_sets(store).await? }),
    }
}

impl Members {
    /// The number of captures still to come.
    pub async fn count(&mut self) -> Result<u64, Error> {
        /// Looked up at a time.
        const PAGE: usize = 10_000;
        let mut count = 0;
        loop {
            match self.next(PAGE).await?.len() {
                0 => return Ok(count),
                found => count += found as u64,
            }
        }
    }

    /// The next captures, at most `most`; empty at the end. Their order is arbitrary.
    pub async fn next(&mut self, most: usize) -> Result<Vec<Address>, Error> {
        let mut found = Vec::new();
        // Other derivations may read the set, too, so a page of them is not the end.
        while found.is_empty() {
            let members = self.store.dependents(&self.set, self.after, most).await?;
            let Some(last) = members.last() else { break };
            self.after = Some(*last);
            for member in &members {
                found.extend(self.capture_of(member).await?);
            }
        }
        Ok(found)
    }

    /// The capture of a member, if it is one.
    async fn capture_of(&self, member: &Address) -> Result<Option<Address>, Error> {
        let derivation = self.store.derivation(member).await?;
        let Some(derivation) = derivation.filter(|found| found.context == MEMBER.0) else { return Ok(None) };
        Ok(match Value::decode(&derivation.bytes) {
            Ok(Value::List(pair)) => match pair[..] {
                [_, Value::Address(capture)] => Some(capture),
                _ => None,
            },
            _ => None,
        })
    }
}

/// True if a set may be called this.
pub(super) fn check_name(set: &str) -> Result<(), Error> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    match (1..=LONGEST_NAME).contains(&set.len()) && set.bytes().all(plain) {
        true => Ok(()),
        false => Err(Error::SetName { set: set.to_owned() }),
    }
}

/// Adds a capture to a set, which it holds from then on.
pub(super) async fn add(store: &Store, set: &str, capture: Address) -> Result<(), Error> {
    check_name(set)?;
    let described = encode(&Value::Text(set.to_owned()));
    let address = store.put_derivation(SET, described).await?;
    let name = format!("{PREFIX}{set}");
    if store.named(&name).await? != Some(address) {
        store.name(&name, Some(address)).await?;
    }
    let member = encode(&Value::List(vec![Value::Address(address), Value::Address(capture)]));
    let member = store.put_derivation(MEMBER, member).await?;
    store.pin(&member).await?;
    Ok(())
}

fn encode(value: &Value) -> Vec<u8> {
    value.encode().expect("it is one list deep at most")
}
