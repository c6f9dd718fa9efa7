//! Converts text from one character encoding to another.

use bytes::Bytes;
use encoding_rs::{Decoder, DecoderResult, Encoder, EncoderResult, Encoding, UTF_16BE, UTF_16LE};

use crate::function::{Call, Fault, Kernel, Out};
use crate::functions::kernels::{StreamingFunction, signature};
use crate::param::ParamKind;
use crate::registry::Functions;

pub(super) fn add(functions: &mut Functions) {
    let about = "The text in another character encoding. A byte order mark of `from` is removed; one of \
        another encoding has no effect. A character that `to` lacks is an error. UTF-16 output has no byte \
        order mark.";
    functions.add(StreamingFunction(
        signature("charset_convert/1.0.0", about)
            .needs("from", ParamKind::Text, LABEL)
            .needs("to", ParamKind::Text, LABEL)
            .nanos_per_kib(600),
        begin,
    ));
}

const LABEL: &str =
    "a label of the WHATWG encoding standard, such as utf-8, utf-16le, latin1 (which is windows-1252)";

/// The maximum number of bytes decoded at a time.
const PIECE: usize = 32 << 10;

fn begin(call: &Call<'_>) -> Result<Box<dyn Kernel>, Fault> {
    let (from, to) = (encoding(call, "from")?, encoding(call, "to")?);
    let target = match to {
        _ if to == UTF_16LE => Target::Utf16(u16::to_le_bytes),
        _ if to == UTF_16BE => Target::Utf16(u16::to_be_bytes),
        _ => Target::Other(to.new_encoder()),
    };
    let text = String::with_capacity(PIECE);
    Ok(Box::new(CharsetKernel {
        from,
        decoder: from.new_decoder_with_bom_removal(),
        to,
        target,
        text,
        seen: 0,
        ended: false,
    }))
}

fn encoding(call: &Call<'_>, name: &str) -> Result<&'static Encoding, Fault> {
    let label = call.text(name)?;
    Encoding::for_label_no_replacement(label.as_bytes())
        .ok_or_else(|| Fault::param(name, format!("{label:?} is not {LABEL}")))
}

struct CharsetKernel {
    from: &'static Encoding,
    decoder: Decoder,
    to: &'static Encoding,
    target: Target,
    text: String,
    /// Bytes decoded so far.
    seen: u64,
    ended: bool,
}

enum Target {
    Utf16(fn(u16) -> [u8; 2]),
    Other(Encoder),
}

impl CharsetKernel {
    fn convert(&mut self, mut bytes: &[u8], out: &mut Out) -> Result<(), Fault> {
        loop {
            self.text.clear();
            let (result, read) =
                self.decoder.decode_to_string_without_replacement(bytes, &mut self.text, self.ended);
            bytes = &bytes[read..];
            self.seen += read as u64;
            self.encode(self.ended && result == DecoderResult::InputEmpty, out)?;
            match result {
                DecoderResult::InputEmpty => return Ok(()),
                DecoderResult::OutputFull => {}
                DecoderResult::Malformed(wrong, after) => {
                    let at = self.seen - u64::from(wrong) - u64::from(after);
                    return Err(Fault::input(0, format!("byte {at}: not {}", self.from.name())));
                }
            }
        }
    }

    fn encode(&mut self, last: bool, out: &mut Out) -> Result<(), Fault> {
        let encoder = match &mut self.target {
            Target::Utf16(bytes) => {
                let units: Vec<u8> = self.text.encode_utf16().flat_map(bytes).collect();
                out.push(units.into());
                return Ok(());
            }
            Target::Other(encoder) => encoder,
        };
        let mut text = self.text.as_str();
        loop {
            let mut encoded = Vec::with_capacity(text.len() + 16);
            let (result, read) =
                encoder.encode_from_utf8_to_vec_without_replacement(text, &mut encoded, last);
            text = &text[read..];
            out.push(encoded.into());
            match result {
                EncoderResult::InputEmpty => return Ok(()),
                EncoderResult::OutputFull => {}
                EncoderResult::Unmappable(character) => {
                    let (code, to) = (u32::from(character), self.to.name());
                    return Err(Fault::input(0, format!("{to} has no {character:?} (U+{code:04X})")));
                }
            }
        }
    }
}

impl Kernel for CharsetKernel {
    fn push(&mut self, _: usize, chunk: Bytes, out: &mut Out) -> Result<(), Fault> {
        self.convert(&chunk, out)
    }

    fn finish(&mut self, out: &mut Out) -> Result<(), Fault> {
        self.ended = true;
        self.convert(&[], out)
    }
}
