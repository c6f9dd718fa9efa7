//! Appends to the log: nothing else writes it.

use std::sync::Arc;

use super::segment::{FRONT, Position, Segments, path};
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
    /// The file has zeros from `end` to here, if this is behind it.
    prepared: u64,
}

/// Zeros are written ahead in segments that are at least this long: a short one may get no more records.
const PREPARE_FROM: u64 = 256 << 10;

/// The number of zeros written ahead of the end, and the remaining number at which more are written.
const PREPARE_BYTES: u64 = 2 << 20;
const PREPARE_AT: u64 = 512 << 10;

static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

impl Tail {
    /// Writes zeros ahead of the end: a sync of bytes within a file costs a third less than a sync that makes the file
    /// longer. Large batches gain little from that and would be written twice. If the disk refuses, the file just ends
    /// earlier.
    fn prepare(&mut self, batch: u64, segment_bytes: u64) {
        let goal = (self.end + PREPARE_BYTES).min(segment_bytes);
        let prepared = self.prepared >= (self.end + PREPARE_AT).min(segment_bytes);
        if prepared || self.end < PREPARE_FROM || batch > PREPARE_AT / 2 {
            return;
        }
        self.prepared = self.prepared.max(self.end);
        while self.prepared < goal {
            let piece = &ZEROS[..ZEROS.len().min((goal - self.prepared) as usize)];
            if self.file.write_at(piece, self.prepared).is_err() {
                break;
            }
            self.prepared += piece.len() as u64;
        }
    }

    /// Removes the zeros behind the end. If the disk refuses, they stay: a scan ignores zeros at the end.
    fn cut(&mut self) {
        if self.prepared > self.end {
            let _ = self.file.set_len(self.end);
        }
    }
}

impl Append {
    /// The first batch will begin a new segment, with the number `next`.
    pub(crate) fn new(segments: Arc<Segments>, next: u32, segment_bytes: u64) -> Append {
        Append { segments, segment_bytes, next, tail: None }
    }

    /// The position of the next record.
    pub(crate) fn end(&self) -> Position {
        match &self.tail {
            Some(tail) => Position { segment: tail.segment, offset: tail.end },
            None => Position { segment: self.next, offset: 0 },
        }
    }

    /// The position of a batch of about `batch` bytes: after the last one, or in a new segment.
    pub(crate) fn next(&self, batch: u64) -> Position {
        match &self.tail {
            Some(tail) if tail.end + batch <= self.segment_bytes || tail.end == FRONT as u64 => {
                Position { segment: tail.segment, offset: tail.end }
            }
            _ => Position { segment: self.next, offset: FRONT as u64 },
        }
    }

    /// Writes a batch of records at the place that [`Append::next`] gave it. When it fails, the log is as it was before.
    pub(crate) fn append(&mut self, place: Position, batch: &[u8]) -> Result<(), Error> {
        self.segments.check()?;
        if self.tail.as_ref().is_none_or(|tail| tail.segment != place.segment) {
            self.begin_segment()?;
        }
        let tail = self.tail.as_mut().expect("there is a tail once a segment is begun");
        let end = Position { segment: tail.segment, offset: tail.end };
        assert_eq!(end, place, "a batch goes where its records say they are");
        if let Err(cause) = tail.file.write_at(batch, tail.end) {
            let error = Error::disk("write", &path(tail.segment), cause);
            tail.prepared = tail.end;
            if let Err(cause) = tail.file.set_len(tail.end) {
                self.segments.break_off(&Error::disk("cut", &path(place.segment), cause));
            }
            return Err(error);
        }
        tail.end += batch.len() as u64;
        Ok(())
    }

    /// Makes everything appended durable.
    pub(crate) fn sync(&mut self) -> Result<(), Error> {
        self.segments.check()?;
        if let Some(tail) = self.tail.as_mut().filter(|tail| tail.synced < tail.end) {
            self.segments.sync(tail.segment, &*tail.file)?;
            let batch = tail.end - tail.synced;
            tail.synced = tail.end;
            tail.prepare(batch, self.segment_bytes);
        }
        Ok(())
    }

    /// Closes the newest segment, so that all segments before `end()` are complete.
    pub(crate) fn rotate(&mut self) -> Result<(), Error> {
        self.sync()?;
        if let Some(mut tail) = self.tail.take() {
            tail.cut();
        }
        Ok(())
    }

    fn begin_segment(&mut self) -> Result<(), Error> {
        self.rotate()?;
        let segment = self.next;
        let created = self.segments.create(segment);
        // A number is used once, and none is left out: a gap would look like a lost segment.
        if created.is_ok() || self.segments.list().is_ok_and(|list| list.contains_key(&segment)) {
            self.next += 1;
        }
        self.tail = Some(Tail { segment, file: created?, end: FRONT as u64, synced: 0, prepared: 0 });
        Ok(())
    }
}
