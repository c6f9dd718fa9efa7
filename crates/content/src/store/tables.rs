//! The tables of the index, one per kind of data, and the encoding of their rows.

use crate::Address;
use crate::facts::{Class, Memo, NameChange, RemovalReason, RemovalRecord, Time};
use crate::fields::{FieldReader, FieldWriter};
use crate::index::Key;
use crate::log::{RecordPlace, give_cost, give_history, take_cost, take_history};

/// A table of the index: the first byte of its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Table {
    /// Blob -> the place of its bytes.
    Blob = b'b',
    /// Derivation -> the place of its description.
    Derivation = b'd',
    /// Alias -> the derivation that it leads to.
    Alias = b'a',
    /// Derivation -> its memo.
    Memo = b'm',
    /// Input and derivation -> an empty row: the derivation reads the input.
    Edge = b'e',
    Pin = b'p',
    /// Hash of a name -> the name and its history.
    Name = b'n',
    /// Address -> when and why data under it was removed (a tombstone).
    Gone = b'g',
}

impl Table {
    pub(crate) fn key(self, address: &Address) -> Key {
        Key::of(self as u8, address)
    }

    pub(crate) fn pair(self, first: &Address, second: &Address) -> Key {
        Key::pair(self as u8, first, second)
    }
}

/// The key of a name's history.
pub(crate) fn name_key(name: &str) -> Key {
    Table::Name.key(&Address::of(name.as_bytes()))
}

/// The last address in a key.
pub(crate) fn last_address(key: &Key) -> Option<Address> {
    Some(Address::from_bytes(key.as_bytes().last_chunk::<32>().copied()?))
}

/// The row of a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blob {
    pub class: Class,
    pub at: Time,
    /// The place of its record.
    pub place: RecordPlace,
    pub home: Home,
}

/// The location of a blob's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    /// In the record.
    Packed,
    File {
        number: u64,
        len: u64,
    },
}

/// The length of a packed blob's record without the blob's bytes.
pub(crate) const BLOB_FRONT: usize = crate::log::HEADER + 32;

impl Blob {
    /// The length of the blob in bytes.
    pub(crate) fn size(&self) -> u64 {
        match self.home {
            Home::Packed => u64::from(self.place.len) - BLOB_FRONT as u64,
            Home::File { len, .. } => len,
        }
    }

    /// Whether the rows point to the same bytes at the same place.
    pub(crate) fn is_same_as(&self, other: &Blob) -> bool {
        self.home == other.home && (self.home != Home::Packed || self.place == other.place)
    }
}

/// A row as the index has it.
pub(crate) type RowBytes = Box<[u8]>;

/// A row, encoded as bytes and decoded. Decoding returns `None` for bytes that no store writes.
pub(crate) trait Row: Sized {
    fn encode(&self) -> RowBytes;
    fn decode(bytes: &[u8]) -> Option<Self>;
    /// The place of its record.
    fn place(&self) -> RecordPlace;
    /// Whether the row is counted in the tally.
    fn counts(&self) -> bool {
        true
    }
}

impl Row for Blob {
    fn encode(&self) -> RowBytes {
        // The exact length, so that the row is not copied again.
        let mut out = Vec::with_capacity(if self.home == Home::Packed { 21 } else { 37 });
        out.give(&[self.class.number()]);
        out.give_u64(self.at.0);
        give_place(&mut out, self.place);
        if let Home::File { number, len } = self.home {
            out.give_u64(number);
            out.give_u64(len);
        }
        out.into()
    }

    fn decode(bytes: &[u8]) -> Option<Blob> {
        let mut take = FieldReader(bytes);
        let (class, at, place) = (Class::of_number(take.u8()?)?, Time(take.u64()?), take_place(&mut take)?);
        let home = match take.0 {
            [] if place.len as usize >= BLOB_FRONT => Home::Packed,
            [] => return None,
            _ => Home::File { number: take.u64()?, len: take.u64()? },
        };
        take.end()?;
        Some(Blob { class, at, place, home })
    }

    fn place(&self) -> RecordPlace {
        self.place
    }
}

/// The description of a derivation: its place in the log and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DerivationRow {
    pub place: RecordPlace,
    pub at: Time,
    /// Another address that leads to it.
    pub alias: Option<Address>,
}

impl Row for DerivationRow {
    fn encode(&self) -> RowBytes {
        let mut out = Vec::with_capacity(if self.alias.is_some() { 52 } else { 20 });
        give_place(&mut out, self.place);
        out.give_u64(self.at.0);
        if let Some(alias) = &self.alias {
            out.give_address(alias);
        }
        out.into()
    }

    fn decode(bytes: &[u8]) -> Option<DerivationRow> {
        let mut take = FieldReader(bytes);
        let (place, at) = (take_place(&mut take)?, Time(take.u64()?));
        let alias = match take.0 {
            [] => None,
            _ => Some(take.address()?),
        };
        take.end()?;
        Some(DerivationRow { place, at, alias })
    }

    fn place(&self) -> RecordPlace {
        self.place
    }
}

/// The derivation that an alias leads to. Its record is the derivation's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AliasRow {
    pub derivation: Address,
}

