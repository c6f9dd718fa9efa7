//! The streaming compressors and decompressors, behind two common traits.

use std::io::{self, Write};
use std::sync::Arc;

use brotli::enc::StandardAlloc;
use brotli::{BrotliDecompressStream, BrotliResult, BrotliState, CompressorWriter};
use zlib_rs::{Deflate, DeflateFlush, Inflate, InflateError, InflateFlush, Status};
use zstd::stream::raw::{CParameter, DParameter, Decoder, Encoder, Operation, OutBuffer};

use crate::budget::CallBudget;
use crate::function::{Fault, Out};

/// A compressor.
pub(super) trait Pack: Send {
    fn pack(&mut self, block: &[u8], out: &mut Out) -> Result<(), Fault>;
    fn end(&mut self, out: &mut Out) -> Result<(), Fault>;
}

/// A decompressor.
pub(super) trait Unpack: Send {
    /// Reads input and writes output. A step that neither fills `piece` nor ends the stream has read all of `input`.
    fn step(&mut self, input: &[u8], piece: &mut [u8]) -> Result<Step, Fault>;

    /// Starts another stream after the one that ended. Returns false if the format does not allow one.
    fn begin_again(&mut self) -> bool {
        false
    }
}

/// The progress of one step, and whether the stream ended.
pub(super) struct Step {
    pub(super) read: usize,
    pub(super) written: usize,
    pub(super) ended: bool,
}

/// The size of a compressor's output buffer.
const PIECE: usize = 32 << 10;

/// The largest deflate window, as a power of two.
const WINDOW: u8 = 15;

pub(super) struct ZlibEncoder {
    deflate: Deflate,
    piece: Vec<u8>,
}

impl ZlibEncoder {
    pub(super) fn new(level: i32) -> ZlibEncoder {
        ZlibEncoder { deflate: Deflate::new(level, true, WINDOW), piece: vec![0; PIECE] }
    }

    fn run(&mut self, mut input: &[u8], flush: DeflateFlush, out: &mut Out) -> Result<(), Fault> {
        loop {
            let (read, written) = (self.deflate.total_in(), self.deflate.total_out());
            let status = self.deflate.compress(input, &mut self.piece, flush);
            let status = status.map_err(|error| Fault::input(0, error.as_str()))?;
            input = &input[(self.deflate.total_in() - read) as usize..];
            let written = (self.deflate.total_out() - written) as usize;
            out.write(&self.piece[..written]);
            if status == Status::StreamEnd || (input.is_empty() && written < PIECE) {
                return Ok(());
            }
        }
    }
}

impl Pack for ZlibEncoder {
    fn pack(&mut self, block: &[u8], out: &mut Out) -> Result<(), Fault> {
        self.run(block, DeflateFlush::NoFlush, out)
    }

    fn end(&mut self, out: &mut Out) -> Result<(), Fault> {
        self.run(&[], DeflateFlush::Finish, out)
    }
}

/// A single gzip member with a minimal header.
pub(super) struct GzipEncoder {
    header: [u8; 10],
    begun: bool,
    raw: ZlibEncoder,
    crc32: crc32fast::Hasher,
    len: u32,
}

impl GzipEncoder {
    pub(super) fn new(level: u64) -> GzipEncoder {
        let strength = match level {
            1 => 4,
            9 => 2,
            _ => 0,
        };
        let raw = ZlibEncoder { deflate: Deflate::new(level as i32, false, WINDOW), piece: vec![0; PIECE] };
        let header = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, strength, 255];
        GzipEncoder { header, begun: false, raw, crc32: crc32fast::Hasher::new(), len: 0 }
    }

    fn begin(&mut self, out: &mut Out) {
        if !std::mem::replace(&mut self.begun, true) {
            out.write(&self.header);
        }
    }
}

impl Pack for GzipEncoder {
    fn pack(&mut self, block: &[u8], out: &mut Out) -> Result<(), Fault> {
        self.begin(out);
        self.crc32.update(block);
        // The format keeps the length modulo 2^32.
        self.len = self.len.wrapping_add(block.len() as u32);
        self.raw.pack(block, out)
    }

    fn end(&mut self, out: &mut Out) -> Result<(), Fault> {
        self.begin(out);
        self.raw.end(out)?;
        out.write(&self.crc32.clone().finalize().to_le_bytes());
        out.write(&self.len.to_le_bytes());
        Ok(())
    }
}

pub(super) struct ZstdEncoder {
    encoder: Encoder<'static>,
    piece: Vec<u8>,
}

