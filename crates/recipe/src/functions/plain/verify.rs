//! Functions that pass their input on unchanged if it is valid.

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use crate::function::{Call, Fault, Kernel};
use crate::functions::kernels::{Begin, add_streamed, passed, signature};
use crate::param::ParamKind;
use crate::registry::Functions;
use crate::signature::Signature;

pub(super) fn add(functions: &mut Functions) {
    let rows: [(Signature, Begin); 3] = [
        (
            signature(
                "size_limit/1.0.0",
                "Returns the input unchanged; fails if it has more than `max_bytes` bytes.",
            )
            .needs("max_bytes", ParamKind::NUMBER, "the maximum number of bytes")
            .nanos_per_kib(4),
            size_limit,
        ),
        (
            signature("non_empty/1.0.0", "Returns the input unchanged; fails if it is empty.")
                .nanos_per_kib(4),
            non_empty,
        ),
        (
            signature(
                "magic_bytes/1.0.0",
                "Returns the input unchanged; fails if it does not begin with `expected`.",
            )
            .needs("expected", ParamKind::Bytes { least: 1, most: u64::MAX }, "the first bytes of the input")
            .nanos_per_kib(4),
            magic_bytes,
        ),
    ];
    add_streamed(functions, rows);
    add_streamed(functions, digests());
}

fn digests() -> [(Signature, Begin); 3] {
    [
        (
            signature(
                "sha256_verify/1.0.0",
                "Returns the input unchanged; fails if `expected_hash` is not its SHA-256 digest.",
            )
            .needs("expected_hash", ParamKind::bytes(32), "the expected digest")
            .nanos_per_kib(700),
            |call| {
                let expected = call.array::<32>("expected_hash")?;
                Ok(digested(
                    "SHA-256",
                    expected,
                    Sha256::new(),
                    |hasher, chunk| hasher.update(chunk),
                    |hasher| hasher.finalize_reset().into(),
                ))
            },
        ),
        (
            signature(
                "crc32_verify/1.0.0",
                "Returns the input unchanged; fails if `expected_crc32` is not its CRC-32.",
            )
            .needs("expected_crc32", ParamKind::bytes(4), "the expected CRC-32, big endian")
            .nanos_per_kib(80),
            |call| {
                let expected = call.array::<4>("expected_crc32")?;
                Ok(digested(
                    "CRC-32",
                    expected,
                    crc32fast::Hasher::new(),
                    crc32fast::Hasher::update,
                    |hasher| hasher.clone().finalize().to_be_bytes(),
                ))
            },
        ),
        (
            signature(
                "caddr_verify/1.0.0",
                "Returns the input unchanged; fails if `expected_caddr` is not its address (BLAKE3 \
                 digest).",
            )
            .needs("expected_caddr", ParamKind::bytes(32), "the expected address")
            .nanos_per_kib(300),
            |call| {
                let expected = call.array::<32>("expected_caddr")?;
                let see = |hasher: &mut blake3::Hasher, chunk: &[u8]| {
                    hasher.update(chunk);
                };
                Ok(digested("address", expected, blake3::Hasher::new(), see, |hasher| {
                    hasher.finalize().into()
                }))
            },
        ),
    ]
}

fn size_limit(call: &Call<'_>) -> Result<Box<dyn Kernel>, Fault> {
    let most = call.number("max_bytes")?;
    let see = move |seen: &mut u64, chunk: &[u8]| {
        *seen += chunk.len() as u64;
        match *seen <= most {
            true => Ok(()),
            false => Err(Fault::input(0, format!("has more than {most} bytes"))),
        }
    };
    Ok(passed(0, see, |_, _| Ok(())))
}

fn non_empty(_: &Call<'_>) -> Result<Box<dyn Kernel>, Fault> {
    let see = |seen: &mut bool, _: &[u8]| {
        *seen = true;
        Ok(())
    };
    Ok(passed(false, see, |seen, _| match seen {
        true => Ok(()),
        false => Err(Fault::input(0, "is empty")),
    }))
}

fn magic_bytes(call: &Call<'_>) -> Result<Box<dyn Kernel>, Fault> {
    let expected = call.bytes("expected")?;
    let unlike =
        |expected: &[u8]| Fault::input(0, format!("does not begin with {}", HEXLOWER.encode(expected)));
    let left = expected.clone();
    let whole = expected.clone();
    let see = move |left: &mut bytes::Bytes, chunk: &[u8]| {
        let some = left.len().min(chunk.len());
        match left.split_to(some) == chunk[..some] {
            true => Ok(()),
            false => Err(unlike(&expected)),
        }
    };
    Ok(passed(left, see, move |left, _| if left.is_empty() { Ok(()) } else { Err(unlike(&whole)) }))
}

/// A kernel that passes its input on and fails if the digest differs from `expected`.
fn digested<H: Send + 'static, const LEN: usize>(
    name: &'static str,
    expected: [u8; LEN],
    hasher: H,
    see: fn(&mut H, &[u8]),
    digest: fn(&mut H) -> [u8; LEN],
) -> Box<dyn Kernel> {
    let pass = move |hasher: &mut H, chunk: &[u8]| {
        see(hasher, chunk);
        Ok(())
    };
    passed(hasher, pass, move |hasher, _| {
        let got = digest(hasher);
        match got == expected {
            true => Ok(()),
            false => {
                let (got, expected) = (HEXLOWER.encode(&got), HEXLOWER.encode(&expected));
                Err(Fault::input(0, format!("its {name} is {got}, not {expected}")))
            }
        }
    })
}
