//! Repairs the data in damaged or missing parts of the log.
//!
//! The index knows where each record is. Its rows of pins, names, memos and large blobs are complete, so those are
//! written to the log again. Small blobs and descriptions of derivations were only in the log: they are lost, and
//! reported.

use std::collections::HashSet;

use super::commit::{DoomedItem, Order, RemovalCondition, RemovalGroup};
use super::pipeline::Pipeline;
use super::sweep::Producers;
use super::tables::{Blob, DerivationRow, GoneRow, Home, MemoRow, NameRow, PinRow, Row, RowBytes, Table};
use super::{Core, Event};
use crate::facts::{Class, Memo, RemovalReason};
use crate::files::Name;
use crate::log::{Fact, HEADER, ItemKind, ItemRemoval, Record, RecordPlace};
use crate::{Address, Error};

/// A file that is shorter or longer than its blob.
pub(super) struct TornFile {
    pub name: Name,
    pub blob: Blob,
}

/// The result of a repair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RepairReport {
    /// Records that were written again.
    pub recovered: u64,
    /// The number of acknowledged items that are lost.
    pub lost: u64,
    /// The addresses of lost items, acknowledged or not.
    pub addresses: Vec<Address>,
}

/// The most losses that are reported one by one.
const LOSSES_REPORTED: usize = 32;

/// Rewrites lost records from the index, and removes the items whose only copy was in them.
pub(super) fn repair(
    core: &Core,
    is_lost: impl Fn(RecordPlace) -> bool,
    torn_files: &[TornFile],
) -> Result<RepairReport, Error> {
    let mut repair = Repair { core, writes: Pipeline::new(core), losses: Vec::new() };
    for row in core.catalogue.rows(Table::Pin, None)? {
        let (address, row) = row?;
        let PinRow { place, at } = core.catalogue.decoded(&row)?;
        if is_lost(place) {
            repair
                .write_again(place, Record { at, class: Class::Acknowledged, fact: Fact::Pin { address } })?;
        }
    }
    for row in core.catalogue.names()? {
        let NameRow { place, name, history } = row?;
        if is_lost(place) {
            let at = history.last().map_or_else(|| core.now(), |named| named.at);
            let fact = Fact::Name { name, history };
            repair.write_again(place, Record { at, class: Class::Acknowledged, fact })?;
        }
    }
    for row in core.catalogue.rows(Table::Blob, None)? {
        let (address, bytes) = row?;
        let Blob { class, at, place, home } = core.catalogue.decoded(&bytes)?;
        match home {
            _ if !is_lost(place) => {}
            Home::File { number, len } => {
                repair.write_again(place, Record { at, class, fact: Fact::File { address, number, len } })?;
            }
            Home::Packed => repair.losses.push(Loss { address, what: ItemKind::Blob, class, row: bytes }),
        }
    }
    for row in core.catalogue.rows(Table::Derivation, None)? {
        let (address, bytes) = row?;
        if is_lost(core.catalogue.decoded::<DerivationRow>(&bytes)?.place) {
            let class = Class::Acknowledged;
            repair.losses.push(Loss { address, what: ItemKind::Derivation, class, row: bytes });
        }
    }
    repair.memos(&is_lost)?;
    repair.tombstones(&is_lost)?;
    for TornFile { name, blob } in torn_files {
        core.files.quarantine(name)?;
        let (address, class) = (name.address, blob.class);
        repair.losses.push(Loss { address, what: ItemKind::Blob, class, row: blob.encode() });
    }
    repair.finish()
}

struct Repair<'a> {
    core: &'a Core,
    writes: Pipeline<'a>,
    losses: Vec<Loss>,
}

/// A lost item.
struct Loss {
    address: Address,
    what: ItemKind,
    class: Class,
    row: RowBytes,
}

impl Repair<'_> {
    /// Rewrites a record that was at this place, if the index still points there.
    fn write_again(&mut self, place: RecordPlace, record: Record) -> Result<(), Error> {
        let bytes = record.fact.size_hint();
        self.writes.order(Order::Move(place, record), bytes)
    }

    fn memos(&mut self, is_lost: impl Fn(RecordPlace) -> bool) -> Result<(), Error> {
        for row in self.core.catalogue.rows(Table::Memo, None)? {
            let MemoRow { place, class, memo } = self.core.catalogue.decoded(&row?.1)?;
            if is_lost(place) {
                // The inputs are in the description, if there is one; else the index has the edges until it is rebuilt.
                let Memo { derivation, output, size, cost, at } = memo;
                let fact = Fact::Memo { derivation, output, size, cost, inputs: Vec::new() };
                self.write_again(place, Record { at, class, fact })?;
            }
        }
        Ok(())
    }

    /// Drops lost tombstones: they only explain why an item is missing.
    fn tombstones(&mut self, is_lost: impl Fn(RecordPlace) -> bool) -> Result<(), Error> {
        for row in self.core.catalogue.rows(Table::Gone, None)? {
            let (address, row) = row?;
            let GoneRow { place, .. } = self.core.catalogue.decoded(&row)?;
            if is_lost(place) {
                self.writes.order(Order::Forget(place, vec![address]), HEADER)?;
            }
        }
        Ok(())
    }

    /// Removes the lost items, and reports them.
    fn finish(self) -> Result<RepairReport, Error> {
        let Repair { core, writes, losses } = self;
        let mut repaired = RepairReport { recovered: writes.settle()?, ..RepairReport::default() };
        core.submit_blocking(Order::Sync)?;
        if losses.is_empty() {
            return Ok(repaired);
        }
        let producers = Producers::find(core)?;
        for part in losses.chunks(256) {
            let mut groups: Vec<RemovalGroup> = Vec::new();
            for Loss { address, what, row, .. } in part {
                let removed = ItemRemoval { address: *address, what: *what, edges: Vec::new() };
                groups.push(vec![DoomedItem { removed, when: RemovalCondition::Damaged(row.clone()) }]);
                let memos = if *what == ItemKind::Blob { producers.of(core, address)? } else { Vec::new() };
                for (row, bytes) in memos {
                    let removed = core.doom_memo(&row)?;
                    groups.push(vec![DoomedItem { removed, when: RemovalCondition::Damaged(bytes) }]);
                }
            }
            let removed = core.submit_blocking(Order::Remove(RemovalReason::Damaged, groups))?.removed;
            let removed: HashSet<Address> = removed.into_iter().map(|(address, _)| address).collect();
            for loss in part.iter().filter(|loss| removed.contains(&loss.address)) {
                core.cache.remove(&loss.address);
                repaired.lost += u64::from(loss.class == Class::Acknowledged);
                repaired.addresses.push(loss.address);
                if repaired.addresses.len() <= LOSSES_REPORTED {
                    let what = "the part of the log that had it is lost, or its file is torn".to_owned();
                    core.tell(&Event::Quarantined { address: loss.address, class: loss.class, what });
                }
            }
        }
        let told = losses[..losses.len().min(LOSSES_REPORTED)]
            .iter()
            .filter(|loss| loss.class == Class::Acknowledged);
        let more = repaired.lost.saturating_sub(told.count() as u64);
        if more > 0 {
            let what = "more values and descriptions were in the lost part of the log".to_owned();
            core.tell(&Event::Lost { what, count: more });
        }
        Ok(repaired)
    }
}
