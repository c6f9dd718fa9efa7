//! Compression and decompression.
//!
//! A decompressor requires its complete input. Truncated input and trailing bytes are errors.

use std::sync::Arc;

use bytes::Bytes;

use super::blocks::Blocks;
use super::codecs::{
    BrotliDecoder, BrotliEncoder, GzipEncoder, Pack, Step, Unpack, ZlibDecoder, ZlibEncoder, ZstdDecoder,
    ZstdEncoder,
};
use crate::budget::CallBudget;
use crate::function::{Call, Fault, Kernel, Out};
use crate::functions::kernels::{Begin, add_streamed, signature};
use crate::param::ParamKind;
use crate::registry::Functions;
use crate::signature::Signature;
use crate::whole::{Body, whole};

pub(super) fn add(functions: &mut Functions) {
    add_streamed(functions, streamed_packers());
    add_streamed(functions, streamed_unpackers());
    functions.add(whole(
        packs("lz4_compress/1.0.0", "The size as 4 bytes, little endian, then an LZ4 block.", 2000),
        |_| Ok(Box::new(|inputs, _| lz4(&inputs[0]))),
    ));
    functions.add(whole(
        unpacks("lz4_decompress/1.0.0", "The decompressed bytes of a size and an LZ4 block."),
        unlz4,
    ));
    functions.add(whole(packs("snappy_compress/1.0.0", "A raw snappy block.", 2000), |_| {
        Ok(Box::new(|inputs, _| snappy(&inputs[0])))
    }));
    functions.add(whole(
        unpacks("snappy_decompress/1.0.0", "The decompressed bytes of a raw snappy block."),
        unsnappy,
    ));
}

fn streamed_packers() -> [(Signature, Begin); 4] {
    [
        (packs("compress/1.0.0", "A zlib stream of level 6.", DEFLATE_NANOS), |call| {
            Ok(packed(ZlibEncoder::new(6), call))
        }),
        (
            packs("gzip_compress/1.0.0", "A gzip stream without a file name and a time.", DEFLATE_NANOS).may(
                "level",
                ParamKind::int(1, 9),
                6,
                "1 is fast, 9 is small",
            ),
            |call| Ok(packed(GzipEncoder::new(call.number("level")?), call)),
        ),
        (
            packs(
                "zstd_compress/1.0.0",
                "A zstd frame without size and checksum, with a window of at most 8 MiB.",
                COSTLY,
            )
            .may("level", ParamKind::int(1, 22), 3, "1 is fast, 22 is small"),
            |call| Ok(packed(ZstdEncoder::new(call.number("level")?, call.budget)?, call)),
        ),
        (
            packs("brotli_compress/1.0.0", "A brotli stream with a window of 4 MiB.", COSTLY).may(
                "quality",
                ParamKind::int(0, 11),
                6,
                "0 is fast, 11 is small",
            ),
            |call| {
                let (quality, len) = (call.number("quality")?, call.sizes[0]);
                Ok(packed(BrotliEncoder::new(quality, len, call.budget)?, call))
            },
        ),
    ]
}

fn streamed_unpackers() -> [(Signature, Begin); 4] {
    [
        (unpacks("decompress/1.0.0", "The decompressed bytes of one zlib stream."), |call| {
            unpacked(ZlibDecoder::zlib(), call)
        }),
        (
            unpacks("gzip_decompress/1.0.0", "The decompressed bytes of all members of a gzip stream."),
            |call| unpacked(ZlibDecoder::gzip(), call),
        ),
        (
            unpacks(
                "zstd_decompress/1.0.0",
                "The decompressed bytes of all zstd frames. A window has at most 128 MiB.",
            ),
            |call| unpacked(ZstdDecoder::new(call.budget)?, call),
        ),
        (
            unpacks(
                "brotli_decompress/1.0.0",
                "The decompressed bytes of a brotli stream. The window has at most 16 MiB.",
            ),
            |call| unpacked(BrotliDecoder::new(call.sizes[0], call.budget)?, call),
        ),
    ]
}

/// The cost is unknown in advance: the call sets the compression level, and an input may decompress to a thousand times
/// its size.
const COSTLY: u32 = Signature::OPAQUE;

/// The cost of deflate per KiB, at its highest levels.
const DEFLATE_NANOS: u32 = 50_000;

/// The memory of deflate and inflate: window, tables and buffers.
const DEFLATE: u64 = 512 << 10;

fn packs(id: &'static str, about: &'static str, nanos: u32) -> Signature {
    signature(id, about).nanos_per_kib(nanos).base_memory(DEFLATE).builds_tables()
}

fn unpacks(id: &'static str, about: &'static str) -> Signature {
    let mut signature = signature(id, about).bounds_output().nanos_per_kib(COSTLY).base_memory(DEFLATE);
    signature.about =
        format!("{about} A truncated stream is an error, and so are bytes after its end.").into();
    signature
}

/// The block size in which compressors receive their input. The output of some compressors depends on how the input is
/// split, so the blocks have a fixed size.
const BLOCK: usize = 64 << 10;

fn packed(codec: impl Pack + 'static, call: &Call<'_>) -> Box<dyn Kernel> {
    Box::new(PackKernel { codec, blocks: Blocks::new(BLOCK), budget: Arc::clone(call.budget) })
}

/// Checks its budget before each block. A codec gathers blocks on its own, and then works on up to 128 KiB (zstd) or 256
/// KiB (brotli) at once: up to half a second at its highest level.
struct PackKernel<C> {
    codec: C,
    blocks: Blocks,
    budget: Arc<CallBudget>,
}

