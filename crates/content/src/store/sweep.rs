//! The sweep phase of collection: one pass over all data removes the items that are neither held nor young.

use std::collections::{BinaryHeap, HashMap, HashSet};

use super::commit::{self, DoomedItem, Order, RemovalCondition};
use super::event::is_young;
use super::mark::{Marks, mark};
use super::tables::{Blob, DerivationRow, MemoRow, Row, RowBytes, Table};
use super::{Collect, CollectReport, Core, DryRun, Scope};
use crate::facts::{Class, Memo, RemovalReason, Time};
use crate::log::{ItemKind, ItemRemoval};
use crate::{Address, Error, Wait};

/// Items that are removed together.
struct SweepGroup {
    /// The cost of deriving them again, per byte.
    worth: u64,
    bytes: u64,
    doomed: Vec<DoomedItem>,
}

/// The number of groups that one order removes.
const BATCH: usize = 256;

/// One pass over all data.
pub(super) struct Sweep<'a> {
    core: &'a Core,
    terms: &'a Collect,
    why: RemovalReason,
    now: Time,
    marks: Marks,
    producers: Producers,
    /// The number of bytes to remove, if that is limited.
    to_go: Option<u64>,
    /// The groups to remove next.
    batch: Vec<commit::RemovalGroup>,
    /// The number of items taken for removal.
    taken: usize,
    /// Derivations whose memo was removed, or would be but for the dry run.
    gone: HashSet<Address>,
    pub(super) result: CollectReport,
}

