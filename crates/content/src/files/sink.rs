//! Writes a blob from a stream: pieces are written one after the other on the store's threads, and hashed there beside
//! that, several at a time, while the producer makes the next piece.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;

use super::buffers::Buffer;
use super::lanes::LANES;
use super::{BlobWriter, Durability, Error, Files, Name, PIECE_LEN, WrittenBlob};
use crate::io::{Job, ParkedValue, Pool};
use crate::tree::{Value, group_values};

/// Takes a blob piece by piece. Holds one piece that is being written, one that is being filled, those that are being
/// hashed ([`LANES`]), and the values of one span: under 1.1 MiB and 0.5 MiB per lane, or the producer's pieces if they
/// are longer, and 32 bytes for each 64 MiB of the blob. Dropping it removes what was written.
#[derive(Debug)]
pub(crate) struct Sink {
    pool: Arc<Pool>,
    files: Arc<Files>,
    /// Small pieces, to be written as one, and how much of the buffer they fill.
    small: Option<(Buffer, usize)>,
    state: State,
    /// Pieces that are being hashed, in their order.
    hashing: VecDeque<Job<Vec<Value>>>,
    /// Values of groups that are written and hashed, for the next turn of the writer.
    values: Vec<Value>,
    /// Bytes of whole pieces that went to the writer.
    taken: u64,
}

#[derive(Debug)]
enum State {
    Idle(ParkedValue<Box<BlobWriter>>),
    Writing(Job<WriteResult>),
    Failed(Error),
}

/// Boxed, because a hasher is large to move from thread to thread.
type WriteResult = Result<Box<BlobWriter>, Error>;

/// A whole blob that is not in place yet. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct HashedBlob {
    pub(crate) name: Name,
    pool: Arc<Pool>,
    written: ParkedValue<WrittenBlob>,
}

impl Sink {
    pub(crate) async fn begin(pool: &Arc<Pool>, files: &Arc<Files>, number: u64) -> Result<Sink, Error> {
        let beginning = Arc::clone(files);
        let writing = pool.run(move || BlobWriter::begin(&beginning, number).map(Box::new)).await??;
        let state = State::Idle(pool.park(writing));
        Ok(Sink {
            pool: Arc::clone(pool),
            files: Arc::clone(files),
            small: None,
            state,
            hashing: VecDeque::new(),
            values: Vec::new(),
            taken: 0,
        })
    }

    /// Takes the blob's next bytes. If the future is dropped, bytes may be lost: all later calls fail.
    pub(crate) async fn write(&mut self, mut bytes: Bytes) -> Result<(), Error> {
        while !bytes.is_empty() {
            if self.small.is_none() && bytes.len() >= PIECE_LEN {
                let whole = bytes.split_to(bytes.len() / PIECE_LEN * PIECE_LEN);
                self.put(whole).await?;
            } else if let Some(piece) = self.gather(&mut bytes) {
                self.put(piece).await?;
            }
        }
        Ok(())
    }

    /// Ends the blob and computes its address.
    pub(crate) async fn hash(mut self) -> Result<HashedBlob, Error> {
        if let Some((buffer, filled)) = self.small.take() {
            self.drain(0).await?;
            self.put(buffer.into_bytes(0..filled)).await?;
        }
        self.drain(0).await?;
        let (writing, values) = (self.settle().await?, std::mem::take(&mut self.values));
        let hash = move || {
            let mut writing = writing.take();
            if !values.is_empty() {
                writing.push_groups(&values)?;
            }
            writing.hash()
        };
        let written = self.pool.run(hash).await??;
        Ok(HashedBlob::new(&self.pool, written))
    }

    /// Copies bytes to the buffer of small pieces, and writes the buffer when it is full.
    fn gather(&mut self, bytes: &mut Bytes) -> Option<Bytes> {
        let (mut buffer, filled) =
            self.small.take().unwrap_or_else(|| (self.files.buffers.take(PIECE_LEN), 0));
        let now = bytes.split_to(bytes.len().min(PIECE_LEN - filled));
        let end = filled + now.len();
        buffer[filled..end].copy_from_slice(&now);
        if end == PIECE_LEN {
            return Some(buffer.into_bytes(0..end));
        }
        self.small = Some((buffer, end));
        None
    }

    /// Starts to write a piece, once the one before it is written.
    async fn put(&mut self, piece: Bytes) -> Result<(), Error> {
        let writing = self.settle().await?;
        let is_whole = piece.len().is_multiple_of(PIECE_LEN);
        if is_whole {
            self.hash_beside(&piece).await?;
        }
        let place = self.pool.place().await?;
        let mut writing = writing.take();
        let values = std::mem::take(&mut self.values);
        self.state = State::Writing(place.start(move || {
            if !values.is_empty() {
                writing.push_groups(&values)?;
            }
            match is_whole {
                true => writing.write_data(&piece)?,
                false => writing.write(&piece)?,
            }
            Ok(writing)
        }));
        Ok(())
    }

    /// Starts to hash whole pieces, once one of the lanes is free.
    async fn hash_beside(&mut self, pieces: &Bytes) -> Result<(), Error> {
        for piece in 0..pieces.len() / PIECE_LEN {
            self.drain(*LANES - 1).await?;
            let bytes = pieces.slice(piece * PIECE_LEN..(piece + 1) * PIECE_LEN);
            let offset = self.taken;
            let place = self.pool.place().await?;
            self.hashing.push_back(place.start(move || group_values(offset, &bytes)));
            self.taken += PIECE_LEN as u64;
        }
        Ok(())
    }

    /// Waits until at most `most` pieces are being hashed. If the future is dropped, values are lost: the state must
    /// refuse later calls by then, or the sink must be gone.
    async fn drain(&mut self, most: usize) -> Result<(), Error> {
        while self.hashing.len() > most
            && let Some(job) = self.hashing.pop_front()
        {
            match job.await {
                Ok(values) => self.values.extend(values),
                Err(lost) => {
                    let error = Error::from(lost);
                    self.state = State::Failed(error.clone());
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Waits for the piece that is being written. Until the next piece is started, dropping the future loses bytes, and
    /// the sink refuses all later calls.
    async fn settle(&mut self) -> Result<ParkedValue<Box<BlobWriter>>, Error> {
        let settled = match std::mem::replace(&mut self.state, State::Failed(Error::Torn)) {
            State::Idle(writing) => Ok(writing),
            State::Writing(job) => {
                job.await.map_err(Error::from).flatten().map(|writing| self.pool.park(writing))
            }
            State::Failed(error) => Err(error),
        };
        if let Err(error) = &settled {
            self.state = State::Failed(error.clone());
        }
        settled
    }
}

impl HashedBlob {
    pub(super) fn new(pool: &Arc<Pool>, written: WrittenBlob) -> HashedBlob {
        HashedBlob { name: written.name, pool: Arc::clone(pool), written: pool.park(written) }
    }

    /// Puts the blob in place. After an error it is not there.
    pub(crate) async fn keep(self, durability: Durability) -> Result<(), Error> {
        self.pool.run(move || self.written.take().keep(durability)).await?
    }
}
