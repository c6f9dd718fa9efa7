//! The one place that writes the log.

use std::sync::Arc;

use super::segment::{FRONT, Place, Position, Segments, path};
use crate::{Error, File};

/// Appends batches to the newest segment and begins a new one when that is full.
#[derive(Debug)]
pub(crate) struct Append {
    segments: Arc<Segments>,
    segment_bytes: u64,
    /// The number of the next segment.
    next: u32,
    tail: Option<Tail>,
}

#[derive(Debug)]
struct Tail {
    segment: u32,
    file: Arc<dyn File>,
    end: u64,
    synced: u64,
}

impl Append {
    /// Will begin a new segment, numbered `next`, at the first batch.
    pub(crate) fn new(segments: Arc<Segments>, next: u32, segment_bytes: u64) -> Append {
        Append { segments, segment_bytes, next, tail: None }
    }

    /// Where the next record goes.
    pub(crate) fn end(&self) -> Position {
        match &self.tail {
            Some(tail) => Position { segment: tail.segment, offset: tail.end },
            None => Position { segment: self.next, offset: 0 },
        }
    }

    /// Writes a batch of records; the place of its first byte. When it fails, the log is as it was before.
    pub(crate) fn append(&mut self, batch: &[u8]) -> Result<Place, Error> {
        self.segments.check()?;
        self.rotate_when_full(batch.len() as u64)?;
        let tail = self.tail.as_mut().expect("there is a tail after rotating");
        let place = Place { segment: tail.segment, offset: tail.end as u32, len: batch.len() as u32 };
        if let Err(cause) = tail.file.write_at(batch, tail.end) {
            let error = Error::disk("write", &path(tail.segment), cause);
            if let Err(cause) = tail.file.set_len(tail.end) {
                self.segments.break_off(&Error::disk("cut", &path(place.segment), cause));
            }
            return Err(error);
        }
        tail.end += batch.len() as u64;
        Ok(place)
    }

    /// Makes everything appended durable.
    pub(crate) fn sync(&mut self) -> Result<(), Error> {
        self.segments.check()?;
        if let Some(tail) = self.tail.as_mut().filter(|tail| tail.synced < tail.end) {
            self.segments.sync(tail.segment, &*tail.file)?;
            tail.synced = tail.end;
        }
        Ok(())
    }

    /// Closes the newest segment, so that all segments before `end()` are complete.
    pub(crate) fn rotate(&mut self) -> Result<(), Error> {
        self.sync()?;
        self.tail = None;
        Ok(())
    }

    fn rotate_when_full(&mut self, more: u64) -> Result<(), Error> {
        if self
            .tail
            .as_ref()
            .is_some_and(|tail| tail.end + more > self.segment_bytes && tail.end > FRONT as u64)
        {
            self.rotate()?;
        }
        if self.tail.is_none() {
            let segment = self.next;
            let created = self.segments.create(segment);
            // A number is used once, and none is left out: a gap would look like a lost segment.
            if created.is_ok() || self.segments.list().is_ok_and(|list| list.contains_key(&segment)) {
                self.next += 1;
            }
            self.tail = Some(Tail { segment, file: created?, end: FRONT as u64, synced: 0 });
        }
        Ok(())
    }
}
