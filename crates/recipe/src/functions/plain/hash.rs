//! Functions that compute digests.

use bytes::Bytes;
use hmac::{Hmac, Mac};
use md5::Md5;
use sha2::{Digest, Sha256, Sha384, Sha512};

use crate::function::{Call, Fault, Kernel, Out};
use crate::functions::kernels::{Begin, StreamingFunction, add_streamed, passed, signature, summed};
use crate::param::ParamKind;
use crate::registry::Functions;
use crate::signature::{Arity, Signature};

pub(super) fn add(functions: &mut Functions) {
    let rows: [(Signature, Begin); 9] = [
        (signature("sha256/1.0.0", "The SHA-256 digest: 32 bytes.").nanos_per_kib(700), digest::<Sha256>),
        (signature("sha384/1.0.0", "The SHA-384 digest: 48 bytes.").nanos_per_kib(1800), digest::<Sha384>),
        (signature("sha512/1.0.0", "The SHA-512 digest: 64 bytes.").nanos_per_kib(1800), digest::<Sha512>),
        (
            signature(
                "md5/1.0.0",
                "The MD5 digest: 16 bytes. MD5 is broken; do not use it against tampering.",
            )
            .nanos_per_kib(1700),
            digest::<Md5>,
        ),
        (blake3_like("blake3/1.0.0", "The BLAKE3 digest, which is a blob's address: 32 bytes."), blake3),
        (
            blake3_like("caddr_compute/1.0.0", "A blob's address, which is its BLAKE3 digest: 32 bytes."),
            blake3,
        ),
        (blake3_like("caddr_embed/1.0.0", "The input, then the 32 bytes of its BLAKE3 digest."), embed),
        (signature("crc32/1.0.0", "The CRC-32 (IEEE): 4 bytes, big endian.").nanos_per_kib(80), |_| {
            Ok(summed(crc32fast::Hasher::new(), crc32fast::Hasher::update, |hasher, out| {
                out.write(&hasher.clone().finalize().to_be_bytes());
                Ok(())
            }))
        }),
        (
            signature(
                "hmac_sha256/1.0.0",
                "The HMAC-SHA-256: 32 bytes. The key is stored in the recipe in plain text; everyone who \
                 can read the recipe can read the key.",
            )
            .needs("key", ParamKind::BYTES, "the key; it may be empty")
            .nanos_per_kib(700),
            hmac,
        ),
    ];
    add_streamed(functions, rows);
    add_trees(functions);
}

fn add_trees(functions: &mut Functions) {
    let root = "A Merkle root (BLAKE3) of the inputs: the hash of each, then of pairs, left before right. \
        An unpaired node moves up unchanged. An inner node can be forged as an input (second preimage); \
        version 2.0.0 prevents that.";
    functions
        .add(StreamingFunction(blake3_like("merkle_root/1.0.0", root).inputs(Arity::at_least(2)), |_| {
            Ok(Box::new(Tree::new(b"", b"")))
        }));
    let root = "A Merkle root (BLAKE3) of the inputs: the hash of a zero byte and each, then of a one byte \
        and pairs, left before right. An unpaired node moves up unchanged.";
    functions
        .add(StreamingFunction(blake3_like("merkle_root/2.0.0", root).inputs(Arity::at_least(2)), |_| {
            Ok(Box::new(Tree::new(&[0], &[1])))
        }));
    functions.add(StreamingFunction(
        signature("chunk_hash/1.0.0", "The SHA-256 digests of all blocks, concatenated.")
            .may("block_size", ParamKind::POSITIVE, 65536, "block size in bytes")
            .nanos_per_kib(700),
        |call| {
            let size = call.number("block_size")?;
            Ok(Box::new(BlockDigests { size, left: size, hasher: Sha256::new(), chunk: Bytes::new() }))
        },
    ));
}

fn blake3_like(id: &'static str, about: &'static str) -> Signature {
    signature(id, about).nanos_per_kib(300)
}

fn digest<D: Digest + Send + 'static>(_: &Call<'_>) -> Result<Box<dyn Kernel>, Fault> {
    Ok(summed(
        Some(D::new()),
        |digest, chunk| digest.iter_mut().for_each(|digest| digest.update(chunk)),
        |digest, out| {
            digest.take().into_iter().for_each(|digest| out.write(&digest.finalize()));
            Ok(())
        },
    ))
}

