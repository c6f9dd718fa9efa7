//! Scrubbing: reads everything and checks it, at a bounded pace.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::counters::Kind;
use super::repair::repair;
use super::tables::{Blob, Home, Table};
use super::{Core, Store, UnreadableStretch};
use crate::files::{BlobReader, Name};
use crate::log::{Damage, Fact, Record, RecordPlace, segment_path};
use crate::{Address, Context, Error, Wait};

/// Options of a scrub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scrub {
    /// Read at most this many bytes per second; `None`: no limit. Default 32 MiB per second.
    pub bytes_per_second: Option<u64>,
}

impl Default for Scrub {
    fn default() -> Scrub {
        Scrub { bytes_per_second: Some(32 << 20) }
    }
}

/// The result of a scrub.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScrubReport {
    /// Records of the log read and checked.
    pub records: u64,
    /// Large blobs read and checked.
    pub files: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Damaged blobs and descriptions, now in quarantine and missing.
    pub damaged: Vec<Address>,
    /// Pins, names, memos and large blobs whose record was damaged and was written again from the index.
    pub recovered: u64,
    /// Stretches of the log that hold no whole record.
    pub unreadable: Vec<UnreadableStretch>,
    /// The damage found in the index, if any: the index is rebuilt when the store is opened again.
    pub index: Option<String>,
}

impl Store {
    /// Reads and checks everything. Dropping the future stops it. One scrub goes on at a time; another waits.
    pub async fn scrub(&self, terms: Scrub) -> Result<ScrubReport, Error> {
        let stop = StopOnDrop(Arc::default());
        let stopped = Arc::clone(&stop.0);
        let result = self.in_turn(
            |turns| &turns.scrubbing,
            move |core| ScrubPass { core, terms, stopped, due: 0, found: ScrubReport::default() }.run(),
        );
        let result = result.await;
        self.inner.core.count(Kind::Scrub, result, |found| Some(found.bytes))
    }
}

struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct ScrubPass<'a> {
    core: &'a Core,
    terms: Scrub,
    stopped: Arc<AtomicBool>,
    /// Bytes read since the last pause.
    due: u64,
    found: ScrubReport,
}

/// A segment that was read.
struct Segment {
    len: u64,
    damage: Vec<Damage>,
}

impl Segment {
    /// Whether the record at this place is damaged or cut off.
    fn lacks(&self, place: RecordPlace) -> bool {
        let (from, to) = (u64::from(place.offset), u64::from(place.offset) + u64::from(place.len));
        to > self.len || self.damage.iter().any(|damage| damage.from < to && from < damage.to)
    }
}

/// Bytes read between two pauses.
const STRIDE: u64 = 1 << 20;

/// The interval at which a pausing scrub checks whether it must stop.
const STOP_CHECK: Duration = Duration::from_millis(100);

