//! A Cluster's slots: the slot of a key, the servers of the slots, and replies that point to another server.

use super::sink::Value;

/// The number of slots in every Cluster.
pub(super) const COUNT: u16 = 16_384;

/// Slots of one server.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) first: u16,
    pub(super) last: u16,
    pub(super) address: (String, u16),
}

/// A reply that points to another server of the Cluster.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Redirect {
    /// The place of its command in the trip.
    pub(super) row: u32,
    /// Whether the slot is only being migrated there, so that the server needs an `ASKING`.
    pub(super) asking: bool,
    /// The host; empty if the server does not know its own name.
    pub(super) host: String,
    pub(super) port: u16,
    /// The server's message.
    pub(super) message: String,
}

impl Redirect {
    /// Reads `MOVED 3999 127.0.0.1:6381` or `ASK ..`.
    pub(super) fn parse(row: u32, message: &[u8]) -> Option<Redirect> {
        let asking = match message {
            [b'M', b'O', b'V', b'E', b'D', b' ', ..] => false,
            [b'A', b'S', b'K', b' ', ..] => true,
            _ => return None,
        };
        let message = str::from_utf8(message).ok()?;
        let (_, address) = message.rsplit_once(' ')?;
        let (host, port) = address.rsplit_once(':')?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Some(Redirect { row, asking, host, port: port.parse().ok()?, message: message.to_owned() })
    }
}

/// The slot of a key. Only `b` of `a{b}c` counts, so that related keys can have the same slot.
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

/// Reads the reply of the server at `host` to `CLUSTER SLOTS`.
pub(super) fn map(reply: &Value, host: &str) -> Result<Vec<Range>, String> {
    let ranges = match reply {
        Value::List(ranges) => ranges,
        Value::Error(message) => return Err(message.clone()),
        _ => return Err("the reply is not a map of slots".to_owned()),
    };
    let read = |range: &Value| {
        let Value::List(range) = range else { return None };
        let [Value::Int(first), Value::Int(last), Value::List(main), ..] = &range[..] else { return None };
        let [name, Value::Int(port), ..] = &main[..] else { return None };
        let name = match name {
            Value::Text(name) => str::from_utf8(name).ok()?,
            Value::Null => "",
            _ => return None,
        };
        // A server that does not know its own name has the one by which we reached it.
        let name = if name.is_empty() || name == "?" { host } else { name };
        let (first, last) = (u16::try_from(*first).ok()?, u16::try_from(*last).ok()?);
        let address = (name.to_owned(), u16::try_from(*port).ok()?);
        (first <= last && last < COUNT).then_some(Range { first, last, address })
    };
    let wrong = || "the reply is not a map of slots".to_owned();
    ranges.iter().map(|range| read(range).ok_or_else(wrong)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_redis() {
        // The results of `CLUSTER KEYSLOT`.
        assert_eq!(of(b"123456789"), 0x31c3);
        assert_eq!(of(b"foo"), 12_182);
        assert_eq!(of(b"{user1000}.following"), of(b"user1000"));
        assert_eq!(of(b"foo{}{bar}"), crc16(b"foo{}{bar}") % COUNT);
        assert_eq!(of(b"foo{{bar}}zap"), of(b"{bar"));
    }

    #[test]
    fn redirects_are_read() {
        let moved = Redirect::parse(3, b"MOVED 3999 [::1]:6381").unwrap();
        assert_eq!((moved.row, moved.asking, &*moved.host, moved.port), (3, false, "::1", 6381));
        let ask = Redirect::parse(0, b"ASK 3999 :6381").unwrap();
        assert_eq!((ask.asking, &*ask.host), (true, ""));
        for other in ["MOVED", "MOVED 1 nowhere", "MOVED 1 a:99999", "ASKED 1 a:1", "ERR MOVED 1 a:1"] {
            assert_eq!(Redirect::parse(0, other.as_bytes()), None, "{other}");
        }
    }
}
