//! The roots of collection: pins, names, and leases of live runs.

use std::collections::HashMap;

use super::counters::Kind;
use super::guard::Touch;
use super::mark::touch_all;
use super::quota::Claim;
use super::{Core, Store};
use crate::facts::{Class, NameChange};
use crate::log::Fact;
use crate::{Address, Error};

impl Store {
    /// Pins an address: collection keeps it, and everything it takes to derive it again. Returns whether that is new. An
    /// address that is not in the store yet can be pinned too. A derivation has one pin, under whichever of its addresses
    /// it is pinned.
    pub async fn pin(&self, address: &Address) -> Result<bool, Error> {
        let core = &self.inner.core;
        let addresses = self.addresses_of(*address).await?;
        for other in &addresses[1..] {
            let other = *other;
            if self.quick(move |core, wait| core.catalogue.pin(&other, wait)).await?.is_some() {
                return core.count(Kind::Pin, Ok(false), |_| None);
            }
        }
        let address = addresses[0];
        let _wanted = core.guard.want(vec![address]);
        let fact = Fact::Pin { address };
        let claim = core.claim(fact.size_hint() as u64).await?;
        let result = core.write(fact, Class::Acknowledged, claim).await;
        let result = core.count(Kind::Pin, result, |outcome| outcome.written.then_some(0));
        let written = result?.written;
        if written {
            core.cache.pin(address);
            self.hold_meanwhile([address]).await?;
        }
        Ok(written)
    }

    /// Removes the pin of an address, under whichever address of the same derivation it was set. Returns whether there
    /// was one.
    pub async fn unpin(&self, address: &Address) -> Result<bool, Error> {
        let core = &self.inner.core;
        let mut was_pinned = false;
        for address in self.addresses_of(*address).await? {
            let result = core.write(Fact::Unpin { address }, Class::Acknowledged, Claim::default()).await;
            let result = core.count(Kind::Pin, result, |outcome| outcome.written.then_some(0));
            if result?.written {
                core.cache.unpin(&address);
                was_pinned = true;
            }
        }
        Ok(was_pinned)
    }

    /// The addresses of one item: a derivation's own and its alias, or the address itself.
    async fn addresses_of(&self, address: Address) -> Result<Vec<Address>, Error> {
        self.quick(move |core, wait| {
            let own = core.catalogue.alias(&address, wait)?.unwrap_or(address);
            let alias = core.catalogue.derivation(&own, wait)?.and_then(|row| row.alias);
            Ok([Some(own), alias].into_iter().flatten().collect())
        })
        .await
    }

    /// Up to `most` pinned addresses after `after`, in order.
    pub async fn pins(&self, after: Option<Address>, most: usize) -> Result<Vec<Address>, Error> {
        self.reading(move |core| core.catalogue.pins(after)?.take(most).collect()).await
    }

    /// Points a name to an address; `None` drops the name. The addresses it pointed to before stay in its history, and
    /// are held as long as they are in it. Returns whether the name changed: a name that has this address already keeps
    /// its history as it is.
    pub async fn name(&self, name: &str, address: Option<Address>) -> Result<bool, Error> {
        self.change_name(name, address, None).await
    }

    /// Points a name to an address, as [`Store::name`] does, if it points to `expected` now (compare-and-set; `None`: the
    /// name is not set). Else the name stays as it is, and the error is [`Error::NameConflict`].
    pub async fn name_if(
        &self,
        name: &str,
        address: Option<Address>,
        expected: Option<Address>,
    ) -> Result<bool, Error> {
        self.change_name(name, address, Some(expected)).await
    }

    async fn change_name(
        &self,
        name: &str,
        address: Option<Address>,
        expected: Option<Option<Address>>,
    ) -> Result<bool, Error> {
        check_name(name)?;
        // A text that parses as an address is always taken for one, so such a name can only be dropped.
        if address.is_some() && name.parse::<Address>().is_ok() {
            return Err(Error::Name { name: name.to_owned() });
        }
        let result = self.write_name(name, address, expected).await;
        self.inner.core.count(Kind::Name, result, |is_changed| is_changed.then_some(0))
    }

    async fn write_name(
        &self,
        name: &str,
        address: Option<Address>,
        expected: Option<Option<Address>>,
    ) -> Result<bool, Error> {
        let core = &self.inner.core;
        let _wanted = core.guard.want(address.into_iter().collect());
        let Some(fact) = self.changed_name(name, address, expected).await? else { return Ok(false) };
        // Before the turn: room may take a collection, and the changes of all other names would wait for it, too.
        let mut claim = core.claim(fact.size_hint() as u64).await?;
        // Changes of names run one at a time: each extends the history that it read.
        let _turn = core.names.turn().await;
        let Some(fact) = self.changed_name(name, address, expected).await? else { return Ok(false) };
        core.extend_claim(&mut claim, fact.size_hint() as u64)?;
        let change = core.names.change();
        core.write(fact, Class::Acknowledged, claim).await?;
        change.written([(name.to_owned(), address)]);
        if let Some(address) = address {
            self.hold_meanwhile([address]).await?;
        }
        Ok(true)
    }

