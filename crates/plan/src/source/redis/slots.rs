//! A Cluster's slots: which one a key is in, and who has which.

use redis::Value;

/// How many there are.
pub(super) const COUNT: u16 = 16_384;

/// Slots of one server.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) first: u16,
    pub(super) last: u16,
    pub(super) address: (String, u16),
}

/// The slot of a key. Of `a{b}c` only `b` counts, so that keys can be kept together.
pub(super) fn of(key: &[u8]) -> u16 {
    let tag = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let rest = &key[open + 1..];
        let close = rest.iter().position(|byte| *byte == b'}')?;
        (close > 0).then(|| &rest[..close])
    });
    crc16(tag.unwrap_or(key)) % COUNT
}

/// CRC-16/XMODEM.
fn crc16(bytes: &[u8]) -> u16 {
    const TABLE: [u16; 256] = table();
    bytes.iter().fold(0, |crc, byte| (crc << 8) ^ TABLE[usize::from((crc >> 8) as u8 ^ byte)])
}

const fn table() -> [u16; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

/// Reads the answer to `CLUSTER SLOTS` of the server at `host`.
pub(super) fn map(answer: &Value, host: &str) -> Result<Vec<Range>, String> {
    let wrong = || format!("an answer that is no map of slots: {answer:?}");
    let ranges = match answer {
        Value::Array(ranges) => ranges,
        Value::ServerError(error) => return Err(super::servers::said(error)),
        _ => return Err(wrong()),
    };
    let read = |range: &Value| {
        let Value::Array(range) = range else { return None };
        let [Value::Int(first), Value::Int(last), Value::Array(main), ..] = &range[..] else { return None };
        let [name, Value::Int(port), ..] = &main[..] else { return None };
        let name = match name {
            Value::BulkString(name) => str::from_utf8(name).ok()?,
            Value::SimpleString(name) => name,
            Value::Nil => "",
            _ => return None,
        };
        // A server that does not know its own name is where we asked.
        let name = if name.is_empty() || name == "?" { host } else { name };
        let (first, last) = (u16::try_from(*first).ok()?, u16::try_from(*last).ok()?);
        let address = (name.to_owned(), u16::try_from(*port).ok()?);
        (first <= last && last < COUNT).then_some(Range { first, last, address })
    };
    ranges.iter().map(|range| read(range).ok_or_else(wrong)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_redis() {
        // As `CLUSTER KEYSLOT` says.
        assert_eq!(of(b"123456789"), 0x31c3);
        assert_eq!(of(b"foo"), 12_182);
        assert_eq!(of(b"{user1000}.following"), of(b"user1000"));
        assert_eq!(of(b"foo{}{bar}"), crc16(b"foo{}{bar}") % COUNT);
        assert_eq!(of(b"foo{{bar}}zap"), of(b"{bar"));
    }
}
