//! One input of a call: read from the store, or produced by another stage.

use anabranch_content::{Address, Error as StoreError, Reader};
use bytes::Bytes;
use smallvec::SmallVec;

use crate::error::Error;
use crate::executor::Inner;
use crate::registry::NO_ADDRESS;
use crate::sink::SMALL;
use crate::value::StoredValue;

/// An input that is being read for a function.
pub(crate) struct Feed {
    value: StoredValue,
    reader: Option<Box<Reader>>,
    ready: SmallVec<[Bytes; 1]>,
    /// The number of chunks in `ready` that are used up.
    used: usize,
    ready_bytes: usize,
    is_done: bool,
}

impl Feed {
    pub(crate) fn of(value: StoredValue) -> Feed {
        let bytes = value.bytes().cloned();
        let is_done = bytes.is_some() || value.size == 0;
        let mut feed = Feed { value, reader: None, ready: SmallVec::new(), used: 0, ready_bytes: 0, is_done };
        bytes.into_iter().for_each(|bytes| feed.push(bytes));
        feed
    }

    /// An input whose chunks are all in memory.
    pub(crate) fn of_chunks(chunks: &[Bytes]) -> Feed {
        let size = chunks.iter().map(|chunk| chunk.len() as u64).sum();
        // The address is a placeholder. It is only needed for reading, and nothing is left to read.
        let mut feed = Feed::of(StoredValue::stored(NO_ADDRESS, size, None));
        feed.is_done = true;
        chunks.iter().for_each(|chunk| feed.push(chunk.clone()));
        feed
    }

    /// An input that another stage of the same call produces.
    pub(crate) fn piped() -> Feed {
        Feed::of(StoredValue::stored(NO_ADDRESS, u64::MAX, None))
    }

    /// Notes that all of its bytes are there.
    pub(crate) fn end(&mut self) {
        self.is_done = true;
    }

    /// The same input, from its beginning.
    pub(crate) fn restart(self) -> Feed {
        Feed::of(self.value)
    }

    /// The address of the input's bytes.
    pub(crate) fn address(&self) -> Address {
        self.value.output
    }

    /// The length of the input in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.value.size
    }

    /// The number of bytes read ahead.
    pub(crate) fn ready_bytes(&self) -> usize {
        self.ready_bytes
    }

    /// Whether no more bytes will be added.
    pub(crate) fn is_done(&self) -> bool {
        self.is_done
    }

    /// Whether the input is being read from the store piece by piece.
    pub(crate) fn is_reading(&self) -> bool {
        self.reader.is_some()
    }

    /// Whether nothing of it has been read yet and a single read returns all of it.
    pub(crate) fn is_small(&self) -> bool {
        !self.is_done && self.value.size <= SMALL as u64
    }

    /// Adds the next bytes.
    pub(crate) fn push(&mut self, bytes: Bytes) {
        self.ready_bytes += bytes.len();
        if !bytes.is_empty() {
            self.ready.push(bytes);
        }
    }

    /// The next chunk, at most `most` bytes.
    pub(crate) fn pop(&mut self, most: usize) -> Option<Bytes> {
        let piece = self.ready.get_mut(self.used)?;
        let chunk = if piece.len() > most { piece.split_to(most) } else { std::mem::take(piece) };
        if piece.is_empty() {
            self.used += 1;
        }
        if self.used == self.ready.len() {
            self.ready.clear();
            self.used = 0;
        }
        self.ready_bytes -= chunk.len();
        Some(chunk)
    }

    /// Reads at least one piece, and stops once `ahead` bytes are buffered.
    pub(crate) async fn fill(&mut self, inner: &Inner, ahead: usize) -> Result<(), Error> {
        let address = self.value.output;
        if self.is_done {
            return Ok(());
        }
        if self.value.size <= SMALL as u64 {
            let bytes = inner.store.get(&address).await?.ok_or(StoreError::Missing { address })?;
            self.push(bytes);
            self.is_done = true;
            return Ok(());
        }
        let reader = match &mut self.reader {
            Some(reader) => reader,
            None => {
                let reader =
                    inner.store.read(&address, 0..u64::MAX).await?.ok_or(StoreError::Missing { address })?;
                self.reader.insert(Box::new(reader))
            }
        };
        let mut pieces: SmallVec<[Bytes; 4]> = SmallVec::new();
        let mut read = 0;
        while read < ahead && !self.is_done {
            match reader.next().await {
                Some(piece) => {
                    let piece = piece?;
                    read += piece.len();
                    pieces.push(piece);
                }
                None => self.is_done = true,
            }
        }
        if self.is_done {
            self.reader = None;
        }
        pieces.into_iter().for_each(|piece| self.push(piece));
        Ok(())
    }
}