impl AliasRow {
    pub(crate) fn encode(&self) -> RowBytes {
        self.derivation.as_bytes().as_slice().into()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<AliasRow> {
        Some(AliasRow { derivation: Address::from_bytes(bytes.try_into().ok()?) })
    }
}

/// A pin: its place in the log and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PinRow {
    pub place: RecordPlace,
    pub at: Time,
}

impl Row for PinRow {
    fn encode(&self) -> RowBytes {
        let mut out = Vec::with_capacity(20);
        give_place(&mut out, self.place);
        out.give_u64(self.at.0);
        out.into()
    }

    fn decode(bytes: &[u8]) -> Option<PinRow> {
        let mut take = FieldReader(bytes);
        let row = PinRow { place: take_place(&mut take)?, at: Time(take.u64()?) };
        take.end()?;
        Some(row)
    }

    fn place(&self) -> RecordPlace {
        self.place
    }
}

/// A memo, and its place in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemoRow {
    pub place: RecordPlace,
    pub class: Class,
    pub memo: Memo,
}

impl Row for MemoRow {
    fn encode(&self) -> RowBytes {
        let mut out = Vec::with_capacity(117);
        give_place(&mut out, self.place);
        out.give(&[self.class.number()]);
        out.give_u64(self.memo.at.0);
        out.give_address(&self.memo.derivation);
        out.give_address(&self.memo.output);
        out.give_u64(self.memo.size);
        give_cost(&mut out, &self.memo.cost);
        out.into()
    }

    fn decode(bytes: &[u8]) -> Option<MemoRow> {
        let mut take = FieldReader(bytes);
        let (place, class, at) = (take_place(&mut take)?, Class::of_number(take.u8()?)?, Time(take.u64()?));
        let memo = Memo {
            derivation: take.address()?,
            output: take.address()?,
            size: take.u64()?,
            cost: take_cost(&mut take)?,
            at,
        };
        take.end()?;
        Some(MemoRow { place, class, memo })
    }

    fn place(&self) -> RecordPlace {
        self.place
    }
}

/// A name and its history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NameRow {
    pub place: RecordPlace,
    pub name: String,
    pub history: Vec<NameChange>,
}

impl Row for NameRow {
    fn encode(&self) -> RowBytes {
        let mut out = Vec::new();
        give_place(&mut out, self.place);
        out.give_text(&self.name);
        give_history(&mut out, &self.history);
        out.into()
    }

    fn decode(bytes: &[u8]) -> Option<NameRow> {
        let mut take = FieldReader(bytes);
        let place = take_place(&mut take)?;
        let row = NameRow { place, name: take.text()?.to_owned(), history: take_history(&mut take)? };
        take.end()?;
        Some(row)
    }

    fn place(&self) -> RecordPlace {
        self.place
    }

    /// A name that was dropped keeps its history, but is not counted; nor is one of the store's own.
    fn counts(&self) -> bool {
        !super::roots::is_reserved(&self.name)
            && self.history.last().is_some_and(|named| named.address.is_some())
    }
}

/// A tombstone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GoneRow {
    /// The place of the record; the length is only this tombstone's share of it.
    pub place: RecordPlace,
    pub gone: RemovalRecord,
}

impl Row for GoneRow {
    fn encode(&self) -> RowBytes {
        let mut out = Vec::with_capacity(21);
        give_place(&mut out, self.place);
        out.give_u64(self.gone.at.0);
        out.give(&[self.gone.why.number()]);
        out.into()
    }

    fn decode(bytes: &[u8]) -> Option<GoneRow> {
        let mut take = FieldReader(bytes);
        let place = take_place(&mut take)?;
        let gone = RemovalRecord { at: Time(take.u64()?), why: RemovalReason::of_number(take.u8()?)? };
        take.end()?;
        Some(GoneRow { place, gone })
    }

    fn place(&self) -> RecordPlace {
        self.place
    }
}

fn give_place(out: &mut Vec<u8>, place: RecordPlace) {
    out.give_u32(place.segment);
    out.give_u32(place.offset);
    out.give_u32(place.len);
}

fn take_place(take: &mut FieldReader<'_>) -> Option<RecordPlace> {
    Some(RecordPlace { segment: take.u32()?, offset: take.u32()?, len: take.u32()? })
}

/// Decodes a row as a table would, and checks that encoding it again gives the same bytes.
pub(crate) fn decode_row(table: u8, bytes: &[u8]) {
    fn check<R: Row>(bytes: &[u8]) {
        if let Some(row) = R::decode(bytes) {
            assert_eq!(*row.encode(), *bytes);
        }
    }
    match table {
        b'b' => check::<Blob>(bytes),
        b'd' => check::<DerivationRow>(bytes),
        b'p' => check::<PinRow>(bytes),
        b'a' => {
            if let Some(row) = AliasRow::decode(bytes) {
                assert_eq!(*row.encode(), *bytes);
            }
        }
        b'm' => check::<MemoRow>(bytes),
        b'n' => check::<NameRow>(bytes),
        b'g' => check::<GoneRow>(bytes),
        b't' => {
            if let Some(tally) = super::tally::Tally::decode(bytes) {
                assert_eq!(super::tally::Tally::decode(&tally.encode()), Some(tally));
            }
        }
        _ => {}
    }
}