impl ZstdEncoder {
    /// The window and tables of level 19, as powers of two. Higher levels would use hundreds of megabytes.
    const WINDOW: u32 = 23;
    const CHAIN: u32 = 24;
    const HASH: u32 = 22;

    /// The memory of each compression level from 1 in MiB: window, tables and buffers, for an input of unknown size.
    const MEMORY: [u64; 22] =
        [3, 4, 5, 6, 7, 7, 10, 10, 17, 27, 27, 47, 39, 55, 71, 40, 60, 60, 92, 92, 92, 92];

    fn memory(level: u64) -> u64 {
        ZstdEncoder::MEMORY[level as usize - 1] << 20
    }

    /// The parameters of a compression level.
    fn parameters(level: u64) -> Vec<CParameter> {
        let mut parameters = vec![CParameter::CompressionLevel(level as i32)];
        if level > 19 {
            parameters.push(CParameter::WindowLog(ZstdEncoder::WINDOW));
            parameters.push(CParameter::ChainLog(ZstdEncoder::CHAIN));
            parameters.push(CParameter::HashLog(ZstdEncoder::HASH));
        }
        parameters
    }

    pub(super) fn new(level: u64, budget: &CallBudget) -> Result<ZstdEncoder, Fault> {
        budget.claim(ZstdEncoder::memory(level))?;
        let begin = || {
            let mut encoder = Encoder::new(level as i32)?;
            for parameter in ZstdEncoder::parameters(level) {
                encoder.set_parameter(parameter)?;
            }
            Ok(encoder)
        };
        let encoder = begin().map_err(|error: io::Error| Fault::Transient(error.to_string()))?;
        Ok(ZstdEncoder { encoder, piece: vec![0; PIECE] })
    }
}

impl Pack for ZstdEncoder {
    fn pack(&mut self, mut block: &[u8], out: &mut Out) -> Result<(), Fault> {
        while !block.is_empty() {
            let status = self.encoder.run_on_buffers(block, &mut self.piece);
            let status = status.map_err(|error| Fault::input(0, error.to_string()))?;
            block = &block[status.bytes_read..];
            out.write(&self.piece[..status.bytes_written]);
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Out) -> Result<(), Fault> {
        loop {
            let mut piece = OutBuffer::around(&mut self.piece[..]);
            let left = self.encoder.finish(&mut piece, true);
            let left = left.map_err(|error| Fault::input(0, error.to_string()))?;
            out.write(piece.as_slice());
            if left == 0 {
                return Ok(());
            }
        }
    }
}

pub(super) struct BrotliEncoder(Option<CompressorWriter<Vec<u8>>>);

impl BrotliEncoder {
    /// The tables of each quality level from 0, in MiB. A short input takes no more.
    const TABLES: [u64; 12] = [1, 1, 1, 1, 1, 2, 3, 9, 17, 35, 35, 35];

    /// The length up to which an input is short.
    const SHORT: u64 = 8 << 10;

    /// The memory of a quality level with a window of 4 MiB, for an input of this length; `u64::MAX` if it is unknown.
    /// The matches of a block are collected before they are written; from quality 10 on, all ways to match 256 KiB are
    /// weighed at once.
    fn memory(quality: u64, len: u64) -> u64 {
        const MIB: u64 = 1 << 20;
        let tables = BrotliEncoder::TABLES[quality as usize] * MIB;
        match quality {
            _ if len <= BrotliEncoder::SHORT => tables,
            0..=1 => tables,
            2..=9 => tables + 9 * MIB + 8 * len.min(6 * MIB),
            _ => tables + 9 * MIB + 8 * len.min(6 * MIB) + 128 * len.min(MIB / 4),
        }
    }

    pub(super) fn new(quality: u64, len: u64, budget: &CallBudget) -> Result<BrotliEncoder, Fault> {
        const WINDOW: u32 = 22;
        budget.claim(BrotliEncoder::memory(quality, len))?;
        Ok(BrotliEncoder(Some(CompressorWriter::new(Vec::new(), PIECE, quality as u32, WINDOW))))
    }
}

impl Pack for BrotliEncoder {
    fn pack(&mut self, block: &[u8], out: &mut Out) -> Result<(), Fault> {
        let writer = self.0.as_mut().expect("nothing comes after the end");
        writer.write_all(block).map_err(|error| Fault::input(0, error.to_string()))?;
        out.push(std::mem::take(writer.get_mut()).into());
        Ok(())
    }

