//! Functions that change single bytes, words, or the order of bytes.

use bytes::Bytes;

use super::blocks::Blocks;
use crate::function::{Call, Fault, Kernel, Out};
use crate::functions::kernels::{Begin, StreamingFunction, add_streamed, changed, passed, signature};
use crate::param::ParamKind;
use crate::registry::Functions;
use crate::signature::{Arity, Holds, MemoryNeed, Signature};
use crate::whole::{Body, whole};

pub(super) fn add(functions: &mut Functions) {
    let identity = signature("identity/1.0.0", "The input, unchanged.").nanos_per_kib(2);
    let rows: [(Signature, Begin); 5] = [
        (Signature { passes_input: true, ..identity }, passing),
        (
            signature("concat/1.0.0", "All inputs, concatenated.")
                .inputs(Arity::at_least(0))
                .nanos_per_kib(2),
            passing,
        ),
        (
            signature(
                "byte_swap/1.0.0",
                "The bytes of every word in reverse order; an incomplete word at the end is an error.",
            )
            .needs("word_size", ParamKind::int(2, 8), "the size of a word in bytes: 2, 4 or 8"),
            byte_swap,
        ),
        (
            signature("pad/1.0.0", "The input padded to a multiple of `block_size` with PKCS#7.")
                .needs("block_size", ParamKind::int(1, 255), "block size in bytes, 1 to 255")
                .nanos_per_kib(5),
            pad,
        ),
        (signature("sort_bytes/1.0.0", "All bytes in ascending order.").nanos_per_kib(700), |_| {
            Ok(Box::new(ByteSortKernel { counts: [0; 256], next: 0 }))
        }),
    ];
    add_streamed(functions, rows);
    add_streamed(functions, bitwise());
    let mut repeat = signature("repeat/1.0.0", "The input repeated `count` times.")
        .needs("count", ParamKind::POSITIVE, "the number of copies")
        .bounds_output()
        // The cost depends on the count rather than on the input.
        .nanos_per_kib(Signature::OPAQUE);
    repeat.holds = Holds::Everything;
    repeat.memory = MemoryNeed::WHOLE;
    functions.add(StreamingFunction(repeat, |call| {
        let (count, most) = (call.number("count")?, call.max_bytes()?);
        Ok(Box::new(RepeatKernel { chunks: Vec::new(), len: 0, left: count, at: 0, most }))
    }));
    for id in ["reverse/1.0.0", "reverse_bytes/1.0.0"] {
        functions.add(whole(
            signature(id, "The bytes in reverse order. Reversed UTF-8 text is usually invalid."),
            reverse,
        ));
    }
    let trim = "The input without white space at its start and end: spaces, tabs, line feeds, form feeds and \
        carriage returns.";
    functions.add(whole(signature("trim/1.0.0", trim).nanos_per_kib(20), |_| {
        Ok(Box::new(|inputs, _| Ok(inputs[0].slice_ref(inputs[0].trim_ascii()))))
    }));
}

fn bitwise() -> [(Signature, Begin); 4] {
    [
        (byte_wise("xor/1.0.0", "Every byte XOR the key; not a cipher.").needs("key", BYTE, OTHER), |call| {
            let key = byte(call, "key")?;
            Ok(changed(move |bytes| bytes.iter_mut().for_each(|byte| *byte ^= key)))
        }),
        (byte_wise("bitwise_and/1.0.0", "Every byte AND the mask.").needs("mask", BYTE, OTHER), |call| {
            let mask = byte(call, "mask")?;
            Ok(changed(move |bytes| bytes.iter_mut().for_each(|byte| *byte &= mask)))
        }),
        (byte_wise("bitwise_or/1.0.0", "Every byte OR the mask.").needs("mask", BYTE, OTHER), |call| {
            let mask = byte(call, "mask")?;
            Ok(changed(move |bytes| bytes.iter_mut().for_each(|byte| *byte |= mask)))
        }),
        (byte_wise("bitwise_not/1.0.0", "Every bit inverted (NOT)."), |_| {
            Ok(changed(|bytes| bytes.iter_mut().for_each(|byte| *byte = !*byte)))
        }),
    ]
}

const BYTE: ParamKind = ParamKind::int(0, 255);
const OTHER: &str = "the other operand";

fn byte_wise(id: &'static str, about: &'static str) -> Signature {
    signature(id, about).nanos_per_kib(60)
}