impl ScrubPass<'_> {
    fn run(mut self) -> Result<ScrubReport, Error> {
        let segments = self.core.segments.list()?;
        let last = segments.last_key_value().map(|(segment, _)| *segment);
        let next = self.core.tail.load(Ordering::Acquire);
        let mut read = BTreeMap::new();
        for (segment, len) in segments {
            if let Some(damage) = self.segment(segment, len, Some(segment) == last)? {
                // Records that the writer appends during the scrub are not missing.
                let len = if segment < next { len } else { u64::MAX };
                read.insert(segment, Segment { len, damage });
            }
        }
        let repaired = repair(
            self.core,
            |place| match read.get(&place.segment) {
                Some(segment) => segment.lacks(place),
                None => place.segment < next,
            },
            &[],
        );
        let repaired = repaired.map(|repaired| {
            self.found.recovered = repaired.recovered;
            self.found.damaged.extend(repaired.addresses);
        });
        match repaired.and_then(|()| self.files()) {
            // Without the index the losses are unknown; the rest is still checked.
            Err(Error::Index { what }) => self.found.index = Some(what),
            looked => looked?,
        }
        let mut pace = Ok(());
        let core = self.core;
        let verified = core.catalogue.index().verify(&mut |bytes| {
            if pace.is_ok() {
                pace = self.pace(bytes);
            }
        });
        pace?;
        match verified.map_err(|error| core.catalogue.error(error)) {
            Err(Error::Index { what }) => self.found.index = Some(what),
            other => other?,
        }
        Ok(self.found)
    }

    /// Reads a segment; `None` if it has been cleaned away.
    fn segment(&mut self, segment: u32, len: u64, is_tail: bool) -> Result<Option<Vec<Damage>>, Error> {
        let core = self.core;
        let damage = core.segments.scan(segment, 0, &mut |place, record| self.record(place, &record));
        let damage = match damage {
            Err(_) if !core.segments.list()?.contains_key(&segment) => return Ok(None),
            damage => damage?,
        };
        // The writer may append beyond the length that was found first.
        let damage: Vec<Damage> = damage.into_iter().filter(|damage| !is_tail || damage.from < len).collect();
        self.found.unreadable.extend(damage.iter().map(|damage| UnreadableStretch {
            file: segment_path(segment).display().to_string(),
            from: damage.from,
            bytes: damage.to - damage.from,
            torn: is_tail && damage.to >= len,
            covered: true,
        }));
        damage.iter().for_each(|damage| core.segments.keep_damaged(damage));
        Ok(Some(damage))
    }

    /// Checks that the bytes of a whole record match its address.
    fn record(&mut self, place: RecordPlace, record: &Record) -> Result<(), Error> {
        self.found.records += 1;
        match &record.fact {
            Fact::Blob { address, bytes } if Address::of(bytes) != *address => {
                self.lose_blob(address, place)?;
            }
            Fact::Derivation { address, context, bytes, .. }
                if Address::derive(Context(context), bytes) != *address =>
            {
                self.lose_derivation(address, place)?;
            }
            _ => {}
        }
        self.pace(place.len.into())
    }

    /// Reads the blob as any reader does, which quarantines it if it is damaged. Does nothing if the index points
    /// elsewhere by now.
    fn lose_blob(&mut self, address: &Address, place: RecordPlace) -> Result<(), Error> {
        let blob = self.core.catalogue.stored_blob(address, Wait::Yes)?;
        if blob.is_some_and(|blob| blob.home == Home::Packed && blob.place.is_at(place)) {
            let read = self.core.load(address, Wait::Yes).map(|_| ());
            self.note(address, read)?;
        }
        Ok(())
    }

    fn lose_derivation(&mut self, address: &Address, place: RecordPlace) -> Result<(), Error> {
        let row = self.core.catalogue.derivation(address, Wait::Yes)?;
        if row.is_some_and(|row| row.place.is_at(place)) {
            let read = self.core.derivation(address, Wait::Yes).map(|_| ());
            self.note(address, read)?;
        }
        Ok(())
    }

    fn note(&mut self, address: &Address, read: Result<(), Error>) -> Result<(), Error> {
        match read {
            Err(Error::Corrupt { .. }) => {
                self.found.damaged.push(*address);
                Ok(())
            }
            other => other,
        }
    }

    fn files(&mut self) -> Result<(), Error> {
        for row in self.core.catalogue.rows(Table::Blob, None)? {
            let (address, row) = row?;
            let blob: Blob = self.core.catalogue.decoded(&row)?;
            if let Home::File { number, len } = blob.home {
                let read = self.file(Name { address, number }, len);
                let read = read.or_else(|error| self.core.file_failed(&address, &blob, error));
                self.note(&address, read)?;
                self.found.files += 1;
            }
        }
        Ok(())
    }

    fn file(&mut self, name: Name, len: u64) -> Result<(), crate::files::Error> {
        let reading = BlobReader::open(&self.core.files, name, len)?;
        let mut offset = 0;
        while offset < len {
            let piece = reading.read(offset..offset + STRIDE.min(len - offset))?;
            offset += piece.len() as u64;
            self.pace(piece.len() as u64)?;
        }
        Ok(())
    }

    /// Counts bytes read, and pauses to keep to the rate.
    fn pace(&mut self, bytes: u64) -> Result<(), Error> {
        self.found.bytes += bytes;
        self.due += bytes;
        if self.due < STRIDE {
            return Ok(());
        }
        let due = std::mem::take(&mut self.due);
        if self.stopped.load(Ordering::Relaxed) {
            return Err(Error::Closed);
        }
        match self.terms.bytes_per_second {
            Some(rate) => self.pause(Duration::from_secs_f64(due as f64 / rate.max(1) as f64)),
            None => Ok(()),
        }
    }

    /// Pauses; an error if the scrub was dropped or the store closes.
    fn pause(&self, mut time: Duration) -> Result<(), Error> {
        while !time.is_zero() {
            let part = time.min(STOP_CHECK);
            time -= part;
            if self.stopped.load(Ordering::Relaxed) || self.core.keeper.pause(part) {
                return Err(Error::Closed);
            }
        }
        Ok(())
    }
}