fn blake3(_: &Call<'_>) -> Result<Box<dyn Kernel>, Fault> {
    Ok(summed(blake3::Hasher::new(), see, give))
}

fn embed(_: &Call<'_>) -> Result<Box<dyn Kernel>, Fault> {
    let pass = |hasher: &mut blake3::Hasher, chunk: &[u8]| {
        see(hasher, chunk);
        Ok(())
    };
    Ok(passed(blake3::Hasher::new(), pass, give))
}

fn see(hasher: &mut blake3::Hasher, chunk: &[u8]) {
    hasher.update(chunk);
}

fn give(hasher: &mut blake3::Hasher, out: &mut Out) -> Result<(), Fault> {
    out.write(hasher.finalize().as_bytes());
    Ok(())
}

fn hmac(call: &Call<'_>) -> Result<Box<dyn Kernel>, Fault> {
    let key = call.bytes("key")?;
    let hmac = Hmac::<Sha256>::new_from_slice(&key).expect("a key of any length will do");
    Ok(summed(
        hmac,
        |hmac, chunk| hmac.update(chunk),
        |hmac, out| {
            out.write(&hmac.clone().finalize().into_bytes());
            Ok(())
        },
    ))
}

/// A Merkle tree that grows to the right. It keeps at most one root per power of two, so the list stays short.
struct Tree {
    node: &'static [u8],
    /// The hasher's state at the beginning of an input.
    fresh: blake3::Hasher,
    leaf: blake3::Hasher,
    /// The roots of complete subtrees, largest first, each with the number of inputs below it.
    roots: Vec<(u64, blake3::Hash)>,
}

impl Tree {
    fn new(leaf: &[u8], node: &'static [u8]) -> Tree {
        let mut fresh = blake3::Hasher::new();
        fresh.update(leaf);
        Tree { node, leaf: fresh.clone(), fresh, roots: Vec::new() }
    }

    fn join(&mut self) {
        let (Some((right, right_root)), Some((left, left_root))) = (self.roots.pop(), self.roots.pop())
        else {
            unreachable!("only called with two roots or more")
        };
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.node).update(left_root.as_bytes()).update(right_root.as_bytes());
        self.roots.push((left + right, hasher.finalize()));
    }
}

impl Kernel for Tree {
    fn push(&mut self, _: usize, chunk: Bytes, _: &mut Out) -> Result<(), Fault> {
        self.leaf.update(&chunk);
        Ok(())
    }

    fn end(&mut self, _: usize, _: &mut Out) -> Result<(), Fault> {
        let leaf = std::mem::replace(&mut self.leaf, self.fresh.clone());
        self.roots.push((1, leaf.finalize()));
        while let [.., (left, _), (right, _)] = self.roots[..]
            && left == right
        {
            self.join();
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Out) -> Result<(), Fault> {
        while self.roots.len() > 1 {
            self.join();
        }
        self.roots.iter().for_each(|(_, root)| out.write(root.as_bytes()));
        Ok(())
    }
}

struct BlockDigests {
    size: u64,
    /// The number of bytes missing from the current block.
    left: u64,
    hasher: Sha256,
    /// Input that has not been hashed yet. Small blocks make the output larger than the input, so the rest of a chunk
    /// waits until the output has been taken.
    chunk: Bytes,
}

impl Kernel for BlockDigests {
    fn push(&mut self, _: usize, chunk: Bytes, out: &mut Out) -> Result<(), Fault> {
        self.chunk = chunk;
        self.resume(out)
    }

    fn resume(&mut self, out: &mut Out) -> Result<(), Fault> {
        while !self.chunk.is_empty() {
            if out.is_full() {
                out.pause();
                return Ok(());
            }
            let some = self.left.min(self.chunk.len() as u64);
            self.hasher.update(self.chunk.split_to(some as usize));
            self.left -= some;
            if self.left == 0 {
                out.write(&self.hasher.finalize_reset());
                self.left = self.size;
            }
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Out) -> Result<(), Fault> {
        if self.left < self.size {
            out.write(&self.hasher.finalize_reset());
        }
        Ok(())
    }
}
