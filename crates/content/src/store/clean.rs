//! Cleaning the log: live records of the oldest segment move to the log's end, and the segment is removed.
//!
//! The oldest segment always comes first: a removal in it undid records of this segment or of older ones. Those are
//! gone with it, so the removal can go too: no replay of the log brings the removed data back.

use super::commit::Order;
use super::pipeline::Pipeline;
use super::repair::repair;
use super::{Core, Event, lock};
use crate::log::{Fact, HEADER, ItemRemoval, Record, RecordPlace};
use crate::{Address, Error, Wait};

/// With more segments than this, small on average, the log is cleaned to merge them.
const SEGMENTS_MANY: usize = 64;

/// Cleans while more of the log is dead than live, or it has too many small segments: each segment once at most.
pub(crate) fn clean_when_due(core: &Core) -> Result<(), Error> {
    let Ok(_only) = core.keeping.try_lock() else { return Ok(()) };
    let (mut segments, mut bytes) = (0, 0);
    let last = core.tail.load(std::sync::atomic::Ordering::Acquire);
    while let Some((segment, len)) = oldest_when_due(core)?.filter(|(segment, _)| *segment < last) {
        clean(core, segment)?;
        segments += 1;
        bytes += len;
    }
    if segments > 0 {
        core.tell(&Event::Cleaned { segments, bytes });
    }
    Ok(())
}

/// The oldest segment and its length, if the log needs cleaning.
fn oldest_when_due(core: &Core) -> Result<Option<(u32, u64)>, Error> {
    let list = core.segments.list()?;
    let total: u64 = list.values().sum();
    let live = core.tally().live_bytes();
    let segment_bytes = core.config.segment_bytes;
    let dead = total.saturating_sub(live);
    let mostly_dead = dead > live.max(segment_bytes);
    let in_pieces = list.len() > SEGMENTS_MANY && total / (list.len() as u64) < segment_bytes / 4;
    let oldest = list.first_key_value().map(|(segment, len)| (*segment, *len));
    Ok(oldest.filter(|_| mostly_dead || in_pieces))
}

/// Moves the live records of a segment and removes the segment.
pub(crate) fn clean(core: &Core, segment: u32) -> Result<(), Error> {
    let mut moves = Pipeline::new(core);
    let damage =
        core.segments.scan(segment, 0, &mut |place, record| move_record(core, place, record, &mut moves))?;
    moves.settle()?;
    core.submit_blocking(Order::Sync)?;
    // Flushed first: the index on disk may still point to the old places, and lack the removals since.
    core.background.flush_index()?;
    if damage.is_empty() {
        return core.segments.remove(segment);
    }
    // Records to which the index still points are unreadable; all others have been moved.
    repair(core, |place| place.segment == segment, &[])?;
    core.background.flush_index()?;
    core.segments.quarantine(segment)
}

fn move_record(
    core: &Core,
    place: RecordPlace,
    mut record: Record,
    moves: &mut Pipeline<'_>,
) -> Result<(), Error> {
    let bytes = place.len as usize;
    match &mut record.fact {
        Fact::Remove { items, why } => {
            let why = *why;
            let (kept, forgotten) = sort_out(core, place, record.at, std::mem::take(items))?;
            moves.order(Order::Forget(place, forgotten), HEADER)?;
            for item in kept {
                let fact = Fact::Remove { why, items: vec![item] };
                moves.order(Order::Move(place, Record { fact, ..record }), 128)?;
            }
            Ok(())
        }
        Fact::Touch { .. } | Fact::Unpin { .. } => Ok(()),
        Fact::Blob { .. }
        | Fact::File { .. }
        | Fact::Derivation { .. }
        | Fact::Memo { .. }
        | Fact::Pin { .. }
        | Fact::Name { .. } => moves.order(Order::Move(place, record), bytes),
    }
}

/// Splits tombstones into those to keep and those to drop.
fn sort_out(
    core: &Core,
    place: RecordPlace,
    at: crate::facts::Time,
    items: Vec<ItemRemoval>,
) -> Result<(Vec<ItemRemoval>, Vec<Address>), Error> {
    let mut kept = Vec::new();
    let mut forgotten = Vec::new();
    let old = core.now().since(at) > core.config.gone_kept;
    for mut item in items {
        let row = core.catalogue.gone(&item.address, Wait::Yes)?;
        match row.filter(|row| row.place.is_at(place)) {
            Some(_) if old => forgotten.push(item.address),
            Some(_) => {
                // The edges were removed with the item, and may have been added again with another one since.
                item.edges.clear();
                kept.push(item);
            }
            None => {}
        }
    }
    Ok((kept, forgotten))
}

impl super::Store {
    /// Cleans the whole log now: rewrites it without dead records, however few, to free their disk space.
    pub async fn clean(&self) -> Result<(), Error> {
        self.in_turn(
            |turns| &turns.keeping,
            |core| {
                core.submit_blocking(Order::Rotate)?;
                let _only = lock(&core.keeping);
                let tail = core.tail.load(std::sync::atomic::Ordering::Acquire);
                let list = core.segments.list()?;
                for segment in list.into_keys().filter(|segment| *segment < tail) {
                    clean(core, segment)?;
                }
                Ok(())
            },
        )
        .await
    }
}
