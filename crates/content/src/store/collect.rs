//! Collection: removes what nothing holds.
//!
//! What holds is what pins, names and leases lead to: their own values, and all that it takes to derive them again.
//! Values in between can be derived again, so they stay only while they are young.

use std::collections::HashSet;
use std::time::Duration;

use super::commit::{Doomed, Order};
use super::counters::Kind;
use super::event::is_young;
use super::tables::{Blob, MemoRow, Noted, Row, Table, last_address};
use super::{Core, Event, Store, lock};
use crate::facts::{Class, Time, Why};
use crate::index::Key;
use crate::log::{Removed, What};
use crate::{Address, Error, Wait};

/// How to collect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collect {
    /// Younger things stay, held or not. Default 5 minutes.
    pub grace: Duration,
    /// What may go. Default all.
    pub scope: Scope,
    /// Just find out what would go. Default no.
    pub dry_run: DryRun,
    /// Remove at most so many things. Default a million.
    pub most: usize,
    /// Stop when the store uses no more than so many bytes; the things that cost least for their size go first.
    pub until_bytes: Option<u64>,
    /// List at most so many addresses. Default 1000.
    pub detail: usize,
}

/// Whether a collection removes anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DryRun {
    /// It just says what it would remove.
    Yes,
    /// It removes.
    #[default]
    No,
}

/// What a collection may remove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Everything that nothing holds.
    All,
    /// Of that, what was put as derivable.
    Derivable,
}

impl Default for Collect {
    fn default() -> Collect {
        Collect {
            grace: Duration::from_secs(300),
            scope: Scope::All,
            dry_run: DryRun::No,
            most: 1_000_000,
            until_bytes: None,
            detail: 1000,
        }
    }
}

/// What a collection came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Collected {
    /// Blobs removed.
    pub blobs: u64,
    /// Bytes of those blobs.
    pub bytes: u64,
    /// Memos removed.
    pub memos: u64,
    /// Derivations removed.
    pub derivations: u64,
    /// Things that were held, and stay.
    pub held: u64,
    /// Things that nothing holds and are too young to go.
    pub young: u64,
    /// Things that could have gone, but for the limits of this collection.
    pub left: u64,
    /// What was removed, as far as it is listed.
    pub removed: Vec<Address>,
}

impl Store {
    /// Removes what nothing holds. Safe beside everything else; what is put, remembered, pinned or named meanwhile
    /// stays. One collection goes on at a time; another waits.
    pub async fn collect(&self, terms: Collect) -> Result<Collected, Error> {
        let result = self.blocking(move |core| collect(core, &terms, Why::Collected)).await;
        self.inner.core.counters.count(Kind::Collect, result, |collected| Some(collected.bytes))
    }
}

/// Things that go together, and what they are worth.
struct Group {
    /// What it would cost to make them again, for each byte: the lowest goes first.
    worth: u64,
    bytes: u64,
    doomed: Vec<Doomed>,
}

/// How many things one record removes.
const BATCH: usize = 256;

pub(crate) fn collect(core: &Core, terms: &Collect, why: Why) -> Result<Collected, Error> {
    let _only = lock(&core.keeping);
    let _collecting = core.guard.begin();
    let mut sweep = Sweep {
        core,
        terms,
        why,
        now: core.now(),
        marks: mark(core)?,
        gone: HashSet::new(),
        result: Collected::default(),
    };
    let groups = sweep.outputs()?;
    sweep.remove(groups)?;
    let groups = sweep.memos()?;
    sweep.remove(groups)?;
    if terms.scope == Scope::All {
        let groups = sweep.derivations()?;
        sweep.remove(groups)?;
    }
    let Collected { blobs, memos, derivations, .. } = sweep.result;
    let count = (blobs + memos + derivations) as usize;
    if count > 0 && terms.dry_run == DryRun::No {
        core.tell(&Event::Removed { count, why });
        core.keeper.wake();
    }
    Ok(sweep.result)
}

/// What is held. Addresses are kept as 64 of their bits: two that share them are both held, which is safe.
#[derive(Default)]
struct Marks {
    means: HashSet<u64>,
    values: HashSet<u64>,
    memos: HashSet<u64>,
}

/// How much of an address is held.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    /// Its value.
    Value,
    /// What it takes to derive it.
    Means,
}

impl Marks {
    fn holds(&self, address: &Address) -> bool {
        self.means.contains(&address.bits()) || self.values.contains(&address.bits())
    }
}

