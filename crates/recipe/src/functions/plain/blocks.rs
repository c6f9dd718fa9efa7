//! Input in blocks of one size, however it is cut.

/// The bytes of a block that is not full yet.
pub(super) struct Blocks {
    size: usize,
    begun: Vec<u8>,
}

impl Blocks {
    pub(super) fn new(size: usize) -> Blocks {
        Blocks { size, begun: Vec::new() }
    }

    /// Hands on whole blocks, one or several at a time; what is left waits for the next chunk.
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

    /// The last block, if it is not full.
    pub(super) fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.begun)
    }
}
