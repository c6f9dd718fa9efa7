//! Encodes a value.

use super::{Value, float_bits, tag};

/// A value has more lists and maps around each other than an encoding may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("lists and maps are more than {} deep", Value::DEPTH_LIMIT)]
pub struct TooDeep;

pub(super) fn append(value: &Value, into: &mut Vec<u8>) -> Result<(), TooDeep> {
    let before = into.len();
    into.push(Value::ENCODING_VERSION);
    let outcome = put(value, Value::DEPTH_LIMIT, into);
    if outcome.is_err() {
        into.truncate(before);
    }
    outcome
}

fn put(value: &Value, depth_left: usize, into: &mut Vec<u8>) -> Result<(), TooDeep> {
    match value {
        Value::Null => into.push(tag::NULL),
        Value::Bool(false) => into.push(tag::FALSE),
        Value::Bool(true) => into.push(tag::TRUE),
        Value::Int(int) => put_fixed(tag::INT, &int.to_be_bytes(), into),
        Value::Float(float) => put_fixed(tag::FLOAT, &float_bits(*float).to_be_bytes(), into),
        Value::Text(text) => put_counted(tag::TEXT, text.as_bytes(), into),
        Value::Bytes(bytes) => put_counted(tag::BYTES, bytes, into),
        Value::Address(address) => put_fixed(tag::ADDRESS, address.as_bytes(), into),
        Value::List(list) => {
            let depth_left = depth_left.checked_sub(1).ok_or(TooDeep)?;
            into.push(tag::LIST);
            put_count(list.len(), into);
            for value in list {
                put(value, depth_left, into)?;
            }
        }
        Value::Map(map) => {
            let depth_left = depth_left.checked_sub(1).ok_or(TooDeep)?;
            into.push(tag::MAP);
            put_count(map.len(), into);
            for (key, value) in map {
                put_count(key.len(), into);
                into.extend_from_slice(key.as_bytes());
                put(value, depth_left, into)?;
            }
        }
    }
    Ok(())
}

fn put_fixed(tag: u8, bytes: &[u8], into: &mut Vec<u8>) {
    into.push(tag);
    into.extend_from_slice(bytes);
}

fn put_counted(tag: u8, bytes: &[u8], into: &mut Vec<u8>) {
    into.push(tag);
    put_count(bytes.len(), into);
    into.extend_from_slice(bytes);
}

fn put_count(count: usize, into: &mut Vec<u8>) {
    into.extend_from_slice(&(count as u64).to_be_bytes());
}
