//! What collection keeps: pins, names, and leases of live runs.

use std::collections::HashMap;

use super::Store;
use super::counters::Kind;
use super::guard::Touch;
use super::mark::touch_all;
use crate::facts::{Class, NameChange};
use crate::log::Fact;
use crate::{Address, Error};

impl Store {
    /// Holds an address for good, and all that it takes to derive it again; says whether that is new. What is not in
    /// the store can be pinned too: it stays once it comes.
    pub async fn pin(&self, address: &Address) -> Result<bool, Error> {
        let core = &self.inner.core;
        let _wanted = core.guard.want(vec![*address]);
        let result = core.write(Fact::Pin { address: *address }, Class::Acknowledged).await;
        let result = core.count(Kind::Pin, result, |outcome| outcome.written.then_some(0));
        let written = result?.written;
        if written {
            core.cache.pin(*address);
            self.hold_meanwhile([*address]).await?;
        }
        Ok(written)
    }

    /// Lets a pinned address go; says whether it was pinned.
    pub async fn unpin(&self, address: &Address) -> Result<bool, Error> {
        let core = &self.inner.core;
        let result = core.write(Fact::Unpin { address: *address }, Class::Acknowledged).await;
        let result = core.count(Kind::Pin, result, |outcome| outcome.written.then_some(0));
        let written = result?.written;
        if written {
            core.cache.unpin(address);
        }
        Ok(written)
    }

    /// Pinned addresses, in order: at most so many, behind `after`.
    pub async fn pins(&self, after: Option<Address>, most: usize) -> Result<Vec<Address>, Error> {
        self.blocking(move |core| core.catalogue.pins(after)?.take(most).collect()).await
    }

    /// Has a name mean an address from now on, or nothing. What it meant before stays in its history, and is held as
    /// long as it does.
    pub async fn name(&self, name: &str, address: Option<Address>) -> Result<(), Error> {
        check_name(name)?;
        // Whoever is given a text takes it for an address if it can be one; such a name could only be dropped.
        if address.is_some() && name.parse::<Address>().is_ok() {
            return Err(Error::Name { name: name.to_owned() });
        }
        let core = &self.inner.core;
        let _wanted = core.guard.want(address.into_iter().collect());
        // Names change one after another: each history begins with the one before.
        let _turn = core.naming.lock().await;
        let mut history = self.history(name).await?;
        history.push(NameChange { address, at: core.now() });
        let surplus = history.len().saturating_sub(core.config.history_kept);
        history.drain(..surplus);
        let fact = Fact::Name { name: name.to_owned(), history };
        core.room_for(fact.size_hint() as u64).await?;
        let result = core.write(fact, Class::Acknowledged).await;
        core.count(Kind::Name, result, |_| Some(0))?;
        match address {
            Some(address) => self.hold_meanwhile([address]).await,
            None => Ok(()),
        }
    }

    /// A collection that is going on may have looked for what is held before these addresses were.
    pub(super) async fn hold_meanwhile(
        &self,
        addresses: impl IntoIterator<Item = Address>,
    ) -> Result<(), Error> {
        if !self.inner.core.guard.is_collecting() {
            return Ok(());
        }
        let addresses = addresses.into_iter().collect();
        self.blocking(move |core| touch_all(core, addresses)).await
    }

    /// What a name means now.
    pub async fn named(&self, name: &str) -> Result<Option<Address>, Error> {
        Ok(self.history(name).await?.last().and_then(|named| named.address))
    }

    /// What a name has meant, newest last, as far as that is kept.
    pub async fn history(&self, name: &str) -> Result<Vec<NameChange>, Error> {
        check_name(name)?;
        let name = name.to_owned();
        let row = self.quick(move |core, wait| core.catalogue.name(&name, wait)).await?;
        Ok(row.map_or_else(Vec::new, |row| row.history))
    }

    /// All names that mean something, with what they mean, in their order.
    pub async fn names(&self) -> Result<Vec<(String, Address)>, Error> {
        self.blocking(|core| {
            let mut names = Vec::new();
            for row in core.catalogue.names()? {
                let row = row?;
                if let Some(NameChange { address: Some(address), .. }) = row.history.last() {
                    names.push((row.name, *address));
                }
            }
            names.sort();
            Ok(names)
        })
        .await
    }

    /// A lease: what it holds stays as long as it lives.
    pub fn lease(&self) -> Lease {
        Lease { store: self.clone(), held: HashMap::new() }
    }
}

fn check_name(name: &str) -> Result<(), Error> {
    let fits = (1..=255).contains(&name.len()) && !name.chars().any(char::is_control);
    if fits { Ok(()) } else { Err(Error::Name { name: name.to_owned() }) }
}

/// Holds addresses while it lives, for a run that needs them.
#[derive(Debug)]
pub struct Lease {
    store: Store,
    held: HashMap<Address, u32>,
}

impl Lease {
    /// Holds an address, and what it takes to derive it. False: it is being removed at this moment; put or derive it
    /// again.
    pub async fn hold(&mut self, address: Address) -> Result<bool, Error> {
        *self.held.entry(address).or_default() += 1;
        let touch = self.store.inner.core.guard.hold(&address);
        self.store.hold_meanwhile([address]).await?;
        Ok(touch == Touch::Stays)
    }

    /// Lets go of an address that was held once more than it was let go.
    pub fn release(&mut self, address: &Address) {
        if let Some(count) = self.held.get_mut(address) {
            self.store.inner.core.guard.release(address);
            *count -= 1;
            if *count == 0 {
                self.held.remove(address);
            }
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        for (address, count) in &self.held {
            (0..*count).for_each(|_| self.store.inner.core.guard.release(address));
        }
    }
}
