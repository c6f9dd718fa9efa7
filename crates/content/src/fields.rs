//! Fixed-width fields: the layout of records and index entries, whose numbers are little endian, and of the parts of a
//! canonical encoding.

use crate::Address;

/// Takes fields off the front of some bytes; `None` once they run out.
pub(crate) struct FieldReader<'a>(pub(crate) &'a [u8]);

impl<'a> FieldReader<'a> {
    pub(crate) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    /// `None` unless everything has been taken.
    pub(crate) fn end(self) -> Option<()> {
        self.0.is_empty().then_some(())
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn address(&mut self) -> Option<Address> {
        self.array().map(Address::from_bytes)
    }

    /// A count, then that many addresses. A count that exceeds the remaining bytes is an error.
    pub(crate) fn addresses(&mut self) -> Option<Vec<Address>> {
        let count = self.u32()? as usize;
        let bytes = self.bytes(count.checked_mul(32)?)?;
        Some(
            bytes
                .chunks_exact(32)
                .map(|one| Address::from_bytes(one.try_into().expect("chunks of 32")))
                .collect(),
        )
    }

    /// A length, then a text of that many bytes.
    pub(crate) fn text(&mut self) -> Option<&'a str> {
        let len = self.u32()? as usize;
        str::from_utf8(self.bytes(len)?).ok()
    }
}

/// Puts fields behind one another.
pub(crate) trait FieldWriter {
    fn give(&mut self, bytes: &[u8]);

    fn give_u32(&mut self, number: u32) {
        self.give(&number.to_le_bytes());
    }

    fn give_u64(&mut self, number: u64) {
        self.give(&number.to_le_bytes());
    }

    fn give_address(&mut self, address: &Address) {
        self.give(address.as_bytes());
    }

    fn give_addresses(&mut self, addresses: &[Address]) {
        self.give_u32(addresses.len() as u32);
        for address in addresses {
            self.give_address(address);
        }
    }

    fn give_text(&mut self, text: &str) {
        self.give_u32(text.len() as u32);
        self.give(text.as_bytes());
    }
}

impl FieldWriter for Vec<u8> {
    fn give(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}
