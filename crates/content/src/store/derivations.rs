//! Derivations, and the memo of what they came to.

use std::collections::HashSet;

use bytes::Bytes;

use super::commit::{Doomed, Order, When};
use super::counters::Kind;
use super::get::QUICK_MOST;
use super::tables::{Blob, GoneRow, MemoRow, Noted, Row, RowBytes, Table, last_address};
use super::{Core, Event, Put, Store};
use crate::address::BuildAddress;
use crate::facts::{Class, Cost, Derivation, Gone, Memo, Why};
use crate::index::Key;
use crate::log::{BODY_MOST, Fact, Record, Removed, What};
use crate::{Address, Context, Error, Wait};

/// What a derivation came to, to be remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Made<'a> {
    /// Which derivation.
    pub derivation: Address,
    /// The blob it came to; put it first.
    pub output: Address,
    /// That blob's length in bytes.
    pub size: u64,
    /// What it cost.
    pub cost: Cost,
    /// What it read, if no [`Store::put_derivation`] said so.
    pub inputs: &'a [Address],
}

/// A derivation to be kept: what describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described<'a> {
    /// Canonical bytes.
    pub bytes: Bytes,
    /// What it reads, in order.
    pub inputs: &'a [Address],
}

/// All that a store knows about an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// The blob's length and class, if it is one.
    pub blob: Option<(u64, Class)>,
    /// A derivation is described under it.
    pub derivation: bool,
    /// What that came to.
    pub memo: Option<Memo>,
    /// It is pinned.
    pub pinned: bool,
    /// What was removed from under it.
    pub gone: Option<Gone>,
}

impl Store {
    /// Keeps the description of a derivation: canonical bytes, and what it reads. Its address is [`Address::derive`]'s.
    pub async fn put_derivation(
        &self,
        context: Context<'_>,
        bytes: impl Into<Bytes>,
        inputs: &[Address],
    ) -> Result<Address, Error> {
        let bytes = bytes.into();
        let address = Address::derive(context, &bytes);
        let derivation = Derivation { context: context.0.to_owned(), bytes, inputs: inputs.to_vec() };
        let result = self.keep_derivation(address, derivation).await;
        self.inner.core.count(Kind::Derivation, result, |new| new.then_some(0)).map(|_| address)
    }

