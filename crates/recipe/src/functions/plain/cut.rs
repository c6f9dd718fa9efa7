//! Functions that take parts of inputs or combine inputs.

use bytes::Bytes;

use crate::function::{Call, Fault, Kernel, OpenInputs, Out};
use crate::functions::kernels::{Begin, add_streamed, passed, signature};
use crate::param::ParamKind;
use crate::registry::Functions;
use crate::signature::{Arity, Signature};
use crate::whole::{Body, whole};

pub(super) fn add(functions: &mut Functions) {
    let rows: [(Signature, Begin); 4] = [
        (
            part("take/1.0.0", "The first `bytes` bytes, or all bytes if there are fewer.").needs(
                "bytes",
                ParamKind::NUMBER,
                "the number of bytes",
            ),
            |call| Ok(Part::begin(0, call.number("bytes")?)),
        ),
        (
            part("skip/1.0.0", "The input without the first `bytes` bytes.").needs(
                "bytes",
                ParamKind::NUMBER,
                "the number of bytes to skip",
            ),
            |call| Ok(Part::begin(call.number("bytes")?, u64::MAX)),
        ),
        (
            part("slice/1.0.0", "Up to `length` bytes from `offset`; fewer at the end of the input.")
                .needs("offset", ParamKind::NUMBER, "the number of bytes before the first one")
                .needs("length", ParamKind::NUMBER, "the maximum number of bytes"),
            |call| Ok(Part::begin(call.number("offset")?, call.number("length")?)),
        ),
        (
            part("select/1.0.0", "One of the inputs. The others are not read.")
                .inputs(Arity::at_least(1))
                .needs("index", ParamKind::NUMBER, "the index of the input, from 0"),
            select,
        ),
    ];
    add_streamed(functions, rows);
    add_streamed(functions, additions());
    let interleaved = "One block of each input in turn. Inputs that have ended are skipped.";
    functions.add(whole(
        signature("interleave/1.0.0", interleaved)
            .inputs(Arity::at_least(2))
            .may("block_size", ParamKind::POSITIVE, 1, "block size in bytes")
            .nanos_per_kib(2000),
        interleave,
    ));
    let zipped = "The lengths of both inputs, each as 4 bytes, big endian, then both inputs. An input of \
        4 GiB or more is an error.";
    functions.add(whole(
        signature("zip_concat/1.0.0", zipped).inputs(Arity::exactly(2)).nanos_per_kib(60),
        |_| Ok(Box::new(|inputs, _| zip_concat(&inputs))),
    ));
}

/// Functions that add bytes.
fn additions() -> [(Signature, Begin); 3] {
    [
        (
            part("prefix/1.0.0", "The prefix, then the input.").needs(
                "prefix",
                ParamKind::TextOrBytes,
                "the bytes before the input",
            ),
            |call| Ok(Box::new(PrefixKernel(call.literal("prefix")?))),
        ),
        (
            part("suffix/1.0.0", "The input, then the suffix.").needs(
                "suffix",
                ParamKind::TextOrBytes,
                "the bytes after the input",
            ),
            |call| {
                let suffix = call.literal("suffix")?;
                Ok(passed(
                    suffix,
                    |_, _| Ok(()),
                    |suffix, out| {
                        out.push(std::mem::take(suffix));
                        Ok(())
                    },
                ))
            },
        ),
        (
            part(
                "chunk_split/1.0.0",
                "The input in blocks, separated by a zero byte. Zero bytes of the input cannot be told \
                 from separators.",
            )
            .needs("size", ParamKind::POSITIVE, "block size in bytes"),
            |call| {
                let size = call.number("size")?;
                Ok(Box::new(Split { size, left: size }))
            },
        ),
    ]
}

fn part(id: &'static str, about: &'static str) -> Signature {
    signature(id, about).nanos_per_kib(4)
}

/// The number of bytes to skip, then the number of bytes to pass on.
struct Part {
    skip: u64,
    take: u64,
}

impl Part {
    fn begin(skip: u64, take: u64) -> Box<dyn Kernel> {
        Box::new(Part { skip, take })
    }
}

impl Kernel for Part {
    fn wants(&self, open: &OpenInputs<'_>) -> Option<usize> {
        if self.take > 0 { open.first() } else { None }
    }

    fn push(&mut self, _: usize, mut chunk: Bytes, out: &mut Out) -> Result<(), Fault> {
        let skipped = self.skip.min(chunk.len() as u64);
        self.skip -= skipped;
        let _ = chunk.split_to(skipped as usize);
        let taken = self.take.min(chunk.len() as u64);
        self.take -= taken;
        chunk.truncate(taken as usize);
        out.push(chunk);
        Ok(())
    }
}

fn select(call: &Call<'_>) -> Result<Box<dyn Kernel>, Fault> {
    let index = call.number("index")?;
    let count = call.sizes.len();
    match usize::try_from(index) {
        Ok(index) if index < count => Ok(Box::new(SelectKernel(index))),
        _ => Err(Fault::param("index", format!("{index} is past the last input, which is {}", count - 1))),
    }
}

struct SelectKernel(usize);

impl Kernel for SelectKernel {
    fn wants(&self, open: &OpenInputs<'_>) -> Option<usize> {
        open.has(self.0).then_some(self.0)
    }

    fn push(&mut self, _: usize, chunk: Bytes, out: &mut Out) -> Result<(), Fault> {
        out.push(chunk);
        Ok(())
    }
}

/// Bytes that must still be written before the input.
struct PrefixKernel(Bytes);

impl Kernel for PrefixKernel {
    fn push(&mut self, _: usize, chunk: Bytes, out: &mut Out) -> Result<(), Fault> {
        self.finish(out)?;
        out.push(chunk);
        Ok(())
    }

    fn finish(&mut self, out: &mut Out) -> Result<(), Fault> {
        if !self.0.is_empty() {
            out.push(std::mem::take(&mut self.0));
        }
        Ok(())
    }
}

/// The block size, and the number of bytes missing from the current block.
struct Split {
    size: u64,
    left: u64,
}

impl Kernel for Split {
    fn push(&mut self, _: usize, mut chunk: Bytes, out: &mut Out) -> Result<(), Fault> {
        while !chunk.is_empty() {
            if self.left == 0 {
                out.write(&[0]);
                self.left = self.size;
            }
            let some = self.left.min(chunk.len() as u64);
            self.left -= some;
            out.push(chunk.split_to(some as usize));
        }
        Ok(())
    }
}

fn interleave(call: &Call<'_>) -> Result<Body, Fault> {
    let size = call.count("block_size")?;
    Ok(Box::new(move |mut left, _| {
        let mut mixed = Vec::with_capacity(left.iter().map(Bytes::len).sum());
        while !left.is_empty() {
            left.retain(|input| !input.is_empty());
            for input in &mut left {
                let some = size.min(input.len());
                mixed.extend_from_slice(&input[..some]);
                bytes::Buf::advance(input, some);
            }
        }
        Ok(mixed.into())
    }))
}

fn zip_concat(inputs: &[Bytes]) -> Result<Bytes, Fault> {
    let mut zipped = Vec::with_capacity(8 + inputs.iter().map(Bytes::len).sum::<usize>());
    for (input, bytes) in inputs.iter().enumerate() {
        let len = u32::try_from(bytes.len()).map_err(|_| {
            Fault::input(
                input,
                format!("has {} bytes, a length of 4 bytes says at most {}", bytes.len(), u32::MAX),
            )
        })?;
        zipped.extend_from_slice(&len.to_be_bytes());
    }
    inputs.iter().for_each(|input| zipped.extend_from_slice(input));
    Ok(zipped.into())
}