    fn end(&mut self, out: &mut Out) -> Result<(), Fault> {
        let writer = self.0.take().expect("nothing comes after the end");
        out.push(writer.into_inner().into());
        Ok(())
    }
}

/// A decompressor for zlib or gzip.
pub(super) struct ZlibDecoder {
    inflate: Inflate,
    /// Starts the next member of a gzip stream. A zlib stream has no further members.
    again: Option<fn() -> Inflate>,
    name: &'static str,
}

impl ZlibDecoder {
    pub(super) fn zlib() -> ZlibDecoder {
        ZlibDecoder { inflate: Inflate::new(true, WINDOW), again: None, name: "zlib" }
    }

    pub(super) fn gzip() -> ZlibDecoder {
        // Adding 16 to the window size selects gzip's header and checksum.
        let begin = || Inflate::new(true, WINDOW + 16);
        ZlibDecoder { inflate: begin(), again: Some(begin), name: "gzip" }
    }
}

impl Unpack for ZlibDecoder {
    fn step(&mut self, input: &[u8], piece: &mut [u8]) -> Result<Step, Fault> {
        let (read, written) = (self.inflate.total_in(), self.inflate.total_out());
        let status = self.inflate.decompress(input, piece, InflateFlush::NoFlush);
        let status = status.map_err(|error| match error {
            InflateError::NeedDict { .. } => Fault::input(0, "needs a dictionary, which is not supported"),
            _ => Fault::input(0, format!("is not a {} stream: corrupt", self.name)),
        })?;
        Ok(Step {
            read: (self.inflate.total_in() - read) as usize,
            written: (self.inflate.total_out() - written) as usize,
            ended: status == Status::StreamEnd,
        })
    }

    fn begin_again(&mut self) -> bool {
        match self.again {
            Some(again) => {
                self.inflate = again();
                true
            }
            None => false,
        }
    }
}

/// A zstd decompressor. A frame takes memory for its window, whose size is in the frame header. The decoder refuses
/// windows larger than the grant, and the call is then repeated with a larger grant.
pub(super) struct ZstdDecoder {
    decoder: Decoder<'static>,
    window: u32,
    budget: Arc<CallBudget>,
}

impl ZstdDecoder {
    /// The smallest window that memory is claimed for, and the largest that is accepted, as powers of two.
    const LEAST: u32 = 21;
    const MOST: u32 = 27;

    /// The memory of a decoder: the window, and less than 1 MiB for tables and buffers.
    fn memory(window: u32) -> u64 {
        (1 << window) + (1 << 20)
    }

    pub(super) fn new(budget: &Arc<CallBudget>) -> Result<ZstdDecoder, Fault> {
        let is_granted = |window: &u32| ZstdDecoder::memory(*window) <= budget.granted();
        let window =
            (ZstdDecoder::LEAST..=ZstdDecoder::MOST).rev().find(is_granted).unwrap_or(ZstdDecoder::LEAST);
        budget.claim(ZstdDecoder::memory(window))?;
        let begin = || {
            let mut decoder = Decoder::new()?;
            decoder.set_parameter(DParameter::WindowLogMax(window))?;
            Ok(decoder)
        };
        let decoder = begin().map_err(|error: io::Error| Fault::Transient(error.to_string()))?;
        Ok(ZstdDecoder { decoder, window, budget: Arc::clone(budget) })
    }

    fn fault(&self, error: &io::Error) -> Fault {
        if !error.to_string().contains("too much memory") {
            return Fault::input(0, format!("is not a zstd stream: {error}"));
        }
        match self.window < ZstdDecoder::MOST {
            true => {
                Fault::Memory { needed: ZstdDecoder::memory(self.window + 1), granted: self.budget.granted() }
            }
            false => Fault::input(
                0,
                "has a frame with a window of more than 128 MiB; compress it with a smaller window \
                 (`zstd --long=27` or less)",
            ),
        }
    }
}

impl Unpack for ZstdDecoder {
    fn step(&mut self, input: &[u8], piece: &mut [u8]) -> Result<Step, Fault> {
        let status = self.decoder.run_on_buffers(input, piece);
        let status = status.map_err(|error| self.fault(&error))?;
        Ok(Step { read: status.bytes_read, written: status.bytes_written, ended: status.remaining == 0 })
    }

    fn begin_again(&mut self) -> bool {
        true
    }
}

/// A brotli decompressor. A stream takes memory for its window, whose size is in its first byte.
pub(super) struct BrotliDecoder {
    state: Box<BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>>,
    has_begun: bool,
    budget: Arc<CallBudget>,
}

impl BrotliDecoder {
    /// The most memory for tables, and the memory per byte of input: a table takes several bits of it.
    const TABLES: u64 = 4 << 20;
    const TABLES_PER_BYTE: u64 = 16 << 10;

