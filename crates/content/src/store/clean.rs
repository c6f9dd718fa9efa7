//! Cleaning the log: what still holds in its oldest segment moves to its end, and the segment goes.
//!
//! Always the oldest first: then whatever a record of the segment undid is in no segment any more, and the record need
//! not be kept for fear that the undone comes back.

use super::commit::Order;
use super::pipeline::Pipeline;
use super::repair::repair;
use super::{Core, Event, lock};
use crate::log::{Fact, HEADER, Place, Record, Removed};
use crate::{Address, Error, Wait};

/// So many segments that are small on average are worth gathering into few.
const SEGMENTS_MANY: usize = 64;

/// Cleans while more of the log is dead than alive, or it is in too many pieces: every segment once at most.
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

/// The oldest segment and its length, if the log wants cleaning.
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

/// Moves what holds and removes the segment.
pub(crate) fn clean(core: &Core, segment: u32) -> Result<(), Error> {
    let mut moves = Pipeline::new(core);
    let damage =
        core.segments.scan(segment, 0, &mut |place, record| move_record(core, place, record, &mut moves))?;
    moves.settle()?;
    core.submit_blocking(Order::Sync)?;
    // The index on disk may still mean the old places, and not yet know what was removed since: it comes first.
    core.background.flush_index()?;
    if damage.is_empty() {
        return core.segments.remove(segment);
    }
    // What the index still means there cannot be read; all else has been moved.
    repair(core, |place| place.segment == segment, &[])?;
    core.background.flush_index()?;
    core.segments.quarantine(segment)
}

fn move_record(core: &Core, place: Place, mut record: Record, moves: &mut Pipeline<'_>) -> Result<(), Error> {
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

/// Which tombstones to keep, and which to forget.
fn sort_out(
    core: &Core,
    place: Place,
    at: crate::facts::Time,
    items: Vec<Removed>,
) -> Result<(Vec<Removed>, Vec<Address>), Error> {
    let mut kept = Vec::new();
    let mut forgotten = Vec::new();
    let old = core.now().since(at) > core.config.gone_kept;
    for mut item in items {
        let row = core.catalogue.gone(&item.address, Wait::Yes)?;
        match row.filter(|row| row.place.is_at(place)) {
            Some(_) if old => forgotten.push(item.address),
            Some(_) => {
                // Its edges went when it did, and may have come back with something else.
                item.edges.clear();
                kept.push(item);
            }
            None => {}
        }
    }
    Ok((kept, forgotten))
}

/// Removes dead weight now, whatever the proportions: for tests and for those who want their disk back.
impl super::Store {
    /// Rewrites the log without what no longer holds.
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