fn mark(core: &Core) -> Result<Marks, Error> {
    let mut marks = Marks::default();
    let mut stack: Vec<(Address, Need)> = Vec::new();
    for pin in core.pinned(None)? {
        stack.push((pin?, Need::Value));
    }
    for row in core.named_rows()? {
        stack.extend(row?.history.iter().filter_map(|named| Some((named.address?, Need::Value))));
    }
    stack.extend(core.guard.held().into_iter().map(|address| (address, Need::Value)));
    while let Some((address, need)) = stack.pop() {
        let set = if need == Need::Value { &mut marks.values } else { &mut marks.means };
        if set.insert(address.bits()) {
            follow(core, &address, need, &mut marks.memos, &mut stack)?;
        }
    }
    Ok(marks)
}

/// What an address leads to.
fn follow(
    core: &Core,
    address: &Address,
    need: Need,
    memos: &mut HashSet<u64>,
    stack: &mut Vec<(Address, Need)>,
) -> Result<(), Error> {
    let derivation = match core.derivation(address, Wait::Yes) {
        Ok(derivation) => derivation,
        Err(Error::Corrupt { .. }) => None,
        Err(error) => return Err(error),
    };
    let described = derivation.is_some();
    stack.extend(derivation.into_iter().flat_map(|it| it.inputs).map(|input| (input, Need::Means)));
    // What nothing describes cannot be derived again: its value is all there is.
    if (need == Need::Value || !described)
        && let Some((row, _)) = core.memo_row(address)?
    {
        memos.insert(address.bits());
        stack.push((row.memo.output, Need::Value));
        if !described {
            stack.extend(core.memo_inputs(&row)?.into_iter().map(|input| (input, Need::Means)));
        }
    }
    Ok(())
}

/// One pass over everything.
struct Sweep<'a> {
    core: &'a Core,
    terms: &'a Collect,
    why: Why,
    now: Time,
    marks: Marks,
    /// Memos that went, or would in earnest.
    gone: HashSet<Address>,
    result: Collected,
}

