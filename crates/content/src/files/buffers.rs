//! Buffers that are reused, because a new one costs a page fault per 4 KiB. They are aligned, because the system's
//! copy to an unaligned address takes twice as long.

use std::ops::{Deref, DerefMut, Range};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::PIECE_LEN;

/// Buffers of one piece that are free.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    free: Mutex<Vec<Vec<u8>>>,
}

/// A buffer of one piece or more, with old bytes in it. It returns to the free ones when it is dropped.
#[derive(Debug)]
pub(super) struct Buffer {
    /// Longer than the part that is used, so that this part can begin at an aligned address.
    memory: Vec<u8>,
    start: usize,
    home: Arc<Buffers>,
}

const ALIGN: usize = 64;

impl Buffers {
    /// The number of free buffers kept for reuse: 8 MiB.
    const KEPT: usize = 16;

    /// A buffer of at least `len` bytes, and at least a piece.
    pub(super) fn take(self: &Arc<Buffers>, len: usize) -> Buffer {
        let used = if len <= PIECE_LEN { self.free().pop() } else { None };
        let memory = used.unwrap_or_else(|| vec![0; len.max(PIECE_LEN) + ALIGN]);
        Buffer { start: memory.as_ptr().align_offset(ALIGN).min(ALIGN), memory, home: Arc::clone(self) }
    }

    fn free(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Buffer {
    /// A part of the buffer, to hand out: the buffer is free again when the last clone is dropped.
    pub(super) fn into_bytes(self, part: Range<usize>) -> Bytes {
        Bytes::from_owner(self).slice(part)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut free = self.home.free();
        if self.memory.len() == PIECE_LEN + ALIGN && free.len() < Buffers::KEPT {
            free.push(std::mem::take(&mut self.memory));
        }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.start..]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..]
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        self
    }
}
