//! Encodes bytes as text of few symbols (hex, base32, base64), and decodes it.

use bytes::Bytes;
use data_encoding::{BASE32, BASE64, DecodeKind, Encoding, HEXLOWER, HEXLOWER_PERMISSIVE};

use super::blocks::Blocks;
use crate::function::{Fault, Kernel, Out};
use crate::functions::kernels::{Begin, add_streamed, signature};
use crate::registry::Functions;
use crate::signature::Signature;

pub(super) fn add(functions: &mut Functions) {
    let rows: [(Signature, Begin); 6] = [
        (
            signature("base64_encode/1.0.0", "Base64 text: standard alphabet, padded.").nanos_per_kib(700),
            |_| Ok(EncodeKernel::begin(BASE64, 3)),
        ),
        (
            signature(
                "base64_decode/1.0.0",
                "The bytes of base64 text: standard alphabet, padded, no white space.",
            )
            .nanos_per_kib(700),
            |_| Ok(DecodeKernel::begin(BASE64, 4, "a base64 symbol")),
        ),
        (
            signature("base32_encode/1.0.0", "Base32 text (RFC 4648): upper case, padded.")
                .nanos_per_kib(900),
            |_| Ok(EncodeKernel::begin(BASE32, 5)),
        ),
        (
            signature(
                "base32_decode/1.0.0",
                "The bytes of base32 text (RFC 4648): upper case, padded, no white space.",
            )
            .nanos_per_kib(900),
            |_| Ok(DecodeKernel::begin(BASE32, 8, "a base32 symbol")),
        ),
        (signature("hex_encode/1.0.0", "Hex digits in lower case.").nanos_per_kib(500), |_| {
            Ok(EncodeKernel::begin(HEXLOWER, 1))
        }),
        (
            signature("hex_decode/1.0.0", "The bytes of hex digits in lower or upper case.")
                .nanos_per_kib(500),
            |_| Ok(DecodeKernel::begin(HEXLOWER_PERMISSIVE, 2, "a hex digit")),
        ),
    ];
    add_streamed(functions, rows);
}

struct EncodeKernel {
    encoding: Encoding,
    groups: Blocks,
}

impl EncodeKernel {
    fn begin(encoding: Encoding, group: usize) -> Box<dyn Kernel> {
        Box::new(EncodeKernel { encoding, groups: Blocks::new(group) })
    }
}

impl Kernel for EncodeKernel {
    fn push(&mut self, _: usize, chunk: Bytes, out: &mut Out) -> Result<(), Fault> {
        let encoding = &self.encoding;
        self.groups.take(&chunk, |groups| {
            encode(encoding, groups, out);
            Ok(())
        })
    }

    fn finish(&mut self, out: &mut Out) -> Result<(), Fault> {
        encode(&self.encoding, &self.groups.rest(), out);
        Ok(())
    }
}

fn encode(encoding: &Encoding, bytes: &[u8], out: &mut Out) {
    let mut text = vec![0; encoding.encode_len(bytes.len())];
    encoding.encode_mut(bytes, &mut text);
    out.push(text.into());
}

struct DecodeKernel {
    encoding: Encoding,
    /// The name of a symbol, for messages.
    symbol: &'static str,
    group: usize,
    groups: Blocks,
    /// The number of symbols decoded so far.
    seen: u64,
    /// The group with padding, which must be the last one.
    last: Option<Vec<u8>>,
}

impl DecodeKernel {
    fn begin(encoding: Encoding, group: usize, symbol: &'static str) -> Box<dyn Kernel> {
        let groups = Blocks::new(group);
        Box::new(DecodeKernel { encoding, symbol, group, groups, seen: 0, last: None })
    }

    fn decode_groups(&mut self, symbols: &[u8], out: &mut Out) -> Result<(), Fault> {
        let (encoding, symbol, seen) = (&self.encoding, self.symbol, &mut self.seen);
        self.groups.take(symbols, |groups| {
            let bytes = decode(encoding, groups).map_err(|fault| fault.at(*seen, groups, symbol))?;
            *seen += groups.len() as u64;
            out.push(bytes.into());
            Ok(())
        })
    }

    fn add_to_last(&mut self, symbols: &[u8]) -> Result<(), Fault> {
        let last = self.last.get_or_insert_default();
        last.extend_from_slice(&symbols[..symbols.len().min(self.group + 1 - last.len())]);
        if last.len() > self.group {
            let after = self.seen + self.group as u64;
            return Err(Fault::input(
                0,
                format!("byte {after}: something comes after the padding, which is the end"),
            ));
        }
        Ok(())
    }
}

impl Kernel for DecodeKernel {
    fn push(&mut self, _: usize, chunk: Bytes, out: &mut Out) -> Result<(), Fault> {
        if self.last.is_some() {
            return self.add_to_last(&chunk);
        }
        let padded = match self.group > 2 {
            true => memchr::memchr(b'=', &chunk),
            false => None,
        };
        self.decode_groups(&chunk[..padded.unwrap_or(chunk.len())], out)?;
        if let Some(padded) = padded {
            self.last = Some(self.groups.rest());
            self.add_to_last(&chunk[padded..])?;
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Out) -> Result<(), Fault> {
        let last = self.last.take().unwrap_or_else(|| self.groups.rest());
        if !last.is_empty() && last.len() < self.group {
            let (at, group) = (self.seen + last.len() as u64, self.group);
            return Err(Fault::input(0, format!("ends at byte {at}, inside a group of {group} symbols")));
        }
        let bytes = decode(&self.encoding, &last).map_err(|fault| fault.at(self.seen, &last, self.symbol))?;
        out.write(&bytes);
        Ok(())
    }
}

struct DecodeProblem(data_encoding::DecodeError);

impl DecodeProblem {
    fn at(&self, seen: u64, symbols: &[u8], symbol: &str) -> Fault {
        let at = seen + self.0.position as u64;
        let got = symbols.get(self.0.position).map_or(String::new(), |byte| byte.escape_ascii().to_string());
        Fault::input(
            0,
            match self.0.kind {
                DecodeKind::Symbol => format!("byte {at}: `{got}` is not {symbol}"),
                DecodeKind::Trailing => format!("byte {at}: `{got}` has spare bits that are not zero"),
                DecodeKind::Padding => format!("byte {at}: no such padding"),
                DecodeKind::Length => format!("ends at byte {at}, inside a group"),
            },
        )
    }
}

fn decode(encoding: &Encoding, symbols: &[u8]) -> Result<Vec<u8>, DecodeProblem> {
    encoding.decode(symbols).map_err(DecodeProblem)
}
