//! The layout of a capture's parts: fields one after another, numbers in eight or four bytes, little-endian.

/// Takes fields from the front of untrusted bytes; `None` once they run out.
pub(super) struct ByteReader<'a>(pub(super) &'a [u8]);

impl<'a> ByteReader<'a> {
    pub(super) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// `None` unless all bytes have been taken.
    pub(super) fn end(self) -> Option<()> {
        self.0.is_empty().then_some(())
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    /// One of two.
    pub(super) fn flag(&mut self) -> Option<bool> {
        match self.u8()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(super) fn text(&mut self) -> Option<&'a str> {
        let len = self.u32()? as usize;
        str::from_utf8(self.bytes(len)?).ok()
    }

    /// A count of items with at least `least` bytes each. It is accepted only if there are enough bytes.
    pub(super) fn count(&mut self, least: usize) -> Option<usize> {
        let count = self.u32()? as usize;
        (count.checked_mul(least)? <= self.0.len()).then_some(count)
    }

    /// A count, then this many numbers of four bytes.
    pub(super) fn u32s(&mut self) -> Option<Vec<u32>> {
        let count = self.count(4)?;
        let chunks = self.bytes(count * 4)?.chunks_exact(4);
        Some(chunks.map(|chunk| u32::from_le_bytes(chunk.try_into().expect("chunks of 4"))).collect())
    }

    /// A count, then this many numbers of eight bytes.
    pub(super) fn u64s(&mut self) -> Option<Vec<u64>> {
        let count = self.count(8)?;
        let chunks = self.bytes(count * 8)?.chunks_exact(8);
        Some(chunks.map(|chunk| u64::from_le_bytes(chunk.try_into().expect("chunks of 8"))).collect())
    }

    /// A count, then this many flags, eight per byte.
    pub(super) fn flags(&mut self) -> Option<Vec<bool>> {
        let count = self.u32()? as usize;
        let packed = self.bytes(count.div_ceil(8))?;
        let spare = packed.last().is_some_and(|last| !count.is_multiple_of(8) && last >> (count % 8) != 0);
        (!spare).then(|| (0..count).map(|at| packed[at / 8] >> (at % 8) & 1 == 1).collect())
    }
}

/// Puts fields behind one another.
#[derive(Default)]
pub(super) struct ByteWriter(pub(super) Vec<u8>);

impl ByteWriter {
    pub(super) fn u8(&mut self, number: u8) {
        self.0.push(number);
    }

    pub(super) fn flag(&mut self, flag: bool) {
        self.u8(flag.into());
    }

    pub(super) fn u32(&mut self, number: u32) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    pub(super) fn u64(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    pub(super) fn text(&mut self, text: &str) {
        self.u32(text.len() as u32);
        self.0.extend_from_slice(text.as_bytes());
    }

    pub(super) fn u32s(&mut self, numbers: impl ExactSizeIterator<Item = u32>) {
        self.u32(numbers.len() as u32);
        numbers.for_each(|number| self.u32(number));
    }

    pub(super) fn u64s(&mut self, numbers: impl ExactSizeIterator<Item = u64>) {
        self.u32(numbers.len() as u32);
        numbers.for_each(|number| self.u64(number));
    }

    pub(super) fn flags(&mut self, flags: impl ExactSizeIterator<Item = bool>) {
        self.u32(flags.len() as u32);
        let (start, bytes) = (self.0.len(), flags.len().div_ceil(8));
        self.0.resize(start + bytes, 0);
        for (at, flag) in flags.enumerate() {
            self.0[start + at / 8] |= u8::from(flag) << (at % 8);
        }
    }
}
