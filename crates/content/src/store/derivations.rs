//! Derivations: descriptions of work, by address.

use std::collections::HashSet;

use bytes::Bytes;

use super::commit::{DoomedItem, Order, RemovalCondition};
use super::counters::Kind;
use super::get::QUICK_MOST;
use super::tables::{DerivationRow, Row};
use super::{Core, Event, Put, Store};
use crate::address::BuildAddress;
use crate::facts::{Class, Derivation, RemovalReason, Time};
use crate::index::Generation;
use crate::log::{BODY_MOST, Fact, ItemKind, ItemRemoval, Record, Salt};
use crate::{Address, Context, Error, Value, Wait};

/// The description of a derivation, for [`Store::put_derivation`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDerivation {
    /// A canonical encoding ([`Value::encode`]). The addresses in it are the derivation's inputs.
    pub bytes: Bytes,
    /// Another address that leads to the derivation from now on, say of another naming scheme.
    pub alias: Option<Address>,
}

impl<B: Into<Bytes>> From<B> for NewDerivation {
    fn from(bytes: B) -> NewDerivation {
        NewDerivation { bytes: bytes.into(), alias: None }
    }
}

impl Store {
    /// Stores the description of a derivation: a canonical encoding ([`Value::encode`]). The addresses in it are the
    /// derivation's inputs. Its own address comes from [`Address::derive`].
    pub async fn put_derivation(
        &self,
        context: Context<'_>,
        described: impl Into<NewDerivation>,
    ) -> Result<Address, Error> {
        let puts = self.put_derivations(context, &[described.into()]).await?;
        Ok(puts[0].address)
    }

    /// Stores many derivations of one context, far faster than one by one; the results are in their order. After an
    /// error, the first few thousands may have been stored.
    pub async fn put_derivations(
        &self,
        context: Context<'_>,
        described: &[NewDerivation],
    ) -> Result<Vec<Put>, Error> {
        let mut puts = Vec::with_capacity(described.len());
        let mut rest = described;
        while !rest.is_empty() {
            let (part, behind) = rest.split_at(part_of(rest));
            rest = behind;
            let kept = self.keep_derivations(context, part).await;
            let kept = self
                .inner
                .core
                .count(Kind::Derivation, kept, |kept| kept.iter().any(|put| put.new).then_some(0));
            puts.extend(kept?);
        }
        Ok(puts)
    }

    /// The description of a derivation, verified; `None` if it is not in the store. An alias is followed.
    pub async fn derivation(&self, address: &Address) -> Result<Option<Derivation>, Error> {
        let address = *address;
        self.quick(move |core, wait| match core.derivation(&address, wait)? {
            None => match core.catalogue.alias(&address, wait)? {
                Some(derivation) => core.derivation(&derivation, wait),
                None => Ok(None),
            },
            found => Ok(found),
        })
        .await
    }

    /// Removes the descriptions of derivations, held or not, with their aliases and memos; returns the number of
    /// removed descriptions. Their outputs stay until they are collected.
    pub async fn remove_derivations(&self, addresses: &[Address]) -> Result<usize, Error> {
        self.invalidate(addresses).await?;
        let addresses = addresses.to_vec();
        self.blocking(move |core| {
            let mut groups = Vec::new();
            for address in addresses {
                let edges = match core.derivation(&address, Wait::Yes) {
                    Ok(Some(derivation)) => derivation.inputs,
                    Ok(None) | Err(Error::Corrupt { .. }) => continue,
                    Err(error) => return Err(error),
                };
                let removed = ItemRemoval { address, what: ItemKind::Derivation, edges };
                groups.push(vec![DoomedItem { removed, when: RemovalCondition::Always }]);
            }
            let count =
                core.submit_blocking(Order::Remove(RemovalReason::Invalidated, groups))?.removed.len();
            core.tell(&Event::Removed { count, why: RemovalReason::Invalidated });
            Ok(count)
        })
        .await
    }

