//! The records of the log: each is one fact, with checksums.
//!
//! A record is a header of 24 bytes and a body. The header has a checksum of its own, so that a damaged body does not
//! hide where the next record begins.

use bytes::Bytes;

use crate::Address;
use crate::facts::{Class, Cost, NameChange, RemovalReason, Time};
use crate::fields::{FieldReader, FieldWriter};

/// The length of a record's header in bytes.
pub(crate) const HEADER: usize = 24;

/// The longest body in bytes: protects readers against a hostile length.
pub(crate) const BODY_MOST: usize = 32 << 20;

/// The first byte of every record.
pub(crate) const MAGIC: u8 = 0xa7;

/// A number, different for each store, that is mixed into every header's checksum. A reader that meets damage searches
/// for the next header; without the salt, a blob that contains the bytes of a record could pass for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Salt(pub u32);

impl Salt {
    fn checksum(self, bytes: &[u8]) -> u32 {
        crc32fast::hash(bytes) ^ self.0
    }
}

/// The kind of a derivation in stores of format 1. Its record has a separate list of inputs, which no hash covers: the
/// list is skipped when read, and never written.
const OLD_DERIVATION: u8 = 4;

/// One fact, with its time and class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub at: Time,
    pub class: Class,
    pub fact: Fact,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fact {
    /// A small blob, with its bytes.
    Blob {
        address: Address,
        bytes: Bytes,
    },
    /// A large blob, in a file of its own.
    File {
        address: Address,
        number: u64,
        len: u64,
    },
    /// The blob, written before, was put again: its class and time are the record's.
    Touch {
        address: Address,
    },
    /// The description of a derivation. Its inputs are the addresses in its canonical bytes.
    Derivation {
        address: Address,
        /// Another address that leads to it.
        alias: Option<Address>,
        context: String,
        bytes: Bytes,
    },
    Memo {
        derivation: Address,
        output: Address,
        size: u64,
        cost: Cost,
        inputs: Vec<Address>,
    },
    Pin {
        address: Address,
    },
    Unpin {
        address: Address,
    },
    /// A name with its kept history, newest last.
    Name {
        name: String,
        history: Vec<NameChange>,
    },
    Remove {
        why: RemovalReason,
        items: Vec<ItemRemoval>,
    },
}

/// One removed item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ItemRemoval {
    pub address: Address,
    pub what: ItemKind,
    /// Inputs that nothing under this address reads any more: their edges go too.
    pub edges: Vec<Address>,
}

/// The kind of item that was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ItemKind {
    Blob,
    Derivation,
    /// The memo, with its output.
    Memo(Address),
}

impl Record {
    /// Appends header and body.
    pub(crate) fn encode(&self, salt: Salt, out: &mut Vec<u8>) {
        self.encode_with(salt, None, out);
    }

    /// The same, with the body's checksum if that is known already.
    pub(crate) fn encode_with(&self, salt: Salt, body_crc: Option<u32>, out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + HEADER, 0);
        self.fact.encode(out);
        let body = &out[start + HEADER..];
        let (len, crc) = (body.len() as u32, body_crc.unwrap_or_else(|| crc32fast::hash(body)));
        debug_assert_eq!(crc, crc32fast::hash(body));
        let header = &mut out[start..start + HEADER];
        header[..4].copy_from_slice(&[MAGIC, self.fact.kind(), self.class.number(), 0]);
        header[4..8].copy_from_slice(&len.to_le_bytes());
        header[8..16].copy_from_slice(&self.at.0.to_le_bytes());
        header[16..20].copy_from_slice(&crc.to_le_bytes());
        let crc = salt.checksum(&header[..20]);
        header[20..].copy_from_slice(&crc.to_le_bytes());
    }

    /// Decodes a record from its header and body; `None` if either is damaged.
    pub(crate) fn decode(header: &Header, body: &Bytes) -> Option<Record> {
        if body.len() != header.len || crc32fast::hash(body) != header.body_crc {
            return None;
        }
        Some(Record { at: header.at, class: header.class, fact: Fact::decode(header.kind, body)? })
    }

    /// Moves the record out, leaving a placeholder that must not be written.
    pub(crate) fn take(&mut self) -> Record {
        let placeholder = Fact::Touch { address: Address::from_bytes([0; 32]) };
        Record { fact: std::mem::replace(&mut self.fact, placeholder), ..*self }
    }

    /// Decodes a record that takes up all of these bytes.
    pub(crate) fn decode_whole(salt: Salt, bytes: &Bytes) -> Option<Record> {
        Record::decode(&Header::decode(salt, bytes)?, &bytes.slice(HEADER..))
    }
}