impl<'a> Sweep<'a> {
    pub(super) fn new(core: &'a Core, terms: &'a Collect, why: RemovalReason) -> Result<Sweep<'a>, Error> {
        let to_go = terms.until_bytes.map(|until| core.tally().used_bytes().saturating_sub(until));
        Ok(Sweep {
            core,
            terms,
            why,
            now: core.now(),
            marks: mark(core, terms.grace, terms.scope)?,
            producers: Producers::find(core)?,
            to_go,
            batch: Vec::new(),
            taken: 0,
            gone: HashSet::new(),
            result: CollectReport::default(),
        })
    }

    /// Removes blobs that nothing holds, each with the memos whose output it is.
    pub(super) fn outputs(&mut self) -> Result<(), Error> {
        let mut cheapest = CheapestGroups::new(self.to_go);
        for row in self.core.catalogue.rows(Table::Blob, None)? {
            let (address, seen) = row?;
            let blob: Blob = self.core.catalogue.decoded(&seen)?;
            if self.stays(self.marks.holds(&address), blob.at, blob.class) {
                continue;
            }
            let removed = ItemRemoval { address, what: ItemKind::Blob, edges: Vec::new() };
            let mut group = SweepGroup {
                worth: 0,
                bytes: blob.size(),
                doomed: vec![DoomedItem { removed, when: RemovalCondition::Unwanted(seen) }],
            };
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

    /// Adds the memos whose output is a blob; false if one of them stays, and the blob with it.
    fn add_memos(&mut self, output: &Address, group: &mut SweepGroup) -> Result<bool, Error> {
        for (row, seen) in self.producers.of(self.core, output)? {
            let held = self.marks.memos.contains(&row.memo.derivation.bits());
            if self.stays(held, row.memo.at, row.class) {
                return Ok(false);
            }
            group.worth = group.worth.saturating_add(row.memo.cost.worth());
            group.doomed.push(DoomedItem {
                removed: self.core.doom_memo(&row)?,
                when: RemovalCondition::Unwanted(seen),
            });
        }
        Ok(true)
    }

    /// Removes memos that nothing holds, whose outputs stay or are missing.
    pub(super) fn memos(&mut self) -> Result<(), Error> {
        for row in self.core.catalogue.rows(Table::Memo, None)? {
            let (address, seen) = row?;
            let row: MemoRow = self.core.catalogue.decoded(&seen)?;
            let output = self.core.catalogue.stored_blob(&row.memo.output, Wait::Yes)?;
            let held = self.marks.memos.contains(&address.bits()) || self.is_held_with_another(&row.memo)?;
            // A memo without its output is useless, however young.
            if output.is_some() && self.stays(held, row.memo.at, row.class) {
                continue;
            }
            // The output was left only because of the limits, so its memo is left too.
            if output.is_some() && !self.marks.holds(&row.memo.output) {
                continue;
            }
            let doomed = vec![DoomedItem {
                removed: self.core.doom_memo(&row)?,
                when: RemovalCondition::Unwanted(seen),
            }];
            self.take(SweepGroup { worth: 0, bytes: 0, doomed })?;
        }
        self.remove_batch()
    }

    /// Whether a memo stays because another memo of the same computation is held: a caller may remember an output under
    /// further addresses, so that it is found again in other ways. Nothing can hold such an address if the caller does
    /// not describe it. A described derivation has its own holders.
    fn is_held_with_another(&self, memo: &Memo) -> Result<bool, Error> {
        Ok(self.marks.holds_result(memo)
            && self.core.catalogue.derivation(&memo.derivation, Wait::Yes)?.is_none())
    }

    /// Removes derivations that nothing holds and that have no memo.
    pub(super) fn derivations(&mut self) -> Result<(), Error> {
        for row in self.core.catalogue.rows(Table::Derivation, None)? {
            let (address, seen) = row?;
            let row: DerivationRow = self.core.catalogue.decoded(&seen)?;
            let remembered =
                !self.gone.contains(&address) && self.core.catalogue.stored_memo(&address)?.is_some();
            if remembered || self.stays(self.marks.holds(&address), row.at, Class::Derivable) {
                continue;
            }
            let derivation = match self.core.derivation(&address, Wait::Yes) {
                Ok(Some(derivation)) => derivation,
                Ok(None) | Err(Error::Corrupt { .. }) => continue,
                Err(error) => return Err(error),
            };
            let removed = ItemRemoval { address, what: ItemKind::Derivation, edges: derivation.inputs };
            let doomed = vec![DoomedItem { removed, when: RemovalCondition::Unwanted(seen) }];
            self.take(SweepGroup { worth: 0, bytes: 0, doomed })?;
        }
        self.remove_batch()
    }

    fn stays(&mut self, held: bool, at: Time, class: Class) -> bool {
        let young = is_young(at, self.now, self.terms.grace);
        self.result.held += u64::from(held);
        self.result.young += u64::from(young && !held);
        held || young || (self.terms.scope == Scope::Derivable && class == Class::Acknowledged)
    }

    /// Takes a group for removal, within the limits.
    fn take(&mut self, group: SweepGroup) -> Result<(), Error> {
        if self.taken >= self.terms.most {
            self.result.left += 1;
            return Ok(());
        }
        self.taken += group.doomed.len();
        if self.batch.len() >= BATCH {
            self.remove_batch()?;
        }
        self.batch.push(group.doomed);
        Ok(())
    }

    fn remove_batch(&mut self) -> Result<(), Error> {
        let batch = std::mem::take(&mut self.batch);
        if batch.is_empty() {
            return Ok(());
        }
        let sizes: HashMap<Address, u64> = batch.iter().flatten().filter_map(blob_size).collect();
        let removed = match self.terms.dry_run {
            DryRun::Yes => {
                batch.iter().flatten().map(|doomed| (doomed.removed.address, doomed.removed.what)).collect()
            }
            DryRun::No => self.core.submit_blocking(Order::Remove(self.why, batch))?.removed,
        };
        for (address, what) in removed {
            match what {
                ItemKind::Blob => {
                    self.result.blobs += 1;
                    self.result.bytes += sizes.get(&address).copied().unwrap_or_default();
                    if self.terms.dry_run == DryRun::No {
                        self.core.cache.remove(&address);
                    }
                }
                ItemKind::Memo(_) => {
                    self.result.memos += 1;
                    self.gone.insert(address);
                }
                ItemKind::Derivation => self.result.derivations += 1,
            }
            if self.result.removed.len() < self.terms.detail {
                self.result.removed.push(address);
            }
        }
        Ok(())
    }
}

/// The memos by output: 64 bits of the output's address and the derivation, in order. Computed for each collection
/// rather than kept in the index, so that remembering costs less.
pub(super) struct Producers(Vec<(u64, Address)>);

impl Producers {
    pub(super) fn find(core: &Core) -> Result<Producers, Error> {
        let mut pairs = Vec::new();
        for row in core.catalogue.rows(Table::Memo, None)? {
            let (derivation, row) = row?;
            pairs.push((core.catalogue.decoded::<MemoRow>(&row)?.memo.output.bits(), derivation));
        }
        pairs.sort_unstable();
        Ok(Producers(pairs))
    }

    /// The current memos of an output.
    pub(super) fn of(&self, core: &Core, output: &Address) -> Result<Vec<(MemoRow, RowBytes)>, Error> {
        let first = self.0.partition_point(|pair| pair.0 < output.bits());
        let near = self.0[first..].iter().take_while(|pair| pair.0 == output.bits());
        let mut found = Vec::new();
        for (_, derivation) in near {
            found.extend(
                core.catalogue.stored_memo(derivation)?.filter(|(row, _)| row.memo.output == *output),
            );
        }
        Ok(found)
    }
}

/// Of all groups offered, those with the least cost per byte that together have the bytes to remove.
struct CheapestGroups {
    to_go: u64,
    bytes: u64,
    groups: BinaryHeap<GroupByWorth>,
}

struct GroupByWorth(SweepGroup);

impl CheapestGroups {
    fn new(to_go: Option<u64>) -> CheapestGroups {
        CheapestGroups { to_go: to_go.unwrap_or_default(), bytes: 0, groups: BinaryHeap::new() }
    }

    /// Offers a group; returns how many groups, this one perhaps included, need not be removed after all.
    fn offer(&mut self, group: SweepGroup) -> u64 {
        self.bytes += group.bytes;
        self.groups.push(GroupByWorth(group));
        let mut spared = 0;
        while let Some(GroupByWorth(dearest)) = self.groups.peek()
            && self.bytes - dearest.bytes >= self.to_go
        {
            self.bytes -= dearest.bytes;
            self.groups.pop();
            spared += 1;
        }
        spared
    }
}

impl Ord for GroupByWorth {
    fn cmp(&self, other: &GroupByWorth) -> std::cmp::Ordering {
        self.0.worth.cmp(&other.0.worth)
    }
}

impl PartialOrd for GroupByWorth {
    fn partial_cmp(&self, other: &GroupByWorth) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for GroupByWorth {
    fn eq(&self, other: &GroupByWorth) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for GroupByWorth {}

fn blob_size(doomed: &DoomedItem) -> Option<(Address, u64)> {
    let RemovalCondition::Unwanted(row) = &doomed.when else { return None };
    let blob = Blob::decode(row).filter(|_| doomed.removed.what == ItemKind::Blob)?;
    Some((doomed.removed.address, blob.size()))
}
