//! Decodes bytes to a value. Refuses bytes that the encoder would not have written.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::{NAN, Value, tag};
use crate::Address;
use crate::fields::FieldReader;

/// The position and the reason of a failure to decode a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("byte {offset} of the encoding: {fault}")]
pub struct DecodeError {
    /// The offset of the byte, from 0.
    pub offset: usize,
    /// The problem there.
    pub fault: Fault,
}

/// The reason why bytes are not the encoding of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Written by another version of the encoding.
    #[error("the version is {0}, not {expected}", expected = Value::ENCODING_VERSION)]
    Version(u8),
    /// No kind of value begins so.
    #[error("there is no kind of value {0}")]
    Tag(u8),
    /// The value that starts here ends behind the last byte.
    #[error("the value that starts here goes past the end")]
    End,
    /// A text or key is not UTF-8 from here on.
    #[error("the text is not UTF-8")]
    Text,
    /// A key that is not above the one before it.
    #[error("the key is not above the one before it")]
    Key,
    /// A NaN with other bits than the encoding's one NaN.
    #[error("the bits are of a NaN that is never written")]
    Nan,
    /// A list or map inside too many others.
    #[error("lists and maps are more than {} deep", Value::DEPTH_LIMIT)]
    Depth,
    /// Bytes behind the value.
    #[error("the value has ended before")]
    Trailing,
}

pub(super) fn whole(encoding: &[u8]) -> Result<Value, DecodeError> {
    let mut reader = Reader { rest: FieldReader(encoding), len: encoding.len() };
    let [version] = reader.array()?;
    if version != Value::ENCODING_VERSION {
        return fail(0, Fault::Version(version));
    }
    let value = reader.value(Value::DEPTH_LIMIT)?;
    if reader.left() > 0 { fail(reader.offset(), Fault::Trailing) } else { Ok(value) }
}

/// The addresses in an encoding, in order. Refuses exactly what [`whole`] refuses, and builds no value.
pub(super) fn addresses(encoding: &[u8]) -> Result<Vec<Address>, DecodeError> {
    let mut reader = Reader { rest: FieldReader(encoding), len: encoding.len() };
    let [version] = reader.array()?;
    if version != Value::ENCODING_VERSION {
        return fail(0, Fault::Version(version));
    }
    let mut found = Vec::new();
    reader.skip(Value::DEPTH_LIMIT, &mut found)?;
    if reader.left() > 0 { fail(reader.offset(), Fault::Trailing) } else { Ok(found) }
}

fn fail<T>(offset: usize, fault: Fault) -> Result<T, DecodeError> {
    Err(DecodeError { offset, fault })
}

/// Takes the parts of an encoding, and knows where it is.
struct Reader<'a> {
    rest: FieldReader<'a>,
    len: usize,
}

/// The fewest bytes of a value, and of a key with its value. They bound a count before anything is allocated for it.
const VALUE_BYTES: usize = 1;
const PAIR_BYTES: usize = 8 + VALUE_BYTES;

impl<'a> Reader<'a> {
    fn value(&mut self, depth_left: usize) -> Result<Value, DecodeError> {
        let start = self.offset();
        let [tag] = self.array()?;
        let deeper = || depth_left.checked_sub(1).ok_or(DecodeError { offset: start, fault: Fault::Depth });
        Ok(match tag {
            tag::NULL => Value::Null,
            tag::FALSE => Value::Bool(false),
            tag::TRUE => Value::Bool(true),
            tag::INT => Value::Int(i64::from_be_bytes(self.array()?)),
            tag::FLOAT => Value::Float(self.float()?),
            tag::TEXT => Value::Text(self.text()?.to_owned()),
            tag::BYTES => Value::Bytes(Bytes::copy_from_slice(self.bytes()?)),
            tag::ADDRESS => Value::Address(Address::from_bytes(self.array()?)),
            tag::LIST => Value::List(self.list(deeper()?)?),
            tag::MAP => Value::Map(self.map(deeper()?)?),
            unknown => return fail(start, Fault::Tag(unknown)),
        })
    }

    /// Reads past a value and notes the addresses in it.
    fn skip(&mut self, depth_left: usize, found: &mut Vec<Address>) -> Result<(), DecodeError> {
        let start = self.offset();
        let [tag] = self.array()?;
        let deeper = || depth_left.checked_sub(1).ok_or(DecodeError { offset: start, fault: Fault::Depth });
        match tag {
            tag::NULL | tag::FALSE | tag::TRUE => {}
            tag::INT => _ = self.array::<8>()?,
            tag::FLOAT => _ = self.float()?,
            tag::TEXT => _ = self.text()?,
            tag::BYTES => _ = self.bytes()?,
            tag::ADDRESS => found.push(Address::from_bytes(self.array()?)),
            tag::LIST => {
                let depth_left = deeper()?;
                for _ in 0..self.count(VALUE_BYTES)? {
                    self.skip(depth_left, found)?;
                }
            }
            tag::MAP => {
                let depth_left = deeper()?;
                let mut last = None;
                for _ in 0..self.count(PAIR_BYTES)? {
                    last = Some(self.key(last)?);
                    self.skip(depth_left, found)?;
                }
            }
            unknown => return fail(start, Fault::Tag(unknown)),
        }
        Ok(())
    }

    fn float(&mut self) -> Result<f64, DecodeError> {
        let start = self.offset();
        let bits = u64::from_be_bytes(self.array()?);
        let float = f64::from_bits(bits);
        if float.is_nan() && bits != NAN { fail(start, Fault::Nan) } else { Ok(float) }
    }

    fn text(&mut self) -> Result<&'a str, DecodeError> {
        let length = self.count(1)?;
        let start = self.offset();
        str::from_utf8(self.take(length)?).or_else(|cause| fail(start + cause.valid_up_to(), Fault::Text))
    }

    fn bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        let length = self.count(1)?;
        self.take(length)
    }

    /// The next key of a map, which must be above the one before it.
    fn key(&mut self, last: Option<&str>) -> Result<&'a str, DecodeError> {
        let start = self.offset();
        let key = self.text()?;
        if last.is_some_and(|last| last >= key) { fail(start, Fault::Key) } else { Ok(key) }
    }

    fn list(&mut self, depth_left: usize) -> Result<Vec<Value>, DecodeError> {
        let count = self.count(VALUE_BYTES)?;
        (0..count).map(|_| self.value(depth_left)).collect()
    }

    fn map(&mut self, depth_left: usize) -> Result<BTreeMap<String, Value>, DecodeError> {
        let count = self.count(PAIR_BYTES)?;
        let mut map = BTreeMap::new();
        let mut last = None;
        for _ in 0..count {
            let key = self.key(last)?;
            last = Some(key);
            map.insert(key.to_owned(), self.value(depth_left)?);
        }
        Ok(map)
    }

    /// The number of items that follow, of at least `bytes_each` bytes each; never more than the rest can hold.
    fn count(&mut self, bytes_each: usize) -> Result<usize, DecodeError> {
        let start = self.offset();
        let count = u64::from_be_bytes(self.array()?);
        match usize::try_from(count) {
            Ok(count) if count <= self.left() / bytes_each => Ok(count),
            _ => fail(start, Fault::End),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let start = self.offset();
        self.rest.array().ok_or(DecodeError { offset: start, fault: Fault::End })
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let start = self.offset();
        self.rest.bytes(length).ok_or(DecodeError { offset: start, fault: Fault::End })
    }

    fn left(&self) -> usize {
        self.rest.0.len()
    }

    fn offset(&self) -> usize {
        self.len - self.left()
    }
}