    /// For a stream of `len` bytes; `u64::MAX` if that is unknown.
    pub(super) fn new(len: u64, budget: &Arc<CallBudget>) -> Result<BrotliDecoder, Fault> {
        budget.claim(
            len.saturating_mul(BrotliDecoder::TABLES_PER_BYTE).clamp(256 << 10, BrotliDecoder::TABLES),
        )?;
        let alloc = StandardAlloc::default;
        let state = Box::new(BrotliState::new_strict(alloc(), alloc(), alloc()));
        Ok(BrotliDecoder { state, has_begun: false, budget: Arc::clone(budget) })
    }

    /// The window of a stream that begins with this byte, as a power of two (RFC 7932, 9.1).
    fn window(first: u8) -> u32 {
        let (low, high) = (u32::from(first >> 1 & 7), u32::from(first >> 4 & 7));
        match (first & 1, low, high) {
            (0, ..) => 16,
            (_, 0, 0) => 17,
            // Not a window of a stream: the decoder refuses it.
            (_, 0, 1) => 10,
            (_, 0, high) => 8 + high,
            (_, low, _) => 17 + low,
        }
    }
}

impl Unpack for BrotliDecoder {
    fn step(&mut self, input: &[u8], piece: &mut [u8]) -> Result<Step, Fault> {
        if let Some(first) = input.first().filter(|_| !self.has_begun) {
            self.budget.claim(1 << BrotliDecoder::window(*first))?;
            self.has_begun = true;
        }
        let (mut unread, mut read) = (input.len(), 0);
        let (mut unwritten, mut written, mut total) = (piece.len(), 0, 0);
        let result = BrotliDecompressStream(
            &mut unread,
            &mut read,
            input,
            &mut unwritten,
            &mut written,
            piece,
            &mut total,
            &mut self.state,
        );
        match result {
            BrotliResult::ResultFailure => Err(Fault::input(0, "is not a brotli stream: corrupt")),
            BrotliResult::ResultSuccess => Ok(Step { read, written, ended: true }),
            BrotliResult::NeedsMoreInput | BrotliResult::NeedsMoreOutput => {
                Ok(Step { read, written, ended: false })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use zstd::zstd_safe::{CCtx, DCtx, InBuffer};

    use super::*;

    /// The claim for a stream is for the window that its compressor has chosen.
    #[test]
    fn the_window_of_a_brotli_stream_is_in_its_first_byte() {
        for window in 10..=24 {
            let mut writer = CompressorWriter::new(Vec::new(), 1 << 10, 5, window);
            writer.write_all(b"a few bytes").unwrap();
            assert_eq!(BrotliDecoder::window(writer.into_inner()[0]), window);
        }
    }

    /// The claims are compared to the sizes that the library reports, since its allocations are not counted elsewhere.
    #[test]
    fn zstd_takes_the_memory_that_is_claimed() {
        let input = vec![7; 64 << 10];
        let mut output = vec![0; 256 << 10];
        for level in 1..=22 {
            let mut context = CCtx::create();
            for parameter in ZstdEncoder::parameters(level) {
                context.set_parameter(parameter).unwrap();
            }
            let mut buffer = OutBuffer::around(&mut output[..]);
            context.compress_stream(&mut buffer, &mut InBuffer::around(&input)).unwrap();
            let (held, claimed) = (context.sizeof() as u64, ZstdEncoder::memory(level));
            assert!(
                held <= claimed && claimed < held + (4 << 20),
                "level {level}: {held}, claimed {claimed}"
            );
        }
        for window in ZstdDecoder::LEAST..=ZstdDecoder::MOST {
            // A frame with this window and one empty block, which is not the last.
            let frame = [0x28, 0xb5, 0x2f, 0xfd, 0, ((window - 10) << 3) as u8, 0, 0, 0];
            let mut context = DCtx::create();
            context.set_parameter(DParameter::WindowLogMax(window)).unwrap();
            let mut buffer = OutBuffer::around(&mut output[..]);
            context.decompress_stream(&mut buffer, &mut InBuffer::around(&frame)).unwrap();
            let (held, claimed) = (context.sizeof() as u64, ZstdDecoder::memory(window));
            assert!(
                held <= claimed && claimed < held + (1 << 20),
                "window {window}: {held}, claimed {claimed}"
            );
        }
    }
}