    /// The record that changes a name; `None` if the name has this address already.
    async fn changed_name(
        &self,
        name: &str,
        address: Option<Address>,
        expected: Option<Option<Address>>,
    ) -> Result<Option<Fact>, Error> {
        let core = &self.inner.core;
        // A log that can no longer be written may hold a change that the index does not have.
        core.segments.check()?;
        let history = self.history(name).await?;
        let found = current_address(&history);
        if let Some(expected) = expected.filter(|expected| *expected != found) {
            return Err(Error::NameConflict { name: name.to_owned(), expected, found });
        }
        let change = NameChange { address, at: core.now() };
        Ok((found != address).then(|| core.name_record(name, history, change)))
    }

    /// Drops a name with its history, which then holds nothing any more. Returns whether there was one.
    pub async fn forget_name(&self, name: &str) -> Result<bool, Error> {
        check_name(name)?;
        let core = &self.inner.core;
        let _turn = core.names.turn().await;
        core.segments.check()?;
        if self.history(name).await?.is_empty() {
            return core.count(Kind::Name, Ok(false), |_| None);
        }
        let fact = Fact::Name { name: name.to_owned(), history: Vec::new() };
        let change = core.names.change();
        let result = core.write(fact, Class::Acknowledged, Claim::default()).await;
        core.count(Kind::Name, result, |_| Some(0))?;
        change.written([(name.to_owned(), None)]);
        Ok(true)
    }

    /// Protects addresses from the current collection, which may have looked for held addresses before these were.
    pub(super) async fn hold_meanwhile(
        &self,
        addresses: impl IntoIterator<Item = Address>,
    ) -> Result<(), Error> {
        if !self.inner.core.guard.is_collecting() {
            return Ok(());
        }
        let addresses: Vec<Address> = addresses.into_iter().collect();
        self.reading(move |core| touch_all(core, addresses.clone())).await
    }

    /// The address that a name points to.
    pub async fn named(&self, name: &str) -> Result<Option<Address>, Error> {
        Ok(current_address(&self.history(name).await?))
    }

    /// The kept history of a name, newest last ([`super::Config::history_kept`]).
    pub async fn history(&self, name: &str) -> Result<Vec<NameChange>, Error> {
        check_name(name)?;
        let name = name.to_owned();
        let row = self.quick(move |core, wait| core.catalogue.name(&name, wait)).await?;
        Ok(row.map_or_else(Vec::new, |row| row.history))
    }

    /// Whether a text can be a name: 1 to 255 bytes without control characters.
    pub fn is_name(text: &str) -> bool {
        (1..=255).contains(&text.len()) && !text.chars().any(char::is_control)
    }

    /// Makes an empty lease. The addresses it holds stay until it is dropped.
    pub fn lease(&self) -> Lease {
        Lease { store: self.clone(), held: HashMap::new() }
    }
}

impl Core {
    /// The record that adds a change to the history of a name.
    pub(super) fn name_record(&self, name: &str, mut history: Vec<NameChange>, change: NameChange) -> Fact {
        history.push(change);
        let surplus = history.len().saturating_sub(self.config.history_kept);
        history.drain(..surplus);
        Fact::Name { name: name.to_owned(), history }
    }
}

/// The address that a name with this history points to.
pub(super) fn current_address(history: &[NameChange]) -> Option<Address> {
    history.last().and_then(|change| change.address)
}

/// Checks that a text is allowed as a name.
pub(super) fn check_name(name: &str) -> Result<(), Error> {
    if Store::is_name(name) { Ok(()) } else { Err(Error::Name { name: name.to_owned() }) }
}

/// Whether a name is one of the store's own, which callers can neither set nor see.
pub(super) fn is_reserved(name: &str) -> bool {
    name.starts_with(RESERVED)
}

/// The first character of the store's own names. No caller can use it: control characters are not allowed in names.
pub(super) const RESERVED: char = '\u{1}';

/// Holds addresses until it is dropped, for a run that needs them.
#[derive(Debug)]
pub struct Lease {
    store: Store,
    held: HashMap<Address, u32>,
}

impl Lease {
    /// Holds an address, and everything needed to derive it. Returns false if it is being removed at this moment: put
    /// or derive it again.
    pub async fn hold(&mut self, address: Address) -> Result<bool, Error> {
        *self.held.entry(address).or_default() += 1;
        let touch = self.store.inner.core.guard.hold(&address);
        self.store.hold_meanwhile([address]).await?;
        Ok(touch == Touch::Stays)
    }

    /// Releases an address. One that was held twice has to be released twice.
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
