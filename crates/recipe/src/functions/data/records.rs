//! Splits chunks of any size into CSV records.

use std::sync::Arc;

use bytes::{Buf, Bytes};
use csv_core::{ReadRecordResult, Reader};

use crate::budget::{CallBudget, Claim};
use crate::function::{Call, Fault, Kernel, OpenInputs, Out};
use crate::functions::text::shown;

/// The maximum size of a record in bytes. A record is held in memory as a whole.
const RECORD_MOST: usize = 16 << 20;

/// The maximum number of fields per record.
pub(super) const FIELDS_MOST: usize = 1 << 16;

/// The steps of work per field of a record.
const FIELD_STEPS: u64 = 8;

/// The rules for CSV input, shared by all functions that read it.
pub(super) const RECORDS: &str = " The input is UTF-8 with commas, quotes and a header. Blank lines and a \
    byte order mark are skipped. All records have as many fields as the header, whose names are unique. A \
    record has at most 16 MiB and 65536 fields.";

const MARK: &[u8] = b"\xef\xbb\xbf";

/// The records of one input, parsed as its chunks arrive.
struct Records {
    reader: Reader,
    /// The first bytes, while they may become a byte order mark.
    start: Option<Vec<u8>>,
    chunk: Bytes,
    ended: bool,
    fields: Vec<u8>,
    ends: Vec<usize>,
    /// The lengths of the filled parts of `fields` and `ends`.
    held: (usize, usize),
    /// The memory claimed for a long record.
    claim: Claim,
}

impl Records {
    fn new(call: &Call<'_>) -> Records {
        Records {
            claim: Claim::new(call.budget),
            reader: Reader::new(),
            start: Some(Vec::new()),
            chunk: Bytes::new(),
            ended: false,
            fields: vec![0; 4 << 10],
            ends: vec![0; 64],
            held: (0, 0),
        }
    }

    /// Claims the memory of the buffers. The factors cover growth by doubling and the header names that kernels keep.
    fn claim_room(&mut self) -> Result<(), Fault> {
        self.claim.grow_to(6 * self.fields.len() as u64 + 200 * self.ends.len() as u64)
    }

    fn push(&mut self, chunk: Bytes) {
        debug_assert!(self.chunk.is_empty(), "a chunk is read before the next one comes");
        let Some(start) = &mut self.start else {
            self.chunk = chunk;
            return;
        };
        start.extend_from_slice(&chunk);
        if start.len() >= MARK.len() || !MARK.starts_with(start) {
            self.begin();
        }
    }

    fn begin(&mut self) {
        let start = Bytes::from(self.start.take().unwrap_or_default());
        let marked = start.starts_with(MARK);
        self.chunk = if marked { start.slice(MARK.len()..) } else { start };
    }

    fn end(&mut self) {
        if self.start.is_some() {
            self.begin();
        }
        self.ended = true;
    }

    /// The next record; `None` if its end has not arrived or there are no more records.
    fn next(&mut self) -> Result<Option<Record<'_>>, Fault> {
        if self.chunk.is_empty() && !self.ended {
            return Ok(None);
        }
        loop {
            let (fields, ends) = (&mut self.fields[self.held.0..], &mut self.ends[self.held.1..]);
            let (result, read, bytes, fields) = self.reader.read_record(&self.chunk, fields, ends);
            let fed = self.chunk[..read].last() == Some(&b'\n');
            self.chunk.advance(read);
            self.held = (self.held.0 + bytes, self.held.1 + fields);
            match result {
                ReadRecordResult::InputEmpty if self.ended => {}
                ReadRecordResult::InputEmpty | ReadRecordResult::End => return Ok(None),
                ReadRecordResult::OutputFull if self.fields.len() >= RECORD_MOST => {
                    return Err(Fault::TooLarge { what: "a record", most: RECORD_MOST as u64 });
                }
                ReadRecordResult::OutputFull => {
                    self.claim_room()?;
                    self.fields.resize(self.fields.len() * 2, 0);
                }
                ReadRecordResult::OutputEndsFull if self.ends.len() >= FIELDS_MOST => {
                    let problem =
                        format!("line {}: a record has more than {FIELDS_MOST} fields", self.reader.line());
                    return Err(Fault::input(0, problem));
                }
                ReadRecordResult::OutputEndsFull => {
                    self.claim_room()?;
                    self.ends.resize(self.ends.len() * 2, 0);
                }
                ReadRecordResult::Record => {
                    let line = self.reader.line() - u64::from(fed);
                    let (bytes, fields) = std::mem::take(&mut self.held);
                    let (fields, ends) = (&self.fields[..bytes], &self.ends[..fields]);
                    let text = std::str::from_utf8(fields).ok();
                    // A character must not start in one field and end in the next.
                    let text = text.filter(|text| ends.iter().all(|end| text.is_char_boundary(*end)));
                    let Some(text) = text else {
                        return Err(Fault::input(
                            0,
                            format!("the record that ends in line {line} is not UTF-8"),
                        ));
                    };
                    return Ok(Some(Record { text, ends, line }));
                }
            }
        }
    }
}