/// The header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    kind: u8,
    class: Class,
    /// The length of the body in bytes.
    pub len: usize,
    at: Time,
    body_crc: u32,
}

impl Header {
    /// Decodes the header at the start of some bytes; `None` if it is damaged.
    pub(crate) fn decode(salt: Salt, bytes: &[u8]) -> Option<Header> {
        let bytes = bytes.get(..HEADER)?;
        if bytes[0] != MAGIC || bytes[3] != 0 || salt.checksum(&bytes[..20]).to_le_bytes() != bytes[20..] {
            return None;
        }
        let mut take = FieldReader(&bytes[1..]);
        let (kind, class, _) = (take.u8()?, Class::of_number(take.u8()?)?, take.u8()?);
        let header =
            Header { kind, class, len: take.u32()? as usize, at: Time(take.u64()?), body_crc: take.u32()? };
        (header.len <= BODY_MOST).then_some(header)
    }
}

impl Fact {
    /// The checksum of a blob's body, computed by the caller to save the writer thread's time; `None` for other facts.
    pub(crate) fn long_body_crc(&self) -> Option<u32> {
        let Fact::Blob { address, bytes } = self else { return None };
        let mut crc = crc32fast::Hasher::new();
        crc.update(address.as_bytes());
        crc.update(bytes);
        Some(crc.finalize())
    }

    /// Frees the bytes of a blob once they are in the log: the index does not need them.
    pub(crate) fn drop_bytes(&mut self) {
        if let Fact::Blob { bytes, .. } = self {
            *bytes = Bytes::new();
        }
    }

    /// The approximate size of its record in bytes.
    pub(crate) fn size_hint(&self) -> usize {
        let (bytes, addresses) = match self {
            Fact::Blob { bytes, .. } => (bytes.len(), 1),
            Fact::Derivation { bytes, context, .. } => (bytes.len() + context.len(), 2),
            Fact::Memo { inputs, .. } => (64, 2 + inputs.len()),
            Fact::Name { name, history } => (name.len(), 2 * history.len()),
            Fact::Remove { items, .. } => (0, items.iter().map(|item| 3 + item.edges.len()).sum()),
            Fact::File { .. } | Fact::Touch { .. } | Fact::Pin { .. } | Fact::Unpin { .. } => (16, 1),
        };
        HEADER + bytes + 32 * addresses
    }

    fn kind(&self) -> u8 {
        match self {
            Fact::Blob { .. } => 1,
            Fact::File { .. } => 2,
            Fact::Touch { .. } => 3,
            Fact::Derivation { .. } => 10,
            Fact::Memo { .. } => 5,
            Fact::Pin { .. } => 6,
            Fact::Unpin { .. } => 7,
            Fact::Name { .. } => 8,
            Fact::Remove { .. } => 9,
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Fact::Blob { address, bytes } => {
                out.give_address(address);
                out.give(bytes);
            }
            Fact::File { address, number, len } => {
                out.give_address(address);
                out.give_u64(*number);
                out.give_u64(*len);
            }
            Fact::Touch { address } | Fact::Pin { address } | Fact::Unpin { address } => {
                out.give_address(address);
            }
            Fact::Derivation { address, alias, context, bytes } => {
                out.give_address(address);
                give_option(out, alias.as_ref());
                out.give_text(context);
                out.give(bytes);
            }
            Fact::Memo { derivation, output, size, cost, inputs } => {
                out.give_address(derivation);
                out.give_address(output);
                out.give_u64(*size);
                give_cost(out, cost);
                out.give_addresses(inputs);
            }
            Fact::Name { name, history } => {
                out.give_text(name);
                give_history(out, history);
            }
            Fact::Remove { why, items } => {
                out.give(&[why.number()]);
                for item in items {
                    give_removed(out, item);
                }
            }
        }
    }

