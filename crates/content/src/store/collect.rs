//! Collection: removes what nothing holds.
//!
//! What holds is what pins, names and leases lead to: their own values, and all that it takes to derive them again.
//! What is young holds in the same way. Values in between can be derived again, so they go once they are old.

use std::collections::{BinaryHeap, HashMap, HashSet};
use std::time::Duration;

use super::commit::{Doomed, Order};
use super::counters::Kind;
use super::event::is_young;
use super::tables::{Blob, MemoRow, Noted, Row, RowBytes, Table, last_address};
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
        self.inner.core.count(Kind::Collect, result, |collected| Some(collected.bytes))
    }
}

/// Things that go together.
struct Group {
    /// What it would cost to make them again, for each byte.
    worth: u64,
    bytes: u64,
    doomed: Vec<Doomed>,
}

/// How many things one record removes.
const BATCH: usize = 256;

pub(crate) fn collect(core: &Core, terms: &Collect, why: Why) -> Result<Collected, Error> {
    let _only = lock(&core.keeping);
    let _collecting = core.guard.begin();
    let mut sweep = Sweep::new(core, terms, why)?;
    sweep.outputs()?;
    sweep.memos()?;
    if terms.scope == Scope::All {
        sweep.derivations()?;
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

fn mark(core: &Core, grace: Duration) -> Result<Marks, Error> {
    let mut marks = Marks::default();
    let mut stack: Vec<(Address, Need)> = young(core, grace)?;
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

/// What is young holds what it needs, as if it were pinned: somebody is about to build on it.
fn young(core: &Core, grace: Duration) -> Result<Vec<(Address, Need)>, Error> {
    let now = core.now();
    let mut found = Vec::new();
    for row in core.rows(Table::Derivation)? {
        let (address, row) = row?;
        if is_young(core.decoded::<Noted>(&row)?.at, now, grace) {
            found.push((address, Need::Means));
        }
    }
    for row in core.rows(Table::Memo)? {
        let (address, row) = row?;
        if is_young(core.decoded::<MemoRow>(&row)?.memo.at, now, grace) {
            found.push((address, Need::Value));
        }
    }
    Ok(found)
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
    /// How many bytes are to go, if that is bounded.
    to_go: Option<u64>,
    /// What to remove next.
    batch: Vec<Doomed>,
    /// How many things were taken on.
    taken: usize,
    /// Memos that went, or would in earnest.
    gone: HashSet<Address>,
    result: Collected,
}

impl<'a> Sweep<'a> {
    fn new(core: &'a Core, terms: &'a Collect, why: Why) -> Result<Sweep<'a>, Error> {
        let to_go = terms.until_bytes.map(|until| core.tally().used_bytes().saturating_sub(until));
        Ok(Sweep {
            core,
            terms,
            why,
            now: core.now(),
            marks: mark(core, terms.grace)?,
            to_go,
            batch: Vec::new(),
            taken: 0,
            gone: HashSet::new(),
            result: Collected::default(),
        })
    }

    /// Blobs that nothing holds, each with the memos that came to it.
    fn outputs(&mut self) -> Result<(), Error> {
        let mut cheapest = Cheapest::new(self.to_go);
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
                match self.to_go {
                    Some(_) => self.result.left += cheapest.offer(group),
                    None => self.take(group)?,
                }
            }
        }
        for group in cheapest.groups.into_sorted_vec() {
            self.take(group.0)?;
        }
        self.remove_batch()
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
    fn memos(&mut self) -> Result<(), Error> {
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
            self.take(Group { worth: 0, bytes: 0, doomed })?;
        }
        self.remove_batch()
    }

    /// Derivations that nothing holds and that have no memo.
    fn derivations(&mut self) -> Result<(), Error> {
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
            self.take(Group { worth: 0, bytes: 0, doomed })?;
        }
        self.remove_batch()
    }

    fn stays(&mut self, held: bool, at: Time, class: Class) -> bool {
        let young = is_young(at, self.now, self.terms.grace);
        self.result.held += u64::from(held);
        self.result.young += u64::from(young && !held);
        held || young || (self.terms.scope == Scope::Derivable && class == Class::Acknowledged)
    }

    /// Takes a group on, as far as the limits go.
    fn take(&mut self, group: Group) -> Result<(), Error> {
        if self.taken >= self.terms.most {
            self.result.left += 1;
            return Ok(());
        }
        self.taken += group.doomed.len();
        if self.batch.len() + group.doomed.len() > BATCH {
            self.remove_batch()?;
        }
        self.batch.extend(group.doomed);
        Ok(())
    }

    fn remove_batch(&mut self) -> Result<(), Error> {
        let batch = std::mem::take(&mut self.batch);
        if batch.is_empty() {
            return Ok(());
        }
        let sizes: HashMap<Address, u64> = batch.iter().filter_map(blob_size).collect();
        let removed = match self.terms.dry_run {
            DryRun::Yes => batch.iter().map(|doomed| (doomed.removed.address, doomed.removed.what)).collect(),
            DryRun::No => self.core.submit_blocking(Order::Remove(self.why, batch))?.removed,
        };
        for (address, what) in removed {
            match what {
                What::Blob => {
                    self.result.blobs += 1;
                    self.result.bytes += sizes.get(&address).copied().unwrap_or_default();
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

/// Of all groups offered, those that cost least for their size and together have so many bytes.
struct Cheapest {
    to_go: u64,
    bytes: u64,
    groups: BinaryHeap<ByWorth>,
}

struct ByWorth(Group);

impl Cheapest {
    fn new(to_go: Option<u64>) -> Cheapest {
        Cheapest { to_go: to_go.unwrap_or_default(), bytes: 0, groups: BinaryHeap::new() }
    }

    /// Takes a group on; says how many others, or itself, need not go after all.
    fn offer(&mut self, group: Group) -> u64 {
        self.bytes += group.bytes;
        self.groups.push(ByWorth(group));
        let mut spared = 0;
        while let Some(ByWorth(dearest)) = self.groups.peek()
            && self.bytes - dearest.bytes >= self.to_go
        {
            self.bytes -= dearest.bytes;
            self.groups.pop();
            spared += 1;
        }
        spared
    }
}

impl Ord for ByWorth {
    fn cmp(&self, other: &ByWorth) -> std::cmp::Ordering {
        self.0.worth.cmp(&other.0.worth)
    }
}

impl PartialOrd for ByWorth {
    fn partial_cmp(&self, other: &ByWorth) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ByWorth {
    fn eq(&self, other: &ByWorth) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for ByWorth {}

fn blob_size(doomed: &Doomed) -> Option<(Address, u64)> {
    let row = doomed.seen.as_deref().filter(|_| doomed.removed.what == What::Blob)?;
    Some((doomed.removed.address, Blob::decode(row)?.size()))
}

impl Core {
    /// All rows of a table, as they are.
    pub(super) fn rows(
        &self,
        table: Table,
    ) -> Result<impl Iterator<Item = Result<(Address, RowBytes), Error>>, Error> {
        let scan = self.index.scan(&[table as u8], None).map_err(|error| self.index_error(error))?;
        Ok(scan.map(|row| {
            let (key, row): (Key, RowBytes) = row.map_err(|error| self.index_error(error))?;
            Ok((last_address(&key).expect("a row's key has an address"), row))
        }))
    }
}