    /// The same for many of one context, in their order: far quicker than one by one. Of many thousands, an error may
    /// leave the first ones kept.
    pub async fn put_derivations(
        &self,
        context: Context<'_>,
        described: &[Described<'_>],
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

    /// The description of a derivation, verified; nothing when it is not there.
    pub async fn derivation(&self, address: &Address) -> Result<Option<Derivation>, Error> {
        let address = *address;
        self.quick(move |core, wait| core.derivation(&address, wait)).await
    }

    /// Remembers what a derivation came to.
    pub async fn remember(&self, made: Made<'_>, class: Class) -> Result<(), Error> {
        let result = self.remember_made(made, class).await;
        self.inner.core.count(Kind::Memo, result, |new| new.then_some(0)).map(|_| ())
    }

    /// What a derivation came to; nothing when that is not known.
    pub async fn recall(&self, derivation: &Address) -> Result<Option<Memo>, Error> {
        let derivation = *derivation;
        let result = self.quick(move |core, wait| core.memo(&derivation, wait)).await;
        self.inner.core.count(Kind::Recall, result, |memo| memo.as_ref().map(|_| 0))
    }

    /// The same for many at once, in their order.
    pub async fn recall_many(&self, derivations: &[Address]) -> Result<Vec<Option<Memo>>, Error> {
        let derivations = derivations.to_vec();
        self.quick(move |core, wait| core.memos(&derivations, wait)).await
    }

    /// Forgets what derivations came to; says how many were remembered. The outputs stay, for collection to find.
    pub async fn invalidate(&self, derivations: &[Address]) -> Result<usize, Error> {
        let derivations = derivations.to_vec();
        self.blocking(move |core| {
            // What was derived before goes too: once the index has it.
            if derivations.iter().any(|derivation| core.pending.memo(derivation).is_some()) {
                core.submit_blocking(Order::Pass)?;
            }
            let mut doomed = Vec::new();
            for address in &derivations {
                if let Some((row, _)) = core.memo_row(address)? {
                    let removed = core.doom_memo(&row)?;
                    doomed.push(vec![Doomed { removed, when: When::Always }]);
                }
            }
            let removed = core.submit_blocking(Order::Remove(Why::Invalidated, doomed))?.removed.len();
            core.tell(&Event::Removed { count: removed, why: Why::Invalidated });
            Ok(removed)
        })
        .await
    }

    /// The derivations that read this address, in the order of theirs: at most so many, behind `after`.
    pub async fn dependents(
        &self,
        address: &Address,
        after: Option<Address>,
        most: usize,
    ) -> Result<Vec<Address>, Error> {
        let address = *address;
        self.blocking(move |core| {
            let after = after.map(|after| Table::Edge.pair(&address, &after));
            let mut found = Vec::new();
            for pair in core.seconds(Table::Edge, &address, after)? {
                let derivation = pair?;
                // An edge may outlive a derivation whose record was damaged.
                if found.len() < most && core.is_known(&derivation)? {
                    found.push(derivation);
                }
                if found.len() == most {
                    break;
                }
            }
            Ok(found)
        })
        .await
    }

    /// All that is known about an address, and why what was there is not any more.
    pub async fn why(&self, address: &Address) -> Result<Standing, Error> {
        let address = *address;
        self.quick(move |core, wait| {
            Ok(Standing {
                blob: core
                    .row::<Blob>(&Table::Blob.key(&address), wait)?
                    .map(|blob| (blob.size(), blob.class)),
                derivation: core.row::<Noted>(&Table::Derivation.key(&address), wait)?.is_some(),
                memo: core.row::<MemoRow>(&Table::Memo.key(&address), wait)?.map(|row| row.memo),
                pinned: core.row::<Noted>(&Table::Pin.key(&address), wait)?.is_some(),
                gone: core.row::<GoneRow>(&Table::Gone.key(&address), wait)?.map(|row| row.gone),
            })
        })
        .await
    }

    async fn remember_made(&self, made: Made<'_>, class: Class) -> Result<bool, Error> {
        let Made { derivation, output, size, cost, inputs } = made;
        let core = &self.inner.core;
        let wanted = core.guard.want([&[output, derivation], inputs].concat());
        // A look that never waits: it misses one in a hundred memos without an output, which then is derived again.
        let is_there =
            || core.pending.blob(&output).is_some() || core.index.may_have(&Table::Blob.key(&output));
        if wanted.is_leaving(0) || !is_there() {
            return Err(Error::Missing { address: output });
        }
        check_inputs(inputs)?;
        let fact = Fact::Memo { derivation, output, size, cost, inputs: inputs.to_vec() };
        Ok(core.write(fact, class).await?.written)
    }

    /// Writes those of some derivations that are not there.
    async fn keep_derivations(
        &self,
        context: Context<'_>,
        part: &[Described<'_>],
    ) -> Result<Vec<Put>, Error> {
        let core = &self.inner.core;
        for Described { bytes, inputs } in part {
            check_inputs(inputs)?;
            check_size("a derivation", bytes.len() + context.0.len(), BODY_MOST / 2)?;
        }
        let at = core.now();
        let fact = |it: &Described<'_>| Fact::Derivation {
            address: Address::from_bytes([0; 32]),
            context: context.0.to_owned(),
            inputs: it.inputs.to_vec(),
            bytes: it.bytes.clone(),
        };
        let records = part.iter().map(|it| Record { at, class: Class::Acknowledged, fact: fact(it) });
        let records: Vec<Record> = records.collect();
        let context = context.0.to_owned();
        let (records, addresses) = match part.iter().map(|it| it.bytes.len()).sum::<usize>() {
            ..=QUICK_MOST => addressed(&context, records),
            // So many hashes take milliseconds.
            _ => self.blocking(move |_| Ok(addressed(&context, records))).await?,
        };
        let inputs = part.iter().flat_map(|it| it.inputs);
        let _wanted =
            core.guard.want(addresses.iter().map(|(address, _)| address).chain(inputs).copied().collect());
        let size = records.iter().map(|record| record.fact.size_hint()).sum();
        let mut written = core.submit(Order::WriteAll(records), size).await?.each_written.into_iter();
        let put = |((address, is_first), it): ((Address, bool), &Described<'_>)| {
            let new = is_first && written.next().unwrap_or(false);
            Put { address, len: it.bytes.len() as u64, new }
        };
        Ok(addresses.into_iter().zip(part).map(put).collect())
    }

    /// Writes a derivation unless it is there; says whether it did.
    async fn keep_derivation(&self, address: Address, derivation: Derivation) -> Result<bool, Error> {
        let core = &self.inner.core;
        let Derivation { context, bytes, inputs } = derivation;
        check_inputs(&inputs)?;
        check_size("a derivation", bytes.len() + context.len(), BODY_MOST / 2)?;
        let wanted = core.guard.want([&[address], &inputs[..]].concat());
        core.segments.check()?;
        let key = Table::Derivation.key(&address);
        let noted = self.quick(move |core, wait| core.row::<Noted>(&key, wait)).await?;
        let is_recent = noted.is_some_and(|noted| core.now().since(noted.at) < core.config.touch_after);
        if is_recent && !wanted.is_leaving(0) {
            return Ok(false);
        }
        let fact = Fact::Derivation { address, context, inputs, bytes };
        Ok(core.write(fact, Class::Acknowledged).await?.written)
    }
}

/// How many derivations are written together, and about how many bytes of them.
const PART: usize = 4096;
const PART_BYTES: usize = 8 << 20;

/// How many of some derivations, at least one, are written together.
fn part_of(described: &[Described<'_>]) -> usize {
    let mut bytes = 0;
    let fits = described.iter().take(PART).take_while(|it| {
        bytes += it.bytes.len() + 32 * it.inputs.len();
        bytes <= PART_BYTES
    });
    fits.count().max(1)
}

/// Gives records of derivations their addresses. Says for each whether it is the first with its address; of the others
/// there is no record any more.
fn addressed(context: &str, mut records: Vec<Record>) -> (Vec<Record>, Vec<(Address, bool)>) {
    let mut derive = Address::derive_each(Context(context));
    let mut seen: HashSet<Address, BuildAddress> = HashSet::default();
    let mut addresses = Vec::with_capacity(records.len());
    records.retain_mut(|record| {
        let Fact::Derivation { address, bytes, .. } = &mut record.fact else { return false };
        *address = derive(bytes);
        let is_first = seen.insert(*address);
        addresses.push((*address, is_first));
        is_first
    });
    (records, addresses)
}

/// So many inputs fit into a record, with room to spare.
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
    /// A derivation's description and what it reads.
    pub(super) fn derivation(&self, address: &Address, wait: Wait) -> Result<Option<Derivation>, Error> {
        for _ in 0..4 {
            let Some(noted) = self.row::<Noted>(&Table::Derivation.key(address), wait)? else {
                return Ok(None);
            };
            let record = match self.segments.record(noted.place, wait) {
                Ok(record) => record,
                Err(cause) if cause.kind() == std::io::ErrorKind::WouldBlock => {
                    return Err(Error::WouldBlock);
                }
                Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => None,
                Err(cause) => {
                    return Err(Error::disk("read", &crate::log::segment_path(noted.place.segment), cause));
                }
            };
            if let Some(Fact::Derivation { context, inputs, bytes, .. }) = record.map(|record| record.fact)
                && Address::derive(Context(&context), &bytes) == *address
            {
                return Ok(Some(Derivation { context, bytes, inputs }));
            }
            if wait == Wait::No {
                return Err(Error::WouldBlock);
            }
            self.lose_derivation(address, &noted)?;
        }
        Ok(None)
    }

    fn lose_derivation(&self, address: &Address, noted: &Noted) -> Result<(), Error> {
        let now: Option<Noted> = self.row(&Table::Derivation.key(address), Wait::Yes)?;
        if now.is_none_or(|now| now.place != noted.place) {
            return Ok(());
        }
        let removed = Removed { address: *address, what: What::Derivation, edges: Vec::new() };
        let doomed = Doomed { removed, when: When::Damaged(noted.encode()) };
        self.submit_blocking(Order::Remove(Why::Damaged, vec![vec![doomed]]))?;
        let what = format!("its record in segment {} of the log does not hold", noted.place.segment);
        let class = Class::Acknowledged;
        self.tell(&Event::Quarantined { address: *address, what: what.clone(), class });
        Err(Error::Corrupt { address: *address, what })
    }

    /// A derivation's memo: one on its way to the log, one in memory, or the index's.
    pub(super) fn memo(&self, derivation: &Address, wait: Wait) -> Result<Option<Memo>, Error> {
        if let Some(memo) = self.pending.memo(derivation).or_else(|| self.recalled.get(derivation)) {
            return Ok(Some(memo));
        }
        let version = self.recalled.version(derivation);
        let Some(row) = self.row::<MemoRow>(&Table::Memo.key(derivation), wait)? else { return Ok(None) };
        self.recalled.found(version, &row.memo);
        Ok(Some(row.memo))
    }

    fn memos(&self, derivations: &[Address], wait: Wait) -> Result<Vec<Option<Memo>>, Error> {
        // Looked for before the index is: it has what is not pending any more.
        let mut memos: Vec<Option<Memo>> = match self.pending.is_empty() {
            true => vec![None; derivations.len()],
            false => derivations.iter().map(|derivation| self.pending.memo(derivation)).collect(),
        };
        let keys: Vec<Key> = derivations.iter().map(|derivation| Table::Memo.key(derivation)).collect();
        let rows = self.index.get_many(&keys, wait).map_err(|error| self.index_error(error))?;
        for (memo, row) in memos.iter_mut().zip(rows).filter(|(memo, _)| memo.is_none()) {
            *memo = row.map(|row| self.decoded::<MemoRow>(&row)).transpose()?.map(|row| row.memo);
        }
        Ok(memos)
    }

    /// A memo's row, decoded and as it is.
    pub(super) fn memo_row(&self, derivation: &Address) -> Result<Option<(MemoRow, RowBytes)>, Error> {
        let row = self
            .index
            .get(&Table::Memo.key(derivation), Wait::Yes)
            .map_err(|error| self.index_error(error))?;
        row.map(|row| Ok((self.decoded::<MemoRow>(&row)?, row))).transpose()
    }

    /// How to remove a memo: with its edges, unless a description of the derivation still has them.
    pub(super) fn doom_memo(&self, row: &MemoRow) -> Result<Removed, Error> {
        let address = row.memo.derivation;
        let described = self.row::<Noted>(&Table::Derivation.key(&address), Wait::Yes)?.is_some();
        let edges = if described { Vec::new() } else { self.memo_inputs(row)? };
        Ok(Removed { address, what: What::Memo(row.memo.output), edges })
    }

    /// What a memo's derivation read, as the memo has it; nothing if its record does not hold.
    pub(super) fn memo_inputs(&self, row: &MemoRow) -> Result<Vec<Address>, Error> {
        match self.segments.record(row.place, Wait::Yes) {
            Ok(Some(record)) => match record.fact {
                Fact::Memo { inputs, .. } => Ok(inputs),
                _ => Ok(Vec::new()),
            },
            Ok(None) => Ok(Vec::new()),
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(cause) => Err(Error::disk("read", &crate::log::segment_path(row.place.segment), cause)),
        }
    }

    /// The memos of derivations whose addresses begin so.
    pub(super) fn memos_near(&self, bits: u64) -> Result<Vec<(MemoRow, RowBytes)>, Error> {
        let prefix = [&[Table::Memo as u8][..], &bits.to_le_bytes()].concat();
        let scan = self.index.scan(&prefix, None).map_err(|error| self.index_error(error))?;
        scan.map(|row| {
            let (_, row) = row.map_err(|error| self.index_error(error))?;
            Ok((self.decoded(&row)?, row))
        })
        .collect()
    }

    /// The second addresses of all pairs with this first one.
    pub(super) fn seconds(
        &self,
        table: Table,
        first: &Address,
        after: Option<Key>,
    ) -> Result<impl Iterator<Item = Result<Address, Error>>, Error> {
        let prefix = table.key(first);
        let scan =
            self.index.scan(prefix.as_bytes(), after.as_ref()).map_err(|error| self.index_error(error))?;
        Ok(scan.map(|pair| {
            let (key, _) = pair.map_err(|error| self.index_error(error))?;
            Ok(last_address(&key).expect("a pair's key has two addresses"))
        }))
    }

    fn is_known(&self, derivation: &Address) -> Result<bool, Error> {
        Ok(self.row::<MemoRow>(&Table::Memo.key(derivation), Wait::Yes)?.is_some()
            || self.row::<Noted>(&Table::Derivation.key(derivation), Wait::Yes)?.is_some())
    }

    pub(super) fn decoded<R: Row>(&self, bytes: &[u8]) -> Result<R, Error> {
        R::decode(bytes).ok_or_else(|| {
            let what = "an entry that no store writes".to_owned();
            self.index_error(crate::index::Error::Damaged { path: "index".into(), what })
        })
    }
}
