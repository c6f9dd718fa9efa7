//! The canonical encoding: each value has one encoding, and each encoding one value. The address of a derivation is a
//! hash of such an encoding.
//!
//! ```text
//! encoding = 01 value                       the version, then the value
//! value    = 00                             null
//!          | 01 | 02                        false | true
//!          | 03 integer                     two's complement
//!          | 04 bits                        float, as IEEE 754 has it
//!          | 05 length utf-8                text
//!          | 06 length bytes
//!          | 07 32 bytes                    address
//!          | 08 count value*                list
//!          | 09 count (length utf-8 value)* map, keys rising by their bytes
//! ```
//!
//! Integers, bits, lengths and counts are eight bytes, the highest first.

mod decode;
mod encode;

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::{Address, Context};

pub use decode::{DecodeError, Fault};
pub use encode::TooDeep;

/// The description of a derivation.
///
/// Two values are equal if their encodings are. So NaN equals NaN with any bits, because hardware does not agree on
/// them. And 0.0 is not -0.0: a computation can tell them apart, so they may not share its result.
///
/// ```
/// # use anabranch_content::{Context, Value};
/// let call = Value::List(vec![Value::Text("add".into()), Value::Int(1), Value::Int(2)]);
/// let address = call.derive(Context("example.com 2026 sums"))?;
/// assert_eq!(Value::decode(&call.encode()?), Ok(call));
/// # Ok::<(), anabranch_content::TooDeep>(())
/// ```
#[derive(Clone, Debug)]
pub enum Value {
    /// No value.
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number with a fraction.
    Float(f64),
    /// Text, in UTF-8.
    Text(String),
    /// Any bytes.
    Bytes(Bytes),
    /// The address of a blob or of another derivation.
    Address(Address),
    /// Values in order.
    List(Vec<Value>),
    /// Values by name.
    Map(BTreeMap<String, Value>),
}

macro_rules! value_from {
    ($($from:ty => $kind:ident),* $(,)?) => {$(
        impl From<$from> for Value {
            fn from(value: $from) -> Value {
                Value::$kind(value.into())
            }
        }
    )*};
}

value_from! {
    bool => Bool,
    i32 => Int,
    u32 => Int,
    i64 => Int,
    f64 => Float,
    &str => Text,
    &String => Text,
    String => Text,
    Bytes => Bytes,
    BTreeMap<String, Value> => Map,
}

impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(values: Vec<T>) -> Value {
        Value::List(values.into_iter().map(Into::into).collect())
    }
}

impl Value {
    /// The maximum nesting of lists and maps around a value, itself included.
    pub const DEPTH_LIMIT: usize = 64;

    /// The version of the encoding, which is its first byte.
    pub const ENCODING_VERSION: u8 = 1;

    /// The address of the derivation that this value describes, in its context.
    pub fn derive(&self, context: Context<'_>) -> Result<Address, TooDeep> {
        Ok(Address::derive(context, &self.encode()?))
    }

    /// The value's one encoding.
    pub fn encode(&self) -> Result<Vec<u8>, TooDeep> {
        let mut encoding = Vec::new();
        self.encode_into(&mut encoding)?;
        Ok(encoding)
    }

    /// Appends the value's one encoding; appends nothing if the value is too deep.
    pub fn encode_into(&self, into: &mut Vec<u8>) -> Result<(), TooDeep> {
        encode::append(self, into)
    }

    /// The addresses in an encoding, in order, without decoding the rest into a value.
    pub fn addresses_in(encoding: &[u8]) -> Result<Vec<Address>, DecodeError> {
        decode::addresses(encoding)
    }

    /// The value that has exactly this encoding.
    pub fn decode(encoding: &[u8]) -> Result<Value, DecodeError> {
        decode::whole(encoding)
    }
}

impl Eq for Value {}

impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Null, Value::Null) => true,
            (Value::Bool(one), Value::Bool(other)) => one == other,
            (Value::Int(one), Value::Int(other)) => one == other,
            (Value::Float(one), Value::Float(other)) => float_bits(*one) == float_bits(*other),
            (Value::Text(one), Value::Text(other)) => one == other,
            (Value::Bytes(one), Value::Bytes(other)) => one == other,
            (Value::Address(one), Value::Address(other)) => one == other,
            (Value::List(one), Value::List(other)) => one == other,
            (Value::Map(one), Value::Map(other)) => one == other,
            _ => false,
        }
    }
}

/// A float's bits in the encoding.
fn float_bits(float: f64) -> u64 {
    if float.is_nan() { NAN } else { float.to_bits() }
}

/// The one NaN of the encoding.
const NAN: u64 = 0x7ff8_0000_0000_0000;

/// The tags of an encoding: the first byte of each value. Code that writes or reads encodings without building a [`Value`]
/// uses them, too.
pub mod tag {
    /// Null.
    pub const NULL: u8 = 0;
    /// False.
    pub const FALSE: u8 = 1;
    /// True.
    pub const TRUE: u8 = 2;
    /// A whole number.
    pub const INT: u8 = 3;
    /// A number with a fraction.
    pub const FLOAT: u8 = 4;
    /// Text.
    pub const TEXT: u8 = 5;
    /// Any bytes.
    pub const BYTES: u8 = 6;
    /// An address.
    pub const ADDRESS: u8 = 7;
    /// A list.
    pub const LIST: u8 = 8;
    /// A map.
    pub const MAP: u8 = 9;
}