fn byte(call: &Call<'_>, name: &str) -> Result<u8, Fault> {
    Ok(call.number(name)? as u8)
}

fn passing(_: &Call<'_>) -> Result<Box<dyn Kernel>, Fault> {
    Ok(passed((), |(), _| Ok(()), |(), _| Ok(())))
}

fn reverse(_: &Call<'_>) -> Result<Body, Fault> {
    Ok(Box::new(|inputs, _| Ok(inputs[0].iter().rev().copied().collect::<Vec<u8>>().into())))
}

fn byte_swap(call: &Call<'_>) -> Result<Box<dyn Kernel>, Fault> {
    let size = call.number("word_size")? as usize;
    if !size.is_power_of_two() {
        return Err(Fault::param("word_size", format!("{size} is not 2, 4 or 8")));
    }
    Ok(Box::new(ByteSwapKernel { size, words: Blocks::new(size), seen: 0 }))
}

struct ByteSwapKernel {
    size: usize,
    words: Blocks,
    seen: u64,
}

impl Kernel for ByteSwapKernel {
    fn push(&mut self, _: usize, chunk: Bytes, out: &mut Out) -> Result<(), Fault> {
        self.seen += chunk.len() as u64;
        let size = self.size;
        self.words.take(&chunk, |words| {
            let mut words = words.to_vec();
            match size {
                2 => words.chunks_exact_mut(2).for_each(<[u8]>::reverse),
                4 => words.chunks_exact_mut(4).for_each(<[u8]>::reverse),
                _ => words.chunks_exact_mut(8).for_each(<[u8]>::reverse),
            }
            out.push(words.into());
            Ok(())
        })
    }

    fn finish(&mut self, _: &mut Out) -> Result<(), Fault> {
        match self.words.rest().is_empty() {
            true => Ok(()),
            false => {
                let problem = format!("{} bytes are not a whole number of words of {}", self.seen, self.size);
                Err(Fault::input(0, problem))
            }
        }
    }
}

fn pad(call: &Call<'_>) -> Result<Box<dyn Kernel>, Fault> {
    let size = call.number("block_size")?;
    let see = |seen: &mut u64, chunk: &[u8]| {
        *seen += chunk.len() as u64;
        Ok(())
    };
    Ok(passed(0, see, move |seen, out| {
        let missing = size - *seen % size;
        out.write(&vec![missing as u8; missing as usize]);
        Ok(())
    }))
}

/// The number of occurrences of each byte, and the first byte that has not been written in full.
struct ByteSortKernel {
    counts: [u64; 256],
    next: usize,
}

impl Kernel for ByteSortKernel {
    fn push(&mut self, _: usize, chunk: Bytes, _: &mut Out) -> Result<(), Fault> {
        chunk.iter().for_each(|byte| self.counts[usize::from(*byte)] += 1);
        Ok(())
    }

    fn finish(&mut self, out: &mut Out) -> Result<(), Fault> {
        self.resume(out)
    }

    fn resume(&mut self, out: &mut Out) -> Result<(), Fault> {
        while self.next < 256 {
            if out.is_full() {
                out.pause();
                return Ok(());
            }
            let some = self.counts[self.next].min(Out::FULL as u64);
            out.push(vec![self.next as u8; some as usize].into());
            self.counts[self.next] -= some;
            self.next += usize::from(self.counts[self.next] == 0);
        }
        Ok(())
    }
}

struct RepeatKernel {
    chunks: Vec<Bytes>,
    len: u64,
    left: u64,
    at: usize,
    most: u64,
}

impl Kernel for RepeatKernel {
    fn push(&mut self, _: usize, chunk: Bytes, _: &mut Out) -> Result<(), Fault> {
        self.len += chunk.len() as u64;
        if self.len.checked_mul(self.left).is_none_or(|len| len > self.most) {
            return Err(Fault::TooLarge { what: "the output", most: self.most });
        }
        self.chunks.push(chunk);
        Ok(())
    }

    fn finish(&mut self, out: &mut Out) -> Result<(), Fault> {
        self.resume(out)
    }

    fn resume(&mut self, out: &mut Out) -> Result<(), Fault> {
        if self.chunks.is_empty() {
            return Ok(());
        }
        while self.left > 0 {
            if out.is_full() {
                out.pause();
                return Ok(());
            }
            out.push(self.chunks[self.at].clone());
            self.at = (self.at + 1) % self.chunks.len();
            self.left -= u64::from(self.at == 0);
        }
        Ok(())
    }
}