    /// Whether a few derivations are all in the store, with their aliases, and young: then there is nothing to write. Notes
    /// the first one that is not there.
    async fn are_there(
        &self,
        addresses: &[(Address, bool)],
        part: &[NewDerivation],
        described: &mut [EncodedDerivation],
    ) -> Result<bool, Error> {
        let core = &self.inner.core;
        core.segments.check()?;
        if part.len() > LOOKED_UP {
            return Ok(false);
        }
        for ((address, _), it) in addresses.iter().zip(part) {
            let address = *address;
            let found = self.quick(move |core, wait| core.catalogue.derivation_noting(&address, wait));
            let (row, generation) = found.await?;
            if row.is_none()
                && let Some(missing) = described.iter_mut().find(|it| it.address == address)
            {
                missing.absent = Some(generation);
            }
            let is_there = row.is_some_and(|row| {
                let is_recent = core.now().since(row.at) < core.config.touch_after;
                is_recent && (it.alias.is_none() || it.alias == row.alias)
            });
            if !is_there {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Writes the derivations that are not in the store.
    async fn keep_derivations(
        &self,
        context: Context<'_>,
        part: &[NewDerivation],
    ) -> Result<Vec<Put>, Error> {
        let core = &self.inner.core;
        for NewDerivation { bytes, .. } in part {
            check_size("a derivation", bytes.len() + context.0.len(), BODY_MOST / 2)?;
        }
        let (at, salt) = (core.now(), core.segments.salt());
        let AddressedDerivations { mut described, addresses, mut wanted } =
            match part.iter().map(|it| it.bytes.len()).sum::<usize>() {
                ..=QUICK_MOST => addressed(context, part, (at, salt))?,
                // This many hashes take milliseconds.
                _ => {
                    let (context, part) = (context.0.to_owned(), part.to_vec());
                    self.blocking(move |_| addressed(Context(&context), &part, (at, salt))).await?
                }
            };
        let first_wanted = wanted.len();
        wanted.extend(addresses.iter().map(|(address, _)| *address));
        let wanted = core.guard.want(wanted);
        let put =
            |address: Address, new, it: &NewDerivation| Put { address, len: it.bytes.len() as u64, new };
        if (first_wanted..first_wanted + addresses.len()).all(|place| !wanted.is_leaving(place))
            && self.are_there(&addresses, part, &mut described).await?
        {
            return Ok(addresses
                .iter()
                .zip(part)
                .map(|((address, _), it)| put(*address, false, it))
                .collect());
        }
        let size = described.iter().map(|it| it.encoded.len()).sum();
        let claim = core.claim(size as u64).await?;
        let written = core.submit(Order::Derivations(described), size, claim).await?.each_written;
        let mut written = written.into_iter();
        let puts = addresses
            .iter()
            .zip(part)
            .map(|((address, is_first), it)| put(*address, *is_first && written.next().unwrap_or(false), it));
        let puts: Vec<Put> = puts.collect();
        self.hold_meanwhile(addresses.into_iter().map(|(address, _)| address)).await?;
        Ok(puts)
    }
}

/// Up to this many derivations are looked up first, to spare the writer.
const LOOKED_UP: usize = 16;

/// The most derivations that are written together, and about how many bytes.
const PART: usize = 4096;
const PART_BYTES: usize = 8 << 20;

/// The number of leading derivations to write together; at least one.
fn part_of(described: &[NewDerivation]) -> usize {
    let mut bytes = 0;
    let fits = described.iter().take(PART).take_while(|it| {
        bytes += it.bytes.len();
        bytes <= PART_BYTES
    });
    fits.count().max(1)
}

/// Derivations, with their addresses.
struct AddressedDerivations {
    /// One per address.
    described: Vec<EncodedDerivation>,
    /// Per derivation: its address, and whether it is the first with that address.
    addresses: Vec<(Address, bool)>,
    /// Their inputs and aliases.
    wanted: Vec<Address>,
}

/// A derivation, encoded by its caller to save the writer thread's time.
#[derive(Debug)]
pub(crate) struct EncodedDerivation {
    pub(super) address: Address,
    pub(super) alias: Option<Address>,
    pub(super) at: Time,
    pub(super) inputs: Vec<Address>,
    /// The whole record.
    pub(super) encoded: Vec<u8>,
    /// Noted by a lookup that did not find it: the writer need not look through the same runs of the index.
    pub(super) absent: Option<Generation>,
}

/// Computes the addresses of derivations, and encodes their records.
fn addressed(
    context: Context<'_>,
    part: &[NewDerivation],
    (at, salt): (Time, Salt),
) -> Result<AddressedDerivations, Error> {
    let mut seen: HashSet<Address, BuildAddress> = HashSet::default();
    let mut addresses = Vec::with_capacity(part.len());
    let mut wanted = Vec::with_capacity(4 * part.len());
    let mut described = Vec::with_capacity(part.len());
    for NewDerivation { bytes, alias } in part {
        let inputs = Value::addresses_in(bytes).map_err(Error::Description)?;
        check_inputs(&inputs)?;
        wanted.extend_from_slice(&inputs);
        wanted.extend(*alias);
        let (address, alias) = (Address::derive(context, bytes), *alias);
        let is_first = part.len() == 1 || seen.insert(address);
        addresses.push((address, is_first));
        if is_first {
            let fact =
                Fact::Derivation { address, alias, context: context.0.to_owned(), bytes: bytes.clone() };
            let mut encoded = Vec::with_capacity(fact.size_hint());
            Record { at, class: Class::Acknowledged, fact }.encode(salt, &mut encoded);
            described.push(EncodedDerivation { address, alias, at, inputs, encoded, absent: None });
        }
    }
    Ok(AddressedDerivations { described, addresses, wanted })
}

/// The most inputs of a derivation: they fit into a record, with room to spare.
const INPUTS_MOST: usize = 400_000;

pub(super) fn check_inputs(inputs: &[Address]) -> Result<(), Error> {
    check_size("the list of a derivation's inputs", inputs.len() * 32, INPUTS_MOST * 32)
}

fn check_size(what: &'static str, size: usize, most: usize) -> Result<(), Error> {
    if size > most {
        return Err(Error::TooLarge { what, size: size as u64, most: most as u64 });
    }
    Ok(())
}

impl Core {
    /// The description of a derivation, verified. Aliases are not followed.
    pub(super) fn derivation(&self, address: &Address, wait: Wait) -> Result<Option<Derivation>, Error> {
        match self.catalogue.derivation(address, wait)? {
            Some(row) => self.described(address, row, wait),
            None => Ok(None),
        }
    }

    /// The same, of a derivation whose row was just found.
    pub(super) fn described(
        &self,
        address: &Address,
        mut row: DerivationRow,
        wait: Wait,
    ) -> Result<Option<Derivation>, Error> {
        for _ in 0..super::get::LOOKS_MOST {
            let record = match self.segments.record(row.place, wait) {
                Ok(record) => record,
                Err(cause) if cause.kind() == std::io::ErrorKind::WouldBlock => {
                    return Err(Error::WouldBlock);
                }
                Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => None,
                Err(cause) => {
                    return Err(Error::disk("read", &crate::log::segment_path(row.place.segment), cause));
                }
            };
            if let Some(Fact::Derivation { context, bytes, .. }) = record.map(|record| record.fact)
                && Address::derive(Context(&context), &bytes) == *address
            {
                // Only alias tables of stores of format 1 have bytes that are not canonical.
                let inputs = Value::addresses_in(&bytes).unwrap_or_default();
                return Ok(Some(Derivation { address: *address, alias: row.alias, context, bytes, inputs }));
            }
            if wait == Wait::No {
                return Err(Error::WouldBlock);
            }
            self.lose_derivation(address, &row)?;
            match self.catalogue.derivation(address, wait)? {
                Some(next) => row = next,
                None => return Ok(None),
            }
        }
        Err(self.keeps_moving(address))
    }

    /// Removes a damaged description: it is missing from now on. Does nothing if it has changed meanwhile.
    pub(super) fn lose_derivation(&self, address: &Address, row: &DerivationRow) -> Result<(), Error> {
        let now = self.catalogue.derivation(address, Wait::Yes)?;
        if now.is_none_or(|now| now.place != row.place) {
            return Ok(());
        }
        let removed = ItemRemoval { address: *address, what: ItemKind::Derivation, edges: Vec::new() };
        let doomed = DoomedItem { removed, when: RemovalCondition::Damaged(row.encode()) };
        self.submit_blocking(Order::Remove(RemovalReason::Damaged, vec![vec![doomed]]))?;
        let what = format!("its record in segment {} of the log is damaged", row.place.segment);
        let class = Class::Acknowledged;
        self.tell(&Event::Quarantined { address: *address, class, what: what.clone() });
        Err(Error::Corrupt { address: *address, what })
    }
}