impl Sweep<'_> {
    /// Blobs that nothing holds, each with the memos that came to it.
    fn outputs(&mut self) -> Result<Vec<Group>, Error> {
        let mut groups = Vec::new();
        for row in self.core.rows(Table::Blob)? {
            let (address, seen) = row?;
            let blob: Blob = self.core.decoded(&seen)?;
            if self.stays(self.marks.holds(&address), blob.at, blob.class) {
                continue;
            }
            let removed = Removed { address, what: What::Blob, edges: Vec::new() };
            let mut group =
                Group { worth: 0, bytes: blob.size(), doomed: vec![Doomed { removed, seen: Some(seen) }] };
            if self.add_memos(&address, &mut group)? {
                group.worth /= group.bytes.max(1);
                self.consider(group, &mut groups);
            }
        }
        groups.sort_by_key(|group| group.worth);
        Ok(groups)
    }

    /// Adds the memos that came to a blob; false when one of them stays, and the blob with it.
    fn add_memos(&mut self, output: &Address, group: &mut Group) -> Result<bool, Error> {
        for derivation in self.core.memos_of(output)? {
            let Some((row, seen)) = self.core.memo_row(&derivation)? else { continue };
            if self.stays(self.marks.memos.contains(&derivation.bits()), row.memo.at, row.class) {
                return Ok(false);
            }
            group.worth = group.worth.saturating_add(row.memo.cost.worth());
            group.doomed.push(Doomed { removed: self.core.doom_memo(&row)?, seen: Some(seen) });
        }
        Ok(true)
    }

    /// Memos that nothing holds, of outputs that stay or are gone.
    fn memos(&mut self) -> Result<Vec<Group>, Error> {
        let mut groups = Vec::new();
        for row in self.core.rows(Table::Memo)? {
            let (address, seen) = row?;
            let row: MemoRow = self.core.decoded(&seen)?;
            let output: Option<Blob> = self.core.row(&Table::Blob.key(&row.memo.output), Wait::Yes)?;
            // Without its output a memo is of no use, however young.
            if output.is_some()
                && self.stays(self.marks.memos.contains(&address.bits()), row.memo.at, row.class)
            {
                continue;
            }
            // Outputs that could have gone with it were left for the limits' sake: so is it.
            if output.is_some() && !self.marks.holds(&row.memo.output) {
                continue;
            }
            let doomed = vec![Doomed { removed: self.core.doom_memo(&row)?, seen: Some(seen) }];
            self.consider(Group { worth: 0, bytes: 0, doomed }, &mut groups);
        }
        Ok(groups)
    }

    /// Derivations that nothing holds and that have no memo.
    fn derivations(&mut self) -> Result<Vec<Group>, Error> {
        let mut groups = Vec::new();
        for row in self.core.rows(Table::Derivation)? {
            let (address, seen) = row?;
            let noted: Noted = self.core.decoded(&seen)?;
            let remembered = !self.gone.contains(&address) && self.core.memo_row(&address)?.is_some();
            if remembered || self.stays(self.marks.holds(&address), noted.at, Class::Derivable) {
                continue;
            }
            let derivation = match self.core.derivation(&address, Wait::Yes) {
                Ok(Some(derivation)) => derivation,
                Ok(None) | Err(Error::Corrupt { .. }) => continue,
                Err(error) => return Err(error),
            };
            let removed = Removed { address, what: What::Derivation, edges: derivation.inputs };
            let doomed = vec![Doomed { removed, seen: Some(seen) }];
            self.consider(Group { worth: 0, bytes: 0, doomed }, &mut groups);
        }
        Ok(groups)
    }

    fn stays(&mut self, held: bool, at: Time, class: Class) -> bool {
        let young = is_young(at, self.now, self.terms.grace);
        self.result.held += u64::from(held);
        self.result.young += u64::from(young && !held);
        held || young || (self.terms.scope == Scope::Derivable && class == Class::Acknowledged)
    }

    /// Takes a group on, as far as the limits go.
    fn consider(&mut self, group: Group, groups: &mut Vec<Group>) {
        let Collected { blobs, memos, derivations, .. } = self.result;
        let so_far = (blobs + memos + derivations) as usize + groups.len();
        if so_far < self.terms.most {
            groups.push(group);
        } else {
            self.result.left += 1;
        }
    }

    fn remove(&mut self, groups: Vec<Group>) -> Result<(), Error> {
        let mut batch: Vec<Doomed> = Vec::new();
        let mut to_go =
            self.terms.until_bytes.map(|until| self.core.tally().used_bytes().saturating_sub(until));
        for group in groups {
            match &mut to_go {
                Some(0) => {
                    self.result.left += 1;
                    continue;
                }
                Some(to_go) => *to_go = to_go.saturating_sub(group.bytes.max(1)),
                None => {}
            }
            if batch.len() + group.doomed.len() > BATCH && !batch.is_empty() {
                self.remove_batch(std::mem::take(&mut batch))?;
            }
            batch.extend(group.doomed);
        }
        self.remove_batch(batch)
    }

    fn remove_batch(&mut self, batch: Vec<Doomed>) -> Result<(), Error> {
        let sizes: Vec<(Address, u64)> = batch.iter().filter_map(blob_size).collect();
        let removed = match self.terms.dry_run {
            _ if batch.is_empty() => return Ok(()),
            DryRun::Yes => batch.iter().map(|doomed| (doomed.removed.address, doomed.removed.what)).collect(),
            DryRun::No => self.core.submit_blocking(Order::Remove(self.why, batch))?.removed,
        };
        for (address, what) in removed {
            match what {
                What::Blob => {
                    self.result.blobs += 1;
                    self.result.bytes +=
                        sizes.iter().find(|(of, _)| *of == address).map_or(0, |(_, size)| *size);
                    if self.terms.dry_run == DryRun::No {
                        self.core.cache.remove(&address);
                    }
                }
                What::Memo(_) => {
                    self.result.memos += 1;
                    self.gone.insert(address);
                }
                What::Derivation => self.result.derivations += 1,
            }
            if self.result.removed.len() < self.terms.detail {
                self.result.removed.push(address);
            }
        }
        Ok(())
    }
}

fn blob_size(doomed: &Doomed) -> Option<(Address, u64)> {
    let row = doomed.seen.as_deref().filter(|_| doomed.removed.what == What::Blob)?;
    Some((doomed.removed.address, Blob::decode(row)?.size()))
}

impl Core {
    /// All rows of a table, as they are.
    pub(super) fn rows(
        &self,
        table: Table,
    ) -> Result<impl Iterator<Item = Result<(Address, Box<[u8]>), Error>>, Error> {
        let scan = self.index.scan(&[table as u8], None).map_err(|error| self.index_error(error))?;
        Ok(scan.map(|row| {
            let (key, row): (Key, Box<[u8]>) = row.map_err(|error| self.index_error(error))?;
            Ok((last_address(&key).expect("a row's key has an address"), row))
        }))
    }
}
