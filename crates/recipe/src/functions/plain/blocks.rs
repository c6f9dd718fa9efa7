//! Splits input chunks of any size into blocks of a fixed size.

/// Collects the bytes of a block that is not full yet.
pub(super) struct Blocks {
    size: usize,
    begun: Vec<u8>,
}

impl Blocks {
    pub(super) fn new(size: usize) -> Blocks {
        Blocks { size, begun: Vec::new() }
    }

    /// Passes whole blocks to `each`, one or more at a time. The remaining bytes are kept for the next chunk.
    pub(super) fn take<E>(
        &mut self,
        mut chunk: &[u8],
        mut each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        if !self.begun.is_empty() {
            let missing = (self.size - self.begun.len()).min(chunk.len());
            self.begun.extend_from_slice(&chunk[..missing]);
            chunk = &chunk[missing..];
            if self.begun.len() < self.size {
                return Ok(());
            }
            each(&self.begun)?;
            self.begun.clear();
        }
        let (blocks, rest) = chunk.split_at(chunk.len() - chunk.len() % self.size);
        self.begun.extend_from_slice(rest);
        if blocks.is_empty() { Ok(()) } else { each(blocks) }
    }

    /// The last block, which is not full; empty if the input ended at a block boundary.
    pub(super) fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.begun)
    }
}
