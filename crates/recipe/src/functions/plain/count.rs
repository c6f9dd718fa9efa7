//! Functions that count.

use crate::function::{Call, Fault, Kernel, Out};
use crate::functions::kernels::{Begin, add_streamed, signature, summed};
use crate::registry::Functions;
use crate::signature::Signature;

pub(super) fn add(functions: &mut Functions) {
    let rows: [(Signature, Begin); 5] = [
        (
            signature("byte_count/1.0.0", "The number of bytes, as 8 bytes, big endian.").nanos_per_kib(2),
            |_| {
                Ok(summed(
                    0_u64,
                    |count, chunk| *count += chunk.len() as u64,
                    |count, out| {
                        out.write(&count.to_be_bytes());
                        Ok(())
                    },
                ))
            },
        ),
        (
            signature(
                "line_count/1.0.0",
                "The number of line feeds, in decimal digits. A last line without one does not count.",
            )
            .nanos_per_kib(40),
            |_| {
                let see = |count: &mut u64, chunk: &[u8]| {
                    *count += memchr::memchr_iter(b'\n', chunk).count() as u64;
                };
                Ok(summed(0, see, digits))
            },
        ),
        (
            signature(
                "word_count/1.0.0",
                "The number of words, in decimal digits. Words are separated by spaces, tabs, line feeds, \
                 form feeds and carriage returns.",
            )
            .nanos_per_kib(900),
            word_count,
        ),
        (
            signature(
                "histogram/1.0.0",
                "The count of each of the 256 byte values, each as 8 bytes, big endian.",
            )
            .nanos_per_kib(700),
            |_| {
                Ok(summed([0_u64; 256], tally, |counts, out| {
                    counts.iter().for_each(|count| out.write(&count.to_be_bytes()));
                    Ok(())
                }))
            },
        ),
        (
            signature(
                "min_max/1.0.0",
                "The smallest and the largest byte: 2 bytes. An empty input is an error.",
            )
            .nanos_per_kib(80),
            min_max,
        ),
    ];
    add_streamed(functions, rows);
    add_entropy(functions);
}

fn add_entropy(functions: &mut Functions) {
    let rows: [(Signature, Begin); 2] = [
        (
            signature(
                "entropy/1.0.0",
                "The Shannon entropy in bits per byte, as a 64-bit float: 8 bytes, big endian; 0 for an \
                 empty input. Version 2.0.0 returns text.",
            )
            .nanos_per_kib(700)
            .unlike_deriva(
                "The last bit may differ: the logarithm here is the same on every machine, Deriva's is \
                 that of the machine.",
            ),
            |_| {
                Ok(summed([0_u64; 256], tally, |counts, out| {
                    out.write(&entropy(counts).to_be_bytes());
                    Ok(())
                }))
            },
        ),
        (
            signature(
                "entropy/2.0.0",
                "The Shannon entropy in bits per byte, as text with six decimals; 0.000000 for an empty \
                 input.",
            )
            .nanos_per_kib(700),
            |_| {
                Ok(summed([0_u64; 256], tally, |counts, out| {
                    out.write(format!("{:.6}", entropy(counts).max(0.0)).as_bytes());
                    Ok(())
                }))
            },
        ),
    ];
    add_streamed(functions, rows);
}

fn digits(count: &mut u64, out: &mut Out) -> Result<(), Fault> {
    out.write(count.to_string().as_bytes());
    Ok(())
}

fn word_count(_: &Call<'_>) -> Result<Box<dyn Kernel>, Fault> {
    let see = |(count, inside): &mut (u64, bool), chunk: &[u8]| {
        for byte in chunk {
            let word = !byte.is_ascii_whitespace();
            *count += u64::from(word && !*inside);
            *inside = word;
        }
    };
    Ok(summed((0, false), see, |(count, _), out| digits(count, out)))
}

fn tally(counts: &mut [u64; 256], chunk: &[u8]) {
    chunk.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
}

/// The entropy in bits per byte. If all bytes are equal it is -0.0, as in Deriva.
fn entropy(counts: &[u64; 256]) -> f64 {
    let total = counts.iter().sum::<u64>() as f64;
    if total == 0.0 {
        return 0.0;
    }
    let of = |count: &u64| {
        let share = *count as f64 / total;
        // A software logarithm gives the same last bit on every platform.
        -(share * libm::log2(share))
    };
    counts.iter().filter(|count| **count > 0).map(of).fold(-0.0, |sum, part| sum + part)
}

fn min_max(_: &Call<'_>) -> Result<Box<dyn Kernel>, Fault> {
    let see = |(least, most): &mut (u8, u8), chunk: &[u8]| {
        *least = chunk.iter().fold(*least, |least, byte| least.min(*byte));
        *most = chunk.iter().fold(*most, |most, byte| most.max(*byte));
    };
    Ok(summed((u8::MAX, u8::MIN), see, |(least, most), out| match *least <= *most {
        true => {
            out.write(&[*least, *most]);
            Ok(())
        }
        false => Err(Fault::input(0, "is empty: it has no smallest byte")),
    }))
}