impl<C: Pack> Kernel for PackKernel<C> {
    fn push(&mut self, _: usize, chunk: Bytes, out: &mut Out) -> Result<(), Fault> {
        let PackKernel { codec, blocks, budget } = self;
        blocks.take(&chunk, |blocks| {
            blocks.chunks(BLOCK).try_for_each(|block| {
                budget.check()?;
                codec.pack(block, out)
            })
        })
    }

    fn finish(&mut self, out: &mut Out) -> Result<(), Fault> {
        let rest = self.blocks.rest();
        if !rest.is_empty() {
            self.codec.pack(&rest, out)?;
            self.budget.check()?;
        }
        self.codec.end(out)
    }
}

/// The size of a decompressor's output buffer.
const PIECE: usize = 64 << 10;

fn unpacked(codec: impl Unpack + 'static, call: &Call<'_>) -> Result<Box<dyn Kernel>, Fault> {
    let (piece, chunk) = (vec![0; PIECE], Bytes::new());
    let unpacked =
        UnpackKernel { codec, piece, chunk, read: 0, written: 0, ended: false, most: call.max_bytes()? };
    Ok(Box::new(unpacked))
}

struct UnpackKernel<C> {
    codec: C,
    piece: Vec<u8>,
    /// Input that has not been decompressed yet.
    chunk: Bytes,
    read: u64,
    written: u64,
    /// Whether the current stream was read to its end.
    ended: bool,
    most: u64,
}

impl<C: Unpack> Kernel for UnpackKernel<C> {
    fn push(&mut self, _: usize, chunk: Bytes, out: &mut Out) -> Result<(), Fault> {
        self.chunk = chunk;
        self.resume(out)
    }

    fn resume(&mut self, out: &mut Out) -> Result<(), Fault> {
        loop {
            if out.is_full() {
                out.pause();
                return Ok(());
            }
            if self.ended {
                if self.chunk.is_empty() {
                    return Ok(());
                }
                if !self.codec.begin_again() {
                    let problem = format!("byte {}: something comes after the end of the stream", self.read);
                    return Err(Fault::input(0, problem));
                }
                self.ended = false;
            }
            let Step { read, written, ended } = self.codec.step(&self.chunk, &mut self.piece)?;
            bytes::Buf::advance(&mut self.chunk, read);
            self.ended = ended;
            self.read += read as u64;
            self.written += written as u64;
            if self.written > self.most {
                return Err(Fault::TooLarge { what: "the output", most: self.most });
            }
            out.write(&self.piece[..written]);
            if !ended && self.chunk.is_empty() && written < self.piece.len() {
                return Ok(());
            }
            if (read, written, ended) == (0, 0, false) {
                return Err(Fault::input(0, "is corrupt: the decompressor neither reads nor writes"));
            }
        }
    }

    fn finish(&mut self, _: &mut Out) -> Result<(), Fault> {
        match self.ended {
            true => Ok(()),
            false => Err(Fault::input(0, format!("ends at byte {}, before the stream does", self.read))),
        }
    }
}

fn lz4(input: &[u8]) -> Result<Bytes, Fault> {
    if u32::try_from(input.len()).is_err() {
        return Err(Fault::input(
            0,
            format!("has {} bytes, an LZ4 block has at most {}", input.len(), u32::MAX),
        ));
    }
    Ok(lz4_flex::block::compress_prepend_size(input).into())
}

fn unlz4(call: &Call<'_>) -> Result<Body, Fault> {
    let most = call.max_bytes()?;
    Ok(Box::new(move |inputs, budget| {
        let corrupt = |problem: &str| Fault::input(0, format!("is not a size and an LZ4 block: {problem}"));
        let Some((size, block)) = inputs[0].split_first_chunk::<4>() else {
            return Err(corrupt("it has fewer than 4 bytes"));
        };
        let size = declared(u64::from(u32::from_le_bytes(*size)), most, block.len(), 255)?;
        budget.claim(size as u64)?;
        let bytes = lz4_flex::block::decompress(block, size).map_err(|error| corrupt(&error.to_string()))?;
        match bytes.len() == size {
            true => Ok(bytes.into()),
            false => Err(corrupt(&format!("it says {size} bytes and has {}", bytes.len()))),
        }
    }))
}

fn snappy(input: &[u8]) -> Result<Bytes, Fault> {
    let packed = snap::raw::Encoder::new().compress_vec(input);
    packed.map(Bytes::from).map_err(|error| Fault::input(0, error.to_string()))
}

fn unsnappy(call: &Call<'_>) -> Result<Body, Fault> {
    let most = call.max_bytes()?;
    Ok(Box::new(move |inputs, budget| {
        let corrupt = |error: snap::Error| Fault::input(0, format!("is not a snappy block: {error}"));
        if inputs[0].is_empty() {
            return Err(Fault::input(0, "is not a snappy block: it is empty"));
        }
        let size = snap::raw::decompress_len(&inputs[0]).map_err(corrupt)?;
        let size = declared(size as u64, most, inputs[0].len(), 64)?;
        budget.claim(size as u64)?;
        snap::raw::Decoder::new().decompress_vec(&inputs[0]).map(Bytes::from).map_err(corrupt)
    }))
}

/// Checks a size that the input declares, before memory is allocated for it. `packed` bytes decompress to at most
/// `ratio` times as many.
fn declared(size: u64, most: u64, packed: usize, ratio: u64) -> Result<usize, Fault> {
    if size > packed as u64 * ratio {
        return Err(Fault::input(
            0,
            format!("declares {size} bytes, more than {packed} compressed bytes can hold"),
        ));
    }
    match usize::try_from(size) {
        Ok(len) if size <= most => Ok(len),
        _ => Err(Fault::TooLarge { what: "the output", most }),
    }
}