/// A record.
#[derive(Clone, Copy)]
pub(super) struct Record<'a> {
    text: &'a str,
    ends: &'a [usize],
    line: u64,
}

impl<'a> Record<'a> {
    /// The number of fields.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The field at an index, from 0.
    pub(super) fn field(&self, index: usize) -> &'a str {
        let from = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[from..self.ends[index]]
    }
}

/// An operation on each record of one input.
pub(super) trait RecordVisitor: Send + 'static {
    /// Processes the header.
    fn header(&mut self, names: &[String], out: &mut Out) -> Result<(), Fault>;

    /// Processes the next record, which has as many fields as the header.
    fn record(&mut self, record: Record<'_>, out: &mut Out) -> Result<(), Fault>;

    /// Writes the remaining output.
    fn finish(&mut self, out: &mut Out) -> Result<(), Fault>;
}

/// A kernel that applies `each` to every record.
pub(super) fn of_records(call: &Call<'_>, each: impl RecordVisitor) -> Box<dyn Kernel> {
    let budget = Arc::clone(call.budget);
    Box::new(RecordsKernel { records: Records::new(call), columns: None, each, budget })
}

struct RecordsKernel<T> {
    records: Records,
    /// The number of columns in the header, once it has been read.
    columns: Option<usize>,
    each: T,
    budget: Arc<CallBudget>,
}

impl<T: RecordVisitor> Kernel for RecordsKernel<T> {
    fn wants(&self, open: &OpenInputs<'_>) -> Option<usize> {
        open.first()
    }

    fn push(&mut self, _: usize, chunk: Bytes, out: &mut Out) -> Result<(), Fault> {
        self.records.push(chunk);
        self.resume(out)
    }

    fn end(&mut self, _: usize, out: &mut Out) -> Result<(), Fault> {
        self.records.end();
        self.resume(out)
    }

    fn finish(&mut self, out: &mut Out) -> Result<(), Fault> {
        self.each.finish(out)
    }

    fn resume(&mut self, out: &mut Out) -> Result<(), Fault> {
        while !out.is_full() {
            let Some(record) = self.records.next()? else { return Ok(()) };
            self.budget.work(record.text.len() as u64 + FIELD_STEPS * record.len() as u64)?;
            match self.columns {
                None => {
                    // The work before this, and the sort of the names, stay within one interval.
                    self.budget.check()?;
                    let names = names(record)?;
                    self.budget.check()?;
                    self.columns = Some(names.len());
                    self.each.header(&names, out)?;
                }
                Some(columns) if columns == record.len() => self.each.record(record, out)?,
                Some(columns) => {
                    let (line, len) = (record.line, record.len());
                    let problem = format!(
                        "the record that ends in line {line} has {len} fields; the header has {columns}"
                    );
                    return Err(Fault::input(0, problem));
                }
            }
        }
        out.pause();
        Ok(())
    }
}

fn names(header: Record<'_>) -> Result<Vec<String>, Fault> {
    let names: Vec<String> = (0..header.len()).map(|index| header.field(index).to_owned()).collect();
    let mut sorted: Vec<&String> = names.iter().collect();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(Fault::input(
            0,
            format!("the header has {} twice; a name must be there once", shown(pair[0])),
        )),
        None => Ok(names),
    }
}