    /// Decodes a body; `None` for bytes that no encoder writes.
    pub(crate) fn decode(kind: u8, body: &Bytes) -> Option<Fact> {
        let mut take = FieldReader(body);
        let fact = match kind {
            1 => Fact::Blob { address: take.address()?, bytes: body.slice_ref(take.rest()) },
            2 => Fact::File { address: take.address()?, number: take.u64()?, len: take.u64()? },
            3 => Fact::Touch { address: take.address()? },
            OLD_DERIVATION => {
                let (address, context) = (take.address()?, take.text()?.to_owned());
                take.addresses()?;
                Fact::Derivation { address, alias: None, context, bytes: body.slice_ref(take.rest()) }
            }
            5 => Fact::Memo {
                derivation: take.address()?,
                output: take.address()?,
                size: take.u64()?,
                cost: take_cost(&mut take)?,
                inputs: take.addresses()?,
            },
            6 => Fact::Pin { address: take.address()? },
            7 => Fact::Unpin { address: take.address()? },
            8 => Fact::Name { name: take.text()?.to_owned(), history: take_history(&mut take)? },
            9 => Fact::Remove { why: RemovalReason::of_number(take.u8()?)?, items: take_removed(&mut take)? },
            10 => Fact::Derivation {
                address: take.address()?,
                alias: take_option(&mut take)?,
                context: take.text()?.to_owned(),
                bytes: body.slice_ref(take.rest()),
            },
            _ => return None,
        };
        take.end()?;
        Some(fact)
    }
}

fn take_removed(take: &mut FieldReader<'_>) -> Option<Vec<ItemRemoval>> {
    let mut items = Vec::new();
    while !take.0.is_empty() {
        let address = take.address()?;
        let what = match take.u8()? {
            0 => ItemKind::Blob,
            1 => ItemKind::Derivation,
            2 => ItemKind::Memo(take.address()?),
            _ => return None,
        };
        items.push(ItemRemoval { address, what, edges: take.addresses()? });
    }
    Some(items)
}

fn give_removed(out: &mut Vec<u8>, item: &ItemRemoval) {
    out.give_address(&item.address);
    match &item.what {
        ItemKind::Blob => out.give(&[0]),
        ItemKind::Derivation => out.give(&[1]),
        ItemKind::Memo(output) => {
            out.give(&[2]);
            out.give_address(output);
        }
    }
    out.give_addresses(&item.edges);
}

pub(crate) fn give_cost(out: &mut Vec<u8>, cost: &Cost) {
    out.give_u64(u64::try_from(cost.cpu.as_nanos()).unwrap_or(u64::MAX));
    out.give_u64(cost.tokens);
    out.give_u64(cost.micros);
}

pub(crate) fn take_cost(take: &mut FieldReader<'_>) -> Option<Cost> {
    let cpu = std::time::Duration::from_nanos(take.u64()?);
    Some(Cost { cpu, tokens: take.u64()?, micros: take.u64()? })
}

pub(crate) fn give_history(out: &mut Vec<u8>, history: &[NameChange]) {
    out.give_u32(history.len() as u32);
    for named in history {
        out.give_u64(named.at.0);
        give_option(out, named.address.as_ref());
    }
}

pub(crate) fn take_history(take: &mut FieldReader<'_>) -> Option<Vec<NameChange>> {
    let count = take.u32()?;
    let mut history = Vec::new();
    for _ in 0..count {
        let at = Time(take.u64()?);
        history.push(NameChange { at, address: take_option(take)? });
    }
    Some(history)
}

fn give_option(out: &mut Vec<u8>, address: Option<&Address>) {
    out.give(&[u8::from(address.is_some())]);
    if let Some(address) = address {
        out.give_address(address);
    }
}

fn take_option(take: &mut FieldReader<'_>) -> Option<Option<Address>> {
    match take.u8()? {
        0 => Some(None),
        1 => Some(Some(take.address()?)),
        _ => None,
    }
}
