//! A 32-byte name: of bytes, or of what derives them.

use std::cell::RefCell;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::str::FromStr;

/// A 32-byte BLAKE3 name of bytes (a blob's) or of a derivation.
///
/// The two never meet: a blob's address is the plain hash of its bytes, a derivation's comes from BLAKE3's
/// key-derivation mode, so no blob can be made that takes the address of a derivation.
///
/// ```
/// # use anabranch_content::{Address, Context};
/// let blob = Address::of(b"");
/// assert_eq!(blob.to_string(), "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262");
/// assert_eq!(blob.to_string().parse(), Ok(blob));
/// assert_ne!(Address::derive(Context("example.com 2026 cells"), b""), blob);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address([u8; 32]);

/// The domain of a derivation: a constant, globally unique sentence that separates one kind of derivation from all
/// others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context<'a>(pub &'a str);

thread_local! {
    /// The context in which this thread derived an address last, and its hasher: to hash the context again would take a
    /// third of the time of a short derivation.
    static DERIVING: RefCell<Option<(String, blake3::Hasher)>> = const { RefCell::new(None) };
}

impl Address {
    /// The address of a blob: what `b3sum` prints.
    pub fn of(bytes: &[u8]) -> Address {
        Address(*blake3::hash(bytes).as_bytes())
    }

    /// The address of what `bytes` describe, a canonical encoding, in its context.
    pub fn derive(context: Context<'_>, bytes: &[u8]) -> Address {
        DERIVING.with_borrow_mut(|last| {
            let (_, hasher) = match last {
                Some(last) if last.0 == context.0 => last,
                other => other.insert((context.0.to_owned(), blake3::Hasher::new_derive_key(context.0))),
            };
            hasher.reset().update(bytes).finalize().into()
        })
    }

    /// The address with these bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Address {
        Address(bytes)
    }

    /// The address's bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Eight of the address's bytes as a number: as even as a hash.
    pub(crate) fn bits(&self) -> u64 {
        u64::from_le_bytes(self.0[..8].try_into().expect("eight of 32 bytes"))
    }
}

/// For maps by address: it takes a part of the address as the hash.
pub type BuildAddress = BuildHasherDefault<AddressHasher>;

/// The hasher for keys that are a hash already: it takes the last eight bytes of a key as they are. The first eight
/// bytes of an address choose its shard ([`Address::bits`]), so the addresses of one shard would have much in common in
/// them.
#[derive(Default)]
pub struct AddressHasher(u64);

impl Hasher for AddressHasher {
    /// An address is hashed as its length, then its bytes: the second call replaces the first.
    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.last_chunk().map_or(0, |last| u64::from_ne_bytes(*last));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl From<blake3::Hash> for Address {
    fn from(hash: blake3::Hash) -> Address {
        Address(*hash.as_bytes())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0; 64];
        for (pair, byte) in text.chunks_exact_mut(2).zip(self.0) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        out.pad(str::from_utf8(&text).expect("hex digits are text"))
    }
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

impl fmt::Debug for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:.12}…", self)
    }
}

/// The reason why a text is not an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Too few or too many digits.
    #[error("an address has 64 hex digits, this has {0}")]
    Length(usize),
    /// Something else than a digit.
    #[error("{found:?} at place {place} of the address is not a hex digit")]
    Digit {
        /// The position of the character, from 1.
        place: usize,
        /// The character there.
        found: char,
    },
}

impl FromStr for Address {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Address, ParseError> {
        let mut bytes = [0; 32];
        let mut digits = 0;
        for found in text.chars() {
            digits += 1;
            let digit = found.to_digit(16).ok_or(ParseError::Digit { place: digits, found })?;
            if let Some(byte) = bytes.get_mut((digits - 1) / 2) {
                *byte = *byte << 4 | digit as u8;
            }
        }
        if digits == 64 { Ok(Address(bytes)) } else { Err(ParseError::Length(digits)) }
    }
}
